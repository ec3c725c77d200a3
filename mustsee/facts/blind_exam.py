"""Drop the drafts that a guesser answers without the video."""

from __future__ import annotations

from asyncio import gather
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random

from mustsee.errors import BadRow
from mustsee.facts.cases import by_chance
from mustsee.facts.draw import TRIES, Likeness, is_coherent, is_most_alike
from mustsee.facts.select import Chosen, ChosenGroup, SelectRules
from mustsee.facts.settings import PASSES, FactSettings
from mustsee.facts.work import VideoWork
from mustsee.verify.guess.ask import rank

EXAM_ANSWERS = "exam answers"  # `what` of the requests; one for each question of an exam
# Further parts of an exam that are asked where none has had a readable reply.
MAX_UNREAD_PARTS = 12


async def examine(
    work: VideoWork, drafts: Sequence[ChosenGroup], likeness: Likeness, settings: FactSettings
) -> tuple[list[ChosenGroup], list[ChosenGroup]]:
    """Return the drafts that a guesser without the video does not answer right in `PASSES` exams,
    each with the rank it gave the truth in the last one, and those that it answered right at last.
    It sees many questions of the video at once, and what they tell of each other. A question that
    it answers right gets other options, if enough exams are left. A question whose exam has no
    readable reply is left out, and counted. Raises BadRow if no question is left but of those.
    """
    rules, rng = settings.select, Random(f"{settings.seed}/examine")
    groups, ranks, passed = list(drafts), dict[str, int](), Counter[str]()
    known: list[ChosenGroup] = []
    for number in range(settings.exams):
        seed = settings.seed + number
        members = {one.stem.question: one for group in groups for one in group.members}
        asked = [name for name in members if passed[name] < PASSES]
        drawn = [members[name] for name in by_chance(f"{seed}/exam", asked, str)]
        ranks = {name: rank for name, rank in ranks.items() if name not in asked}
        try:
            ranks |= await sit_exam(work, drawn, settings.together, seed)
        except BadRow as error:
            if len(asked) == len(members):  # No question has passed before.
                raise
            work.requests.add_unread(EXAM_ANSWERS, error, len(drawn))
        passed.update(asked)
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


async def sit_exam(
    work: VideoWork, questions: Sequence[Chosen], together: int, seed: int
) -> dict[str, int]:
    """Return the rank of each question's right answer, by the question.

    A part of the exam without a readable reply is halved and asked again, as it may be too long for
    the model, or hold one question that the endpoint refuses. Raises BadRow if no part has a reply.
    """

    async def ask(part: Sequence[Chosen]) -> dict[str, int] | BadRow:
        try:
            asked = [(one.stem.question, one.options) for one in part]
            orders = await rank(asked, work.roles.guesser, seed=seed)
        except BadRow as error:
            return error
        return {
            one.stem.question: order.index(one.options.index(one.stem.answer))
            for one, order in zip(part, orders, strict=True)
        }

    work.requests.add_sent(EXAM_ANSWERS, len(questions))
    ranks, errors = dict[str, int](), list[BadRow]()
    due, waiting = _parts(questions, together), list[Sequence[Chosen]]()
    first_parts = len(due)
    while due:
        for part, result in zip(due, await gather(*map(ask, due)), strict=True):
            if not isinstance(result, BadRow):
                ranks |= result
                continue
            errors.append(result)
            if len(part) > 1:
                waiting.append(part)
        if not ranks and len(errors) >= first_parts + MAX_UNREAD_PARTS:
            break
        # While there is no reply at all, every further request may be refused, too.
        halved, waiting = (waiting, []) if ranks else (waiting[-1:], waiting[:-1])
        due = [half for part in halved for half in _parts(part, -(-len(part) // 2))]
    if errors and not ranks:
        raise BadRow(
            f"none of the {len(questions)} questions of an exam could be answered: {errors[0]}"
        )
    if lost := len(questions) - len(ranks):
        work.requests.add_unread(EXAM_ANSWERS, errors[-1], lost)
    return ranks


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
