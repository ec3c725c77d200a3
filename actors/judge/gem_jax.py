"""The judge `gem_jax`: the same Gemma 2 or 3 as `gem`, run by our own JAX code on TPU, GPU or CPU.

It makes one forward pass of the whole prompt. Prompts are padded to one of a few lengths and
batches to one of a few sizes, so that few programs are compiled, all before the first request
(`warm`). The devices of a host share the weights, so that chips too small for the model hold it
together.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from actors.judge.tokens import GemTokens, settle, weights_hash
from mustsee.errors import UserError
from mustsee.files.store import hardware
from mustsee.judge.judge import MAX_PROMPT_TOKENS, Engine, ForwardPass, Identity, PreparedTriple
from mustsee.judge.prompt import Triple


@dataclass(frozen=True, kw_only=True)
class GemJax:
    """The judge `gem_jax`."""

    wants_accelerator: ClassVar[bool] = True

    path: str
    """Checkpoint folder."""
    attention: str | None = None
    """Attention over the prompt: causal or prefix; null: that of the checkpoint's
    judge.json."""
    dtype: str | None = None
    """Numeric type: float32 or bfloat16; null: that of judge.json."""
    zero_shot: bool = False
    """Treat the checkpoint as a plain instruction-tuned Gemma."""
    limit: int = MAX_PROMPT_TOKENS
    """Tokens of the longest prompt."""
    lengths: tuple[int, ...] = hardware((256, 384, 512, 768, 1024))
    """Tokens to which prompts are padded."""
    batches: tuple[int, ...] = hardware((1, 8, 32))
    """Prompts processed together; a program is compiled for each with each length."""
    budget: int = hardware(16384)
    """Tokens in one forward pass, except for a single prompt."""

    def open(self) -> Engine:
        return GemJaxEngine(self)


class GemJaxEngine:
    """A loaded Gemma. Raises UserError for a checkpoint that does not fit its configuration."""

    def __init__(self, config: GemJax) -> None:
        import jax
        import jax.numpy as jnp
        from flax import nnx

        from mustsee.nn import weights
        from mustsee.nn.gemma import Gemma

        metadata = settle(config.path, config.attention, config.zero_shot)
        dtype = config.dtype or metadata.dtype
        if dtype not in ("float32", "bfloat16"):
            raise UserError(f"dtype {dtype!r}: choose float32 or bfloat16")
        if weights.read_config(weights.find(config.path)).get("tie_word_embeddings") is False:
            raise UserError(f"{config.path!r} has a head of its own, unlike a Gemma; use judge=gem")
        weights.keep_programs()
        self.tokens = GemTokens(config.path)
        self.attention, self.limit = metadata.attention, config.limit
        graph, self.state = nnx.split(
            Gemma.load(config.path, dtype=jnp.dtype(dtype), devices=jax.local_devices())
        )
        self._lengths = sorted({*(n for n in config.lengths if n < self.limit), self.limit})
        self._batches = sorted({*config.batches})
        self._budget = config.budget
        self._labels = np.asarray(self.tokens.labels, np.int32)
        self._run = jax.jit(partial(_read, graph, prefix=self.attention == "prefix"))
        self.identity = Identity(
            engine="gem_jax",
            weights=weights_hash(config.path),
            prompt=metadata.prompt,
            attention=self.attention,
            dtype=dtype,
        )

    @property
    def shapes(self) -> list[tuple[int, int]]:
        """(prompts, tokens) of every possible pass."""
        pairs = itertools.product(self._lengths, self._batches)
        fit = [(b, n) for n, b in pairs if b == self._batches[0] or b * n <= self._budget]
        return sorted(fit)

    def warm(self) -> None:
        """Compile every shape, so that no request waits for it."""
        for size, length in self.shapes:
            self._pass([], size, length)

    def prepare(self, triple: Triple) -> PreparedTriple:
        return self.tokens.prepare(triple)

    def score(self, prepared: Sequence[PreparedTriple]) -> list[ForwardPass]:
        """Score in passes of similar lengths, so that padding is short; results are in the order of
        `prepared`.
        """
        order = sorted(range(len(prepared)), key=lambda i: prepared[i].length)
        scores: dict[int, ForwardPass] = {}
        while order:
            size, length = self._shape([prepared[i].length for i in order])
            batch, order = order[:size], order[size:]
            prompts = [prepared[i].payload for i in batch]
            scores.update(zip(batch, self._pass(prompts, size, length), strict=True))
        return [scores[i] for i in range(len(prepared))]

    def _shape(self, lengths: Sequence[int]) -> tuple[int, int]:
        """The shape of the next pass over prompts of these lengths in ascending order: the smallest
        that fits them all, or the largest batch that can be filled.
        """
        best = self._batches[0], self._padded_length(lengths[: self._batches[0]][-1])
        for size in self._batches:
            length = self._padded_length(lengths[:size][-1])
            if (size, length) in self.shapes and best[0] < len(lengths):
                best = size, length
        return best

    def _padded_length(self, tokens: int) -> int:
        return next((n for n in self._lengths if n >= tokens), tokens)

    def _pass(
        self, prompts: Sequence[tuple[int, ...]], size: int, length: int
    ) -> list[ForwardPass]:
        ids = np.full((size, length), self.tokens.pad, np.int32)
        real = np.zeros((size, length), bool)
        real[:, 0] = True  # so that no row of the softmax is empty
        for row, tokens in enumerate(prompts):
            ids[row, : len(tokens)] = tokens
            real[row, : len(tokens)] = True
        output = self._run(self.state, self._labels, ids, real)
        pairs = np.asarray(output)[: len(prompts)].tolist()
        return [ForwardPass(difference, min(1.0, mass)) for difference, mass in pairs]


def _read(graph: Any, state: Any, labels: Any, ids: Any, real: Any, *, prefix: bool) -> Any:
    """float32 `[batch, 2]`: logit(TRUE) - logit(FALSE) after each prompt, and the mass of both."""
    import jax
    import jax.numpy as jnp
    from flax import nnx

    from mustsee.nn.gemma import attention_masks

    model = nnx.merge(graph, state)
    batch, length = ids.shape
    places = jnp.broadcast_to(jnp.arange(length), ids.shape)
    seen = attention_masks(real, places, model.shape.window, real if prefix else None)
    hidden, _ = model(model.embed(ids), places, seen, model.empty_cache(batch, length), 0)
    last = hidden[jnp.arange(batch), real.sum(axis=1) - 1]
    two, whole = model.logits(last, labels), model.logits(last)
    mass = jnp.exp(jax.nn.logsumexp(two, axis=1) - jax.nn.logsumexp(whole, axis=1))
    return jnp.stack([two[:, 0] - two[:, 1], mass], axis=1)
