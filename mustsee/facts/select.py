"""Selects questions that words do not decide, and their options.

A guesser without the video has ranked the possible answers of each stem, or the options of drafts.
What one guesser ranks first, another picks, too: so of the questions in which it ranks the truth
first only a small share is taken, and over the others the truth's rank among the options is as even
as can be. Whoever takes the most or the least plausible option is then no better than chance.

Stems that may share a list become sets where they can: each option of a set is the answer to one of
its stems. A set is taken only if the guesser's best matching of stems and options is hardly better
than chance. Two stems of a form that are left, whose moments look alike, become a pair where each
one's answer is wrong for the other: both have the same options, which hold both answers. Other
stems get options of their own from their pool.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, zip_longest
from random import Random

import numpy as np
from numpy.typing import NDArray

from mustsee.errors import UserError
from mustsee.facts.stem import Stem
from mustsee.questions.drafts import reach
from mustsee.records import PAIR, SET

Likeness = Callable[[str, Sequence[str]], Sequence[float]]  # of a question and each answer
Alike = Callable[[Stem, Stem], bool]  # whether the moments that two questions name look alike
TRIES = 300  # sets that are drawn for each that is taken
ORDERS = 100  # in which questions are taken, of which the best stays
STIR = 0.5  # share of its length by which the places in an order differ
MAX_UNEVEN = 1.4  # times its share of the questions that the truth may stand at one rank, at most
# What goes with an event, a strong guesser knows better than the one that selects: in a run by hand
# it guessed 20 of 28 of these, and 3 of 21 of the others.
BESIDE_FORMS = frozenset({"where", "with", "holds", "state", "both", "but_not"})
DRAFTS_OF_PAIR = 3  # factor on `of_pair` for drafts: of drafts on one pair most are dropped
DRAFTS_MORE_FAR = 0.25  # added to `far_share` for drafts: fewer of the far ones pass an exam
# Who compares the orders of one video with each other finds the one course that fits all of them:
# in runs by hand, readers answered 23 of 49 right.
LEAST_ORDERS = 2  # questions that ask for an order, in any case
LEAST_BESIDE = 3  # questions of these forms, in any case
LEAST_EVEN = 4  # questions in which it may stand there in any case


@dataclass(frozen=True, kw_only=True)
class SelectRules:
    """`questions`: of a video, at most: one for every `seconds_each` seconds, and at least
    `least_questions`. `options`: of a question; `least_options`: of a small set. `first`: share of
    the questions in which the guesser may rank the truth first. `matched`: answers of a set that it
    may find, in an exam or as the best matching of its rankings. `of_fact`: questions on one fact,
    at most; `of_answer`: with one answer, but for orders and numbers; `of_pair`: that relate one
    pair of facts; `of_form`: of one form, as a share. `order_share`: of those that ask for an
    order, at most, or `LEAST_ORDERS`.
    `far_share`: of the questions that join moments `far` seconds apart. Of a video twice as long as
    that, near ones beyond `near_least` questions are left out until it holds.
    `single_share`: of those that need one moment only, at most. `beside_share`: of those that ask
    what is seen beside something (`BESIDE_FORMS`), at most, or `LEAST_BESIDE`.
    """

    questions: int = 60
    least_questions: int = 36
    seconds_each: float = 8.0
    options: int = 5
    least_options: int = 4
    first: float = 0.05
    matched: int = 1
    of_fact: int = 5
    of_answer: int = 2
    of_pair: int = 1
    of_form: float = 0.25
    order_share: float = 0.1
    far: float = 60.0
    far_share: float = 0.5
    near_least: int = 30
    single_share: float = 0.25
    beside_share: float = 0.2

    def __post_init__(self) -> None:
        if not 3 <= self.least_options <= self.options <= 10:
            raise UserError(
                f"ask.settings.select.options={self.options!r}, least_options="
                f"{self.least_options!r}: from 3 to 10, the least first"
            )

    def for_drafts(self, times: int) -> SelectRules:
        """Return the rules for drafts, `times` as many as there may be questions."""
        return replace(
            self,
            questions=self.questions * times,
            least_questions=self.least_questions * times,
            seconds_each=self.seconds_each / times,
            of_fact=self.of_fact * times,
            of_answer=self.of_answer * times,
            of_pair=self.of_pair * DRAFTS_OF_PAIR,
            first=1.0,
            matched=self.options,
            far_share=min(1.0, self.far_share + DRAFTS_MORE_FAR),
            near_least=self.questions * times,
            beside_share=1.0,
        )

    def question_limit(self, seconds: float) -> int:
        """Return the greatest number of questions for a video of a length."""
        return min(self.questions, max(self.least_questions, round(seconds / self.seconds_each)))


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """A stem with its options. `rank`: of the truth among them by the guesser, 0 first."""

    stem: Stem
    options: tuple[str, ...]
    rank: int


@dataclass(frozen=True, kw_only=True)
class ChosenGroup:
    """A set, a pair, or one question alone."""

    members: tuple[Chosen, ...]

    @property
    def form(self) -> str:
        return self.members[0].stem.form

    @property
    def relation(self) -> str | None:
        """What its questions are to each other; null for one alone."""
        if len(self.members) == 1:
            return None
        return SET if len(self.members) == len(self.members[0].options) else PAIR

    def is_far(self, seconds: float) -> bool:
        """Whether most of its questions join moments so many seconds apart."""
        reaches = [reach(chosen.stem.evidence) >= seconds for chosen in self.members]
        return 2 * sum(reaches) > len(reaches)


@dataclass
class _Tally:
    """What was chosen so far: ranks by form, questions by fact, by answer, and by the pairs of
    facts that they relate. Two questions on one pair tell each other's answer; what is an answer
    again and again is taken for one where nobody knows better.
    """

    rules: SelectRules
    ranks: Counter[tuple[str, int]] = field(default_factory=Counter[tuple[str, int]])
    facts: Counter[str] = field(default_factory=Counter[str])
    answers: Counter[str] = field(default_factory=Counter[str])
    pairs: Counter[frozenset[str]] = field(default_factory=Counter[frozenset[str]])

    def allows(self, stems: Sequence[Stem]) -> bool:
        """Whether no fact, no answer and no pair of facts would have too many questions."""
        about = Counter(name for stem in stems for name in stem.about)
        answers = Counter(stem.answer for stem in stems if not stem.options)
        pairs = Counter(pair for stem in stems for pair in _pairs(stem))
        return (
            all(
                self.facts[name] + n <= (1 if "/" in name else self.rules.of_fact)
                for name, n in about.items()
            )
            and all(self.answers[a] + n <= self.rules.of_answer for a, n in answers.items())
            and all(self.pairs[pair] + n <= self.rules.of_pair for pair, n in pairs.items())
        )

    def allows_ranks(self, members: Sequence[Chosen]) -> bool:
        """Whether the truth would not stand first too often, nor at any other place."""
        ranks = Counter(rank for _, rank in self.ranks.elements())
        ranks.update(chosen.rank for chosen in members)
        most = MAX_UNEVEN * ranks.total() / (self.rules.options - 1)
        others = max((n for rank, n in ranks.items() if rank), default=0)
        return ranks[0] <= self.rules.first * ranks.total() and others <= max(LEAST_EVEN, most)

    def cost(self, members: Sequence[Chosen]) -> float:
        """Return how uneven the ranks of a form would be with further questions."""
        own = Counter(
            {rank: n for (form, rank), n in self.ranks.items() if form == members[0].stem.form}
        )
        own.update(chosen.rank for chosen in members)
        return math.fsum(n * n for rank, n in own.items() if rank > 0)

    def add(self, members: Sequence[Chosen]) -> None:
        self.ranks.update((chosen.stem.form, chosen.rank) for chosen in members)
        self.facts.update(name for chosen in members for name in chosen.stem.about)
        self.answers.update(chosen.stem.answer for chosen in members if not chosen.stem.options)
        self.pairs.update(pair for chosen in members for pair in _pairs(chosen.stem))


_Drawn = tuple[tuple[int, ...], tuple[Chosen, ...]]  # the numbers of stems, and their questions


def _pairs(stem: Stem) -> list[frozenset[str]]:
    """Return the pairs of facts that a question with its answer relates to each other."""
    if stem.centre:
        return [frozenset((stem.centre, name)) for name in stem.about if name != stem.centre]
    return [frozenset(pair) for pair in combinations(sorted(stem.about), 2)]


def select(
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
    rng = Random(f"{seed}/select")
    tally = _Tally(rules)
    ranked = {number: list(rankings[number]) for number in sorted(rankings)}
    taken: set[int] = set()
    groups: list[ChosenGroup] = []
    by_list: dict[str, list[int]] = {}
    for number in ranked:
        if stems[number].list_name:
            by_list.setdefault(stems[number].list_name, []).append(number)

    def take(numbers: Sequence[int], members: tuple[Chosen, ...]) -> None:
        taken.update(numbers)
        tally.add(members)
        groups.append(ChosenGroup(members=members))

    draws = _Draws(stems, ranked, likeness, rules, tally, rng)
    for name in sorted(by_list):
        while (found := draws.draw_set([n for n in by_list[name] if n not in taken])) is not None:
            take(*found)
    rest = [number for number in ranked if number not in taken]
    rng.shuffle(rest)
    for place, number in enumerate(rest):
        if alike and number not in taken:
            later = [n for n in rest[place + 1 :] if n not in taken]
            if (found := draws.draw_pair(number, later, alike)) is not None:
                take(*found)
    rest = [number for number in rest if number not in taken]
    for number in sorted(rest, key=lambda n: reach(stems[n].evidence) < rules.far):
        chosen = _alone(stems[number], ranked[number], likeness, tally, rng)
        if chosen is not None and tally.allows([chosen.stem]):
            tally.add([chosen])
            groups.append(ChosenGroup(members=(chosen,)))
    return _mix(groups, rules, seconds)


class _Draws:
    """Draws sets and pairs of stems."""

    def __init__(
        self,
        stems: Sequence[Stem],
        ranked: Mapping[int, Sequence[str]],
        likeness: Likeness,
        rules: SelectRules,
        tally: _Tally,
        rng: Random,
    ) -> None:
        self.stems, self.ranked, self.likeness = stems, ranked, likeness
        self.rules, self.tally, self.rng = rules, tally, rng

    def draw_set(self, numbers: Sequence[int]) -> _Drawn | None:
        """Return the best of many sets of stems, or null if none is good enough."""
        drawn: list[_Drawn] = []
        for _ in range(TRIES if len(numbers) >= self.rules.least_options else 0):
            members = self._compatible(numbers)
            if len(members) >= self.rules.least_options:
                drawn += self._members(members)
        return min(drawn, key=self._cost, default=None)

    def draw_pair(self, number: int, others: Sequence[int], alike: Alike) -> _Drawn | None:
        """Return the best of some pairs of a stem and one of the others whose moments look alike,
        or null if none is good enough. The further options are wrong for both.
        """
        stem = self.stems[number]
        partners = [
            other
            for other in others
            if self.stems[other].form == stem.form
            and self._is_contrary(number, other)
            and alike(stem, self.stems[other])
            and self.tally.allows([stem, self.stems[other]])
        ]
        drawn: list[_Drawn] = []
        for _ in range(TRIES // 10 if partners else 0):
            other = self.rng.choice(partners)
            answers = (stem.answer, self.stems[other].answer)
            wrong = [a for a in self.ranked[number] if a in self.ranked[other]]
            wrong = [a for a in wrong if a not in answers]
            if len(wrong) >= self.rules.options - 2:
                more = self.rng.sample(wrong, self.rules.options - 2)
                drawn += self._members((number, other), more)
        return min(drawn, key=self._cost, default=None)

    def _cost(self, drawn: _Drawn) -> float:
        members = drawn[1]
        return self.tally.cost(members) / len(members) - len(members)

    def _compatible(self, numbers: Sequence[int]) -> tuple[int, ...]:
        """Draw stems of which each answer is known to be wrong for the others."""
        drawn: list[int] = []
        for number in self.rng.sample(list(numbers), len(numbers)):
            others = [self.stems[n] for n in drawn]
            fits = all(self._is_contrary(number, n) for n in drawn)
            if fits and self.tally.allows([*others, self.stems[number]]):
                drawn.append(number)
            if len(drawn) == self.rules.options:
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
        if not all(coherent(self.stems[n], answers) for n in numbers):
            return
        ranks = _ranks(answers, [self.ranked[n] for n in numbers])
        alike = sum(is_most_alike(self.stems[n], answers, self.likeness) for n in numbers)
        options = tuple(self.rng.sample(answers, len(answers)))
        members = tuple(
            Chosen(stem=self.stems[n], options=options, rank=int(ranks[i, i]))
            for i, n in enumerate(numbers)
        )
        if (
            alike <= 1
            and count_matched(ranks) <= self.rules.matched
            and self.tally.allows_ranks(members)
        ):
            yield numbers, members


def _ranks(answers: Sequence[str], rankings: Sequence[Sequence[str]]) -> NDArray[np.int64]:
    """Return the rank of each answer (column) for each stem (row) among these answers."""
    ranks = np.zeros((len(rankings), len(answers)), np.int64)
    for row, ranking in enumerate(rankings):
        order = [answer for answer in ranking if answer in answers]
        ranks[row] = [order.index(answer) for answer in answers]
    return ranks


def count_matched(ranks: NDArray[np.int64]) -> int:
    """Return how many stems get their own answer in the matching with the least sum of ranks. The
    first columns are the stems' own answers.
    """
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(ranks)
    return int((rows == columns).sum())


def coherent(stem: Stem, options: Sequence[str]) -> bool:
    """Whether all options are known to belong to the stem's scene, or none is."""
    inside = [stem.scenes.get(option, -1) == stem.scene for option in options]
    return stem.scene < 0 or not stem.scenes or all(inside) or not any(inside)


