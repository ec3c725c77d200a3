"""Moments: the spans around the frames of a video, with their certain measurements, on-screen texts
and transcript lines. A rule makes a `RuleQuestion` of them.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise, permutations
from typing import TypedDict

from mustsee.media.certainty import is_surely_heard, is_surely_read
from mustsee.offline.wording import likeness, sentence, without_spaces
from mustsee.prompts import neutral
from mustsee.questions.checks import fault, holds, normal
from mustsee.questions.orders import wrong_orders
from mustsee.recipes.neptune.ask import ScriptPart
from mustsee.recipes.neptune.script import Unit
from mustsee.records import Line, ScreenText, Span
from mustsee.text import STOP_WORDS, terms, words

_LIGHT = re.compile(r"\bpicture is (very dark|dark|dim|bright)\b")
_LIST = r"([a-z]+(?:, [a-z]+)*(?: and [a-z]+)?)"
_TOP, _BOTTOM = re.compile(r"\b([a-z]+) at the top\b"), re.compile(r"\b([a-z]+) at the bottom\b")
_MUCH, _SOME = re.compile(rf"\bmuch clear {_LIST}"), re.compile(rf"\bsome clear {_LIST}")
_HALF = re.compile(r"\ball that is clearly ([a-z]+) in the ([a-z]+) half\b")
_BARS = re.compile(r"\bblack bars ([a-z ]+)")
_READ = re.compile(r";? ?the text on screen reads '.*'", re.DOTALL)
_CUT = re.compile(r"\d\.\d|\.\.|…|@|://|www\.|\.(?:com|org|ai|net)\b")
_LABEL = re.compile(
    r"\b((?:answer|evidence|question|shot|segment)\s*\w?\s*\**)\s*[:：]", re.IGNORECASE
)
_JOINTS = frozenset(("and", "but", "so", "because", "when", "until", "which", "then", "that"))
LONGEST_QUOTE = 14  # words of a quoted transcript line, at most


@dataclass(frozen=True, kw_only=True)
class QuotableLine:
    """A transcript line in quotable form; `moment`: index of its moment in the part."""

    text: str
    start: float
    end: float
    moment: int

    @property
    def span(self) -> Span:
        return Span(self.start, self.end)


@dataclass(frozen=True, kw_only=True)
class Moment:
    """The span around the frame at `time`, in seconds.

    From its caption: `light` ("very dark", "dark", "dim", "bright" or ""), colours at the `top` and
    the `bottom`, colours that fill `much` or `some` of the frame, `halves` that hold all of a
    colour, and `bars`. `visible`: on-screen texts; `quotable`: those that may be quoted; `cards`:
    quotable ones that were not visible before. `spoken_lines`: transcript lines. `shots`: number of
    shots that begin in it.
    """

    start: float
    end: float
    time: float
    light: str
    top: str
    bottom: str
    much: tuple[str, ...]
    some: tuple[str, ...]
    halves: tuple[tuple[str, str], ...]
    bars: str
    cards: tuple[str, ...]
    quotable: tuple[str, ...]
    visible: tuple[str, ...]
    spoken_lines: tuple[QuotableLine, ...]
    shots: int

    @property
    def span(self) -> Span:
        return Span(self.start, self.end)

    @property
    def close(self) -> Span:
        """The span of at most two seconds around the frame."""
        return Span(max(self.start, self.time - 1), min(self.end, self.time + 1))


@dataclass(frozen=True, kw_only=True)
class RuleQuestion:
    """A question with its decoys. `worth`: 3 if it takes frames and words together, 2 if frames
    are enough, 1 if words are.
    """

    tag: str
    question: str
    answer: str
    decoys: tuple[str, ...]
    evidence: tuple[Span, ...]
    worth: int = 1

    @property
    def is_sound(self) -> bool:
        return fault(self.question, self.answer, self.decoys, count=len(self.decoys)) is None


def moments(part: ScriptPart) -> tuple[Moment, ...]:
    """Return the moments of a part in order. A lasting on-screen text is a card of the first."""
    result: list[Moment] = []
    seen_texts: list[str] = []
    for unit in (u for scene in part.scenes for u in scene.units):
        for first, (span, time) in enumerate(_frame_spans(unit)):
            texts = sorted((t for t in unit.texts if t.at(time)), key=lambda t: t.top)
            caption = " ".join(c.text for c in unit.captions if c.time == time) or unit.caption
            quotable = tuple(quotable_cards(texts))
            cards = tuple(c for c in quotable if not any(_same(c, s) for s in seen_texts))
            visible = tuple(one_line(t.text) for t in texts if words(one_line(t.text)))
            seen_texts += visible
            lines = [x for x in unit.lines if _within((x.start + x.end) / 2, span, unit)]
            result.append(
                Moment(
                    start=span.start,
                    end=span.end,
                    time=time,
                    **_described(_READ.sub("", caption)),
                    cards=cards,
                    quotable=quotable,
                    visible=visible,
                    spoken_lines=tuple(
                        _quotable(x, len(result)) for x in lines if is_surely_heard(x)
                    ),
                    shots=unit.shots if first == 0 else 0,
                )
            )
    return tuple(result)


def _frame_spans(unit: Unit) -> list[tuple[Span, float]]:
    """Return each frame's time with the span that it stands for; without captions, the times of
    on-screen texts or the middle of the unit.
    """
    text_times = {max(unit.start, t.time) for t in unit.texts}
    times = sorted({c.time for c in unit.captions} or text_times)
    times = times or [(unit.start + unit.end) / 2]
    borders = [(a + b) / 2 for a, b in pairwise(times)]
    borders = [min(unit.start, times[0]), *borders, max(unit.end, times[-1] + 0.01)]
    return [(Span(a, b), t) for (a, b), t in zip(pairwise(borders), times, strict=True)]


def _within(time: float, span: Span, unit: Unit) -> bool:
    """Whether a line's middle is in the span; the outer spans of a unit have no outer border."""
    low = -math.inf if span.start <= unit.start else span.start
    return low <= time < (math.inf if span.end >= unit.end else span.end)


