"""Neptune's prompts answered by rules: extracts for captions, templates for questions.

What a model would write, as far as it can be had without one: everything said is taken from the
video's own captions, lines and words on the screen, and every wrong answer from elsewhere in it.
Nothing is asked that the measurements are not sure of.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import zip_longest

from mustsee.calls.llm import Request
from mustsee.offline.evaluate import choice_letter
from mustsee.offline.wording import sentence
from mustsee.questions.checks import normal
from mustsee.recipes.neptune.ask import Scene, ScriptPart
from mustsee.recipes.neptune.offline import coloured, seen, spoken
from mustsee.recipes.neptune.offline.moments import (
    RuleQuestion,
    lower,
    moments,
    one_line,
    pick,
    quotable_cards,
)
from mustsee.recipes.neptune.script import Unit
from mustsee.records import Span
from mustsee.text import TermVectors, nouns, overlap, summary, terms, words

TOPIC_SECONDS = 30.0  # usual length of a topic
LONG_TITLE = 6  # words of a line on the screen that may be a title, at most
MOST_OF_TEXT = 2  # questions about one text
MOST_OF_PICTURE = 2  # questions whose evidence is one picture
COMPARED_UNITS = 2  # units on each side of a border that are compared

_QUOTED = re.compile("“([^”]+)”")


def shots(request: Request) -> str:
    """The first frame's caption of each unit, and the last one's where it differs."""
    lines: list[str] = []
    for number, unit in enumerate(request.variables["units"], 1):
        texts = list(dict.fromkeys(t for c in unit.captions if words(t := one_line(c.text))))
        if texts:
            told = texts[0] if len(texts) == 1 else f"{texts[0]} At the end: {lower(texts[-1])}"
        elif unit.texts:
            told = f"Words on the screen: {' / '.join(one_line(t.text) for t in unit.texts)}."
        else:
            told = "Someone speaks." if unit.lines else "Nothing was described."
        lines.append(f"SHOT {number}: {told}")
    return "\n".join(lines)


def topics(request: Request) -> str:
    """Runs of units between the borders where the words change most, and titles of them."""
    script: Sequence[Unit] = request.variables["units"]
    borders = _borders(script)
    runs = list(zip([0, *borders], [*borders, len(script)], strict=True))
    titles = _titles([script[first:last] for first, last in runs])
    return "\n".join(
        f"SEGMENT {n}: {first + 1}-{last}: {title}"
        for n, ((first, last), title) in enumerate(zip(runs, titles, strict=True), 1)
    )


def _text(unit: Unit) -> str:
    return ". ".join([*(t.text for t in unit.texts), *(x.text for x in unit.lines)])


def _borders(script: Sequence[Unit]) -> list[int]:
    """Units at which a topic begins: where the words before and after are least alike, as many as
    topics of usual length fit, none shorter than a third of that.
    """
    seconds = script[-1].end - script[0].start
    wanted = min(len(script), max(1, round(seconds / TOPIC_SECONDS))) - 1
    texts = [_text(u) for u in script]
    sides = [
        (" ".join(texts[max(0, i - COMPARED_UNITS) : i]), " ".join(texts[i : i + COMPARED_UNITS]))
        for i in range(1, len(script))
    ]
    alike = [overlap(before, after) for before, after in sides]
    chosen: list[int] = []
    left = set(range(1, len(script)))
    while left and len(chosen) < wanted:
        marks = [script[0].start, script[-1].end, *(script[c].start for c in chosen)]
        gaps = {i: min(abs(script[i].start - mark) for mark in marks) for i in left}
        left = {i for i in left if gaps[i] >= TOPIC_SECONDS / 3}
        if left:
            chosen.append(min(left, key=lambda i: (round(alike[i - 1], 1), -gaps[i], i)))
            left.discard(chosen[-1])
    return sorted(chosen)


def _titles(runs: Sequence[Sequence[Unit]]) -> list[str]:
    """For each run, what can be read on the screen in it and least elsewhere; else the noun phrase
    that is said in it more than once, and least elsewhere; else its number.
    """
    weigh = TermVectors([". ".join(_text(u) for u in run) for run in runs])
    titles: list[str] = []
    for number, run in enumerate(runs, 1):
        read = [
            card for u in run for card in quotable_cards(u.texts) if len(card.split()) <= LONG_TITLE
        ]
        phrases = Counter(nouns(". ".join(x.text for u in run for x in u.lines)))
        said = [sentence(x) for x, count in phrases.items() if count > 1]
        fresh = [x for x in (read or said) if x not in titles]
        weight = {x: sum(map(weigh.weight, terms(x))) / max(1, len(terms(x))) for x in fresh}
        titles.append(max(fresh, key=weight.__getitem__, default=f"Part {number}"))
    return titles


def dense(request: Request) -> str:
    """What is seen and said, unit by unit; of a long scene, what stands best for the rest."""
    scene: Scene = request.variables["scene"]
    told: list[str] = []
    for unit in scene.units:
        said = ". ".join(" ".join(x.text.split()).rstrip(".") for x in unit.lines)
        told.append(f"{unit.caption} Meanwhile it is said: “{said}.”" if said else unit.caption)
    return " ".join(told[i] for i in summary(told, request.variables["most"])) or scene.topic + "."


def support(request: Request) -> str:
    """The shots' sentences that share words with the story first, as many as fit, in order."""
    scene: Scene = request.variables["scene"]
    room: int = request.variables["most"]
    told = list(dict.fromkeys(unit.caption for unit in scene.units))
    kept: list[str] = []
    for caption in sorted(told, key=lambda c: -overlap(c, scene.story)):
        if len(caption.split()) <= room:
            kept.append(caption)
            room -= len(caption.split())
    return " ".join(c for c in told if c in kept) or "Nothing was seen."


