"""Accuracy of models on the questions that pass each threshold of the guessers (Neptune, Fig. 11).

A threshold is the number of a guesser's runs that must be wrong for a question to stay. The rater
test leaves out what most raters answer by audio alone (`mustsee.raters.votes`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mustsee.evaluate.answers import answers
from mustsee.evaluate.drawing import new_figure
from mustsee.evaluate.score import accuracy, score_question
from mustsee.records import Question, group_pairs
from mustsee.stats import Estimate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RATERS = "raters"  # name of the rater test among the filters of a row
GUESSES = ("blind", "blind_2", "options", "asr")  # filters whose runs are counted, in this order


@dataclass(frozen=True, kw_only=True)
class ThresholdAccuracy:
    """`filters`: names joined by "+"; each guesser must fail in `min_failures` runs, and "raters"
    is the rater test. `questions`: number that stay. `accuracy`: by model, on those of them that it
    answered; null where it answered none.
    """

    filters: str
    min_failures: int
    questions: int
    accuracy: Mapping[str, Estimate | None]


def accuracy_by_threshold(
    questions: Iterable[Question], models: Sequence[str], cluster: Mapping[str, str]
) -> list[ThresholdAccuracy]:
    """Return a row for each threshold of the first filter, of it and the next, and so on; where
    raters marked the modality, also of the rater test and the first filter, on the marked
    questions. Filters of one run are left out. Counts the kept questions with all runs of every
    filter; returns none if these are fewer than half, as where runs stop once a vote is decided
    (`all_runs=false`).
    """
    kept = [q for q in questions if q.drop is None and q.answer_index is not None]
    wrong = {q.question_id: _wrong_runs(q) for q in kept}
    names = [n for n in GUESSES if any(len(runs.get(n, ())) > 1 for runs in wrong.values())]
    runs = max((len(given) for found in wrong.values() for given in found.values()), default=0)
    if runs < 2:
        return []
    tried = [
        q for q in kept if all(len(wrong[q.question_id].get(name, ())) == runs for name in names)
    ]
    if 2 * len(tried) < len(kept):
        return []
    subsets = [(names[:count], tried, "") for count in range(1, len(names) + 1)]
    if any(q.audio_only is not None for q in tried):
        subsets.append((names[:1], [q for q in tried if q.audio_only is False], f"{RATERS}+"))
    rows: list[ThresholdAccuracy] = []
    for guessers, questions_of_subset, tested in subsets:
        for least in range(runs + 1):
            left = [
                q
                for q in questions_of_subset
                if all(sum(wrong[q.question_id][name]) >= least for name in guessers)
            ]
            rows.append(
                ThresholdAccuracy(
                    filters=tested + "+".join(guessers),
                    min_failures=least,
                    questions=len(left),
                    accuracy={model: _accuracy(left, model, cluster) for model in models},
                )
            )
    return rows


def _wrong_runs(question: Question) -> dict[str, list[bool]]:
    """Whether each run of a filter on the last wording was wrong; unparseable runs are left out."""
    return group_pairs(
        (v.filter, not v.correct)
        for v in question.verdicts[question.earlier_verdicts :]
        if v.filter in GUESSES and v.correct is not None
    )


def _accuracy(
    questions: Sequence[Question], model: str, cluster: Mapping[str, str]
) -> Estimate | None:
    rows = [
        score_question(q, [a for a in answers(q) if a.model == model], cluster) for q in questions
    ]
    return accuracy([row for row in rows if row.right is not None])


def draw_thresholds(rows: Sequence[ThresholdAccuracy]) -> Figure:
    """Draw accuracy over the threshold, for each set of filters side by side; numbers of questions
    at the ticks.
    """
    names = list(dict.fromkeys(row.filters for row in rows))
    figure = new_figure(3.2 * len(names) + 1, 3.6)
    for place, (name, axes) in enumerate(
        zip(names, figure.subplots(1, len(names), squeeze=False)[0], strict=True)
    ):
        own = [row for row in rows if row.filters == name]
        for model in own[0].accuracy:
            points = [(r.min_failures, e) for r in own if (e := r.accuracy[model]) is not None]
            axes.plot(
                [x for x, _ in points], [100 * e.value for _, e in points], marker="o", label=model
            )
        axes.set_xticks(
            [r.min_failures for r in own], [f"{r.min_failures}\n({r.questions})" for r in own]
        )
        axes.set_ylim(0, 100)
        axes.set_title(name, fontsize=9)
        axes.set_xlabel("runs that must be wrong (questions)")
        if place == 0:
            axes.set_ylabel("accuracy, %")
            axes.legend(fontsize=7, frameon=False)
    return figure
