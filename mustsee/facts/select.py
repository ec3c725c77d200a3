"""Selects questions within limits: by form, fact, answer, pair of facts and share of far ones.

What one guesser ranks first, another picks, too: so of the questions in which it ranks the truth
first only a small share is taken, and over the others the truth's rank among the options is as even
as can be. Whoever takes the most or the least plausible option is then no better than chance.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, zip_longest
from random import Random

from mustsee.errors import UserError
from mustsee.facts.stem import FormTraits, Stem
from mustsee.questions.drafts import reach
from mustsee.records import PAIR, SET

SELECTION_TRIES = 100  # orders that are tried; the best selection is kept
SHUFFLE_SHARE = 0.5  # how far an order's places are shuffled, as a share of its length
# Questions with the truth at one rank, at most, as a multiple of the even share.
MAX_RANK_FACTOR = 1.4
MIN_PER_RANK = 4  # questions with the truth at one rank that are allowed in any case
# What goes with an event, a strong guesser knows better than the one that selects: in a run by hand
# it guessed 20 of 28 of these, and 3 of 21 of the others.
MIN_BESIDE = 3  # questions that ask what is seen beside something, allowed in any case
# Who compares the orders of one video with each other finds the one course that fits all of them:
# in runs by hand, readers answered 23 of 49 right.
MIN_ORDERS = 2  # questions on an order that are allowed in any case
MIN_OF_FORM = 5  # questions of another form that are allowed in any case
DRAFTS_OF_PAIR = 3  # factor on `of_pair` for drafts: of drafts on one pair most are dropped
DRAFTS_MORE_FAR = 0.25  # added to `far_share` for drafts: fewer of the far ones pass an exam


@dataclass(frozen=True, kw_only=True)
class SelectRules:
    """How composed questions are selected.

    Of a video twice as long as that, near ones beyond `near_least` questions are left out until
    it holds.
    """

    questions: int = 60
    """Questions of a video, at most."""
    least_questions: int = 36
    """Questions of a short video, at most."""
    seconds_each: float = 8
    """Seconds of a video for each question, between these two."""
    options: int = 5
    """Options of a question."""
    least_options: int = 4
    """Options of a smaller set."""
    first: float = 0.05
    """Share of the questions that the guesser may answer right; with none, what seems least
    likely would be right."""
    matched: int = 1
    """Questions of a set that the guesser may answer right."""
    of_fact: int = 5
    """Questions on one fact, at most."""
    of_answer: int = 2
    """Questions with one answer, at most, but for orders and numbers; what is an answer again
    and again is guessed."""
    of_pair: int = 1
    """Questions that join one pair of facts, at most; of two, one would tell the other's
    answer."""
    of_form: float = 0.25
    """Questions of one form, as a share of all."""
    order_share: float = 0.1
    """Share of the questions that ask for an order, at most; two in any case."""
    far: float = 60
    """Seconds from which moments lie far apart."""
    far_share: float = 0.5
    """Share of the questions that join such moments, if there are enough."""
    near_least: int = 30
    """Questions of a longer video that stay however few of them are far; beyond these, near
    ones are left out until `far_share` holds."""
    single_share: float = 0.25
    """Share of the questions that need one moment only, at most."""
    beside_share: float = 0.2
    """Share of the questions that ask what is seen beside something, at most; guessers know what
    goes together."""

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
    def traits(self) -> FormTraits:
        return self.members[0].stem.traits

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


_Use = tuple[str, str | frozenset[str]]  # what is limited, and the fact, answer or pair


@dataclass
class Tally:
    """What was taken so far: questions by form and rank, and by what they use."""

    rules: SelectRules
    ranks: Counter[tuple[str, int]] = field(default_factory=Counter[tuple[str, int]])
    uses: Counter[_Use] = field(default_factory=Counter[_Use])

    def allows(self, stems: Sequence[Stem]) -> bool:
        """Whether no fact, no answer and no pair of facts would have too many questions."""
        rules = self.rules
        limits = {
            "once": 1,
            "fact": rules.of_fact,
            "answer": rules.of_answer,
            "pair": rules.of_pair,
        }
        uses = Counter(use for stem in stems for use in _list_uses(stem))
        return all(self.uses[use] + n <= limits[use[0]] for use, n in uses.items())

    def allows_ranks(self, members: Sequence[Chosen]) -> bool:
        """Whether the truth would not stand first too often, nor at any other place."""
        ranks = Counter(rank for _, rank in self.ranks.elements())
        ranks.update(chosen.rank for chosen in members)
        most = MAX_RANK_FACTOR * ranks.total() / (self.rules.options - 1)
        others = max((n for rank, n in ranks.items() if rank), default=0)
        return ranks[0] <= self.rules.first * ranks.total() and others <= max(MIN_PER_RANK, most)

    def cost(self, members: Sequence[Chosen]) -> int:
        """Return how uneven the ranks of a form would be with further questions."""
        own = Counter(chosen.rank for chosen in members)
        for (form, rank), n in self.ranks.items():
            own[rank] += n * (form == members[0].stem.form)
        return sum(n * n for rank, n in own.items() if rank > 0)

    def add(self, members: Sequence[Chosen]) -> None:
        self.ranks.update((chosen.stem.form, chosen.rank) for chosen in members)
        self.uses.update(use for chosen in members for use in _list_uses(chosen.stem))


def _list_uses(stem: Stem) -> list[_Use]:
    """Return what a question uses. Two on one pair of facts tell each other's answer; what is an
    answer again and again is taken for one where nobody knows better.
    """
    facts = [("once" if "/" in name else "fact", name) for name in stem.about]
    answers = [] if stem.options else [("answer", stem.answer)]
    return [*facts, *answers, *(("pair", pair) for pair in _list_pairs(stem))]


def _list_pairs(stem: Stem) -> list[frozenset[str]]:
    """Return the pairs of facts that a question with its answer relates to each other."""
    if stem.centre:
        return [frozenset((stem.centre, name)) for name in stem.about if name != stem.centre]
    return [frozenset(pair) for pair in combinations(sorted(stem.about), 2)]


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
    far_and_near = [  # Fewer questions join moments that lie far apart: these are taken first.
        _least_shared_first([group for group in groups if group.is_far(rules.far) == far])
        for far in (True, False)
    ]

    def draw_order(stir: float) -> Iterator[list[ChosenGroup]]:
        """Yield far and near groups, each moved by about a share `stir` of their number."""
        for part in far_and_near:
            places = [place + rng.gauss(0, stir * len(part)) for place in range(len(part))]
            yield [part[n] for n in sorted(range(len(part)), key=places.__getitem__)]

    def worth(chosen: Sequence[ChosenGroup]) -> float:
        count = sum(len(group.members) for group in chosen)
        far = sum(len(group.members) for group in chosen if group.is_far(rules.far))
        return count + min(far, rules.far_share * count)

    orders = (draw_order(SHUFFLE_SHARE * (n > 0)) for n in range(SELECTION_TRIES))
    return max((_take(order, guessed, rules, seconds) for order in orders), key=worth)


def _take(
    parts: Iterable[Sequence[ChosenGroup]],
    guessed: Sequence[ChosenGroup],
    rules: SelectRules,
    seconds: float,
) -> list[ChosenGroup]:
    """Return the questions of a video, taken in the order of the parts."""
    tally = Tally(rules)
    chosen: list[ChosenGroup] = []

    def add_allowed(waiting: Sequence[ChosenGroup]) -> list[ChosenGroup]:
        """Add the groups that the rules allow, again and again, and return the rest."""
        left: list[ChosenGroup] = []
        for group in waiting:
            members = group.members
            if tally.allows([one.stem for one in members]) and tally.allows_ranks(members):
                tally.add(members)
                chosen.append(group)
            else:
                left.append(group)
        return add_allowed(left) if len(left) < len(waiting) else left

    rest = [group for part in parts for group in add_allowed(list(_in_turns(part)))]
    add_allowed(
        [ChosenGroup(members=(one,)) for group in rest for one in group.members if one.rank]
    )
    add_allowed(list(_in_turns(guessed)))
    return mix(chosen, rules, seconds)


def _least_shared_first(groups: Sequence[ChosenGroup]) -> list[ChosenGroup]:
    """Return the groups, the one first that shares pairs of facts with the fewest other groups."""
    own = [{pair for one in group.members for pair in _list_pairs(one.stem)} for group in groups]
    joining: dict[frozenset[str], set[int]] = {}
    for number, pairs in enumerate(own):
        for pair in pairs:
            joining.setdefault(pair, set()).add(number)
    others = [len({n for pair in pairs for n in joining[pair]}) for pairs in own]
    return [groups[n] for n in sorted(range(len(groups)), key=others.__getitem__)]


def mix(groups: Sequence[ChosenGroup], rules: SelectRules, seconds: float) -> list[ChosenGroup]:
    """Return as many groups as are wanted, of the forms in turns, far ones first for a share."""
    most = rules.question_limit(seconds)
    counts: Counter[str] = Counter()
    mixed: list[ChosenGroup] = []

    def fill(candidates: Sequence[ChosenGroup], limit: int) -> None:
        of_form = max(MIN_OF_FORM, rules.of_form * most)
        limits = {
            "any form": limit,
            "one moment": rules.single_share * most,
            "an order": max(MIN_ORDERS, rules.order_share * most),
        }
        for group in _in_turns(candidates):
            size, single = len(group.members), sum(len(m.stem.evidence) == 1 for m in group.members)
            form = "an order" if group.traits.lists_order else group.form
            new = {"any form": size, form: size} | ({"one moment": single} if single else {})
            fits = all(counts[name] + n <= limits.get(name, of_form) for name, n in new.items())
            if fits and group not in mixed:
                counts.update(new)
                mixed.append(group)

    fill([g for g in groups if g.is_far(rules.far)], math.ceil(rules.far_share * most))
    if rules.far_share and seconds >= 2 * rules.far:
        most = min(most, max(rules.near_least, round(counts["any form"] / rules.far_share)))
    fill(groups, most)
    return limit_beside(mixed, rules)


def limit_beside(groups: Sequence[ChosenGroup], rules: SelectRules) -> list[ChosenGroup]:
    """Return the groups without the last of those that ask what is seen beside something, where
    these are too many.
    """
    others = sum(len(g.members) for g in groups if not g.traits.is_beside)
    share = rules.beside_share
    left = max(MIN_BESIDE, others * share / (1 - share)) if share < 1 else math.inf
    kept: list[ChosenGroup] = []
    for group in groups:
        size = len(group.members) if group.traits.is_beside else 0
        if size <= left:
            left -= size
            kept.append(group)
    return kept


def _in_turns(groups: Sequence[ChosenGroup]) -> Iterator[ChosenGroup]:
    by_form: dict[str, list[ChosenGroup]] = {}
    for group in groups:
        by_form.setdefault(group.form, []).append(group)
    for turn in zip_longest(*by_form.values()):
        yield from (group for group in turn if group is not None)
