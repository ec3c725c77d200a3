"""EgoSchema's prompts answered by rules: questions on the things that C handles, and their order.

Questions fill a few templates (`mustsee.recipes.egoschema.offline.narrated` parses the narrations).
They are shallow, but the narrations prove each answer and refute each decoy. If a clip gives fewer
questions than requested, the rules write "none" for each missing one.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise, permutations

from mustsee.calls.llm import Request
from mustsee.questions.drafts import Draft
from mustsee.recipes.egoschema.offline.narrated import (
    NarratedObject,
    NarratedObjects,
    read_narrations,
    relatives,
)
from mustsee.text import LETTERS

MIN_NARRATIONS = 2  # narrations that handle the thing of a question, at least
CLEAR_RATIO = 1.5  # ratio of counts from which a lead over the next thing is clear
MIN_APART_S = 5  # seconds between things in an order, because narrations' times are inexact
BEFORE, AFTER = 0.4, 0.7  # shares of the narrated time: end of the first half, start of the second
MAX_ORDERED_THINGS = 12  # things in which three successive ones are searched, at most
_ELSEWHERE = tuple(  # decoys for clips that handle few things; only those not mentioned are used
    """towel bag box cup bottle brush scissors phone tray basket ladder chair pillow rope bucket
    book newspaper hammer camera jacket""".split()  # noqa: SIM905
)


@dataclass(frozen=True, kw_only=True)
class Item:
    """A question with its answer and all its decoys, the best first."""

    question: str
    answer: str
    wrong: tuple[str, ...]


def _elsewhere(narrated: NarratedObjects, rng: random.Random) -> list[str]:
    """Return things that no narration mentions, in seeded order."""
    things = [name for name in _ELSEWHERE if narrated.lacks(name)]
    rng.shuffle(things)
    return things


def _names(
    things: Iterable[NarratedObject], narrated: NarratedObjects, rng: random.Random
) -> list[str]:
    """Return the names of the clip's things in seeded order, then those of other things."""
    head = [thing.name for thing in things][:12]
    rng.shuffle(head)
    return [*head, *_elsewhere(narrated, rng)]


def _unlike(thing: NarratedObject, *others: NarratedObject) -> bool:
    """Whether a thing cannot be one of the others under another name."""
    return not any(relatives(thing.root) & relatives(other.root) for other in others)


def _dominant(narrated: NarratedObjects, rng: random.Random) -> Item | None:
    if len(narrated.things) < 3:
        return None
    one, two, three, *_ = narrated.things
    clear = len(two.handled) >= CLEAR_RATIO * len(three.handled)
    if len(two.handled) < MIN_NARRATIONS + 1 or not clear or not _unlike(one, two):
        return None
    others = [
        thing
        for thing in narrated.things[2:]
        if _unlike(thing, one, two) and CLEAR_RATIO * len(thing.mentioned) <= len(two.handled)
    ]
    names = _names(others, narrated, rng)
    say = "With the {} and the {}, more than with anything else."
    return Item(
        question="What is C mainly occupied with throughout the video, taking all parts together?",
        answer=say.format(one.name, two.name),
        wrong=tuple(say.format(*pair) for pair in zip(names[::2], names[1::2], strict=False)),
    )


def _leads(narrated: NarratedObjects, first: float, last: float) -> NarratedObject | None:
    """Return the thing that is clearly handled most often between two seconds, or null."""
    ranked = sorted(narrated.things, key=lambda thing: -thing.among(first, last))
    if len(ranked) < 2 or ranked[0].among(first, last) < MIN_NARRATIONS:
        return None
    clear = ranked[0].among(first, last) >= CLEAR_RATIO * ranked[1].among(first, last)
    return ranked[0] if clear else None


