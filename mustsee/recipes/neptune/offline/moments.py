"""What the rules know of a video: its moments, each with what was surely measured, read and heard
in it; and what a rule makes of them, a question with everything that belongs to it.
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
LONGEST_QUOTE = 14  # words


@dataclass(frozen=True, kw_only=True)
class QuotableLine:
    """A spoken line as it may be quoted; `moment` counts the moments of the part."""

    text: str
    start: float
    end: float
    moment: int

    @property
    def span(self) -> Span:
        return Span(self.start, self.end)


@dataclass(frozen=True, kw_only=True)
class Moment:
    """The stretch around one measured picture, at `time`: what its caption is sure of (`light`:
    "very dark", "dark", "dim", "bright" or ""; colours; halves of the picture with all of a colour;
    bars), what can be read and what is said. `visible`: all words on the screen;
    `quotable`: those that may be quoted; `cards`: of these, what comes up for the first time.
    `shots`: how many begin in it.
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
    said: tuple[QuotableLine, ...]
    shots: int

    @property
    def span(self) -> Span:
        return Span(self.start, self.end)

    @property
    def close(self) -> Span:
        """The seconds around the picture."""
        return Span(max(self.start, self.time - 1), min(self.end, self.time + 1))


@dataclass(frozen=True, kw_only=True)
class RuleQuestion:
    """A question that a rule made, with its decoys. `worth`: 3 where pictures and words must be put
    together, 2 where pictures are enough, 1 where words are.
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
    """The part's pictures in order. Words that stay on the screen count where they come up."""
    found: list[Moment] = []
    seen: list[str] = []
    for unit in (u for scene in part.scenes for u in scene.units):
        for first, (span, time) in enumerate(_pictures(unit)):
            texts = sorted((t for t in unit.texts if t.at(time)), key=lambda t: t.top)
            told = " ".join(c.text for c in unit.captions if c.time == time) or unit.caption
            quotable = tuple(quotable_cards(texts))
            cards = tuple(c for c in quotable if not any(_same(c, s) for s in seen))
            visible = tuple(one_line(t.text) for t in texts if words(one_line(t.text)))
            seen += visible
            said = [x for x in unit.lines if _within((x.start + x.end) / 2, span, unit)]
            found.append(
                Moment(
                    start=span.start,
                    end=span.end,
                    time=time,
                    **_described(_READ.sub("", told)),
                    cards=cards,
                    quotable=quotable,
                    visible=visible,
                    said=tuple(_quotable(x, len(found)) for x in said if is_surely_heard(x)),
                    shots=unit.shots if first == 0 else 0,
                )
            )
    return tuple(found)


def _pictures(unit: Unit) -> list[tuple[Span, float]]:
    """Each picture's time with the stretch that it stands for; the unit's middle without any."""
    read = {max(unit.start, t.time) for t in unit.texts}
    times = sorted({c.time for c in unit.captions} or read)
    times = times or [(unit.start + unit.end) / 2]
    marks = [(a + b) / 2 for a, b in pairwise(times)]
    marks = [min(unit.start, times[0]), *marks, max(unit.end, times[-1] + 0.01)]
    return [(Span(a, b), t) for (a, b), t in zip(pairwise(marks), times, strict=True)]


def _within(time: float, span: Span, unit: Unit) -> bool:
    """Also for lines whose middle is before the unit's first picture or after its end."""
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


def _described(told: str) -> _Described:
    """What the pixel captioner is sure of; nothing for other captions."""

    def match_one(pattern: re.Pattern[str]) -> str:
        match = pattern.search(told)
        return match[1] if match else ""

    def several(pattern: re.Pattern[str]) -> tuple[str, ...]:
        return tuple(re.split(r", | and ", found)) if (found := match_one(pattern)) else ()

    return _Described(
        light=match_one(_LIGHT),
        top=match_one(_TOP),
        bottom=match_one(_BOTTOM),
        much=several(_MUCH),
        some=several(_SOME),
        halves=tuple((m[1], m[2]) for m in _HALF.finditer(told)),
        bars=match_one(_BARS),
    )


MAX_LEGIBLE_LINES = 12  # lines on the screen: nobody reads them all
_LEGIBLE = re.compile(r"[A-Za-zÀ-ž0-9][A-Za-zÀ-ž0-9 ,.'’!?:&-]*")


