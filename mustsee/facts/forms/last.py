"""Which of these happens last?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mustsee.facts.forms.first import FirstForm
from mustsee.facts.table import TruthTable


@dataclass(frozen=True, kw_only=True)
class LastForm(FirstForm):
    """As `FirstForm`, from the end: the others end at least `apart` moments before the answer."""

    name: ClassVar[str] = "last"

    def _place(self, places: tuple[int, ...]) -> int:
        return places[-1]

    def _gap(self, place: int, other: int) -> int:
        return place - other

    def _until(self, table: TruthTable, place: int) -> range:
        return range(place, len(table.moments))
