"""How often the filters' guesses were right, compared with chance, and what chance alone lets pass.

Filters let a question into the subset if guesses at it are wrong, so that a guesser that knows
nothing lets most questions in, and with rewrites nearly all. The size of the subset says little
without this figure; how often the first wordings were guessed says more.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any, NamedTuple

from mustsee.questions.chance import (
    chance_in_tries,
    chance_of,
    chance_to_pass,
    correct_for_chance,
)
from mustsee.records import AGREEMENT, Question, Verdict

MOST_ALIKE = 0.8  # share of questions with equal runs, from which the runs count as one guess


@dataclass(frozen=True, kw_only=True)
class GuessRule:
    """The settings of a run's filters by guesses.

    `filters`: name -> (runs, how many of them must be wrong). `rewrites`: of a guessed question, at
    most. `subset`: of the questions that pass.
    """

    filters: Mapping[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    rewrites: int = 0
    subset: str | None = None

    def passing_chance(self, question: Question) -> float:
        """Return the probability that guesses at chance let the question pass every filter."""
        chance = chance_of(question)
        return math.prod(chance_to_pass(chance, *rule) for rule in self.filters.values())


class FilterGuesses(NamedTuple):
    """The guesses of one filter.

    `questions`: whose first wording it guessed at, with a readable reply; `right`: of their first
    runs; `chance`: the expected share of these. `repeated`: questions with several runs at their
    last wording; `agreed`: of these, with the same first option in all runs.
    """

    questions: int
    right: int
    chance: float
    repeated: int
    agreed: int

    @property
    def above_chance(self) -> float | None:
        """The share of right guesses, corrected for chance."""
        if not self.questions or self.chance == 1:
            return None
        return correct_for_chance(self.right / self.questions, self.chance)


@dataclass(frozen=True, kw_only=True)
class GuessCounts:
    """The guesses of a run.

    `filters`: by name. `passing`: the mean chance of the guessed questions to pass every filter by
    guesses, and `passing_repaired` with all rewrites; None without questions.
    """

    rule: GuessRule
    filters: Mapping[str, FilterGuesses]
    passing: float | None
    passing_repaired: float | None

    def lines(self) -> Iterator[str]:
        """Yield the figures in words."""
        guessed = [
            f"{name} {of.right} of {of.questions} ({of.right / of.questions:.0%}, by chance "
            f"{of.chance:.0%}; corrected {max(0.0, of.above_chance or 0.0):.0%})"
            for name, of in self.filters.items()
            if of.questions
        ]
        if guessed:
            yield f"first wordings guessed right: {', '.join(guessed)}"
        if self.passing is not None and self.passing_repaired is not None:
            place = f"into {self.rule.subset}" if self.rule.subset else "through"
            after = ""
            if count := self.rule.rewrites:
                plural = "s" if count > 1 else ""
                after = f", {self.passing_repaired:.3f} after {count} rewrite{plural}"
            yield (
                f"a guesser at chance lets {self.passing:.3f} of the questions {place} at once"
                f"{after}"
            )
        for name, of in self.filters.items():
            if of.repeated:
                alike = of.agreed >= MOST_ALIKE * of.repeated
                advice = ": count its runs as one guess" if alike else ""
                yield (
                    f"the guesser of {name} agreed with itself in {of.agreed} of {of.repeated} "
                    f"questions{advice}"
                )

    def plain(self) -> dict[str, Any]:
        return {
            "filters": {
                name: {**of._asdict(), "above_chance": of.above_chance}
                for name, of in self.filters.items()
            },
            "rewrites": self.rule.rewrites,
            "chance_passes": self.passing,
            "chance_passes_repaired": self.passing_repaired,
            "said": list(self.lines()),
        }


def count_guesses(questions: Iterable[Question], rule: GuessRule) -> GuessCounts:
    """Count the guesses of the filters of `rule` at multiple-choice questions; siblings, which have
    filters of their own, are left out.
    """
    right, repeated, agreed = Counter[str](), Counter[str](), Counter[str]()
    chances: dict[str, list[float]] = {name: [] for name in rule.filters}
    passing = list[float]()
    for question in questions:
        guessed = {v.filter for v in question.verdicts} & rule.filters.keys()
        if not question.options or not guessed or question.sibling_of is not None:
            continue
        first = _first_wording(question)
        passing.append(rule.passing_chance(first))
        for name, is_right in _first_guesses(first.verdicts).items():
            if name in chances:
                chances[name].append(chance_of(first))
                right[name] += is_right
        for name in guessed:
            share = question.metrics.get(f"{name}{AGREEMENT}")
            repeated[name] += share is not None
            agreed[name] += share == 1
    tries = 1 + rule.rewrites
    return GuessCounts(
        rule=rule,
        filters={
            name: FilterGuesses(
                questions=len(of),
                right=right[name],
                chance=fmean(of) if of else 0.0,
                repeated=repeated[name],
                agreed=agreed[name],
            )
            for name, of in chances.items()
        },
        passing=fmean(passing) if passing else None,
        passing_repaired=fmean(chance_in_tries(p, tries) for p in passing) if passing else None,
    )


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