class _Described(TypedDict):
    light: str
    top: str
    bottom: str
    much: tuple[str, ...]
    some: tuple[str, ...]
    halves: tuple[tuple[str, str], ...]
    bars: str


def _described(caption: str) -> _Described:
    """Parse a caption of the pixel captioner; other captions have no measurements."""

    def match_one(pattern: re.Pattern[str]) -> str:
        match = pattern.search(caption)
        return match[1] if match else ""

    def several(pattern: re.Pattern[str]) -> tuple[str, ...]:
        return tuple(re.split(r", | and ", listed)) if (listed := match_one(pattern)) else ()

    return _Described(
        light=match_one(_LIGHT),
        top=match_one(_TOP),
        bottom=match_one(_BOTTOM),
        much=several(_MUCH),
        some=several(_SOME),
        halves=tuple((m[1], m[2]) for m in _HALF.finditer(caption)),
        bars=match_one(_BARS),
    )


MAX_LEGIBLE_LINES = 12  # on-screen texts of a frame; of more than these, none is quoted
_LEGIBLE = re.compile(r"[A-Za-zÀ-ž0-9][A-Za-zÀ-ž0-9 ,.'’!?:&-]*")


def quotable_cards(texts: Sequence[ScreenText]) -> list[str]:
    """Return the on-screen texts that can be quoted: certain, complete and not too long."""
    if len(texts) > MAX_LEGIBLE_LINES:
        return []
    cards: list[str] = []
    for text in texts:
        clean = one_line(text.text).strip(" .:;,-_|'\"“”")
        letters = sum(c.isalpha() for c in clean)
        is_complete = bool(_LEGIBLE.fullmatch(clean)) and not _CUT.search(text.text)
        is_certain = (
            is_surely_read(text) and letters >= 4 and letters >= 0.5 * len(without_spaces(clean))
        )
        if (
            is_certain
            and is_complete
            and not _is_common(clean)
            and len(clean.split()) <= 12
            and not any(_same(clean, f) for f in cards)
        ):
            cards.append(clean)
    return cards


def _is_common(text: str) -> bool:
    """Whether a text is a fragment that other lines may contain: stop words alone ("of the"), or
    one word in lower case ("dynamic").
    """
    return not terms(text) or (" " not in text and text[:1].islower())


