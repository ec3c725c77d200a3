"""The result of reading a reply: a letter by a named rule, or no letter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Extraction:
    """The letter that a reply picks.

    `letter`: "A", "B", ..., or None. `rule`: the rule that decided, or why there is no letter.
    `ambiguous`: the reply names several options or contradicts itself.
    """

    letter: str | None
    rule: str
    ambiguous: bool = False


def merge_extractions(extractions: Sequence[Extraction]) -> Extraction:
    """Return the letter on which the extractions from parts of a reply agree, if they do."""
    letters = {one.letter for one in extractions if one.letter}
    if len(letters) > 1:
        return Extraction(None, "several", ambiguous=True)
    return next((one for one in extractions if one.letter), extractions[0])
