"""What the rules know of a video: its moments, each with colours, faces, words on screen and words
spoken; and what a rule makes of them, a question with everything that belongs to it.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import permutations

from mustsee.prompts import neutral
from mustsee.questions.checks import fault, holds, normal
from mustsee.recipes.neptune.ask import ScriptPart
from mustsee.recipes.neptune.script import Unit
from mustsee.records import Line, Span
from mustsee.text import NUMBERS, STOP, terms, words

_LIGHT = re.compile(r"\bpicture is (dark|dim|bright)\b")
_COLOURS = re.compile(r"\bmostly ([a-z]+(?:, [a-z]+)*(?: and [a-z]+)?)")
_READ = re.compile(r";? ?the text on screen reads '.*'", re.DOTALL)
_FACE = re.compile(r"\bfaces?\b")
_LABEL = re.compile(
    r"\b((?:answer|evidence|question|shot|segment)\s*\w?\s*\**)\s*[:：]", re.IGNORECASE
)
_JOINTS = frozenset(("and", "but", "so", "because", "when", "until", "which", "then", "that"))
LONGEST_QUOTE = 14  # words


@dataclass(frozen=True, kw_only=True)
class Said:
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
    """One unit, measured: `light` is "dark", "dim", "bright" or "", `colours` the largest first.
    `cards`: words that come up on the screen in it; `visible`: those and what stays from before.
    """

    start: float
    end: float
    light: str
    colours: tuple[str, ...]
    face: bool
    cards: tuple[str, ...]
    visible: tuple[str, ...]
    said: tuple[Said, ...]
    shots: int

    @property
    def span(self) -> Span:
        return Span(self.start, self.end)

    @property
    def look(self) -> str:
        """Its colours in words: "bright, mostly orange and brown"; empty where unknown."""
        if not self.colours:
            return ""
        colours = listed(self.colours)
        return f"{self.light}, mostly {colours}" if self.light else f"mostly {colours}"


@dataclass(frozen=True, kw_only=True)
class Made:
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
    def sound(self) -> bool:
        return fault(self.question, self.answer, self.decoys, count=len(self.decoys)) is None


def moments(part: ScriptPart) -> tuple[Moment, ...]:
    """The part's units in order. Words that stay on the screen count where they first come up."""
    found: list[Moment] = []
    seen: set[str] = set()
    for index, unit in enumerate(u for scene in part.scenes for u in scene.units):
        visible = tuple(_cards(unit))
        cards = tuple(c for c in visible if normal(c) not in seen)
        seen |= {normal(c) for c in cards}
        described = _READ.sub("", unit.caption or " ".join(c.text for c in unit.captions))
        light, colours = _LIGHT.search(described), _COLOURS.search(described)
        found.append(
            Moment(
                start=unit.start,
                end=unit.end,
                light=light[1] if light else "",
                colours=tuple(re.split(r", | and ", colours[1])) if colours else (),
                face=bool(_FACE.search(described)),
                cards=cards,
                visible=visible,
                said=tuple(_quotable(line, index) for line in unit.lines),
                shots=unit.shots,
            )
        )
    return tuple(found)


def _cards(unit: Unit) -> list[str]:
    """Words read on the screen that can be quoted: letters enough, not too long."""
    found: list[str] = []
    for text in unit.texts:
        clean = tidy(text.text).strip(" .:;,-_|'\"“”")
        letters = sum(c.isalpha() for c in clean)
        if letters >= 3 and len(clean.split()) <= 8 and not any(_same(clean, f) for f in found):
            found.append(clean)
    return found


def _same(one: str, other: str) -> bool:
    return normal(one) == normal(other) or holds(one, other) or holds(other, one)


def _quotable(line: Line, moment: int) -> Said:
    text = tidy(line.text).strip(" \"“”'-").rstrip(".;,:-")
    return Said(
        text=sentence(brief(text, LONGEST_QUOTE)), start=line.start, end=line.end, moment=moment
    )


def tidy(text: str) -> str:
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
    while cut > most // 2 and parts[cut - 1].lower().strip(",;") in STOP:
        cut -= 1
    return " ".join(parts[:cut]).rstrip(".,;:-")


def spoken(found: Sequence[Moment]) -> list[Said]:
    """All lines with something to them: four words, two of which carry meaning."""
    lines = [
        s for m in found for s in m.said if len(s.text.split()) >= 4 and len(terms(s.text)) >= 2
    ]
    first = {normal(s.text): s for s in reversed(lines)}
    return [s for s in lines if first[normal(s.text)] is s]


def unseen(moment: Moment, found: Sequence[Moment]) -> list[str]:
    """Words on the screen in other moments that cannot be read in this one."""
    return [card for card, m in cards(found) if m is not moment and not shows(moment, card)]


def shows(moment: Moment, card: str) -> bool:
    """Whether words can be read in a moment, alone or among others."""
    return any(_same(card, v) for v in moment.visible)


def cards(found: Sequence[Moment]) -> list[tuple[str, Moment]]:
    """All quotable words on the screen, with the moment in which they come up."""
    return [(card, m) for m in found for card in m.cards]


def sentence(text: str) -> str:
    """With a capital at the start and "I" for i."""
    text = re.sub(r"\bi\b(?=$|[ '’])", "I", text)
    return text[:1].upper() + text[1:]


def lower(text: str) -> str:
    """Without the capital at the start, unless the word is written in capitals or "I"."""
    first = text.split(" ")[0]
    return text if first == "I" or first[1:].lower() != first[1:] else text[:1].lower() + text[1:]


def quoted(text: str) -> str:
    return f"“{text}”"


def listed(names: Sequence[str]) -> str:
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


def number_near(value: int, rng: random.Random, count: int = 4) -> list[int]:
    """`count` other numbers around one; where it stands among them is drawn."""
    below = min(value - 1, rng.randint(0, count)) if value > 1 else 0
    found = [value - i for i in range(1, below + 1)]
    return found + [value + i for i in range(1, count - below + 1)]


def in_words(value: int) -> str:
    """A number up to twenty as a word, with a capital; digits beyond."""
    return next((n.capitalize() for n, v in NUMBERS.items() if v == value), str(value))
