"""An exam of drafts: a guesser without the video answers them, and what it answers right goes."""

from __future__ import annotations

from asyncio import gather
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

from mustsee.calls.llm import Asker
from mustsee.errors import BadRow
from mustsee.facts.cases import by_chance
from mustsee.facts.rank import rank
from mustsee.facts.select import Chosen, ChosenGroup, Likeness, drop_guessed, redraw
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


def _parts(items: Sequence[Chosen], most: int) -> list[Sequence[Chosen]]:
    """Return the items in as few parts of even size as hold at most `most` each."""
    parts = -(-len(items) // most)
    return [items[n::parts] for n in range(parts)]
