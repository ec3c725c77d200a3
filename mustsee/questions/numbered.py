"""Replies of one text for each number: "1: ...", "2: ..."."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from mustsee.errors import Unparsed
from mustsee.questions.drafts import plain
from mustsee.replies.forms import (
    Form,
    Shape,
    form,
    free,
    list_of,
    object_with,
    record,
    whole,
    words,
)

_ITEM = re.compile(
    r"^[\s>*_#-]*(?:(?:frame|picture|image|item|no\.?)\s*)?(\d{1,4})[*_]*"
    r"\s*(?:[:：.)、]|[-–—](?=\s))(.*)$",
    re.I,
)
Items = Sequence[tuple[int, str]]  # numbers and their texts, in the order of the reply


def sentences(n: int) -> Form[tuple[str, ...]]:
    """Return the form of a reply with a text for each number 1 to `n`; for one, plain words."""
    if n == 1:
        return free(lambda reply: complete(_alone(reply), 1))
    shape = items("sentences", "number", "sentence")
    return form(text=_lines, shape=shape).map(lambda parsed: complete(parsed, n))


def items(name: str, number_key: str, text_key: str) -> Shape[Items]:
    """Return the JSON shape of a list `name` of objects with a number and a text."""

    def pair(**values: int | str) -> tuple[int, str]:
        return int(values[number_key]), plain(str(values[text_key]))

    number = whole("the number of what it is about, counted from 1")
    one = record(pair, **{number_key: number, text_key: words(f"the {text_key}")})
    return object_with(name, list_of(one, "one for each, in the order of the numbers"))


def complete(numbered: Items, n: int) -> tuple[str, ...]:
    """Return the texts of the numbers 1 to `n`. Raises Unparsed for a missing, repeated or unknown
    number, and for an empty text.
    """
    texts: Mapping[int, str] = dict(numbered)
    if len(texts) < len(numbered):
        numbers = [number for number, _ in numbered]
        repeated = next(number for number in numbers if numbers.count(number) > 1)
        raise Unparsed(f"number {repeated} appears twice")
    expected = set(range(1, n + 1))
    if set(texts) != expected:
        missing, unknown = sorted(expected - set(texts)), sorted(set(texts) - expected)
        what = f"number {missing[0]} is missing" if missing else f"there is no number {unknown[0]}"
        raise Unparsed(f"expected {n} numbered lines, but {what}")
    for i in sorted(texts):
        if not any(c.isalnum() for c in texts[i]):
            raise Unparsed(f"the text of number {i} is empty")
    return tuple(texts[i] for i in sorted(texts))


def _alone(reply: str) -> Items:
    return _lines(reply) or [(1, plain(reply))]


def _lines(reply: str) -> Items:
    """Return the numbered lines of a text.

    Tolerates bold, bullets, "Frame 1:", "1.", "1)", prose before the first number and, after a
    blank line, behind the last, and texts that continue on the next line.
    """
    numbered: list[tuple[int, list[str]]] = []
    in_item = False
    for line in reply.strip().splitlines():
        if match := _ITEM.match(line):
            numbered.append((int(match[1]), [match[2]]))
            in_item = True
        elif in_item and line.strip():
            numbered[-1][1].append(line)
        elif in_item:
            in_item = not any(text.strip(" *_") for text in numbered[-1][1])
    return [(number, plain(" ".join(lines))) for number, lines in numbered]