def _change(narrated: NarratedObjects, rng: random.Random) -> Item | None:
    third = narrated.last / 3
    early, late = _leads(narrated, 0, third), _leads(narrated, 2 * third, narrated.last)
    if early is None or late is None or not _unlike(early, late):
        return None
    if early.is_mentioned(2 * third, narrated.last) or late.is_mentioned(0, third):
        return None
    others = [thing for thing in narrated.things if _unlike(thing, early, late)]
    unmentioned = _elsewhere(narrated, rng)
    not_late = [
        t.name for t in others if not t.is_mentioned(2 * third, narrated.last)
    ] + unmentioned
    not_early = [t.name for t in others if not t.is_mentioned(0, third)] + unmentioned
    say = "The attention moves from the {} at first to the {} at last."
    mixed = [
        text
        for x, y in zip(not_late, not_early, strict=False)
        for text in (say.format(early.name, x), say.format(y, late.name))
    ]
    return Item(
        question="How does the focus of C's actions shift between the beginning and the end?",
        answer=say.format(early.name, late.name),
        wrong=(say.format(late.name, early.name), *mixed),
    )


def _quarters(seconds: Sequence[int], last: int) -> set[int]:
    """Return the quarters of the narrated time in which the seconds lie."""
    return {min(3, 4 * second // max(1, last)) for second in seconds}


def _thread(narrated: NarratedObjects, rng: random.Random) -> Item | None:
    in_all_quarters = [
        thing for thing in narrated.things if len(_quarters(thing.handled, narrated.last)) == 4
    ]
    if not in_all_quarters:
        return None
    key = in_all_quarters[0]
    others = [
        thing
        for thing in narrated.things
        if _unlike(thing, key)
        and len(_quarters(thing.mentioned, narrated.last)) <= 2
        and CLEAR_RATIO * len(thing.mentioned) <= len(key.handled)
    ]
    say = "C keeps coming back to the {}, in every part of the video."
    return Item(
        question="Which object ties the different parts of the video together, and in what way?",
        answer=say.format(key.name),
        wrong=tuple(say.format(name) for name in _names(others, narrated, rng)),
    )


def _stages(narrated: NarratedObjects, rng: random.Random) -> Item | None:
    frequent = [thing for thing in narrated.things if len(thing.handled) >= MIN_NARRATIONS][
        :MAX_ORDERED_THINGS
    ]
    frequent.sort(key=lambda thing: thing.mentioned[0])
    triples = [
        triple
        for triple in combinations(frequent, 3)
        if all(
            a.mentioned[-1] + MIN_APART_S <= b.mentioned[0] and _unlike(a, b)
            for a, b in pairwise(triple)
        )
    ]
    if not triples:
        return None
    triple = max(triples, key=lambda things: sum(len(thing.handled) for thing in things))
    names = [thing.name for thing in triple]
    say = "C turns to the {}, after that to the {}, and in the end to the {}."
    orders = [say.format(*order) for order in permutations(names)][1:]
    rng.shuffle(orders)
    return Item(
        question="Into which stages can the course of the video be condensed?",
        answer=say.format(*names),
        wrong=tuple(orders),
    )


def _second_half(narrated: NarratedObjects, rng: random.Random) -> Item | None:
    first, second = BEFORE * narrated.last, AFTER * narrated.last
    late_only = [
        t for t in narrated.things if len(t.handled) >= MIN_NARRATIONS and t.mentioned[0] >= second
    ]
    others = [thing for thing in narrated.things if thing.among(0, first)]
    return _half(
        late_only,
        others,
        "Comparing the two halves of the video, what sets the second one apart?",
        "C handles the {} in the second half only.",
        (narrated, rng),
    )


def _first_half(narrated: NarratedObjects, rng: random.Random) -> Item | None:
    first, second = BEFORE * narrated.last, AFTER * narrated.last
    early_only = [
        t for t in narrated.things if len(t.handled) >= MIN_NARRATIONS and t.mentioned[-1] <= first
    ]
    others = [thing for thing in narrated.things if thing.among(second, narrated.last)]
    return _half(
        early_only,
        others,
        "Comparing the two halves of the video, what is over and done with after the first one?",
        "C handles the {} in the first half only.",
        (narrated, rng),
    )


def _half(
    keys: Sequence[NarratedObject],
    others: Sequence[NarratedObject],
    question: str,
    say: str,
    narrated_and_rng: tuple[NarratedObjects, random.Random],
) -> Item | None:
    """Ask for a thing of one half alone; the decoys are certainly in the other half."""
    if not keys:
        return None
    key = keys[0]
    names = _names([thing for thing in others if _unlike(thing, key)], *narrated_and_rng)
    return Item(
        question=question,
        answer=say.format(key.name),
        wrong=tuple(say.format(name) for name in names),
    )


MAKERS: tuple[Callable[[NarratedObjects, random.Random], Item | None], ...] = (
    _dominant,
    _change,
    _thread,
    _stages,
    _second_half,
    _first_half,
)


def _items(variables: Mapping[str, object], seed: int) -> list[Item]:
    """Return all questions on the narrations."""
    narrated = read_narrations(str(variables["narrations"]))
    items = [maker(narrated, random.Random(f"{seed}/{maker.__name__}")) for maker in MAKERS]
    return [item for item in items if item]


def _drafts(variables: Mapping[str, object], questions: Sequence[str], seed: int) -> list[Draft]:
    """Return a draft for each question, by its wording; an unknown question has an empty one."""
    decoys = int(str(variables.get("wrong", 0)))
    item_of = {item.question: item for item in _items(variables, seed)}
    empty = Item(question="", answer="none", wrong=())
    pairs = ((question, item_of.get(question, empty)) for question in questions)
    return [
        Draft(question=question, answer=item.answer, decoys=item.wrong[:decoys])
        for question, item in pairs
    ]


def _draw_questions(request: Request) -> list[str]:
    """Draw the requested number of questions, or all if there are fewer."""
    items = _items(request.variables, request.seed)
    count = min(int(str(request.variables["count"])), len(items))
    rng = random.Random(f"{request.seed}/questions")
    return [item.question for item in rng.sample(items, count)]


def _lines(item: Draft, number: int, *, answer: bool = True) -> str:
    lines = [f"Question {number}: {item.question}"]
    lines += [f"Correct answer: {item.answer}"] if answer else []
    lines += [f"Wrong answer {n}: {text}" for n, text in enumerate(item.decoys, 1)]
    return "\n".join(lines)


def _given_questions(request: Request) -> list[str]:
    return [str(q) for q in request.variables["questions"]]


def _none_lines(request: Request, drawn: Sequence[str]) -> list[str]:
    """Return a line "none" for each missing question."""
    count = int(str(request.variables["count"]))
    return [f"Question {n}: none" for n in range(len(drawn) + 1, count + 1)]


def _questions(request: Request) -> str:
    drawn = _draw_questions(request)
    lines = [f"Question {n}: {q}" for n, q in enumerate(drawn, 1)]
    return "\n\n".join([*lines, *_none_lines(request, drawn)])


def _answers(request: Request) -> str:
    drafts_made = _drafts(request.variables, _given_questions(request), request.seed)
    is_longer = request.variables.get("length") == "longer"
    if is_longer:
        addition = " This is what the greater part of the video is about."
        drafts_made = [
            replace(m, decoys=tuple(w + addition for w in m.decoys)) for m in drafts_made
        ]
    return "\n\n".join(_lines(item, n) for n, item in enumerate(drafts_made, 1))


def _wrong(request: Request) -> str:
    drafts_made = _drafts(request.variables, _given_questions(request), request.seed)
    return "\n\n".join(_lines(item, n, answer=False) for n, item in enumerate(drafts_made, 1))


def _one_shot(request: Request) -> str:
    drawn = _draw_questions(request)
    drafts_made = _drafts(request.variables, drawn, request.seed)
    lines = [_lines(item, n) for n, item in enumerate(drafts_made, 1)]
    return "\n\n".join([*lines, *_none_lines(request, drawn)])


def _no_question(request: Request) -> str:
    """Return the option that shares most words with the narrations; of equals, the first."""
    words = Counter(re.findall(r"[a-z]{3,}", str(request.variables["narrations"]).lower()))
    options = [str(o) for o in request.variables["options"]]
    shared = [sum(words[w] for w in re.findall(r"[a-z]{3,}", o.lower())) for o in options]
    return LETTERS[shared.index(max(shared))]


RULES: dict[str, Callable[[Request], str]] = {
    "egoschema/questions": _questions,
    "egoschema/answers_plain": _answers,
    "egoschema/answers_near": _answers,
    "egoschema/answers_twist": _answers,
    "egoschema/reveal": _answers,
    "egoschema/answers_only": _answers,
    "egoschema/wrong": _wrong,
    "egoschema/one_shot": _one_shot,
    "egoschema/no_question": _no_question,
}
