"""When is X seen? The answer is a span, or several."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import ClassVar

from mustsee.errors import UserError
from mustsee.facts.cases import Stretch, by_chance, find_runs, is_marked
from mustsee.facts.stem import FormTraits, QuestionForm, Stem
from mustsee.facts.table import VIEW, TruthTable, is_thing, is_written
from mustsee.questions.drafts import needed_seconds
from mustsee.questions.templates import word_question, word_spans
from mustsee.records import WHEN, Fact, Span
from mustsee.verify.conditions.seen import Condition

QUESTION_TYPE = "Temporal Grounding"
DRAFTS = 3  # times as many facts as questions are wanted are looked for at all moments


@dataclass(frozen=True, kw_only=True)
class WhenForm(QuestionForm):
    """A fact is asked for only if it is known of every moment of the video whether it holds there,
    so that no other time can be right. Not asked are things, which detectors miss, and what tells
    its place by its words.
    """

    name: ClassVar[str] = WHEN
    questions: int = 0
    """Questions of a video that ask when something is seen, at most; 0: none."""
    of: tuple[str, ...] = ("event", "state", "text", VIEW)
    """Kinds of facts that are asked for."""
    times: int = 3
    """Separate times at which it is seen, at most; the answer names all of them."""
    share: float = 0.25
    """Share of the video that it may last in all, at most: more would be guessed."""
    ends: float = 0.5
    """Seconds by which an end of a span may be wrong, about; closer looks halve the stretch in
    which it lies until it is no longer."""
    look: Condition = field(
        default_factory=lambda: Condition(condition="evidence", fps=4.0, least=4, most=24)
    )
    """Frames of such a closer look."""

    def __post_init__(self) -> None:
        for name, is_right, wanted in (
            ("questions", self.questions >= 0, "at least 0"),
            ("times", self.times >= 1, "at least 1"),
            ("share", 0 < self.share <= 1, "above 0, at most 1"),
            ("ends", self.ends > 0, "above 0"),
        ):
            if not is_right:
                value = getattr(self, name)
                raise UserError(f"ask.settings.forms.when.{name}={value!r}: {wanted}")

    @property
    def traits(self) -> FormTraits:
        return FormTraits(needs_options=False, asks_time=True)

    def stems(self, table: TruthTable, rng: Random) -> Iterator[Stem]:
        seed = rng.random()
        facts = [fact for fact in table.of_kind(*self.of) if self._may_ask(table, fact)]
        drawn = by_chance(seed, facts, lambda fact: fact.fact_id)[: DRAFTS * self.questions]
        asked: list[Fact] = []
        for fact in drawn:
            runs = find_runs(table, fact)
            spans = [table.stretch(run.first, run.last) for run in runs]
            if (
                not self._fits(table, spans)
                or is_marked(table, fact)
                or any(table.are_twins(fact, other) for other in asked)
            ):
                continue
            asked.append(fact)
            yield Stem(
                form=self.name,
                question=word_question(
                    fact.phrase, fact.kind, len(runs), is_written=is_written(fact)
                ),
                question_type=QUESTION_TYPE,
                answer=word_spans(spans),
                evidence=tuple(spans),
                needs=((fact.fact_id, range(len(table.moments))),),
                about=frozenset({fact.fact_id}),
                centre=fact.fact_id,
            )

    def _may_ask(self, table: TruthTable, fact: Fact) -> bool:
        """Whether a fact may be asked for by what is claimed of it, so that looks at all moments
        are worth their price.
        """
        claims = table.claims[fact.fact_id]
        starts = [n for n in claims if n - 1 not in claims]
        return (
            len(table.alike[fact.fact_id]) == 1
            and not is_thing(fact)
            and len(starts) <= self.times
            and self._fits(table, [table.moments[n] for n in claims])
        )

    def _fits(self, table: TruthTable, spans: Sequence[Span]) -> bool:
        runs = sum(not n or s.start > spans[n - 1].end for n, s in enumerate(spans))
        longest = self.share * table.whole.seconds
        return 0 < runs <= self.times and needed_seconds(spans) <= longest


def runs_of(table: TruthTable, stem: Stem) -> list[Stretch]:
    """Return the runs of moments that a question of this form asks for."""
    return find_runs(table, table.by_id[stem.centre])
