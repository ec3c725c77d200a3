"""Loading and running of the published checkpoints that several judges use."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mustsee.errors import UserError, need
from mustsee.judge.judge import hash_files
from mustsee.nn import weights

FILES = ("*.safetensors", "config.json", "tokenizer*", "vocab.*", "merges.txt", "spm.model")


def find_checkpoint(model: str, revision: str | None) -> tuple[Path, str]:
    """The folder of a checkpoint, and the SHA-256 of its weights and tokenizer. Raises
    UserError.
    """
    folder = weights.find(model, revision)
    files = [path for pattern in FILES for path in folder.glob(pattern)]
    if not any(path.suffix == ".safetensors" for path in files):
        raise UserError(f"{str(folder)!r} has no *.safetensors weights")
    return folder, hash_files(files)


def libraries() -> tuple[Any, Any]:
    """torch and transformers. Raises UserError if they are not installed."""
    need("this judge", "mustsee[torch]", "torch")
    import torch
    import transformers

    return torch, transformers


def passes(lengths: Sequence[int], budget: int) -> list[list[int]]:
    """Indices sorted by length, in passes of at most `budget` tokens with padding; a single longer
    input is a pass of its own.
    """
    batches: list[list[int]] = []
    for place in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        if batches and lengths[place] * (len(batches[-1]) + 1) <= budget:
            batches[-1].append(place)
        else:
            batches.append([place])
    return batches


class LoadedCheckpoint:
    """A checkpoint with its tokenizer, in float32 or as it was saved (`dtype="auto"`)."""

    def __init__(self, kind: str, folder: Path, device: str, budget: int, dtype: str) -> None:
        self._torch, transformers = libraries()
        if device == "auto":
            device = "cuda" if self._torch.cuda.is_available() else "cpu"
        self.tokenizer: Any = transformers.AutoTokenizer.from_pretrained(folder)
        loaded: Any = getattr(transformers, kind).from_pretrained(folder, dtype=dtype)
        self.model = loaded.to(device).eval()
        self._device, self._budget = device, budget
        self._pad = int(self.tokenizer.pad_token_id or 0)

    def logits(self, prompts: Sequence[dict[str, list[int]]], **keep: Any) -> list[Any]:
        """The logits of each prompt: [classes], or [vocabulary] at its last token. Padding is on
        the side that the tokenizer sets; `keep` is passed to the model.
        """
        torch, rows = self._torch, list[Any]([None] * len(prompts))
        for places in passes([len(p["input_ids"]) for p in prompts], self._budget):
            padded = self.tokenizer.pad(
                {k: [prompts[i][k] for i in places] for k in prompts[places[0]]},
                return_tensors="pt",
            ).to(self._device)
            with torch.inference_mode():
                out = self.model(**padded, **keep).logits.float()
            for row, place in enumerate(places):
                rows[place] = out[row] if out.ndim == 2 else out[row, -1]
        return rows