def is_most_alike(stem: Stem, options: Sequence[str], likeness: Likeness) -> bool:
    """Whether the truth is more like the question than all other options are."""
    by_option = dict(zip(options, likeness(stem.question, options), strict=True))
    truth = by_option.pop(stem.answer)
    return truth > max(by_option.values())


def _alone(
    stem: Stem, ranking: Sequence[str], likeness: Likeness, tally: _Tally, rng: Random
) -> Chosen | None:
    """Return a stem with options that balance the ranks best; null if only the first is left."""
    if stem.options:
        rank = [answer for answer in ranking if answer in stem.options].index(stem.answer)
        chosen = Chosen(stem=stem, options=stem.options, rank=rank)
        return chosen if tally.allows_ranks([chosen]) else None
    wrong = tally.rules.options - 1
    place = ranking.index(stem.answer)
    above, below = list(ranking[:place]), list(ranking[place + 1 :])
    best: tuple[float, Chosen] | None = None
    for rank in range(wrong + 1):
        if rank > len(above) or wrong - rank > len(below):
            continue
        for _ in range(TRIES // 10):
            drawn = [*rng.sample(above, rank), *rng.sample(below, wrong - rank)]
            options = tuple(rng.sample([stem.answer, *drawn], wrong + 1))
            chosen = Chosen(stem=stem, options=options, rank=rank)
            alike = is_most_alike(stem, options, likeness)
            if not coherent(stem, options) or alike or not tally.allows_ranks([chosen]):
                continue
            cost = tally.cost([chosen])
            if best is None or cost < best[0]:
                best = cost, chosen
    return best[1] if best else None


def _mix(groups: Sequence[ChosenGroup], rules: SelectRules, seconds: float) -> list[ChosenGroup]:
    """Return as many groups as are wanted, of the forms in turns, far ones first for a share."""
    most = rules.question_limit(seconds)
    of_form: Counter[str] = Counter()
    single = 0
    mixed: list[ChosenGroup] = []

    def fill(candidates: Sequence[ChosenGroup], limit: int) -> None:
        nonlocal single
        for group in _in_turns(candidates):
            total = sum(len(g.members) for g in mixed)
            if total + len(group.members) > limit or group in mixed:
                continue
            limit_of_form = max(5, rules.of_form * most)
            if group.form == "order":
                limit_of_form = max(LEAST_ORDERS, rules.order_share * most)
            if of_form[group.form] + len(group.members) > limit_of_form:
                continue
            of_one_moment = sum(len(m.stem.evidence) == 1 for m in group.members)
            if of_one_moment and single + of_one_moment > rules.single_share * most:
                continue
            single += of_one_moment
            of_form[group.form] += len(group.members)
            mixed.append(group)

    fill([g for g in groups if g.is_far(rules.far)], math.ceil(rules.far_share * most))
    if rules.far_share and seconds >= 2 * rules.far:
        far = sum(len(group.members) for group in mixed)
        most = min(most, max(rules.near_least, round(far / rules.far_share)))
    fill(groups, most)
    return limit_beside(mixed, rules)


def choose(
    groups: Sequence[ChosenGroup],
    guessed: Sequence[ChosenGroup],
    rules: SelectRules,
    *,
    seconds: float,
    seed: int = 0,
) -> list[ChosenGroup]:
    """Return the questions of a video from groups that an exam left, such that the ranks of their
    answers are even, and from those `guessed` there a share: without them a guesser who takes what
    seems least likely would be better than chance. Of a set or a pair that would make the ranks
    uneven, the questions that were not answered right stand alone.

    What is taken first rules out others. So it is done in many orders, and the one stays that
    leaves most questions, where far ones count twice up to their share.
    """
    rng = Random(f"{seed}/choose")

    def worth(chosen: Sequence[ChosenGroup]) -> float:
        count = sum(len(group.members) for group in chosen)
        far = sum(len(group.members) for group in chosen if group.is_far(rules.far))
        return count + min(far, rules.far_share * count)

    tries = (
        _choose_in_order(groups, guessed, rules, seconds=seconds, rng=rng, stir=STIR * (n > 0))
        for n in range(ORDERS)
    )
    return max(tries, key=worth)


def _choose_in_order(
    groups: Sequence[ChosenGroup],
    guessed: Sequence[ChosenGroup],
    rules: SelectRules,
    *,
    seconds: float,
    rng: Random,
    stir: float,
) -> list[ChosenGroup]:
    """Return the questions of a video as they come: those first that share least with others, each
    moved in that order by about a share `stir` of its length.
    """
    tally = _Tally(rules)
    chosen: list[ChosenGroup] = []

    def take(waiting: Sequence[ChosenGroup]) -> list[ChosenGroup]:
        """Take what the rules allow, again and again, and return the rest."""
        left: list[ChosenGroup] = []
        for group in waiting:
            members = group.members
            if tally.allows([one.stem for one in members]) and tally.allows_ranks(members):
                tally.add(members)
                chosen.append(group)
            else:
                left.append(group)
        return take(left) if len(left) < len(waiting) else left

    rest: list[ChosenGroup] = []
    for far in (True, False):  # Fewer questions join moments that lie far apart.
        own = _least_shared_first([g for g in groups if g.is_far(rules.far) == far])
        places = [place + rng.gauss(0, stir * len(own)) for place in range(len(own))]
        order = sorted(range(len(own)), key=places.__getitem__)
        rest += take(list(_in_turns([own[n] for n in order])))
    take([ChosenGroup(members=(one,)) for group in rest for one in group.members if one.rank])
    take(list(_in_turns(guessed)))
    return _mix(chosen, rules, seconds)


def _least_shared_first(groups: Sequence[ChosenGroup]) -> list[ChosenGroup]:
    """Return the groups, the one first that shares pairs of facts with the fewest other groups."""
    own = [{pair for one in group.members for pair in _pairs(one.stem)} for group in groups]
    joining: dict[frozenset[str], set[int]] = {}
    for number, pairs in enumerate(own):
        for pair in pairs:
            joining.setdefault(pair, set()).add(number)
    others = [len({n for pair in pairs for n in joining[pair]}) for pairs in own]
    return [groups[n] for n in sorted(range(len(groups)), key=others.__getitem__)]


def limit_beside(groups: Sequence[ChosenGroup], rules: SelectRules) -> list[ChosenGroup]:
    """Return the groups without the last ones of `BESIDE_FORMS` that are too many."""
    others = sum(len(g.members) for g in groups if g.form not in BESIDE_FORMS)
    if rules.beside_share >= 1:
        return list(groups)
    left = max(LEAST_BESIDE, math.floor(others * rules.beside_share / (1 - rules.beside_share)))
    kept: list[ChosenGroup] = []
    for group in groups:
        if group.form in BESIDE_FORMS:
            if len(group.members) > left:
                continue
            left -= len(group.members)
        kept.append(group)
    return kept


def _in_turns(groups: Sequence[ChosenGroup]) -> Iterator[ChosenGroup]:
    by_form: dict[str, list[ChosenGroup]] = {}
    for group in groups:
        by_form.setdefault(group.form, []).append(group)
    for turn in zip_longest(*by_form.values()):
        yield from (group for group in turn if group is not None)