def _same(one: str, other: str) -> bool:
    """Whether two texts are equal, nested, or as similar as two readings of the same words."""
    if normal(one) == normal(other) or holds(one, other) or holds(other, one):
        return True
    return likeness(one, other) >= 0.8


def _quotable(line: Line, moment: int) -> QuotableLine:
    text = one_line(line.text).strip(" \"“”'-").rstrip(".;,:-")
    return QuotableLine(
        text=sentence(brief(text, LONGEST_QUOTE)), start=line.start, end=line.end, moment=moment
    )


def one_line(text: str) -> str:
    """Return the text on one line, without marks that have a meaning in a reply."""
    text = _LABEL.sub(r"\1", re.sub(r"[*_`#>]+", " ", neutral(text)))
    return " ".join(text.split())


def brief(text: str, most: int = 9) -> str:
    """Cut a text to `most` words: behind a clause, or else before trailing stop words."""
    parts = text.split()
    if len(parts) <= most:
        return text
    for cut in range(most, 3, -1):
        if parts[cut - 1].lower() not in _JOINTS and (
            parts[cut - 1].endswith((",", ";", ":")) or parts[cut].lower() in _JOINTS
        ):
            return " ".join(parts[:cut]).rstrip(",;:")
    cut = most
    while cut > most // 2 and parts[cut - 1].lower().strip(",;") in STOP_WORDS:
        cut -= 1
    return " ".join(parts[:cut]).rstrip(".,;:-")


def spoken_lines(moments_of_part: Sequence[Moment]) -> list[QuotableLine]:
    """Return the distinct lines of at least four words, two of them not stop words."""
    lines = [
        s
        for m in moments_of_part
        for s in m.spoken_lines
        if len(s.text.split()) >= 4 and len(terms(s.text)) >= 2
    ]
    first = {normal(s.text): s for s in reversed(lines)}
    return [s for s in lines if first[normal(s.text)] is s]


def unread_texts(moment: Moment, moments_of_part: Sequence[Moment]) -> list[str]:
    """Return the cards of other moments that are not visible in this one."""
    return [c for m in moments_of_part if m is not moment for c in m.cards if not shows(moment, c)]


def shows(moment: Moment, card: str) -> bool:
    """Whether a text is visible in a moment, alone or within another."""
    return any(_same(card, v) for v in moment.visible)


def lower(text: str) -> str:
    """Return the text in lower case at the start, unless its first word is "I" or in capitals."""
    first = text.split(" ")[0]
    return text if first == "I" or first[1:].lower() != first[1:] else text[:1].lower() + text[1:]


def quote(text: str) -> str:
    return f"“{text}”"


def join_names(names: Sequence[str]) -> str:
    """Return "a, b and c"."""
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


def pick(answer: str, others: Iterable[str], rng: random.Random, count: int = 4) -> tuple[str, ...]:
    """Pick `count` decoys from `others`, nearest to the answer in length. There are fewer if not
    enough of them differ from the answer and from each other.
    """
    candidates = list(dict.fromkeys(o for o in others if words(o)))
    rng.shuffle(candidates)
    size = len(answer.split())
    candidates.sort(key=lambda o: abs(len(o.split()) - size) // 2)
    chosen: list[str] = []
    for other in candidates:
        if all(not _same(other, taken) for taken in (answer, *chosen)):
            chosen.append(other)
        if len(chosen) == count:
            break
    return tuple(chosen)


def orders(things: Sequence[str], rng: random.Random, count: int = 4) -> list[tuple[str, ...]]:
    """Return `count` + 1 different orders of three to five things other than the given order; the
    last one is for the question: none of the wrong options that code makes, if there are others.
    There are none if two things are equal.
    """
    if len({normal(t) for t in things}) < len(things):
        return []
    others = [order for order in permutations(things) if order != tuple(things)]
    options = wrong_orders(things, rng)
    shown_order = rng.choice([order for order in others if order not in options] or others)
    others.remove(shown_order)
    return [*rng.sample(others, count), shown_order]


def spread(things: Sequence[str], count: int) -> list[int]:
    """Return the indices of `count` things, spread evenly."""
    return [round(i * (len(things) - 1) / (count - 1)) for i in range(count)]