def quotable_cards(texts: Sequence[ScreenText]) -> list[str]:
    """Words read on the screen that can be quoted: surely read, whole, not too long."""
    if len(texts) > MAX_LEGIBLE_LINES:
        return []
    found: list[str] = []
    for text in texts:
        clean = one_line(text.text).strip(" .:;,-_|'\"“”")
        letters = sum(c.isalpha() for c in clean)
        whole = bool(_LEGIBLE.fullmatch(clean)) and not _CUT.search(text.text)
        sure = is_surely_read(text) and letters >= 4 and letters >= 0.5 * len(without_spaces(clean))
        if (
            sure
            and whole
            and not _is_common(clean)
            and len(clean.split()) <= 12
            and not any(_same(clean, f) for f in found)
        ):
            found.append(clean)
    return found


def _is_common(text: str) -> bool:
    """Whether a text is a scrap of a sentence: nothing but small words ("of the"), or one word
    without a capital ("dynamic"), which may stand in any other line.
    """
    return not terms(text) or (" " not in text and text[:1].islower())


def _same(one: str, other: str) -> bool:
    """Equal, one within the other, or as like as two readings of the same words."""
    if normal(one) == normal(other) or holds(one, other) or holds(other, one):
        return True
    return likeness(one, other) >= 0.8


def _quotable(line: Line, moment: int) -> QuotableLine:
    text = one_line(line.text).strip(" \"“”'-").rstrip(".;,:-")
    return QuotableLine(
        text=sentence(brief(text, LONGEST_QUOTE)), start=line.start, end=line.end, moment=moment
    )


def one_line(text: str) -> str:
    """Text on one line, without marks that a reply's form would give a meaning to."""
    text = _LABEL.sub(r"\1", re.sub(r"[*_`#>]+", " ", neutral(text)))
    return " ".join(text.split())


def brief(text: str, most: int = 9) -> str:
    """The beginning of a text, at most `most` words: cut where a clause ends, or else before the
    words that lead on.
    """
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


def spoken_lines(found: Sequence[Moment]) -> list[QuotableLine]:
    """All lines with something to them: four words, two of which carry meaning."""
    lines = [
        s for m in found for s in m.said if len(s.text.split()) >= 4 and len(terms(s.text)) >= 2
    ]
    first = {normal(s.text): s for s in reversed(lines)}
    return [s for s in lines if first[normal(s.text)] is s]


def unread_texts(moment: Moment, found: Sequence[Moment]) -> list[str]:
    """Words on the screen in other moments that cannot be read in this one."""
    return [c for m in found if m is not moment for c in m.cards if not shows(moment, c)]


def shows(moment: Moment, card: str) -> bool:
    """Whether words can be read in a moment, alone or among others."""
    return any(_same(card, v) for v in moment.visible)


def lower(text: str) -> str:
    """Without the capital at the start, unless the word is written in capitals or "I"."""
    first = text.split(" ")[0]
    return text if first == "I" or first[1:].lower() != first[1:] else text[:1].lower() + text[1:]


def quote(text: str) -> str:
    return f"“{text}”"


def join_names(names: Sequence[str]) -> str:
    """a, b and c"""
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


def pick(answer: str, others: Iterable[str], rng: random.Random, count: int = 4) -> tuple[str, ...]:
    """`count` decoys from `others`, those nearest to the answer in length; fewer if there are not
    so many that differ enough from it and from each other.
    """
    fresh = list(dict.fromkeys(o for o in others if words(o)))
    rng.shuffle(fresh)
    size = len(answer.split())
    fresh.sort(key=lambda o: abs(len(o.split()) - size) // 2)
    chosen: list[str] = []
    for other in fresh:
        if all(not _same(other, old) for old in (answer, *chosen)):
            chosen.append(other)
        if len(chosen) == count:
            break
    return tuple(chosen)


def orders(things: Sequence[str], rng: random.Random, count: int = 4) -> list[tuple[str, ...]]:
    """`count` + 1 different orders of three to five things, none of them the given one; the last is
    for the question. Empty where two things are the same.
    """
    if len({normal(t) for t in things}) < len(things):
        return []
    others = [order for order in permutations(things) if order != tuple(things)]
    return rng.sample(others, count + 1)


def spread(things: Sequence[str], count: int) -> list[int]:
    """Places of `count` things, evenly over the sequence."""
    return [round(i * (len(things) - 1) / (count - 1)) for i in range(count)]
