"""The result of a benchmark: a table with notes, for the terminal and as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rich.markup import escape
from rich.table import Table

Cell = str | int | float | bool | None


@dataclass(frozen=True, kw_only=True)
class BenchTable:
    """`rows` have a cell for each of `columns`; `notes` say how the figures were measured."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()

    def rich_table(self) -> Table:
        """Return the table for the terminal, text to the left and numbers to the right."""
        table = Table(
            title=self.title, caption=escape("\n".join(self.notes)), caption_justify="left"
        )
        for number, name in enumerate(self.columns):
            numbers = all(isinstance(r[number], int | float | None) for r in self.rows)
            table.add_column(name, justify="right" if numbers else "left")
        for row in self.rows:
            table.add_row(*map(_format_cell, row))
        return table

    def as_json(self) -> dict[str, Any]:
        """Return the table for a JSON file, one object a row."""
        return {
            "title": self.title,
            "rows": [dict(zip(self.columns, row, strict=True)) for row in self.rows],
            "notes": list(self.notes),
        }


def _format_cell(cell: Cell) -> str:
    if cell is None:
        return "-"
    if isinstance(cell, float):
        return f"{cell:.3g}" if abs(cell) < 100 else f"{cell:.0f}"
    return str(cell)