def questions(request: Request) -> str:
    """The best questions that the rules can make, of as many kinds as possible, or NONE."""
    chosen = make_questions(request.variables["part"], request.seed)[: request.variables["target"]]
    if not chosen:
        return "NONE"
    return "\n\n".join(
        f"QUESTION {n}: ({m.tag}) {m.question}\nCORRECT ANSWER: {m.answer}\n"
        f"EVIDENCE: {'; '.join(f'{s.start:.1f}-{s.end:.1f}' for s in m.evidence)}"
        for n, m in enumerate(chosen, 1)
    )


def whole(request: Request) -> str:
    """The same questions, with their wrong answers, in one reply."""
    part: ScriptPart | None = request.variables["part"]
    chosen = make_questions(part, request.seed)[: request.variables["target"]] if part else ()
    if not chosen:
        return "NONE"
    return "\n\n".join(
        "\n".join((
            f"QUESTION {n}: ({m.tag}) {m.question}", f"CORRECT ANSWER: {m.answer}",
            *(f"WRONG ANSWER {i}: {text}" for i, text in enumerate(m.decoys, 1)),
            f"EVIDENCE: {'; '.join(f'{s.start:.2f}-{s.end:.2f}' for s in m.evidence)}",
        ))
        for n, m in enumerate(chosen, 1)
    )  # fmt: skip


def decoys(request: Request) -> str:
    """The wrong answers of each question: those that the rules made with it, or for a question of
    another author, other sentences from the video.
    """
    part: ScriptPart = request.variables["part"]
    count: int = request.variables["count"]
    known = {normal(m.question): m for m in make_questions(part, request.seed)}
    found = moments(part)
    told = [s.text for m in found for s in m.said] + [c for m in found for c in m.cards]
    blocks: list[str] = []
    for number, draft in enumerate(request.variables["drafts"], 1):
        mine = known.get(normal(draft.question))
        rng = random.Random(f"{request.seed}/{draft.question}/decoys")
        wrong = mine.decoys if mine is not None else pick(draft.answer, told, rng, count)
        lines = [f"WRONG ANSWER {i}: {text}" for i, text in enumerate(wrong[:count], 1)]
        head = f"QUESTION {number}: ({draft.tag}) {draft.question}"
        blocks.append("\n".join([head, f"CORRECT ANSWER: {draft.answer}", *lines]))
    return "\n\n".join(blocks)


@lru_cache(maxsize=16)
def make_questions(part: ScriptPart, seed: int) -> tuple[RuleQuestion, ...]:
    """All sound questions on a part, the most worthwhile first, kinds taking turns."""
    rng = random.Random(f"{seed}/{part.span}/{part.number}/questions")
    found = () if part.overview else moments(part)
    candidates = [
        *seen.questions(found, rng, whole=part.of == 1),
        *(coloured.questions(found, rng) if part.of == 1 else ()),
        *spoken.questions(found, rng),
    ]
    kinds: dict[str, list[RuleQuestion]] = {}
    for one in sorted(candidates, key=lambda m: -m.worth):
        if len(one.decoys) == 4 and one.is_sound:
            kinds.setdefault(one.tag, []).append(one)
    turns = zip_longest(
        *(kinds[tag] for tag in sorted(kinds, key=lambda t: (-kinds[t][0].worth, t)))
    )
    chosen = ChosenQuestions()
    for one in (m for turn in turns for m in turn if m is not None):
        chosen.add(one)
    return tuple(chosen.made)


class ChosenQuestions:
    """Questions that do not repeat each other: none with the answer of another one, none that turns
    another one round ("X with Y" and "Y with X"), and of each text and each picture only so many.
    """

    def __init__(self) -> None:
        self.made: list[RuleQuestion] = []
        self._known: set[str] = set()
        self._about: set[frozenset[str]] = set()
        self._used: Counter[str | Span] = Counter()

    def add(self, one: RuleQuestion) -> None:
        """Take one more, unless it repeats what there is."""
        answer, question = normal(one.answer), normal(one.question)
        quoted = [normal(text) for text in _QUOTED.findall(one.question)]
        about = frozenset((*quoted, answer))
        single = len(quoted) < 2  # an order of several texts is about none of them
        texts = {text: MOST_OF_TEXT for text in about if single}
        pictures = dict.fromkeys(one.evidence if len(one.evidence) == 1 else (), MOST_OF_PICTURE)
        limits: dict[str | Span, int] = {**texts, **pictures}
        if self._known & {answer, question} or about in self._about:
            return
        if any(self._used[what] >= most for what, most in limits.items()):
            return
        self._known |= {answer, question}
        self._about.add(about)
        self._used.update(limits.keys())
        self.made.append(one)


def expect_nothing(request: Request) -> str:
    """The rules have given their best already, and expect nothing of a video."""
    return "NONE"


def people(request: Request) -> str:
    """The rules perceive nobody."""
    return "AGE: UNCLEAR\nGENDER: UNCLEAR"


def evaluate_choice(request: Request) -> str:
    """Return an option as Neptune's own prompt asks for it."""
    return f"[{choice_letter(request)}]: its words are the nearest."


RULES: dict[str, Callable[[Request], str]] = {
    "neptune/people": people,
    "neptune/shots": shots,
    "neptune/topics": topics,
    "neptune/dense": dense,
    "neptune/support": support,
    "neptune/questions": questions,
    "neptune/whole": whole,
    "neptune/further": expect_nothing,
    "neptune/expected": expect_nothing,
    "neptune/decoys": decoys,
    "evaluate/neptune": evaluate_choice,
}
