"""Captioning: our JAX PaliGemma against transformers' `generate`, on the same weights and images.

    python -m benchmarks.bench what=caption
    python -m benchmarks.bench what=caption what.shape=3b what.dtype=bfloat16 what.batches=[32]
    python -m benchmarks.bench what=caption what.model=FOLDER

Without `what.model` the weights are random. Both get the same pixels and prompt, decode greedily,
and are timed in turns after one unmeasured call each; the ratio is of the median times. FLOPs are
two for every weight that a token passes (attention scores are left out), set against a large matrix
product measured in the same run.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.figures import BenchTable, Cell
from mustsee.errors import UserError, need

PROMPT = [2, 5, 6, 7, 8]  # BOS and a few words
Ids = list[list[int]]
SHAPES: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "small": {
        "text": {
            "vocab_size": 4096, "hidden_size": 256, "intermediate_size": 1024,
            "num_hidden_layers": 6, "num_attention_heads": 4, "num_key_value_heads": 2,
            "head_dim": 64,
        },
        "vision": {
            "hidden_size": 192, "intermediate_size": 768, "num_hidden_layers": 4,
            "num_attention_heads": 4, "image_size": 112, "patch_size": 14,
        },
    },
    "3b": {  # PaliGemma 2 3B at 224 pixels (arXiv 2412.03555)
        "text": {
            "vocab_size": 257216, "hidden_size": 2304, "intermediate_size": 9216,
            "num_hidden_layers": 26, "num_attention_heads": 8, "num_key_value_heads": 4,
            "head_dim": 256,
        },
        "vision": {
            "hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 27,
            "num_attention_heads": 16, "image_size": 224, "patch_size": 14,
        },
    },
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class CaptionBench:
    """`model`: folder of a PaliGemma; null: random weights of `shape`. `threads`: of torch; on a
    busy machine they wait for each other (2 instead of 1 made it 16 to 47 times slower).
    """

    model: str | None = None
    shape: str = "small"
    dtype: str = "float32"
    batches: tuple[int, ...] = (1, 8)
    max_tokens: int = 32
    repeats: int = 3
    threads: int = 1
    matmul: int = 1024
    seed: int = 0

    def __call__(self) -> BenchTable:
        need("what=caption", "mustsee[torch]", "torch")
        if self.shape not in SHAPES:
            raise UserError(f"what.shape={self.shape!r}: expected one of {', '.join(SHAPES)}")
        with tempfile.TemporaryDirectory() as folder:
            path = self.model or random_model(Path(folder), self.shape, self.dtype, self.seed)
            return self._measure(path)

    def _measure(self, path: str) -> BenchTable:
        import jax

        from mustsee.nn.paligemma import Captioner

        ours = Captioner.load(path, dtype=self.dtype, batches=self.batches)
        theirs = Reference(path, self.dtype, self.threads)
        peak = matmul_rate(self.matmul, self.dtype)
        work = flops(path, len(PROMPT) + self.max_tokens, self.max_tokens)
        rows = [
            row for batch in self.batches for row in self._rows(batch, ours, theirs, peak, work)
        ]
        return BenchTable(
            title="captioning: our JAX code against transformers' generate",
            columns=("batch", "engine", "tokens/s", "images/s", "CPU s", "of peak", "ratio",
                     "CPU ratio", "same"),
            rows=tuple(rows),
            notes=(
                f"{path if self.model else f'random weights, shape {self.shape}'}, {self.dtype}, "
                f"up to {self.max_tokens} tokens, {self.repeats} repeats, medians",
                "CPU s: per image; ratios: transformers' time over this one's, by wall and by CPU; "
                "same: share of captions with the same tokens",
                f"JAX on {jax.devices()[0].platform}, transformers on {theirs.device} "
                f"({self.threads} thread{'s' if self.threads > 1 else ''})",
                f"{work / 1e9:.3g} GFLOP an image; "
                f"peak, by a matrix product: {peak / 1e9:.4g} GFLOP/s",
            ),
        )  # fmt: skip

    def _rows(
        self, batch: int, ours: Any, theirs: Reference, peak: float, work: float
    ) -> list[tuple[Cell, ...]]:
        from mustsee.nn.paligemma import Decoding

        draw = np.random.default_rng(self.seed)
        images = draw.uniform(-1, 1, (batch, ours.size, ours.size, 3)).astype(np.float32)
        prompt, decoding = np.array(PROMPT, np.int32), Decoding(max_tokens=self.max_tokens)
        calls: dict[str, Callable[[], Ids]] = {
            "transformers": lambda: theirs.generate(images, self.max_tokens),
            "JAX": lambda: ours.generate(images, prompt, decoding),
        }
        outputs = {name: call() for name, call in calls.items()}
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in calls}
        for _ in range(self.repeats):
            for name, call in calls.items():
                times[name].append(time_call(call))
        wall = {name: statistics.median(t[0] for t in runs) for name, runs in times.items()}
        cpu = {name: statistics.median(t[1] for t in runs) for name, runs in times.items()}
        same = np.mean(
            [a == b for a, b in zip(outputs["JAX"], outputs["transformers"], strict=True)]
        )
        return [
            (
                batch, name, sum(map(len, outputs[name])) / wall[name], batch / wall[name],
                cpu[name] / batch, work * batch / wall[name] / peak,
                wall["transformers"] / wall[name], cpu["transformers"] / cpu[name], float(same),
            )
            for name in calls
        ]  # fmt: skip


class Reference:
    """transformers' PaliGemma, on a GPU where there is one."""

    def __init__(self, path: str, dtype: str, threads: int) -> None:
        import torch
        from transformers import PaliGemmaForConditionalGeneration

        torch.set_num_threads(threads)
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        model: Any = PaliGemmaForConditionalGeneration.from_pretrained(
            path, dtype=getattr(torch, dtype), local_files_only=True, use_safetensors=True
        )
        self._model = model.to(self.device).eval()
        vision = model.config.vision_config
        self._patches = (vision.image_size // vision.patch_size) ** 2
        self._eos = model.config.text_config.eos_token_id

    def generate(self, images: np.ndarray[Any, Any], steps: int) -> Ids:
        import torch

        ids = [self._model.config.image_token_id] * self._patches + PROMPT
        input_ids = torch.tensor([ids] * len(images), device=self.device)
        with torch.inference_mode():
            generated = self._model.generate(
                input_ids=input_ids,
                attention_mask=torch.ones_like(input_ids),
                token_type_ids=torch.zeros_like(input_ids),
                pixel_values=torch.tensor(images.transpose(0, 3, 1, 2)).to(
                    self.device, self._model.dtype
                ),
                max_new_tokens=steps,
                do_sample=False,
            )
        rows = generated[:, len(ids) :].tolist()
        return [row[: row.index(self._eos)] if self._eos in row else row for row in rows]


def random_model(folder: Path, shape: str, dtype: str, seed: int) -> str:
    """Write a PaliGemma 2 with random weights and a tokenizer without words; return the folder."""
    import torch
    from tokenizers import Tokenizer, models
    from transformers import (
        Gemma2Config,
        PaliGemmaConfig,
        PaliGemmaForConditionalGeneration,
        SiglipVisionConfig,
    )

    text, vision = SHAPES[shape]["text"], SHAPES[shape]["vision"]
    config = PaliGemmaConfig(
        vision_config=SiglipVisionConfig(**vision, vision_use_head=False),
        text_config=Gemma2Config(**text, query_pre_attn_scalar=text["head_dim"], pad_token_id=0,
                                 bos_token_id=2, eos_token_id=1),
        image_token_index=text["vocab_size"] - 1,
        projection_dim=text["hidden_size"],
    )  # fmt: skip
    torch.manual_seed(seed)
    torch.set_default_dtype(getattr(torch, dtype))
    try:
        PaliGemmaForConditionalGeneration(config).save_pretrained(folder)
    finally:
        torch.set_default_dtype(torch.float32)
    words = {"<pad>": 0, "<eos>": 1, "<bos>": 2, "<unk>": 3}
    Tokenizer(models.WordLevel(words, "<unk>")).save(str(folder / "tokenizer.json"))
    return str(folder)


def flops(path: str, tokens: int, steps: int) -> float:
    """Return the FLOPs for one image: two for each weight that each token passes."""
    from mustsee.nn import weights
    from mustsee.nn.gemma import GemmaShape
    from mustsee.nn.siglip import SiglipShape

    config = weights.read_config(Path(path))
    text, tower = GemmaShape.of(config["text_config"]), SiglipShape.of(config["vision_config"])
    mlp_width = int(config["text_config"]["intermediate_size"])
    heads = 2 * text.heads + 2 * text.kv_heads
    decoder = text.layers * (text.width * text.head_width * heads + 3 * text.width * mlp_width)
    encoder_mlp_width = int(config["vision_config"]["intermediate_size"])
    encoder = tower.layers * (4 * tower.width**2 + 2 * tower.width * encoder_mlp_width)
    read = decoder * (tower.patches + tokens) + text.vocabulary * text.width * steps
    return 2.0 * (encoder * tower.patches + tower.width * text.width * tower.patches + read)


def matmul_rate(side: int, dtype: str) -> float:
    """Return the FLOP/s of a square matrix product in JAX, the best of five."""
    import jax
    import jax.numpy as jnp

    a = jnp.ones((side, side), jnp.dtype(dtype))
    multiply = jax.jit(lambda a: a @ a)
    multiply(a).block_until_ready()
    best = min(time_call(lambda: multiply(a).block_until_ready())[0] for _ in range(5))
    return 2.0 * side**3 / best


def time_call(call: Callable[[], Any]) -> tuple[float, float]:
    """Return the wall and CPU seconds of a call."""
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - wall, time.process_time() - cpu
