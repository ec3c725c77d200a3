"""What is read of a reply: a letter by a named rule, or none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Extraction:
    """`letter`: "A", "B", ..., or None. `rule`: which rule decided, or why there is no letter.

    `ambiguous`: the reply names an option, but more than one, or contradicts itself.
    """

    letter: str | None
    rule: str
    ambiguous: bool = False


def merge_extractions(found: Sequence[Extraction]) -> Extraction:
    """What readings of parts of a reply come to: one letter, or none where they differ."""
    letters = {one.letter for one in found if one.letter}
    if len(letters) > 1:
        return Extraction(None, "several", ambiguous=True)
    return next((one for one in found if one.letter), found[0])
