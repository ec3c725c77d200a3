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
    """A text for each of the numbers 1 to `n`; a single one is plain words."""
    if n == 1:
        return free(lambda reply: complete(_alone(reply), 1))
    shape = items("frames", "frame", "sentence")
    return form(text=_lines, shape=shape).map(lambda f: complete(f, n))


def items(name: str, counted: str, said: str) -> Shape[Items]:
    """A list `name` in JSON of objects with a number, `counted`, and a text, `said`."""

    def pair(**parts: int | str) -> tuple[int, str]:
        return int(parts[counted]), plain(str(parts[said]))

    one = record(pair, **{counted: whole("its number"), said: words(f"its {said}")})
    return object_with(name, list_of(one, "in the order of their numbers"))


def complete(found: Items, n: int) -> tuple[str, ...]:
    """The texts of the numbers 1 to `n`. Raises Unparsed for a missing, doubled or foreign number,
    and for an empty text.
    """
    texts: Mapping[int, str] = dict(found)
    if len(texts) < len(found):
        twice = next(k for k, _ in found if [j for j, _ in found].count(k) > 1)
        raise Unparsed(f"number {twice} comes twice")
    expected = set(range(1, n + 1))
    if set(texts) != expected:
        missing, foreign = sorted(expected - set(texts)), sorted(set(texts) - expected)
        what = f"number {missing[0]} is missing" if missing else f"there is no number {foreign[0]}"
        raise Unparsed(f"{n} numbered lines are wanted, and {what}")
    for i in sorted(texts):
        if not any(c.isalnum() for c in texts[i]):
            raise Unparsed(f"the text of number {i} is empty")
    return tuple(texts[i] for i in sorted(texts))


def _alone(reply: str) -> Items:
    return _lines(reply) or [(1, plain(reply))]


def _lines(reply: str) -> Items:
    """The numbered lines of a text.

    Tolerates bold, bullets, "Frame 1:", "1.", "1)", prose before the first number and, after a
    blank line, behind the last, and texts that go on in the next line.
    """
    found: list[tuple[int, list[str]]] = []
    going = False
    for line in reply.strip().splitlines():
        if match := _ITEM.match(line):
            found.append((int(match[1]), [match[2]]))
            going = True
        elif going and line.strip():
            found[-1][1].append(line)
        elif going:
            going = not any(part.strip(" *_") for part in found[-1][1])
    return [(number, plain(" ".join(lines))) for number, lines in found]
