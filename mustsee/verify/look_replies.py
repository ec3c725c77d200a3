"""Parses replies to a look: the chosen option, or "cannot" or "several", and the named spans."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

from mustsee.errors import Unparsed
from mustsee.questions.drafts import spans
from mustsee.questions.replies import span_list
from mustsee.records import Span
from mustsee.replies.forms import Form, form, one_of, record, words
from mustsee.text import LETTERS

CANNOT: Final = "cannot"
SEVERAL: Final = "several"
Choice = int | Literal["cannot", "several"]


@dataclass(frozen=True, kw_only=True)
class ParsedLook:
    """A parsed reply.

    `choice`: index of the option as shown (0 for an answer in words), "cannot" or "several".
    `words`: the answer in words. `evidence`: spans that show the answer. `where`: spans to look at
    next, if the answer is undecidable.
    """

    choice: Choice
    words: str = ""
    evidence: tuple[Span, ...]
    where: tuple[Span, ...]


def _line(name: str) -> re.Pattern[str]:
    form = rf"^[\s*_#>-]*(?:final\s+)?{name}[\s*_]*[:：=][\s*_]*(.*)$"
    return re.compile(form, re.IGNORECASE | re.MULTILINE)


_ANSWER, _EVIDENCE, _LOOK = _line("answer"), _line("evidence"), _line(r"look(?:\s+at)?")
_LETTER = re.compile(r"[\[(\"'*_\s]*(?:option\s+)?([A-Z])\b(?!['’])", re.IGNORECASE)
_CANNOT = re.compile(r"(?:it\s+)?(?:cannot|can't|can not) be told\b", re.IGNORECASE)
_SEVERAL = re.compile(r"several\W*$", re.IGNORECASE)


def look_form(count: int) -> Form[ParsedLook]:
    """Return the form of a reply to a question with `count` options, or with 0.

    Its `read` raises Unparsed for a reply without an answer, with several, or without the spans
    that the answer is based on.
    """
    description = "the answer, SEVERAL, or CANNOT BE TOLD"
    letters = LETTERS[: count + 2]

    def make_look(
        seen: str, evidence: tuple[Span, ...], look: tuple[Span, ...], answer: str
    ) -> ParsedLook:
        choice = _parse_letter(answer, count) if count else _parse_words(answer)
        return ParsedLook(
            choice=choice, words="" if count else answer, evidence=evidence, where=look
        )

    shape = record(
        make_look,
        seen=words("what decides it, and when; or what is missing"),
        evidence=span_list("the stretches that show the answer, in seconds; none where none do"),
        look=span_list("where it cannot be told, the stretches where one would have to look"),
        answer=one_of(letters, "one letter") if count else words(description),
    )
    return form(text=lambda reply: _parse_text(reply, count), shape=shape)


def _parse_text(reply: str, count: int) -> ParsedLook:
    answers = list(dict.fromkeys(a.strip(" *_") for a in _ANSWER.findall(reply)))
    choices: list[Choice] = [_parse_letter(a, count) if count else _parse_words(a) for a in answers]
    if len(set(choices)) != 1:
        what = "several answers" if choices else "no line of the form '* ANSWER: ...'"
        raise Unparsed(f"it has {what}")
    choice = choices[0]
    return ParsedLook(
        choice=choice,
        words="" if count else answers[0],
        evidence=_parse_spans(reply, "EVIDENCE", _EVIDENCE, needed=choice != CANNOT),
        where=_parse_spans(reply, "LOOK", _LOOK, needed=choice == CANNOT),
    )


def _parse_letter(answer: str, count: int) -> Choice:
    match = _LETTER.match(answer)
    place = LETTERS.index(match[1].upper()) if match else len(LETTERS)
    if place > count + 1:
        raise Unparsed(f"its letter is none of A to {LETTERS[count + 1]}")
    return place if place < count else CANNOT if place == count else SEVERAL


def _parse_words(answer: str) -> Choice:
    if not answer:
        raise Unparsed("its answer is empty")
    return CANNOT if _CANNOT.match(answer) else SEVERAL if _SEVERAL.match(answer) else 0


def _parse_spans(reply: str, name: str, line: re.Pattern[str], *, needed: bool) -> tuple[Span, ...]:
    text = " ".join(line.findall(reply)).strip()
    named = spans(text)
    if needed and not named and not re.match(r"[\W_]*none\b", text, re.IGNORECASE):
        raise Unparsed(f"it has no line '* {name}: ...' with stretches in seconds, or NONE")
    return named


def named_in(reply: str) -> tuple[Span, ...]:
    """Return the spans that a reply in lines names as evidence or to be looked at."""
    return spans(" ".join((*_EVIDENCE.findall(reply), *_LOOK.findall(reply))))
