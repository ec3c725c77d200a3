"""Which of these happens last?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mustsee.facts.forms.first import FirstForm
from mustsee.facts.table import TruthTable
from mustsee.records import Span


@dataclass(frozen=True, kw_only=True)
class LastForm(FirstForm):
    """As `FirstForm`, from the end: the others end at least `apart` moments before the answer."""

    name: ClassVar[str] = "last"

    def _place(self, places: tuple[int, ...]) -> int:
        return places[-1]

    def _gap(self, place: int, other: int) -> int:
        return place - other

    def _stretch(self, table: TruthTable, place: int) -> Span:
        return table.stretch(place, len(table.moments) - 1)
