"""The judge `gem`: a Gemma 2 or 3 that was trained by `ray_jobs.judge_train`, run by transformers.

One forward pass of the prompt gives the last hidden state, which is multiplied by the two label
rows of the head, in float32 and with the model's soft cap (without it the probabilities differ).
Attention is eager, because the fused kernels do not cap the attention logits. With causal attention
the states of the instructions, which all prompts share, are computed once and cached. With prefix
attention every token sees every other, so nothing can be cached.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from actors.judge.baselines import passes
from actors.judge.tokens import GemTokens, settle, weights_hash
from mustsee.errors import UserError, need
from mustsee.files.store import hardware
from mustsee.judge.judge import MAX_PROMPT_TOKENS, Engine, ForwardPass, Identity, PreparedTriple
from mustsee.judge.prompt import Triple

DTYPES = ("float32", "bfloat16", "float16")


@dataclass(frozen=True, kw_only=True)
class Gem:
    """The judge `gem`."""

    wants_accelerator: ClassVar[bool] = True

    path: str
    """Checkpoint folder."""
    attention: str | None = None
    """Attention over the prompt: causal or prefix; null: that of the checkpoint's
    judge.json."""
    dtype: str | None = None
    """Numeric type: float32, bfloat16, float16; null: that of judge.json."""
    zero_shot: bool = False
    """Treat the checkpoint as a plain instruction-tuned Gemma."""
    limit: int = MAX_PROMPT_TOKENS
    """Tokens of the longest prompt."""
    device: str = hardware("auto")
    """Device: auto, cuda, cpu."""
    keep_prefix: bool = hardware(True)
    pad_left: bool = hardware(False)
    budget: int = hardware(16384)
    """Tokens in one forward pass."""

    def open(self) -> Engine:
        return GemEngine(self)


class GemEngine:
    """A loaded Gemma. Raises UserError for a checkpoint that does not fit its configuration."""

    def __init__(self, config: Gem) -> None:
        need("judge=gem", "mustsee[torch]", "torch")
        import torch
        from transformers import AutoModelForCausalLM

        metadata = settle(config.path, config.attention, config.zero_shot)
        dtype = config.dtype or metadata.dtype
        if dtype not in DTYPES:
            raise UserError(f"dtype {dtype!r}: choose one of {', '.join(DTYPES)}")
        self.tokens = GemTokens(config.path)
        self.config, self.attention, self.limit = config, metadata.attention, config.limit
        device = config.device
        if device == "auto":
            device = "cuda" if torch.cuda.is_available() else "cpu"
        model: Any = AutoModelForCausalLM.from_pretrained(
            config.path, dtype=getattr(torch, dtype), attn_implementation="eager"
        )
        self._model = model.to(device).eval()
        self._window = window(model)
        self._cap = getattr(model.config.get_text_config(), "final_logit_softcapping", None)
        self._rows = self._model.lm_head.weight[list(self.tokens.labels)].float()
        self.identity = Identity(
            engine="gem",
            weights=weights_hash(config.path),
            prompt=metadata.prompt,
            attention=self.attention,
            dtype=dtype,
        )
        kept = self.attention == "causal" and config.keep_prefix
        self._shared = self.tokens.prefix_ids() if kept else ()
        with torch.inference_mode():
            self._kept = states(self._model.model, self._shared, self._model) if kept else None

    def warm(self) -> None:
        """Run the largest possible pass, so that a lack of accelerator memory shows before the
        first request; on a CPU one prompt. Nothing is compiled: a pass is as long as its longest
        prompt.
        """
        start = self._shared or (self.tokens.pad,)
        longest = (*start, *(self.limit - len(start)) * (self.tokens.pad,))
        many = self.config.budget // self.limit if self._model.device.type != "cpu" else 1
        self._pass([longest] * max(1, many))

    def prepare(self, triple: Triple) -> PreparedTriple:
        return self.tokens.prepare(triple)

    def score(self, prepared: Sequence[PreparedTriple]) -> list[ForwardPass]:
        """Score in passes of similar lengths, so that padding is short; results are in the order of
        `prepared`.
        """
        scores: dict[int, ForwardPass] = {}
        for batch in passes([each.length for each in prepared], self.config.budget):
            scores.update(zip(batch, self._pass([prepared[i].payload for i in batch]), strict=True))
        return [scores[i] for i in range(len(prepared))]

    def _pass(self, prompts: list[tuple[int, ...]]) -> list[ForwardPass]:
        import torch

        past = len(self._shared)
        if any(p[:past] != self._shared for p in prompts):
            raise RuntimeError("a prompt does not begin with the shared instructions")
        rest = [p[past:] for p in prompts]
        width = max(map(len, rest))
        ids = torch.full((len(rest), width), self.tokens.pad)
        real = torch.zeros((len(rest), width), dtype=torch.long)
        for row, tokens in enumerate(rest):
            start = width - len(tokens) if self.config.pad_left else 0
            ids[row, start : start + len(tokens)] = torch.tensor(tokens)
            real[row, start : start + len(tokens)] = 1
        ids, real = ids.to(self._model.device), real.to(self._model.device)
        cache = None if self._kept is None else extend_cache(self._kept, len(rest))
        with torch.inference_mode():
            hidden = self._model.model(
                input_ids=ids,
                attention_mask=masks(real, past, self.attention, self._window, self._model.dtype),
                position_ids=(real.cumsum(1) - 1).clamp(min=0) + past,
                past_key_values=cache,
                use_cache=cache is not None,
            ).last_hidden_state
            last = (real * torch.arange(1, width + 1, device=real.device)).argmax(1)
            return self._read(hidden[torch.arange(len(rest), device=real.device), last])

    def _read(self, hidden: Any) -> list[ForwardPass]:
        """Scores from the hidden states [batch, d] at the readout position."""
        import torch

        two = cap_logits(hidden.float() @ self._rows.T, self._cap)
        whole = cap_logits(self._model.lm_head(hidden).float(), self._cap)
        mass = (torch.logsumexp(two, 1) - torch.logsumexp(whole, 1)).exp().clamp(max=1)
        return [
            ForwardPass(float(d), float(m))
            for d, m in zip(two[:, 0] - two[:, 1], mass, strict=True)
        ]


def states(run: Any, shared: Sequence[int], model: Any) -> list[tuple[Any, Any]]:
    """Keys and values of every layer after the ids `shared`. `run`: the model, a part of it, or a
    wrapper with the same arguments.
    """
    import torch
    from transformers import DynamicCache

    cache: Any = DynamicCache()  # without a config, sliding layers keep all states
    ids = torch.tensor([list(shared)], device=model.device)
    mask = masks(torch.ones_like(ids), 0, "causal", window(model), model.dtype)
    run(input_ids=ids, attention_mask=mask, past_key_values=cache, use_cache=True)
    return [(layer.keys, layer.values) for layer in cache.layers]


def extend_cache(kept: Sequence[tuple[Any, Any]], rows: int) -> Any:
    """A cache for `rows` prompts that begin with the cached states `kept`."""
    from transformers import DynamicCache

    return DynamicCache([(k.expand(rows, -1, -1, -1), v.expand(rows, -1, -1, -1)) for k, v in kept])


def window(model: Any) -> int | None:
    """The window of the sliding layers in tokens; None: the model has no such layers."""
    return getattr(model.config.get_text_config(), "sliding_window", None)


def masks(real: Any, past: int, attention: str, window: int | None, dtype: Any) -> dict[str, Any]:
    """Additive masks [batch, 1, n, past + n] for both kinds of layers. `real` [batch, n]: 1 for a
    token, 0 for padding; `past`: tokens before them that all rows share.

    They are a dict, because eager attention ignores a flag on the config. With prefix attention the
    window has no effect, as in `mustsee.nn.gemma.visible`.
    """
    import torch

    batch, n = real.shape
    every = torch.cat([real.new_ones(batch, past), real], 1)
    places = every.cumsum(1) - 1  # padding has no position of its own
    behind = places[:, past:, None] - places[:, None, :]
    seen = every.bool()[:, None, :].expand(batch, n, past + n)
    if attention == "causal":
        # Also by index in the row, because padding on the right has the position of the last token.
        order = torch.arange(past + n, device=real.device)
        seen = seen & (order[None, :] <= order[past:, None])[None]
    near = seen & (behind < window) if attention == "causal" and window else seen
    # A padded query sees itself, so that no row of the softmax is empty.
    itself = torch.eye(n, past + n, dtype=torch.bool, device=real.device).roll(past, 1)

    def additive(seen: Any) -> Any:
        mask = torch.zeros((batch, 1, n, past + n), dtype=dtype, device=real.device)
        return mask.masked_fill(~(seen | itself)[:, None], torch.finfo(dtype).min)

    whole = additive(seen)
    narrow = whole if near is seen else additive(near)
    return {"full_attention": whole, "sliding_attention": narrow}


def cap_logits(logits: Any, cap: float | None) -> Any:
    """Gemma 2's soft cap of the final logits."""
    return logits if cap is None else cap * (logits / cap).tanh()
