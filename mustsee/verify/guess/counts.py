"""How often the filters' guesses were right, compared with chance, and what chance alone lets pass.

Filters let a question into the subset if guesses at it are wrong, so that a guesser that knows
nothing lets most questions in, and with rewrites nearly all. The size of the subset says little
without this figure; how often the first wordings were guessed says more.
"""

from __future__ import annotations

import json
import math
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
import xxhash

from mustsee import stats
from mustsee.questions.chance import (
    chance_in_tries,
    chance_of,
    chance_to_pass,
    correct_for_chance,
    matching_chances,
)
from mustsee.records import SET, Question, Verdict, agreement_metric

SEES = {  # name of a filter -> what its guesser is shown, in words
    "blind": "without the video",
    "blind_2": "without the video, by the second guesser",
    "options": "from the options alone",
    "asr": "from the transcript alone",
    "one_frame": "from one frame",
    "shuffled": "from frames in a random order",
}
RIGHT_IN_SET = "_right"  # suffix of the metric with the members of a question's set matched right
_MATCHES = {"match": "without the video", "match_asr": "from the transcript alone"}
WIDE = 0.9  # width of an interval from which it says nothing
ALARM_LEVEL = 0.05  # p-value below which matchings are better than chance
MOST_ALIKE = 0.8  # share of questions with equal runs, from which the runs count as one guess


