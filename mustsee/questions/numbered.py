"""Replies of the form "1: ...", "2: ...": one text for each number."""

from __future__ import annotations

import re

from mustsee.errors import Unparsed

_ITEM = re.compile(
    r"^[\s>*_#-]*(?:(?:frame|picture|image|item|no\.?)\s*)?(\d{1,4})[*_]*\s*[:.)][*_]*\s*(.*)$",
    re.I,
)


def parse(reply: str, n: int) -> tuple[str, ...]:
    """The `n` texts in the order of their numbers, each on one line.

    Tolerates bold, bullets, "Frame 1:", "1.", "1)", prose before the first number, texts that go on
    in the next line, and a single text without its number. Raises Unparsed for a missing, doubled
    or foreign number, and for an empty text.
    """
    found: dict[int, list[str]] = {}
    last: list[str] | None = None
    for line in reply.strip().splitlines():
        match = _ITEM.match(line)
        if match is not None:
            number = int(match[1])
            if number in found:
                raise Unparsed(f"number {number} comes twice")
            last = found[number] = [match[2]]
        elif last is not None:
            last.append(line)
    if not found and n == 1:
        found = {1: [reply]}
    expected = set(range(1, n + 1))
    if set(found) != expected:
        missing, foreign = sorted(expected - set(found)), sorted(set(found) - expected)
        what = f"number {missing[0]} is missing" if missing else f"there is no number {foreign[0]}"
        raise Unparsed(f"{n} numbered lines are wanted, and {what}")
    texts = tuple(" ".join(" ".join(found[i]).split()).strip("*_ ") for i in sorted(found))
    for i, text in enumerate(texts, 1):
        if not any(c.isalnum() for c in text):
            raise Unparsed(f"the text of number {i} is empty")
    return texts
