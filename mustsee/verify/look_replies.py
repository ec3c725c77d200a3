"""Parses replies to a look: what it says of each option and of the premise, and the named spans."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from mustsee.errors import Unparsed
from mustsee.questions.drafts import spans
from mustsee.questions.replies import span_list
from mustsee.records import Span
from mustsee.replies.forms import Form, form, one_of, record, words
from mustsee.text import LETTERS

CANNOT: Final = "cannot"  # nothing decides it
SEVERAL: Final = "several"  # more than one answer is right
NO_OPTION: Final = "none"  # every option is wrong
PREMISE: Final = "premise"  # what the question takes for granted is not so
Choice = int | Literal["cannot", "several", "none", "premise"]
RIGHT, WRONG, OPEN = "RIGHT", "WRONG", "OPEN"  # what a look says of an option
HOLDS = "HOLDS"  # what it says of the premise; else OPEN, or what is not so


@dataclass(frozen=True)
class OptionVerdict:
    """What a look says of one option. `spans`: where that shows, or where one has to look."""

    verdict: str
    spans: tuple[Span, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ParsedLook:
    """A parsed reply.

    `choice`: index of the option as shown (0 for an answer in words), or one of the names above.
    `words`: the answer in words, or what is not so of the premise. `evidence`: spans that show the
    answer. `where`: spans to look at for what is still open.
    """

    choice: Choice
    words: str = ""
    evidence: tuple[Span, ...]
    where: tuple[Span, ...]


def _line(name: str) -> re.Pattern[str]:
    form = rf"^[\s*_#>-]*(?:final\s+)?{name}[ \t*_]*[:：=][ \t*_]*(.*)$"
    return re.compile(form, re.IGNORECASE | re.MULTILINE)


_ANSWER, _EVIDENCE, _LOOK = _line("answer"), _line("evidence"), _line(r"look(?:\s+at)?")
_PREMISE = _line("premise")
_OPTION = _line(r"(?:option\s+)?[\[(]?([A-Z])[\])]?")
_VERDICT = re.compile(rf"[\[(\"'*_\s]*({RIGHT}|{WRONG}|{OPEN})\b", re.IGNORECASE)
_CANNOT = re.compile(r"(?:it\s+)?(?:cannot|can't|can not) be told\b", re.IGNORECASE)
_SEVERAL = re.compile(r"several\W*$", re.IGNORECASE)
_HOLDS = re.compile(rf"[\[(\"'*_\s]*(?:{HOLDS}|{OPEN})\W*$", re.IGNORECASE)


_SEEN = words("what decides it, and when; or what is missing")
_PREMISE_SHAPE = words("HOLDS, OPEN, or what of the question's own statement is not so")


def look_form(count: int) -> Form[ParsedLook]:
    """Return the form of a reply to a question with `count` options, or with 0.

    Its `read` raises Unparsed for a reply without a verdict on the premise and on each option, or
    without an answer in words, with several, or without the spans that it is based on.
    """
    return _options_form(count) if count else _OPEN_FORM


def decide(options: Sequence[OptionVerdict], premise: str) -> ParsedLook:
    """Return what verdicts on the options and a premise (`HOLDS`, or what is not so) come to."""
    where = tuple(s for o in options if o.verdict == OPEN for s in o.spans)
    right = [i for i, o in enumerate(options) if o.verdict == RIGHT]
    evidence = tuple(s for i in right for s in options[i].spans)
    choice: Choice = CANNOT if any(o.verdict == OPEN for o in options) else NO_OPTION
    if right:
        choice = right[0] if len(right) == 1 else SEVERAL
    if not _HOLDS.match(premise):
        return ParsedLook(choice=PREMISE, words=premise, evidence=evidence, where=where)
    return ParsedLook(choice=choice, evidence=evidence, where=where)


def _options_form(count: int) -> Form[ParsedLook]:
    option = record(
        OptionVerdict,
        verdict=one_of((RIGHT, WRONG, OPEN), "what the video shows of it"),
        spans=span_list("RIGHT: where it shows; OPEN: where one has to look; else empty"),
    )
    letters = LETTERS[:count].lower()

    def from_json(seen: str, premise: str, **options: OptionVerdict) -> ParsedLook:
        verdicts = [options[f"option_{letter}"] for letter in letters]
        checked = [
            _with_spans(x, o.verdict, o.spans) for x, o in zip(LETTERS, verdicts, strict=False)
        ]
        return decide(checked, _checked(premise))

    shape = record(
        from_json,
        seen=_SEEN,
        premise=_PREMISE_SHAPE,
        **{f"option_{letter}": option for letter in letters},
    )
    return form(text=lambda reply: _parse_options(reply, count), shape=shape)


def _checked(premise: str) -> str:
    if not premise.strip(" *_."):
        raise Unparsed("its verdict on the premise is empty")
    return premise


def _parse_options(reply: str, count: int) -> ParsedLook:
    lines: dict[str, str] = {}
    for letter, text in _OPTION.findall(reply):
        if lines.setdefault(letter.upper(), text) != text:
            raise Unparsed(f"it has different lines '* OPTION {letter.upper()}: ...'; write one")
    if missing := [letter for letter in LETTERS[:count] if letter not in lines]:
        raise Unparsed(f"it has no line '* OPTION {missing[0]}: {RIGHT}, {WRONG} or {OPEN}'")
    if beyond := sorted(set(lines) - set(LETTERS[:count])):
        raise Unparsed(f"{beyond[0]} is no option")
    return decide([_option(letter, lines[letter]) for letter in LETTERS[:count]], _premise(reply))


def _option(letter: str, text: str) -> OptionVerdict:
    match = _VERDICT.match(text)
    if match is None:
        raise Unparsed(f"its line '* OPTION {letter}: ...' has none of {RIGHT}, {WRONG} and {OPEN}")
    return _with_spans(letter, match[1].upper(), spans(text[match.end() :]))


def _with_spans(letter: str, verdict: str, named: tuple[Span, ...]) -> OptionVerdict:
    if verdict == RIGHT and not named:
        raise Unparsed(f"it says that option {letter} is {RIGHT}, but names no stretch")
    return OptionVerdict(verdict, named)


def _premise(reply: str) -> str:
    premises = list(dict.fromkeys(p.strip(" *_") for p in _PREMISE.findall(reply)))
    if len(premises) != 1:
        what = "several lines" if premises else "no line"
        raise Unparsed(f"it has {what} '* PREMISE: {HOLDS}, {OPEN}, or what is not so'")
    return _checked(premises[0])


def _words_from_json(
    seen: str, premise: str, evidence: tuple[Span, ...], look: tuple[Span, ...], answer: str
) -> ParsedLook:
    return _in_words(answer, _checked(premise), evidence, look)


def _in_words(
    answer: str, premise: str, evidence: tuple[Span, ...], look: tuple[Span, ...]
) -> ParsedLook:
    if not _HOLDS.match(premise):
        return ParsedLook(choice=PREMISE, words=premise, evidence=evidence, where=look)
    return ParsedLook(choice=_parse_words(answer), words=answer, evidence=evidence, where=look)


def _parse_text(reply: str) -> ParsedLook:
    answers = list(dict.fromkeys(a.strip(" *_") for a in _ANSWER.findall(reply)))
    if len(answers) != 1:
        what = "several answers" if answers else "no line of the form '* ANSWER: ...'"
        raise Unparsed(f"it has {what}")
    choice = _parse_words(answers[0])
    evidence = _parse_spans(reply, "EVIDENCE", _EVIDENCE, needed=choice != CANNOT)
    look = _parse_spans(reply, "LOOK", _LOOK, needed=choice == CANNOT)
    return _in_words(answers[0], _premise(reply), evidence, look)


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


_OPEN_FORM = form(
    text=_parse_text,
    shape=record(
        _words_from_json,
        seen=_SEEN,
        premise=_PREMISE_SHAPE,
        evidence=span_list("the stretches that show the answer, in seconds; none where none do"),
        look=span_list("where it cannot be told, the stretches where one would have to look"),
        answer=words("the answer, SEVERAL, or CANNOT BE TOLD"),
    ),
)


def named_in(reply: str) -> tuple[Span, ...]:
    """Return the spans that a reply in lines names: as evidence, or to be looked at."""
    verdicts = (text for _, text in _OPTION.findall(reply) if not text.upper().startswith(WRONG))
    return spans(" ".join((*_EVIDENCE.findall(reply), *_LOOK.findall(reply), *verdicts)))


def say(options: Sequence[OptionVerdict], seen: str, premise: str = HOLDS) -> str:
    """Write a reply in lines: what rules that stand in for a verifier answer with."""
    lines = (
        f"* OPTION {letter}: {o.verdict} {'; '.join(f'{s.start:.1f}-{s.end:.1f}' for s in o.spans)}"
        for letter, o in zip(LETTERS, options, strict=False)
    )
    return "\n".join((f"* SEEN: {seen}", f"* PREMISE: {premise}", *(x.rstrip() for x in lines)))
