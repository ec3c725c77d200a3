"""Write votes into a run's files: the questions, with a backup of the old table, and `run.json`."""

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

NEW_TABLE = ".questions.parquet.new"


def replace_table(path: Path, questions: Sequence[Question]) -> Path | None:
    """Replace the table and return the path of the old one, or None if nothing has changed.

    The old table gets the next free number. `complete_replacement` finishes an interrupted call.
    """
    new_path = path.with_name(NEW_TABLE)
    pq.write_table(schemas.table(questions, Question), new_path, compression="zstd")
    if pq.read_table(new_path).equals(pq.read_table(path)):
        new_path.unlink()
        return None
    number = 1
    while (old_path := path.with_name(f"questions.{number}.parquet")).exists():
        number += 1
    if path.is_dir():  # a table of several files
        path.rename(old_path)
    else:
        shutil.copy2(path, old_path)
    os.replace(new_path, path)
    return old_path


def complete_replacement(path: Path) -> None:
    """Move the new table into place if a call was killed after it moved the old one away.

    A file cannot replace a folder in one step. The new table is complete before the old one moves.
    """
    new_path = path.with_name(NEW_TABLE)
    if new_path.exists() and not path.exists():
        os.replace(new_path, path)


def record_results(path: Path, results: RatingResults) -> None:
    """Write the results to `checked` in `run.json`, which has the latest entry of each form."""
    record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    others = [entry for entry in record.get("checked", ()) if entry["form"] != results.form]
    record["checked"] = [*others, results.plain()]
    new_path = path.with_name(".run.json.new")
    new_path.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    os.replace(new_path, path)
