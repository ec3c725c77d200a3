"""The forms of the replies to a probe. What does not fit is "could not be told", never a fault."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from mustsee.errors import Unparsed
from mustsee.replies.forms import Form, form, list_of, number, object_with, one_of, record, whole
from mustsee.server_probe.sound import Tone

T = TypeVar("T")
TONES: tuple[Tone, ...] = ("high", "low")
COLOURS = ("red", "green", "blue")
NOT_SHOWN = -1.0  # a time that says that the numeral is not shown
# The right reply of `FRUIT_FORM`.
FRUIT = {"colour": "green", "count": 7, "sizes": ["small", "large"]}


def _read_line(label: str) -> Callable[[str], str]:
    """Return a parser of the one line `LABEL: ...`, which raises Unparsed without it."""
    name = label.replace(" ", r"[\s_]+")
    line = re.compile(rf"^[\s>*_#`•-]*{name}[\s*_]*[:=][\s*_]*(.*?)[\s*_.`]*$", re.I | re.M)

    def read(reply: str) -> str:
        values = line.findall(reply)
        if len(values) != 1:
            raise Unparsed(f"it has {len(values)} lines '* {label}: ...'; write one")
        return values[0]

    return read


def _read_items(label: str, make: Callable[[str], T]) -> Callable[[str], tuple[T, ...]]:
    """Return a parser of a line with items between commas, or NONE."""
    read_line = _read_line(label)

    def read(reply: str) -> tuple[T, ...]:
        value = read_line(reply)
        if value.strip("[] ").casefold() in ("none", ""):
            return ()
        items = re.split(r"\s*[,;>]\s*|\s+", value.strip("[] "))
        return tuple(make(item) for item in items if item)

    return read


def _whole_number(item: str) -> int:
    if not re.fullmatch(r"\d{1,4}", item):
        raise Unparsed(f"{item[:20]!r} is not a numeral")
    return int(item)


def _tone(item: str) -> Tone:
    for tone in TONES:
        if item.casefold() == tone:
            return tone
    raise Unparsed(f"{item[:20]!r} is neither high nor low")


NUMERALS_FORM: Form[tuple[int, ...]] = form(
    text=_read_items("NUMERALS", _whole_number),
    shape=object_with(
        "numerals",
        list_of(whole("a numeral"), "every numeral that is shown, in order; empty if none is"),
    ),
)
DIGITS_FORM: Form[tuple[int, ...]] = form(
    text=_read_items("DIGITS", _whole_number),
    shape=object_with(
        "digits",
        list_of(whole("a digit"), "every digit that is spoken, in order; empty if none is heard"),
    ),
)
TONES_FORM: Form[tuple[str, ...]] = form(
    text=_read_items("TONES", _tone),
    shape=object_with(
        "tones",
        list_of(one_of(TONES, "a tone"), "every tone in order; empty if none is heard"),
    ),
)


def times_form(numerals: Sequence[int]) -> Form[dict[int, float]]:
    """Return the form of the second at which each numeral is shown first."""
    names = {f"numeral_{n}": n for n in numerals}

    def by_numeral(**seconds: float) -> dict[int, float]:
        return {names[name]: second for name, second in seconds.items()}

    def read_words(reply: str) -> dict[int, float]:
        return {n: _seconds(_read_line(f"NUMERAL {n}")(reply)) for n in numerals}

    about = f"second at which it is shown first; {NOT_SHOWN:g} if it is not shown"
    return form(
        text=read_words,
        shape=record(by_numeral, **{name: number(about) for name in names}),
    )


def _seconds(value: str) -> float:
    """Return seconds from "12", "12.5 s" or "0:12"."""
    if clock := re.fullmatch(r"(\d{1,2}):(\d{2}(?:\.\d+)?)", value):
        return 60 * int(clock[1]) + float(clock[2])
    plain = re.fullmatch(r"(-?\d+(?:\.\d+)?)\s*(?:s|sec|seconds?)?", value, re.IGNORECASE)
    if plain is None:
        raise Unparsed(f"{value[:20]!r} is not a number of seconds")
    return float(plain[1])


def _fruit_words(reply: str) -> dict[str, Any]:
    return {
        "colour": _read_line("COLOUR")(reply),
        "count": _whole_number(_read_line("COUNT")(reply)),
        "sizes": list(_read_items("SIZES", str)(reply)),
    }


def _fruit(colour: str, count: int, sizes: tuple[str, ...]) -> dict[str, Any]:
    return {"colour": colour, "count": count, "sizes": list(sizes)}


FRUIT_FORM: Form[dict[str, Any]] = form(
    text=_fruit_words,
    shape=record(
        _fruit,
        colour=one_of(COLOURS, "colour of the apples"),
        count=whole("number of the apples"),
        sizes=list_of(one_of(("small", "large"), "a size"), "sizes, in the order of the text"),
    ),
)
