"""Write votes into a run's files: the questions, with a backup of the old table, and `run.json`."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mustsee.files import schemas
from mustsee.files.folders import write_json
from mustsee.files.parquet import (
    DIGESTS,
    RECORD,
    file_digest,
    read_parquet,
    recorded_digests,
    write_parquet,
)
from mustsee.raters.results import RatingResults
from mustsee.records import Question

NEW_TABLE = ".questions.parquet.new"


def replace_table(path: Path, questions: Sequence[Question]) -> Path | None:
    """Replace the table and return the path of the old one, or None if nothing has changed.

    The old table gets the next free number. `run.json` names the digest of the new table before it
    takes its place: `complete_replacement` finishes an interrupted call.
    """
    new_path = path.with_name(NEW_TABLE)
    write_parquet(schemas.table(questions, Question), new_path)
    if read_parquet(new_path).equals(read_parquet(path)):
        new_path.unlink()
        return None
    _record_digest(path, file_digest(new_path))
    return _put_in_place(new_path, path)


def _put_in_place(new_path: Path, path: Path) -> Path:
    """Move the new table to `path`; return the path of the old one."""
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
    """Move the new table into place if a call was killed after `run.json` had its digest, or after
    the old table was moved away.

    A file cannot replace a folder in one step. The new table is complete before both.
    """
    new_path = path.with_name(NEW_TABLE)
    if not new_path.exists():
        return
    if not path.exists():
        os.replace(new_path, path)
    elif recorded_digests(path.parent).get(path.name) == file_digest(new_path):
        _put_in_place(new_path, path)


def _record_digest(table: Path, digest: str) -> None:
    """Make `digest` that of the table in `run.json`, if there is one that has digests."""
    digests = recorded_digests(table.parent)
    others = {f: d for f, d in digests.items() if f.split("/")[0] != table.name}
    if digests:
        path = table.with_name(RECORD)
        record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        _replace_record(path, {**record, DIGESTS: {**others, table.name: digest}})


def record_results(path: Path, results: RatingResults) -> None:
    """Write the results to `checked` in `run.json`, which has the latest entry of each form."""
    record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    others = [entry for entry in record.get("checked", ()) if entry["form"] != results.form]
    _replace_record(path, {**record, "checked": [*others, results.plain()]})


def _replace_record(path: Path, record: Mapping[str, Any]) -> None:
    new_path = path.with_name(".run.json.new")
    write_json(new_path, record)
    os.replace(new_path, path)
