"""EgoSchema's prompts answered by rules: what C handles, how that changes, in which order.

Shallow on purpose: objects are read off the narrations by position, questions come from a few
templates, and a wrong answer is a right one about other objects of the same clip.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations

from mustsee.llm import Request
from mustsee.questions.drafts import Draft
from mustsee.text import LETTERS

_SMALL = frozenset(  # words that name no object
    """a an the his her their its both one two this that it them with from to into onto in on off of
    at by for and or up down out over under around through left right hand hands other C c man woman
    person""".split()  # noqa: SIM905
)
_SPARE = tuple("phone book radio window bicycle paint rope garden camera coat".split())  # noqa: SIM905
_LINE = re.compile(r"(\d+) - (.*)")


@dataclass(frozen=True)
class Told:
    """What the narrations say: the objects of each line, in order of time."""

    things: tuple[tuple[str, ...], ...]

    def common(self, first: float = 0.0, last: float = 1.0) -> list[str]:
        """Objects of a stretch (shares of the clip's lines), the most frequent first."""
        low, high = round(first * len(self.things)), round(last * len(self.things))
        counted = Counter(thing for line in self.things[low:high] for thing in line)
        return sorted(counted, key=lambda thing: (-counted[thing], thing))


def told(narrations: str) -> Told:
    """Objects: of each sentence the words behind the verb, without small words."""
    lines: list[tuple[str, ...]] = []
    for line in narrations.splitlines():
        found = _LINE.match(line)
        if found:
            words = re.findall(r"[A-Za-z][A-Za-z-]+", found[2])[1:]
            lines.append(tuple(w.lower() for w in words if w.lower() not in _SMALL))
    return Told(tuple(lines))


def _pool(seen: Told, taken: Sequence[str], rng: random.Random) -> list[str]:
    """Other objects of the clip, in seeded order, and some from elsewhere if they are few."""
    others = [thing for thing in seen.common() if thing not in taken]
    head, rest = others[:12], list(_SPARE)
    rng.shuffle(head)
    rng.shuffle(rest)
    return head + [thing for thing in rest if thing not in taken]


def _pair_of(things: Sequence[str]) -> tuple[str, str]:
    both = [*things, *_SPARE]
    return both[0], next(t for t in both[1:] if t != both[0])


def _dominant(seen: Told, rng: random.Random, wrong: int) -> Draft:
    one, two = _pair_of(seen.common())
    others = _pool(seen, (one, two), rng)
    say = "C is mainly occupied with the {} and the {}, and everything else serves that."
    return Draft(
        question="What is C mainly occupied with throughout the video, taking all parts together?",
        answer=say.format(one, two),
        decoys=tuple(say.format(others[2 * n], others[2 * n + 1]) for n in range(wrong)),
    )


def _change(seen: Told, rng: random.Random, wrong: int) -> Draft:
    early = _pair_of(seen.common(0, 1 / 3))[0]
    late = next((t for t in [*seen.common(2 / 3, 1), *_SPARE] if t != early), "room")
    others = _pool(seen, (early, late), rng)
    say = "The attention moves from the {} at first to the {} at last."
    turned = [say.format(late, early), say.format(early, others[0]), say.format(others[1], late)]
    turned += [say.format(others[n], others[n + 1]) for n in range(2, 2 + wrong)]
    return Draft(
        question="How does the focus of C's actions shift between the beginning and the end?",
        answer=say.format(early, late),
        decoys=tuple(turned[:wrong]),
    )


def _thread(seen: Told, rng: random.Random, wrong: int) -> Draft:
    parts = [set(seen.common(n / 4, (n + 1) / 4)) for n in range(4)]
    ranked = sorted(
        [*seen.common(), *_SPARE],
        key=lambda thing: -sum(thing in part for part in parts),
    )
    others = _pool(seen, ranked[:1], rng)
    say = "The {} ties the parts together, since the actions keep coming back to it."
    return Draft(
        question="Which object ties the different parts of the video together, and in what way?",
        answer=say.format(ranked[0]),
        decoys=tuple(say.format(others[n]) for n in range(wrong)),
    )


def _stages(seen: Told, rng: random.Random, wrong: int) -> Draft:
    chosen: list[str] = []
    for part in range(3):
        near = [*seen.common(part / 3, (part + 1) / 3), *_SPARE]
        chosen.append(next(t for t in near if t not in chosen))
    say = "C deals first with the {}, then with the {}, and in the end with the {}."
    orders = [say.format(*order) for order in permutations(chosen)][1:]
    rng.shuffle(orders)
    others = _pool(seen, chosen, rng)
    spare = [say.format(*others[n : n + 3]) for n in range(wrong)]
    return Draft(
        question="Into which stages can the course of the video be condensed?",
        answer=say.format(*chosen),
        decoys=tuple([*orders, *spare][:wrong]),
    )


def _halves(seen: Told, rng: random.Random, wrong: int) -> Draft:
    before = seen.common(0, 0.5)
    new = next((t for t in seen.common(0.5, 1) if t not in before), _pair_of(before)[1])
    others = _pool(seen, (new,), rng)
    say = "The second half turns to the {}, which plays no part in the first half."
    return Draft(
        question="Comparing the two halves of the video, what sets the second one apart?",
        answer=say.format(new),
        decoys=tuple(say.format(others[n]) for n in range(wrong)),
    )


MAKERS: tuple[Callable[[Told, random.Random, int], Draft], ...] = (
    _dominant,
    _change,
    _thread,
    _stages,
    _halves,
)


def _made(variables: Mapping[str, object], question: str, seed: int) -> Draft:
    """The item of a question, found again by its wording; of another question, the first kind."""
    seen = told(str(variables["narrations"]))
    wrong = int(str(variables.get("wrong", 0)))
    rng = random.Random(f"{seed}/{question}")
    made = [maker(seen, rng, wrong) for maker in MAKERS]
    return next((item for item in made if item.question == question), made[0])


def _drawn(request: Request) -> list[str]:
    seen = told(str(request.variables["narrations"]))
    rng = random.Random(f"{request.seed}/questions")
    count = int(str(request.variables["count"]))
    kinds = rng.sample(MAKERS, min(count, len(MAKERS)))
    asked = [maker(seen, rng, 1).question for maker in kinds]
    while len(asked) < count:
        asked.append(f"{asked[len(asked) % len(kinds)]} ({len(asked)})")
    return asked


def _lines(item: Draft, number: int, *, answer: bool = True) -> str:
    lines = [f"Question {number}: {item.question}"]
    lines += [f"Correct answer: {item.answer}"] if answer else []
    lines += [f"Wrong answer {n}: {text}" for n, text in enumerate(item.decoys, 1)]
    return "\n".join(lines)


def _asked(request: Request) -> list[str]:
    return [str(q) for q in request.variables["questions"]]


def _questions(request: Request) -> str:
    return "\n\n".join(f"Question {n}: {q}" for n, q in enumerate(_drawn(request), 1))


def _answers(request: Request) -> str:
    made = [_made(request.variables, q, request.seed) for q in _asked(request)]
    longer = request.variables.get("length") == "longer"
    if longer:
        more = " This is what the greater part of the video is about."
        made = [replace(m, decoys=tuple(w + more for w in m.decoys)) for m in made]
    return "\n\n".join(_lines(item, n) for n, item in enumerate(made, 1))


def _wrong(request: Request) -> str:
    made = [_made(request.variables, q, request.seed) for q in _asked(request)]
    return "\n\n".join(_lines(item, n, answer=False) for n, item in enumerate(made, 1))


def _one_shot(request: Request) -> str:
    asked = _drawn(request)
    made = [_made(request.variables, q, request.seed) for q in asked]
    return "\n\n".join(_lines(item, n) for n, item in enumerate(made, 1))


def _no_question(request: Request) -> str:
    """The answer that shares most words with the narrations; the first of equals."""
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
