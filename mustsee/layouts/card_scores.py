"""Scores on a dataset's card: models beside people, as `mustsee compare` has compared them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Set
from pathlib import Path
from typing import Any

from mustsee.errors import UserError

KEY = "layout.card.compared.folder"
RUBRIC = "rubric"  # kind of a measure whose scores are from 2 to 10; those of others are shares


def read_compared(folder: str | None) -> Mapping[str, Any]:
    """Return the `compare.json` of `mustsee compare evaluations=`; empty for None. Raises UserError
    if the folder has none.
    """
    if folder is None:
        return {}
    file = Path(folder) / "compare.json"
    if not file.exists():
        raise UserError(
            f"no compare.json in {folder!r}: set {KEY}= to the output folder of `mustsee compare "
            "evaluations=... rated=...`"
        )
    record = json.loads(file.read_text(encoding="utf-8"))
    tables = record.get("tables")
    if not tables or not all("title" in table for table in tables):
        raise UserError(
            f"{str(file)!r} compares no models: set {KEY}= to the output folder of `mustsee "
            "compare evaluations=...`; what an earlier version wrote must be written again"
        )
    return record


def scores_text(compared: Mapping[str, Any], question_ids: Set[str]) -> str:
    """Return a table for each measure: people, models, and guessing among the options.

    `question_ids`: those of the dataset. Raises UserError if none of them was compared.
    """
    tables = [(table, set(table["columns"][0]["questions"])) for table in compared["tables"]]
    own = [(table, asked) for table, asked in tables if asked & question_ids]
    if not own:
        raise UserError(f"{KEY}=: it compares models on none of the {len(question_ids)} questions")
    return "\n\n".join(_table_text(table, asked, question_ids) for table, asked in own)


def _table_text(table: Mapping[str, Any], asked: Set[str], question_ids: Set[str]) -> str:
    title, others = table["title"], len(asked - question_ids)
    outside = f", {others} of which are not in this dataset" if others else ""
    return "\n".join(
        [
            f"{title[:1].upper()}{title[1:]}, on {len(asked)} questions{outside}. "
            "In brackets the 95 % interval, with the questions of a video as one cluster.",
            "",
            "| | score | questions | videos |",
            "|---|---:|---:|---:|",
            *_rows(table),
        ]
    )


def _rows(table: Mapping[str, Any]) -> Iterator[str]:
    kind = table["measure"]["kind"]
    for name, estimates in table["people"].items():
        yield _row(f"**people: {name}**", estimates[0], kind)
    for model in table["rows"]:
        yield _row(", ".join((f"`{model['name']}`", *model["tags"])), model["estimates"][0], kind)
    if (chance := table["columns"][0]["chance"]) is not None:
        yield f"| guessing among the options | {_number(chance, kind)} | | |"


def _row(name: str, estimate: Mapping[str, Any] | None, kind: str) -> str:
    if estimate is None:
        return f"| {name} | none | | |"
    low, high = estimate["low"], estimate["high"]
    span = "" if low is None else f" ({_number(low, kind)} to {_number(high, kind)})"
    score = f"{_number(estimate['value'], kind)}{span}"
    return f"| {name} | {score} | {estimate['n']} | {estimate['clusters']} |"


def _number(value: float, kind: str) -> str:
    return f"{value:.2f}" if kind == RUBRIC else f"{100 * min(1.0, max(0.0, value)):.1f}"
