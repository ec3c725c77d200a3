"""Draws questions that words do not decide, with their options.

A guesser without the video has ranked the possible answers of each stem, or their order is drawn by
chance. Stems that may share a list become sets where they can: each option of a set is the answer
to one of its stems. A set is taken only if the guesser's best matching of stems and options is
hardly better than chance. Two stems of a form that are left, whose moments look alike, become a
pair where each one's answer is wrong for the other: both have the same options, which hold both
answers. Other stems get options of their own from their pool.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np
from numpy.typing import NDArray

from mustsee.facts.select import Chosen, ChosenGroup, SelectRules, Tally, mix
from mustsee.facts.stem import Stem
from mustsee.questions.drafts import reach

Likeness = Callable[[str, Sequence[str]], Sequence[float]]  # of a question and each answer
Alike = Callable[[Stem, Stem], bool]  # whether the moments that two questions name look alike
SET_TRIES = 300  # sets that are drawn for each that is taken
TRIES = 30  # pairs, or options of one question, that are drawn for each that is taken

_Drawn = tuple[tuple[int, ...], tuple[Chosen, ...]]  # the numbers of stems, and their questions


def draw_groups(
    stems: Sequence[Stem],
    rankings: Mapping[int, Sequence[str]],
    likeness: Likeness,
    rules: SelectRules,
    *,
    seconds: float,
    seed: int,
    alike: Alike | None = None,
) -> list[ChosenGroup]:
    """Return the questions of a video. `rankings`: for a stem's number, all its answers (the truth,
    and at least some of its pool or its options), the most plausible first; stems without one are
    left out. `seconds`: of the video. Without `alike`, no pairs are made.
    """
    ranked = {number: rankings[number] for number in sorted(rankings)}
    draws = _Draws(stems, ranked, likeness, Tally(rules), Random(f"{seed}/select"))
    taken: set[int] = set()
    groups: list[ChosenGroup] = []
    by_list: dict[str, list[int]] = {}
    for number in ranked:
        if stems[number].list_name:
            by_list.setdefault(stems[number].list_name, []).append(number)

    def add_group(drawn: _Drawn) -> None:
        numbers, members = drawn
        taken.update(numbers)
        draws.tally.add(members)
        groups.append(ChosenGroup(members=members))

    for name in sorted(by_list):
        while drawn := draws.draw_set([n for n in by_list[name] if n not in taken]):
            add_group(drawn)
    rest = [number for number in ranked if number not in taken]
    draws.rng.shuffle(rest)
    for place, number in enumerate(rest):
        if alike and number not in taken:
            later = [n for n in rest[place + 1 :] if n not in taken]
            if drawn := draws.draw_pair(number, later, alike):
                add_group(drawn)
    rest = [number for number in rest if number not in taken]
    for number in sorted(rest, key=lambda n: reach(stems[n].evidence) < rules.far):
        if drawn := draws.draw_one(number):
            add_group(drawn)
    return mix(groups, rules, seconds)


@dataclass(frozen=True)
class _Draws:
    """Draws sets, pairs and single questions."""

    stems: Sequence[Stem]
    ranked: Mapping[int, Sequence[str]]
    likeness: Likeness
    tally: Tally
    rng: Random

    def draw_set(self, numbers: Sequence[int]) -> _Drawn | None:
        """Return the best of many sets of stems, or null if none is good enough."""
        least = self.tally.rules.least_options
        drawn: list[_Drawn] = []
        for _ in range(SET_TRIES if len(numbers) >= least else 0):
            members = self._compatible(numbers)
            if len(members) >= least:
                drawn += self._members(members)
        return min(drawn, key=self._cost, default=None)

    def draw_pair(self, number: int, others: Sequence[int], alike: Alike) -> _Drawn | None:
        """Return the best of some pairs of a stem and one of the others whose moments look alike,
        or null if none is good enough. The further options are wrong for both.
        """
        stem, count = self.stems[number], self.tally.rules.options - 2
        partners = [
            other
            for other in others
            if self.stems[other].form == stem.form
            and self._is_contrary(number, other)
            and alike(stem, self.stems[other])
            and self.tally.allows([stem, self.stems[other]])
        ]
        drawn: list[_Drawn] = []
        for _ in range(TRIES if partners else 0):
            other = self.rng.choice(partners)
            answers = (stem.answer, self.stems[other].answer)
            shared = set(self.ranked[other]).difference(answers)
            wrong = [answer for answer in self.ranked[number] if answer in shared]
            if len(wrong) >= count:
                drawn += self._members((number, other), self.rng.sample(wrong, count))
        return min(drawn, key=self._cost, default=None)

    def draw_one(self, number: int) -> _Drawn | None:
        """Return a stem with options that balance the ranks best; null if only the first is left,
        or if it would be one question too many.
        """
        drawn: list[_Drawn] = [
            ((number,), (one,))
            for one in self._list_singles(self.stems[number], self.ranked[number])
            if self.tally.allows_ranks([one])
        ]
        allowed = self.tally.allows([self.stems[number]])
        return min(drawn, key=self._cost) if drawn and allowed else None

    def _cost(self, drawn: _Drawn) -> float:
        members = drawn[1]
        return self.tally.cost(members) / len(members) - len(members)

    def _compatible(self, numbers: Sequence[int]) -> tuple[int, ...]:
        """Draw stems of which each answer is known to be wrong for the others."""
        drawn: list[int] = []
        for number in self.rng.sample(numbers, len(numbers)):
            others = [self.stems[n] for n in drawn]
            fits = all(self._is_contrary(number, n) for n in drawn)
            if fits and self.tally.allows([*others, self.stems[number]]):
                drawn.append(number)
            if len(drawn) == self.tally.rules.options:
                break
        return tuple(drawn)

    def _is_contrary(self, one: int, other: int) -> bool:
        """Whether each of two stems has the other's answer among its wrong ones."""
        return all(
            self.stems[b].answer in self.stems[a].pool and self.stems[b].answer in self.ranked[a]
            for a, b in ((one, other), (other, one))
        )

    def _members(self, numbers: tuple[int, ...], more: Sequence[str] = ()) -> Iterator[_Drawn]:
        """Yield the questions of stems whose options are their answers and `more`, if words do not
        decide too much of them.
        """
        answers = [*(self.stems[n].answer for n in numbers), *more]
        if not all(is_coherent(self.stems[n], answers) for n in numbers):
            return
        orders = [[a for a in self.ranked[n] if a in answers] for n in numbers]
        ranks = np.array([[order.index(answer) for answer in answers] for order in orders])
        alike = sum(is_most_alike(self.stems[n], answers, self.likeness) for n in numbers)
        options = tuple(self.rng.sample(answers, len(answers)))
        members = tuple(
            Chosen(stem=self.stems[n], options=options, rank=int(ranks[i, i]))
            for i, n in enumerate(numbers)
        )
        matched = count_matched(ranks) <= self.tally.rules.matched
        if alike <= 1 and matched and self.tally.allows_ranks(members):
            yield numbers, members

    def _list_singles(self, stem: Stem, ranking: Sequence[str]) -> Iterator[Chosen]:
        """Yield a stem with options that its words do not decide, for each rank of the truth."""
        if stem.options:
            rank = [answer for answer in ranking if answer in stem.options].index(stem.answer)
            yield Chosen(stem=stem, options=stem.options, rank=rank)
            return
        wrong, place = self.tally.rules.options - 1, ranking.index(stem.answer)
        above, below = ranking[:place], ranking[place + 1 :]
        for rank in range(max(0, wrong - len(below)), min(wrong, len(above)) + 1):
            for _ in range(TRIES):
                drawn = [*self.rng.sample(above, rank), *self.rng.sample(below, wrong - rank)]
                options = tuple(self.rng.sample([stem.answer, *drawn], wrong + 1))
                if is_coherent(stem, options) and not is_most_alike(stem, options, self.likeness):
                    yield Chosen(stem=stem, options=options, rank=rank)


def count_matched(ranks: NDArray[np.int64]) -> int:
    """Return how many stems get their own answer in the matching with the least sum of ranks. The
    first columns are the stems' own answers.
    """
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(ranks)
    return int((rows == columns).sum())


def is_coherent(stem: Stem, options: Sequence[str]) -> bool:
    """Whether all options are known to belong to the stem's scene, or none is."""
    inside = [stem.scenes.get(option, -1) == stem.scene for option in options]
    return stem.scene < 0 or not stem.scenes or all(inside) or not any(inside)


def is_most_alike(stem: Stem, options: Sequence[str], likeness: Likeness) -> bool:
    """Whether the truth is more like the question than all other options are."""
    by_option = dict(zip(options, likeness(stem.question, options), strict=True))
    truth = by_option.pop(stem.answer)
    return truth > max(by_option.values())
