"""An exam of drafts: a guesser without the video answers them, and what it answers right goes."""

from __future__ import annotations

from asyncio import gather
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random

from mustsee.calls.llm import Asker
from mustsee.errors import BadRow
from mustsee.facts.cases import by_chance
from mustsee.facts.draw import TRIES, Likeness, is_coherent, is_most_alike
from mustsee.facts.rank import rank
from mustsee.facts.select import Chosen, ChosenGroup, SelectRules
from mustsee.facts.settings import PASSES, FactSettings

UNRANKED = "questions of exams that could not be read"  # names of counts in run.json
DRAFTED = "questions drafted"
GUESSED = "right answers in exams without the video"
Count = Callable[[str, int], None]


async def examine(
    drafts: Sequence[ChosenGroup],
    guesser: Asker,
    likeness: Likeness,
    settings: FactSettings,
    count: Count,
) -> tuple[list[ChosenGroup], list[ChosenGroup]]:
    """Return the drafts that a guesser without the video does not answer right in `PASSES` exams,
    each with the rank it gave the truth in the last one, and those that it answered right at last.
    It sees many questions of the video at once, and what they tell of each other. A question that
    it answers right gets other options, if enough exams are left. Questions of an exam that cannot
    be read are left out.
    """

    async def sit(questions: Sequence[Chosen], seed: int) -> dict[str, int]:
        asked = [(one.stem.question, one.options) for one in questions]
        try:
            orders = await rank(asked, guesser, seed=seed)
        except BadRow:
            count(UNRANKED, len(questions))
            return {}
        return {
            one.stem.question: order.index(one.options.index(one.stem.answer))
            for one, order in zip(questions, orders, strict=True)
        }

    rules, rng = settings.select, Random(f"{settings.seed}/examine")
    groups, ranks, passed = list(drafts), dict[str, int](), Counter[str]()
    known: list[ChosenGroup] = []
    count(DRAFTED, sum(len(group.members) for group in groups))
    for number in range(settings.exams):
        seed = settings.seed + number
        members = {one.stem.question: one for group in groups for one in group.members}
        asked = [name for name in members if passed[name] < PASSES]
        drawn = [members[name] for name in by_chance(f"{seed}/exam", asked, str)]
        ranks = {name: rank for name, rank in ranks.items() if name not in asked}
        for part in await gather(*(sit(part, seed) for part in _parts(drawn, settings.together))):
            ranks |= part
        passed.update(asked)
        count(GUESSED, sum(ranks.get(name) == 0 for name in asked))
        groups = [kept for group in groups for kept in drop_guessed(group, ranks, rules.matched)]
        left = {one.stem.question for group in groups for one in group.members}
        for one in (members[name] for name in asked if name in ranks and name not in left):
            again = number + PASSES < settings.exams
            if again and (other := redraw(one, likeness, rules, rng)) is not None:
                passed.pop(one.stem.question)
                groups.append(ChosenGroup(members=(other,)))
            else:
                known.append(ChosenGroup(members=(replace(one, rank=0),)))
    passes = [all(passed[m.stem.question] >= PASSES for m in group.members) for group in groups]
    return [group for group, enough in zip(groups, passes, strict=True) if enough], known


def drop_guessed(
    group: ChosenGroup, ranks: Mapping[str, int], matched: int
) -> Iterator[ChosenGroup]:
    """Yield what an exam leaves of a group, with the rank of each answer. `ranks`: by question, 0
    if it was answered right. A set or a pair of which at most `matched` are answered right stays as
    it is; of another one, and where questions have no rank, those not answered right stay alone.
    """
    found = [ranks.get(one.stem.question, 0) for one in group.members]
    members = [replace(one, rank=rank) for one, rank in zip(group.members, found, strict=True)]
    read = all(one.stem.question in ranks for one in group.members)
    if group.relation and read and found.count(0) <= matched:
        yield ChosenGroup(members=tuple(members))
    else:
        yield from (ChosenGroup(members=(one,)) for one in members if one.rank)


def redraw(chosen: Chosen, likeness: Likeness, rules: SelectRules, rng: Random) -> Chosen | None:
    """Return a question with other wrong answers of its pool, as many new ones as there are; null
    if there is none, or none that can stand beside its answer.
    """
    stem = chosen.stem
    old = [option for option in chosen.options if option != stem.answer]
    fresh = [answer for answer in stem.pool if answer not in old]
    new = min(rules.options - 1, len(fresh))
    kept = rules.options - 1 - new
    for _ in range(TRIES if new and kept <= len(old) and not stem.options else 0):
        wrong = [*rng.sample(fresh, new), *rng.sample(old, kept)]
        options = tuple(rng.sample([stem.answer, *wrong], rules.options))
        if is_coherent(stem, options) and not is_most_alike(stem, options, likeness):
            return replace(chosen, options=options)
    return None


def _parts(items: Sequence[Chosen], most: int) -> list[Sequence[Chosen]]:
    """Return the items in as few parts of even size as hold at most `most` each."""
    parts = -(-len(items) // most)
    return [items[n::parts] for n in range(parts)]
