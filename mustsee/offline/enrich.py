"""What is made of questions that passed, by rules: only where the words of the question, and what
was read and said in the video, leave no doubt.

A twin needs a question that does not lean on its options, or whose "which of these" can go: there,
everything that was read near the moment is known, and it must be one thing. Orders keep their
things in the question, ends and shares need all others ruled out: these have no twin.

Siblings are the same form in other words, with the same options; an order from the last to the
first; and of two lines one after the other, the one asked for by the other. What comes of a fact
later the rules do not know.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mustsee.calls.llm import Request
from mustsee.offline.paraphrases import paraphrase, reversed_order
from mustsee.offline.sight import QUOTE
from mustsee.offline.wording import likeness
from mustsee.questions.checks import holds
from mustsee.records import Line, Question, ScreenText, Video

AS_IT_IS = tuple(
    re.compile(pattern)
    for pattern in (
        rf"^Which word is missing in these words on the screen: {QUOTE}\?$",
        rf"^Which words come up on the screen at about the time of {QUOTE}\?$",
        r"^Which colour fills a large part of the picture at the (?:beginning|end) of the video,",
        r"^Which colour fills most of the (?:upper|lower) third of the picture ",
        r"^Where does the picture have black bars all through the video\?$",
        rf"^What is said right (?:after|before) {QUOTE}\?$",
        rf"^What is the reason given for this: {QUOTE}\?$",
    )
)
NEIGHBOUR = re.compile(rf"^What is said right (after|before) {QUOTE}\?$")
TOGETHER = re.compile(rf"^Which of these words are on the screen together with {QUOTE}\?$")
SOONEST = re.compile(rf"^Which of these words come up on the screen soonest after {QUOTE}\?$")
ALSO = {
    "above and below": ("At the top and at the bottom",),
    "on the left and the right": ("On both sides",),
    "on all four sides": ("All around the picture",),
}
MIN_APART_S = 3.0  # seconds by which what comes next is before everything else
SAME_READING = 0.85  # likeness from which two readings are of the same words


@dataclass(frozen=True)
class TextAppearance:
    """Words on the screen, and when they first come up."""

    text: str
    time: float


def twin(request: Request) -> str:
    """The question as it stands, or without its "of these", with its answer; else NONE."""
    question: Question = request.variables["question"]
    video: Video = request.variables["video"]
    asked = _without_options(question, video)
    if asked is None:
        return "NONE"
    also = ALSO.get(question.answer.lower(), ()) if "black bars" in asked else ()
    lines = [f"QUESTION: {asked}", f"ANSWER: {question.answer}"]
    return "\n".join([*lines, *(f"ALSO RIGHT: {text}" for text in also)])


def _without_options(question: Question, video: Video) -> str | None:
    asked = question.question
    if any(pattern.search(asked) for pattern in AS_IT_IS):
        return asked
    if TOGETHER.search(asked):
        return asked.replace("Which of these words are", "Which words are")
    found = SOONEST.search(asked)
    if found and _is_next(found[1], question.answer, _came(video.texts or ())):
        return f"Which words come up on the screen next after “{found[1]}”?"
    return None


def _came(texts: Sequence[ScreenText]) -> list[TextAppearance]:
    """All words that can be read in a video, each where it first comes up."""
    found: list[TextAppearance] = []
    for text in sorted(texts, key=lambda t: t.time):
        if all(likeness(text.text, known.text) < SAME_READING for known in found):
            found.append(TextAppearance(text.text, text.time))
    return found


def _is_next(cue: str, answer: str, came: Sequence[TextAppearance]) -> bool:
    """Whether the answer comes up after the cue, and everything else well after the answer."""
    first = next((c.time for c in came if likeness(c.text, cue) >= SAME_READING), None)
    if first is None:
        return False
    later = [c for c in came if c.time > first]
    if not later or likeness(later[0].text, answer) < SAME_READING:
        return False
    return all(c.time - later[0].time >= MIN_APART_S for c in later[1:])


def group(request: Request) -> str:
    """A paraphrase and an opposite, as far as they follow from the question; else NONE."""
    question: Question = request.variables["question"]
    wrong: Sequence[str] = request.variables["wrong"]
    video: Video = request.variables["video"]
    found: list[tuple[str, str, str, Sequence[str]]] = []
    if other := paraphrase(question.question):
        found.append(("paraphrase", other, question.answer, wrong))
    if opposite := _backwards(question, wrong) or _swapped(question, wrong, video.lines or ()):
        found.append(("opposite", *opposite))
    spans = "; ".join(f"{s.start:.2f}-{s.end:.2f}" for s in question.evidence)
    blocks = [
        "\n".join((
            f"QUESTION {n}: ({kind}) {asked}", f"CORRECT ANSWER: {answer}",
            *(f"WRONG ANSWER {i}: {text}" for i, text in enumerate(others, 1)),
            f"EVIDENCE: {spans}",
        ))
        for n, (kind, asked, answer, others) in enumerate(found[: request.variables["most"]], 1)
    ]  # fmt: skip
    return "\n\n".join(blocks) or "NONE"


Other = tuple[str, str, Sequence[str]]


def _backwards(question: Question, wrong: Sequence[str]) -> Other | None:
    """An order, from the last to the first."""
    asked = reversed_order(question.question)
    if asked is None:
        return None
    head, _, listed = asked.partition(": ")
    things, answer = listed.rstrip("?").split("; "), _turned(question.answer)
    if things == answer.split("; "):  # the question would list them as the answer does
        things = things[1:] + things[:1]
    return f"{head}: {'; '.join(things)}?", answer, [_turned(option) for option in wrong]


def _turned(order: str) -> str:
    return "; ".join(reversed(order.split("; ")))


def _swapped(question: Question, wrong: Sequence[str], lines: Sequence[Line]) -> Other | None:
    """The line before, asked for by the line after, or the other way round; each is said once, they
    are neighbours, and no wrong option is the neighbour on that side.
    """
    found = NEIGHBOUR.search(question.question)
    if found is None:
        return None
    cue, there = _said(found[2], lines), _said(question.answer, lines)
    step = 1 if found[1] == "after" else -1
    if len(cue) != 1 or len(there) != 1 or there[0] != cue[0] + step:
        return None
    if any(there[0] - step in _said(option, lines) for option in wrong):
        return None
    side = "before" if found[1] == "after" else "after"
    return f"What is said right {side} “{question.answer}”?", found[2], wrong


def _said(text: str, lines: Sequence[Line]) -> list[int]:
    """The places of the lines that say the words."""
    return [i for i, line in enumerate(lines) if holds(line.text, text)]


RULES: dict[str, Callable[[Request], str]] = {"enrich/twin": twin, "enrich/group": group}
