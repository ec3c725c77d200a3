"""What the learned guess (`mustsee.questions.learned`) knows better than chance leaves a subset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mustsee import stats
from mustsee.errors import UserError
from mustsee.questions.balance import hit
from mustsee.questions.chance import chance_of
from mustsee.questions.decision import Decision
from mustsee.questions.learned import MIN_VIDEOS, learned_guess
from mustsee.records import Question, guessed_metric, passed_metric
from mustsee.run.tables import Tables, standing_questions
from mustsee.stats import Estimate

if TYPE_CHECKING:
    import pyarrow as pa

NAME = "learned"
DECIMALS = 4  # digits of the metric; further ones depend on the processor's kernels
WARN_LEAD = 0.1  # lead over chance from which the run warns, although it may be luck


@dataclass(frozen=True, kw_only=True)
class LearnedGuess:
    """Takes what the learned guess knows out of a subset, at a barrier after `vet`.

    It learns from all questions of the run that stand. Where it is right more often than chance,
    over all questions or over those of a form (tests adjusted by Holm), the questions leave
    `subset` that it gets right with at least `sure` times the probability of chance. All questions
    get `metrics.learned`, the probability of the right option, `learned_guessed` and
    `learned_passed`. `subset` null: it does nothing.
    """

    subset: str | None = "mma"
    """Subset that questions leave which it knows, where it is better than chance; null:
    none."""
    sure: float = 2
    """Times the probability of chance that it gives the right option of these, at least."""

    def __post_init__(self) -> None:
        if self.sure < 1:
            raise UserError(f"learned.sure={self.sure!r}: expected at least 1 (chance)")

    @property
    def columns(self) -> tuple[str, ...]:
        return ("questions",)

    def __call__(self, rows: pa.Table) -> Decision:
        asked = [
            # Without what a guesser never sees, because a run may have a million questions.
            replace(
                q, verdicts=(), repairs=(), evidence=(), metrics={}, provenance=None, trace=None
            )
            for q in standing_questions(rows)
            if q.drop is None and len(q.options) > 1 and q.answer_index is not None
        ]
        if self.subset is None or len({q.video_id for q in asked}) < MIN_VIDEOS:
            return Decision()
        guesses = learned_guess(asked)
        rights = [hit(q, guess) for q, guess in zip(asked, guesses, strict=True)]
        known = _known_forms(asked, rights)
        metrics: dict[str, Mapping[str, float]] = {}
        leaves: dict[str, tuple[str, ...]] = {}
        for question, guess, right in zip(asked, guesses, rights, strict=True):
            chance = guess[question.answer_index or 0]
            sure = right == 1 and chance >= self.sure * chance_of(question)
            passed = not (sure and ({None, question.form} & known))
            metrics[question.question_id] = {
                NAME: round(chance, DECIMALS),
                guessed_metric(NAME): right,
                passed_metric(NAME): float(passed),
            }
            if not passed and self.subset in question.subsets:
                leaves[question.question_id] = (self.subset,)
        return Decision(metrics=metrics, leaves=leaves)


def _known_forms(questions: Sequence[Question], rights: Sequence[float]) -> set[str | None]:
    """Return the forms whose questions are guessed better than chance, and null if all together
    are.
    """
    # A form that all questions have is tested once.
    forms = {q.form for q in questions if q.form is not None}
    groups: list[str | None] = [None, *(sorted(forms) if len(forms) > 1 else ())]
    gaps = dict[str | None, stats.Difference]()
    for form in groups:
        chosen = [n for n, q in enumerate(questions) if form in (None, q.form)]
        chances = [chance_of(questions[n]) for n in chosen]
        videos = [questions[n].video_id for n in chosen]
        gaps[form] = stats.paired_difference([rights[n] for n in chosen], chances, videos)
    return {form for form, gap in stats.adjust(gaps).items() if gap.is_above()}


def record_learned(tables: Tables) -> Mapping[str, Any]:
    """Return the part of the run record on the learned guess: its accuracy with the interval by
    video, chance, and how many questions it took out; empty without its metrics.
    """
    hits = list[tuple[float, float, str, float]]()
    for q in tables.questions("options", "metrics"):
        right = q.metrics.get(guessed_metric(NAME))
        if right is not None and q.options:
            taken = NAME in q.failed_filters
            hits.append((right, chance_of(q), q.video_id, float(taken)))
    if not hits:
        return {}
    rights, chances, videos, taken = zip(*hits, strict=True)
    found, chance = stats.mean(rights, videos), float(np.mean(chances))
    note = f"a text model fitted on the other videos answers {_in_words(found)} of {found.n} "
    note += f"questions right, by chance {chance:.0%}; {round(sum(taken))} did not pass for it"
    if not sum(taken) and found.value >= chance + WARN_LEAD:
        note = f"warning: {note}, since this may be luck on so few: look for what the answers share"
    return {NAME: {**vars(found), "chance": chance, "taken": int(sum(taken))}, "notes": [note]}


def _in_words(share: Estimate) -> str:
    if share.low is None or share.high is None:
        return f"{share.value:.0%}"
    return f"{share.value:.0%} (95% {max(0.0, share.low):.0%} to {min(1.0, share.high):.0%})"
