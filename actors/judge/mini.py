"""The judge `mini`: MiniLM with small adapters and a head trained on human labels. It runs on a
CPU, without a key.

It was trained on answers to factual questions of Natural Questions, as people judged them, not on
long answers about videos. Its figures are in the file itself and in docs/judge.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from mustsee.errors import UserError
from mustsee.files.store import hardware
from mustsee.judge import contrast_rules, mention
from mustsee.judge import mini as cross
from mustsee.judge.judge import Engine, ForwardPass, Identity, PreparedTriple, hash_files
from mustsee.judge.prompt import Triple
from mustsee.nn import weights

ASSETS = Path(__file__).resolve().parents[2] / "mustsee" / "assets"
LENGTHS = (32, 64, 96, 128, 192, 256, 512)
RULES = f"{mention.RULES} {contrast_rules.RULES}"
# Greatest logit of an answer that a rule refuses; a probability of 0.018.
MAX_REFUSED_LOGIT = -4.0
SMALL_BATCH_SIZE = 2  # prompts in the smaller of the two batch sizes of a length


@dataclass(frozen=True, kw_only=True)
class Mini:
    """The judge `mini`."""

    head: str | None = None
    """Trained file in place of the shipped one; null: the shipped one."""
    encoder: str | None = None
    """Folder with MiniLM; null: the installed package."""
    tokens: int = hardware(1024)
    """Tokens in one pass; more are no faster on a CPU."""

    def open(self) -> Engine:
        return MiniEngine(self)


class MiniEngine:
    """The loaded encoder and head."""

    limit = cross.MAX_TOKENS

    def __init__(self, config: Mini) -> None:
        import jax
        import jax.numpy as jnp

        weights.keep_programs()
        path = Path(config.head) if config.head else ASSETS / "judge_mini.safetensors"
        head, self.about = cross.load(path)
        self._base = cross.Base(config.encoder or str(weights.find(weights.MINILM)))
        if self.about.get("encoder") != self._base.digest:
            raise UserError(
                f"{str(path)!r} was trained on MiniLM {self.about.get('encoder', '')[:16]}; "
                f"{self._base.folder!r} has {self._base.digest[:16]}"
            )
        self.identity = Identity(engine="mini", weights=hash_files([path]), prompt=RULES)
        self._tokens = config.tokens
        self._weights, shape = self._base.model
        self._head = {k: jnp.asarray(v) for k, v in head.items()}
        self._jit = jax.jit(partial(cross.forward, shape))
        self._compiled: dict[tuple[int, int], Any] = {}

    def warm(self) -> None:
        """Compile every shape, so that no request waits for it."""
        for length in LENGTHS:
            for size in (SMALL_BATCH_SIZE, self._full(length)):
                self._program(cross.pad([], length, size))

    def prepare(self, triple: Triple) -> PreparedTriple:
        encoded = cross.encode(self._base, triple)
        return PreparedTriple(triple, len(encoded.ids), encoded)

    def score(self, prepared: Sequence[PreparedTriple]) -> list[ForwardPass]:
        """Score in batches of similar lengths and compiled sizes; results are in the order of
        `prepared`.
        """
        order = sorted(range(len(prepared)), key=lambda i: prepared[i].length)
        logit_of: dict[int, float] = {}
        while order:
            length = next(n for n in LENGTHS if n >= prepared[order[0]].length)
            fitting, full = sum(prepared[i].length <= length for i in order), self._full(length)
            size = full if 4 * fitting >= 3 * full else SMALL_BATCH_SIZE
            here, order = order[: min(size, fitting)], order[min(size, fitting) :]
            batch = cross.pad([prepared[i].payload for i in here], length, size)
            logits = self._program(batch)(self._weights, self._head, batch)
            logit_of.update(zip(here, map(float, logits[: len(here)]), strict=True))
        return [
            ForwardPass(
                min(logit_of[i], MAX_REFUSED_LOGIT) if is_refused(p.triple) else logit_of[i]
            )
            for i, p in enumerate(prepared)
        ]

    def _full(self, length: int) -> int:
        return max(SMALL_BATCH_SIZE, self._tokens // length)

    def _program(self, batch: cross.Batch) -> Any:
        """The compiled forward pass for batches of this shape."""
        if batch.ids.shape not in self._compiled:
            traced = self._jit.lower(self._weights, self._head, batch)
            self._compiled[batch.ids.shape] = traced.compile()
        return self._compiled[batch.ids.shape]


def is_refused(triple: Triple) -> bool:
    """Whether the candidate only mentions the reference, or surely says the contrary of it."""
    contrast = contrast_rules.find_contrast(triple)
    return mention.only_mentioned(triple) or (contrast is not None and contrast.sure)
