"""The judge `lexical`: word overlap with the reference, a baseline that ignores meaning."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Sequence
from dataclasses import dataclass

from mustsee.errors import UserError
from mustsee.judge import lexical
from mustsee.judge.judge import Engine, ForwardPass, Identity, PreparedTriple, logit
from mustsee.judge.prompt import Triple
from mustsee.replies import overlap

MIN_SCORE = 1e-6  # score without overlap, so that its logit is finite


@dataclass(frozen=True, kw_only=True)
class Lexical:
    """The judge `lexical`.

    The score is the measure itself.
    """

    measure: str = "token_recall"
    """Measure of overlap: rouge_l, token_f1, token_recall."""

    def open(self) -> Engine:
        if self.measure not in lexical.MEASURES:
            measures = ", ".join(lexical.MEASURES)
            raise UserError(f"measure {self.measure!r}: choose one of {measures}")
        return LexicalEngine(self.measure)


@dataclass(frozen=True)
class LexicalEngine:
    """A measure as an engine."""

    measure: str
    limit: int = 4096

    @property
    def identity(self) -> Identity:
        """The hash of the measure's code, which takes the place of weights."""
        sources = lexical.words, overlap
        code = "".join(map(inspect.getsource, sources))
        return Identity(
            engine=f"lexical/{self.measure}",
            weights=hashlib.sha256(code.encode()).hexdigest(),
            prompt="none",
        )

    def prepare(self, triple: Triple) -> PreparedTriple:
        return PreparedTriple(triple, sum(len(t.split()) for t in vars(triple).values()))

    def score(self, prepared: Sequence[PreparedTriple]) -> list[ForwardPass]:
        measure = lexical.MEASURES[self.measure]
        values = (measure(p.triple.candidate, p.triple.reference) for p in prepared)
        return [ForwardPass(logit(min(max(v, MIN_SCORE), 1 - MIN_SCORE))) for v in values]