@dataclass(frozen=True, kw_only=True)
class GuessRule:
    """The settings of a run's filters by guesses.

    `filters`: name -> (runs, how many of them must be wrong). `sets`: name of a filter
    that guesses at sets -> members of a set that may be matched right. `rewrites`: of a guessed
    question, at most. `subset`: of the questions that pass.
    """

    filters: Mapping[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    sets: Mapping[str, int] = field(default_factory=dict[str, int])
    rewrites: int = 0
    subset: str | None = None

    def passing_chance(self, question: Question) -> float:
        """Return the probability that guesses at chance let the question pass every filter."""
        chance, count = chance_of(question), len(question.options)
        passing = math.prod(chance_to_pass(chance, *rule) for rule in self.filters.values())
        if question.relation != SET:
            return passing
        limits = (min(most, count - 1) for most in self.sets.values())
        return passing * math.prod(sum(matching_chances(count)[: n + 1]) for n in limits)


class FilterGuesses(NamedTuple):
    """The guesses of one filter.

    `questions`: whose first wording it guessed at, with a readable reply; `right`: of their first
    runs; `chance`: the expected share of these. `repeated`: questions with several runs at their
    last wording; `agreed`: of these, with the same first option in all runs. `low`, `high`: the
    95 % interval of the share of right guesses, clustered by video; null where there is none.
    """

    questions: int
    right: int
    chance: float
    repeated: int
    agreed: int
    low: float | None = None
    high: float | None = None

    @property
    def above_chance(self) -> float | None:
        """The share of right guesses, corrected for chance."""
        if not self.questions or self.chance == 1:
            return None
        return correct_for_chance(self.right / self.questions, self.chance)


class SetMatches(NamedTuple):
    """The guesses of one filter at sets: `right` of all `questions` in them. Of each set one is
    right at chance. `p`: the probability of at least as many at chance (an exact test).
    """

    sets: int
    questions: int
    right: int
    p: float


@dataclass(frozen=True, kw_only=True)
class GuessCounts:
    """The guesses of a run.

    `filters`: by name. `matches`: of the filters that guess at sets. `passing`: the mean chance of
    the guessed questions to pass every filter by guesses, and `passing_repaired` with all rewrites;
    None without questions.
    """

    rule: GuessRule
    filters: Mapping[str, FilterGuesses]
    matches: Mapping[str, SetMatches]
    passing: float | None
    passing_repaired: float | None

    def lines(self) -> Iterator[str]:
        """Yield the figures in words."""
        first = " before any rewrite" if self.rule.rewrites else ""
        for name, of in self.filters.items():
            if of.questions:
                yield (
                    f"guessed right {SEES.get(name, f'by {name}')}{first}: {of.right} of "
                    f"{of.questions} ({of.right / of.questions:.0%}, by chance {of.chance:.0%}; "
                    f"{_interval(of)})"
                )
        for name, matched in self.matches.items():
            alarm = ": words give sets away" if matched.p < ALARM_LEVEL else ""
            sets = f"{matched.sets} set{'s' * (matched.sets > 1)}"
            yield (
                f"matched right {_MATCHES.get(name, f'by {name}')}: {matched.right} of "
                f"{matched.questions} answers in {sets} of questions, by chance {matched.sets} "
                f"(p={matched.p:.2g}{alarm})"
            )
        if self.passing is not None and self.passing_repaired is not None:
            after = ""
            if count := self.rule.rewrites:
                plural = "s" if count > 1 else ""
                after = f" at once, {self.passing_repaired:.0%} after {count} rewrite{plural}"
            yield (
                f"if every guess were luck alone, {self.passing:.0%} of the questions would pass "
                f"the filters by guesses{after}"
            )
        for name, of in self.filters.items():
            if of.repeated and of.agreed >= MOST_ALIKE * of.repeated:
                yield (
                    f"the repeated guesses {SEES.get(name, f'by {name}')} were the same in "
                    f"{of.agreed} of {of.repeated} questions: they say no more than one guess"
                )

    def plain(self) -> dict[str, Any]:
        return {
            "filters": {
                name: {**of._asdict(), "above_chance": of.above_chance}
                for name, of in self.filters.items()
            },
            "matches": {name: matched._asdict() for name, matched in self.matches.items()},
            "rewrites": self.rule.rewrites,
            "chance_passes": self.passing,
            "chance_passes_repaired": self.passing_repaired,
            "said": list(self.lines()),
        }


class _Guesses:
    """The guesses of a filter in 17 bytes each, because a run may have millions: the chance of each
    to be right, whether it is (1 or 0), and the hash of its video's id.
    """

    def __init__(self) -> None:
        self.chances, self.hits, self._videos = array("d"), array("b"), array("Q")

    def add(self, chance: float, is_right: bool, video: str) -> None:
        self.chances.append(chance)
        self.hits.append(is_right)
        self._videos.append(xxhash.xxh3_64_intdigest(video.encode()))

    def limits(self) -> dict[str, float | None]:
        """Return the ends of the interval of the share of hits, by the videos that they are on."""
        if not self.hits:
            return {}
        estimate = stats.mean(self.hits, np.asarray(self._videos))
        return {"low": estimate.low, "high": estimate.high}


def count_guesses(questions: Iterable[Question], rule: GuessRule) -> GuessCounts:
    """Count the guesses of the filters of `rule` at multiple-choice questions; siblings, which have
    filters of their own, are left out.
    """
    repeated, agreed = Counter[str](), Counter[str]()
    guesses = {name: _Guesses() for name in rule.filters}
    matched: dict[str, dict[str | None, list[float]]] = {name: {} for name in rule.sets}
    passing = array("d")
    for question in questions:
        for name, of_set in matched.items():
            if (right := question.metrics.get(f"{name}{RIGHT_IN_SET}")) is not None:
                of_set.setdefault(question.group, []).append(right)
        guessed = {v.filter for v in question.verdicts} & (rule.filters.keys() | rule.sets.keys())
        if not question.options or not guessed or question.sibling_of is not None:
            continue
        first = _first_wording(question)
        passing.append(rule.passing_chance(first))
        for name, is_right in _first_guesses(first.verdicts).items():
            if name in guesses:
                guesses[name].add(chance_of(first), is_right, question.video_id)
        for name in guessed:
            share = question.metrics.get(agreement_metric(name))
            repeated[name] += share is not None
            agreed[name] += share == 1
    tries = 1 + rule.rewrites
    return GuessCounts(
        rule=rule,
        filters={
            name: FilterGuesses(
                questions=len(of.hits),
                right=sum(of.hits),
                chance=fmean(of.chances) if of.chances else 0.0,
                repeated=repeated[name],
                agreed=agreed[name],
                **of.limits(),
            )
            for name, of in guesses.items()
        },
        matches={name: _matches(list(of.values())) for name, of in matched.items() if of},
        passing=fmean(passing) if passing else None,
        passing_repaired=fmean(chance_in_tries(p, tries) for p in passing) if passing else None,
    )


def _interval(of: FilterGuesses) -> str:
    """Return the interval in words. The questions of one video are no sample of videos."""
    if of.low is None or of.high is None:
        return "one video: no interval"
    if of.high - of.low > WIDE:
        return "too few videos for an interval"
    return f"95% {of.low:.0%} to {of.high:.0%}"


def _matches(sets: Sequence[Sequence[float]]) -> SetMatches:
    """Sum up sets, each given by the number of its right pairs, once for each question."""
    counts = [(int(of_set[0]), len(of_set)) for of_set in sets]
    return SetMatches(
        sets=len(counts),
        questions=sum(count for _, count in counts),
        right=sum(right for right, _ in counts),
        p=beats_chance(counts),
    )


def beats_chance(sets: Iterable[tuple[int, int]]) -> float:
    """Return the probability that matchings at random give at least as many right pairs in all.

    `sets`: of each its right pairs, and its questions. The test is exact: the distributions of the
    sets are convolved.
    """
    counts = list(sets)
    chances = np.ones(1)
    for _, questions in counts:
        chances = np.convolve(chances, matching_chances(questions))
    return float(min(1.0, chances[sum(right for right, _ in counts) :].sum()))


def _first_wording(question: Question) -> Question:
    """Return the question with the options and the verdicts of its first wording."""
    first = next((r for r in question.repairs if r.kind == "wording"), None)
    if first is None:
        return question
    before = json.loads(first.before)
    verdicts = question.verdicts[: before["verdicts"]]
    return replace(question, options=tuple(before["options"]), verdicts=verdicts)


def _first_guesses(verdicts: Iterable[Verdict]) -> dict[str, bool]:
    """Return filter -> whether its first readable run was right."""
    guesses: dict[str, bool] = {}
    for verdict in verdicts:
        if verdict.correct is not None:
            guesses.setdefault(verdict.filter, verdict.correct)
    return guesses


def sweep(questions: Iterable[Question], names: Sequence[str]) -> list[dict[str, object]]:
    """Return a row for each threshold (Neptune, Fig. 11): the questions kept if each must fail at
    least `min_failures` runs of each of `filters`, their number and their share, and by filter the
    share of right runs on them (`accuracy`; null without runs).

    Uses the verdicts on each question's last wording: first of the filter `names[0]` alone, then
    with each further one. Counts the questions that all these filters saw and no other filter
    dropped. A filter's own accuracy on questions that it kept is low by construction; that of the
    other filters is informative. Returns an empty list unless all runs were made, that is, unless
    the filters have `all_runs` and do not drop.
    """
    tried = (_runs(q, names) for q in questions if q.drop is None or q.dropped_by in names)
    seen = (runs for runs in tried if all(run.verdicts for run in runs))
    count_by_runs = Counter(runs for runs in seen if any(run.right + run.wrong for run in runs))
    each = list(count_by_runs)
    if len({run.verdicts for runs in each for run in runs}) != 1:
        return []
    counts, total = list(count_by_runs.values()), count_by_runs.total()
    most = max((run.right + run.wrong for runs in each for run in runs), default=0)
    table: list[dict[str, object]] = []
    for count in range(1, len(names) + 1):
        for threshold in range(most + 1):
            left = [
                (runs, n)
                for runs, n in zip(each, counts, strict=True)
                if all(run.wrong >= threshold for run in runs[:count])
            ]
            right = [sum(n * runs[i].right for runs, n in left) for i in range(len(names))]
            wrong = [sum(n * runs[i].wrong for runs, n in left) for i in range(len(names))]
            kept = sum(n for _, n in left)
            accuracy = {
                name: r / (r + w) if r + w else None
                for name, r, w in zip(names, right, wrong, strict=True)
            }
            table.append({
                "filters": "+".join(names[:count]), "min_failures": threshold, "questions": kept,
                "share": kept / total, "accuracy": accuracy,
            })  # fmt: skip
    return table


class RunCounts(NamedTuple):
    """The counts of one filter's runs on a question. Many questions have the same."""

    filter: str
    verdicts: int
    right: int
    wrong: int


def _runs(question: Question, names: Sequence[str]) -> tuple[RunCounts, ...]:
    results: dict[str, list[bool | None]] = {name: [] for name in names}
    for verdict in question.verdicts[question.earlier_verdicts :]:
        if verdict.filter in results:
            results[verdict.filter].append(verdict.correct)
    return tuple(RunCounts(n, len(r), r.count(True), r.count(False)) for n, r in results.items())
