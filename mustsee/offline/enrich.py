"""Twins and siblings of questions that passed, by rules. They are written only if the question, the
on-screen texts and the transcript leave no doubt.

A twin needs a question that does not refer to its options, or that is right without "of these".
Orders, ends and shares have no twin, because their options rule out other answers.

Siblings are a paraphrase with the same options, an order from the last to the first, and of two
successive lines the question for the first by the second. The rules write no consequences.
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
MIN_APART_S = 3.0  # seconds from the next text to any later one, at least
SAME_READING = 0.85  # likeness from which two readings are the same text


@dataclass(frozen=True)
class TextAppearance:
    """An on-screen text, and the second at which it first appears."""

    text: str
    time: float


def twin(request: Request) -> str:
    """Write the question unchanged or without its "of these", with its answer, or NONE."""
    question: Question = request.variables["question"]
    video: Video = request.variables["video"]
    wording = _without_options(question, video)
    if wording is None:
        return "NONE"
    variants = ALSO.get(question.answer.lower(), ()) if "black bars" in wording else ()
    lines = [f"QUESTION: {wording}", f"ANSWER: {question.answer}"]
    return "\n".join([*lines, *(f"ALSO RIGHT: {text}" for text in variants)])


def _without_options(question: Question, video: Video) -> str | None:
    wording = question.question
    if any(pattern.search(wording) for pattern in AS_IT_IS):
        return wording
    if TOGETHER.search(wording):
        return wording.replace("Which of these words are", "Which words are")
    match = SOONEST.search(wording)
    if match and _is_next(match[1], question.answer, _first_appearances(video.texts or ())):
        return f"Which words come up on the screen next after “{match[1]}”?"
    return None


def _first_appearances(texts: Sequence[ScreenText]) -> list[TextAppearance]:
    """Return the distinct on-screen texts of a video at their first appearance."""
    appearances: list[TextAppearance] = []
    for text in sorted(texts, key=lambda t: t.time):
        if all(likeness(text.text, earlier.text) < SAME_READING for earlier in appearances):
            appearances.append(TextAppearance(text.text, text.time))
    return appearances


def _is_next(cue: str, answer: str, appearances: Sequence[TextAppearance]) -> bool:
    """Whether the answer appears after the cue, and all other texts well after the answer."""
    first = next((c.time for c in appearances if likeness(c.text, cue) >= SAME_READING), None)
    if first is None:
        return False
    later = [c for c in appearances if c.time > first]
    if not later or likeness(later[0].text, answer) < SAME_READING:
        return False
    return all(c.time - later[0].time >= MIN_APART_S for c in later[1:])


def group(request: Request) -> str:
    """Write a paraphrase and an opposite if the rules have them, or NONE."""
    question: Question = request.variables["question"]
    wrong: Sequence[str] = request.variables["wrong"]
    video: Video = request.variables["video"]
    siblings: list[tuple[str, str, str, Sequence[str]]] = []
    if rewording := paraphrase(question.question):
        siblings.append(("paraphrase", rewording, question.answer, wrong))
    if opposite := _backwards(question, wrong) or _swapped(question, wrong, video.lines or ()):
        siblings.append(("opposite", *opposite))
    spans = "; ".join(f"{s.start:.2f}-{s.end:.2f}" for s in question.evidence)
    count: int = request.variables["most"]
    blocks = [
        "\n".join((
            f"QUESTION {n}: ({kind}) {wording}", f"CORRECT ANSWER: {answer}",
            *(f"WRONG ANSWER {i}: {text}" for i, text in enumerate(others, 1)),
            f"EVIDENCE: {spans}",
        ))
        for n, (kind, wording, answer, others) in enumerate(siblings[:count], 1)
    ]  # fmt: skip
    return "\n\n".join(blocks) or "NONE"


Other = tuple[str, str, Sequence[str]]


def _backwards(question: Question, wrong: Sequence[str]) -> Other | None:
    """Return the question for an order from the last to the first, or null."""
    reversed_question = reversed_order(question.question)
    if reversed_question is None:
        return None
    head, _, listed = reversed_question.partition(": ")
    things, answer = listed.rstrip("?").split("; "), _turned(question.answer)
    if things == answer.split("; "):  # The question must not list them as the answer does.
        things = things[1:] + things[:1]
    return f"{head}: {'; '.join(things)}?", answer, [_turned(option) for option in wrong]


def _turned(order: str) -> str:
    return "; ".join(reversed(order.split("; ")))


def _swapped(question: Question, wrong: Sequence[str], lines: Sequence[Line]) -> Other | None:
    """Return the question for a line by its neighbour, with question and answer exchanged, or null.
    Each line must occur once, and no wrong option may be the neighbour on the other side.
    """
    match = NEIGHBOUR.search(question.question)
    if match is None:
        return None
    cue_lines, answer_lines = _lines_with(match[2], lines), _lines_with(question.answer, lines)
    step = 1 if match[1] == "after" else -1
    if len(cue_lines) != 1 or len(answer_lines) != 1 or answer_lines[0] != cue_lines[0] + step:
        return None
    if any(answer_lines[0] - step in _lines_with(option, lines) for option in wrong):
        return None
    side = "before" if match[1] == "after" else "after"
    return f"What is said right {side} “{question.answer}”?", match[2], wrong


def _lines_with(text: str, lines: Sequence[Line]) -> list[int]:
    """Return the indices of the lines that contain a text."""
    return [i for i, line in enumerate(lines) if holds(line.text, text)]


RULES: dict[str, Callable[[Request], str]] = {"enrich/twin": twin, "enrich/group": group}
