"""The files of a run that people's votes go into: questions (the old table kept) and the record."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from mustsee import schemas
from mustsee.raters.results import RatingResults
from mustsee.records import Question

FRESH = ".questions.parquet.new"


def replace_table(path: Path, questions: Sequence[Question]) -> Path | None:
    """Write the table anew, the one before kept under the next free number; null where nothing has
    changed. What a kill leaves of it is made whole by `complete_replacement`.
    """
    fresh = path.with_name(FRESH)
    pq.write_table(schemas.table(questions, Question), fresh, compression="zstd")
    if pq.read_table(fresh).equals(pq.read_table(path)):
        fresh.unlink()
        return None
    number = 1
    while (kept := path.with_name(f"questions.{number}.parquet")).exists():
        number += 1
    if path.is_dir():  # of parts
        path.rename(kept)
    else:
        shutil.copy2(path, kept)
    os.replace(fresh, path)
    return kept


def complete_replacement(path: Path) -> None:
    """Put the new table in its place where a kill came between it and the old one, which had gone:
    a folder cannot give way to a file in one step. The new one was whole before the old one went.
    """
    fresh = path.with_name(FRESH)
    if fresh.exists() and not path.exists():
        os.replace(fresh, path)


def record_results(path: Path, found: RatingResults) -> None:
    """`checked` in `run.json`: one entry a form, the latest."""
    record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    others = [entry for entry in record.get("checked", ()) if entry["form"] != found.form]
    record["checked"] = [*others, found.plain()]
    fresh = path.with_name(".run.json.new")
    fresh.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    os.replace(fresh, path)
