"""Finds answers that say the contrary of the reference in nearly the same words.

A judge that compares words takes "First the oven, then the bowl" for "First the bowl, then the
oven". The rules here look at what such a judge does not see: order, before and after, negation,
numbers, units, opposites (left and right), and who does it to whom. `find_contrast` says which of
these differs, and whether that is sure. Texts are single lines, as made by `triple`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from mustsee.judge.lexical import STOP, common, words
from mustsee.judge.mention import NEGATION
from mustsee.judge.prompt import Triple
from mustsee.text import NUMBERS

RULES = "contrast-1"  # part of the identity of judges that use these rules: change it with them
MIN_ITEM_SHARE = 0.5  # share of an item's words with which it is found in a list
ITEM_SLACK_WORDS = 3  # words that may stand between those of an item
_ASKS_ORDER = re.compile(r"\b(?:orders?|sequence|steps|chronolog\w+)\b", re.I)
_ASKS_NUMBER = re.compile(
    r"\bhow (?:many|much|old|long|far|fast|tall|high|deep|wide|heavy|hot|cold|often|big|large)\b"
    r"|\b(?:what|which) (?:year|number|score|time|percentage|age|price)\b|\bwhat is the score\b",
    re.I,
)
_ASKS_WHO = re.compile(r"\b(?:whom|which \w+ \w+ which)\b", re.I)
_LIST_MARK = re.compile(r"\s*(?:[;\n,]|\b\d+[.)]\s|\bthen\b|\bfinally\b|\bfirst\b)\s*", re.I)
_TIMED = re.compile(r"^(?:(before|after) (.+?), (.+)|(.+?) (before|after) (.+))$", re.I)
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*|[a-z]+", re.I)
_SCORE = re.compile(r"\b(\d+)\s*(?:to|:|-|–)\s*(\d+)\b")
_QUANTITY = re.compile(r"(\d+(?:[.,]\d+)*)\s*(?:degrees? )?([a-z/°]+)", re.I)
_NUMBERS: Mapping[str, str] = {
    **{word: str(n) for word, n in NUMBERS.items()},
    **{"thirty": "30", "forty": "40", "fifty": "50", "sixty": "60", "seventy": "70"},
    **{"eighty": "80", "ninety": "90", "hundred": "100", "once": "1", "twice": "2"},
}
_UNITS: Mapping[str, str] = {  # name of a unit -> the first of its names
    name: names.split()[0]
    for names in [
        "m metre meter",
        "km kilometre kilometer",
        "cm centimetre centimeter",
        "mm millimetre millimeter",
        "mile",
        "yard",
        "inch inche",
        "ft foot feet",
        "g gram",
        "kg kilogram kilo",
        "tonne ton",
        "lb pound",
        "ounce oz",
        "l litre liter",
        "ml millilitre milliliter",
        "s second sec",
        "min minute",
        "h hour",
        "day",
        "week",
        "month",
        "year",
        "euro",
        "dollar",
        "celsiu",
        "fahrenheit",
        "km/h",
        "mph",
        "percent",
    ]
    for name in names.split()
}
_OPPOSITES = tuple(
    tuple(frozenset(side.split()) for side in pair.split(" / "))
    for pair in [
        "left / right",
        "above / below under beneath",
        "inside / outside",
        "up / down",
        "front / behind",
        "rise rises rose increases increased / fall falls fell decreases decreased",
        "open opened / closed shut",
        "early earlier / late later",
        "upper / lower",
        "bigger larger / smaller",
        "first / last",
        "north / south",
        "east / west",
        "top / bottom",
        "more / less fewer",
        "hot / cold",
        "enters entered / leaves left exits",
        "faster / slower",
        "longer / shorter",
        "older / younger",
        "taller / shorter",
        "on / off",
        "wins won / loses lost",
        "alive / dead",
        "full / empty",
        "wet / dry",
    ]
)


class Contrast(NamedTuple):
    """What differs (`kind`: order, time, negation, number, unit, opposite, roles), and whether the
    answer is surely wrong by it.
    """

    kind: str
    sure: bool


def find_contrast(triple: Triple) -> Contrast | None:
    """Return the first contrast between a candidate and its reference; null if there is none."""
    found = [c for rule in _RULES if (c := rule(triple)) is not None]
    return next((c for c in found if c.sure), found[0] if found else None)


def same_order(candidate: str, reference: str) -> bool | None:
    """Return whether the candidate has the items of an ordered reference in the same order.

    Numbers, commas, semicolons, "then" and line ends separate items. Each item is located at the
    span of the candidate that shares most of its words. Returns None if there are fewer than two
    items, or if half of an item's words are not in the candidate.
    """
    items = [w for w in map(words, _LIST_MARK.split(reference)) if w]
    shared = set(items[0]).intersection(*items[1:]) if len(items) > 1 else set[str]()
    items = [[w for w in e if w not in shared] or e for e in items]
    candidate_words = words(candidate)
    if len(items) < 2 or not candidate_words:
        return None
    positions: list[int] = []
    for item in items:
        width = len(item) + ITEM_SLACK_WORDS
        overlaps = [
            common(item, candidate_words[i : i + width]) for i in range(len(candidate_words))
        ]
        best = max(overlaps)
        if best < MIN_ITEM_SHARE * len(item):
            return None
        positions.append(len(overlaps) - 1 - overlaps[::-1].index(best))
    return all(a < b for a, b in pairwise(positions))


def _order(triple: Triple) -> Contrast | None:
    if same_order(triple.candidate, triple.reference) is not False:
        return None
    if _ASKS_ORDER.search(triple.question):
        return Contrast("order", sure=True)
    return Contrast("order", sure=False) if "then" in words(triple.reference) else None


def _time(triple: Triple) -> Contrast | None:
    """Before and after: which of two events is the earlier one."""
    said, right = _earlier_and_later(triple.candidate), _earlier_and_later(triple.reference)
    if said is None or right is None:
        return None
    straight = [len(a & b) for a, b in zip(said, right, strict=True)]
    crossed = [len(a & b) for a, b in zip(said, right[::-1], strict=True)]
    is_crossed = all(c > s for c, s in zip(crossed, straight, strict=True))
    return Contrast("time", sure=True) if is_crossed else None


def _earlier_and_later(text: str) -> tuple[frozenset[str], frozenset[str]] | None:
    found = _TIMED.match(text.strip().rstrip(".!"))
    if found is None or len(re.findall(r"\b(?:before|after)\b", text, re.I)) != 1:
        return None
    word, first, second = (
        (found[1], found[3], found[2]) if found[1] else (found[5], found[4], found[6])
    )
    events = (frozenset(_stems(first)), frozenset(_stems(second)))
    return events if word.lower() == "before" else (events[1], events[0])


def _negation(triple: Triple) -> Contrast | None:
    denied = [bool(NEGATION.search(text)) for text in (triple.candidate, triple.reference)]
    if denied[0] == denied[1] or NEGATION.search(triple.question):
        return None
    said, right = (
        set(_stems(NEGATION.sub(" ", text))) for text in (triple.candidate, triple.reference)
    )
    denying, other = (said, right) if denied[0] else (right, said)
    is_alike = bool(denying) and denying <= other and len(other) - len(denying) <= 1
    return Contrast("negation", sure=True) if is_alike else None


def _number(triple: Triple) -> Contrast | None:
    said, right = _numbers_in(triple.candidate), _numbers_in(triple.reference)
    scores = [_SCORE.search(text) for text in (triple.candidate, triple.reference)]
    if scores[0] and scores[1]:
        given, known = scores[0].groups(), scores[1].groups()
        if given == known[::-1] and given != known:
            return Contrast("number", sure=True)
    if not said or not right or said & right:
        return None
    units = [set(_quantities_in(t).values()) for t in (triple.candidate, triple.reference)]
    is_single = len(said) == len(right) == 1 and (units[0] == units[1] or not all(units))
    return Contrast("number", sure=is_single and bool(_ASKS_NUMBER.search(triple.question)))


def _unit(triple: Triple) -> Contrast | None:
    said, right = _quantities_in(triple.candidate), _quantities_in(triple.reference)
    for number, unit in said.items():
        if right.get(number, unit) != unit:
            return Contrast("unit", sure=True)
    return None


def _opposite(triple: Triple) -> Contrast | None:
    said, right = set(_plain(triple.candidate)), set(_plain(triple.reference))
    for pair in _OPPOSITES:
        for one, other in (pair, pair[::-1]):
            if right & one and not right & other and said & other and not said & one:
                denied = any(NEGATION.search(t) for t in (triple.candidate, triple.reference))
                rest = (right - one - STOP) - {"in", "of", "to"}
                is_alike = not rest or bool(rest & said) or len(rest) <= 1
                return Contrast("opposite", sure=is_alike and not denied)
    return None


def _roles(triple: Triple) -> Contrast | None:
    """The same words, with the two sides of one of them exchanged: who does it to whom."""
    said, right = _stems(triple.candidate), _stems(triple.reference)
    if Counter(said) != Counter(right) or said == right or re.search(r"[,;]", triple.reference):
        return None
    texts = f" {triple.candidate} / {triple.reference} ".lower()
    if any(f" {word} " in texts for word in ("by", "and", "or")):
        return None
    for n in range(1, len(right) - 1):
        if said == [*right[n + 1 :], right[n], *right[:n]]:
            return Contrast("roles", sure=bool(_ASKS_WHO.search(triple.question)))
    return None


_RULES: Sequence[Callable[[Triple], Contrast | None]] = (
    _order, _time, _negation, _number, _unit, _opposite, _roles,
)  # fmt: skip


def _plain(text: str) -> list[str]:
    return re.findall(r"[a-z]+", text.lower())


def _stems(text: str) -> list[str]:
    """Return the content words without their endings, roughly."""
    some = {"somebody", "anybody", "someone", "yes", "yet", "still", "does", "do", "did"}
    return [_stem(w) for w in _plain(text) if w not in STOP and w not in some]


def _stem(word: str) -> str:
    for ending in ("ies", "es", "s", "ed"):
        if word.endswith(ending) and len(word) > len(ending) + 2:
            return word.removesuffix(ending)
    return word.removesuffix("e")


def _numbers_in(text: str) -> set[str]:
    """Return the numbers of a text, as digits. "One" counts only before "time": elsewhere it may
    be a pronoun.
    """
    found: set[str] = set()
    for word in _NUMBER.findall(text.lower().replace("one time", "1 time")):
        if word[0].isdigit():
            found.add(_digits(word))
        elif word in _NUMBERS and word != "one":
            found.add(_NUMBERS[word])
    return found


def _digits(word: str) -> str:
    plain = re.sub(r",(?=\d{3}\b)", "", word)
    return plain.rstrip("0").rstrip(".") if "." in plain else plain


def _quantities_in(text: str) -> dict[str, str]:
    """Return number -> unit, where a known unit follows a number."""
    written = " ".join(_NUMBERS.get(w.lower(), w) for w in text.split())
    found: dict[str, str] = {}
    for number, unit in _QUANTITY.findall(written):
        name = unit.lower().removesuffix("s") if unit.lower() not in _UNITS else unit.lower()
        if name in _UNITS:
            found[_digits(number)] = _UNITS[name]
    return found
