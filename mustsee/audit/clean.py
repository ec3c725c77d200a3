"""`clean/`: a dataset without what failed its audit, in its own layout."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from mustsee.audit.audit import Audit
from mustsee.layouts import Reading, cinepile, egoschema, mlvu, neptune, ours, table
from mustsee.layouts.table import Columns

WRITERS: dict[str, Callable[..., None]] = {
    "ours": ours.write,
    "neptune": neptune.write,
    "cinepile": cinepile.write,
    "egoschema": egoschema.write,
    "mlvu": mlvu.write,
}


def write_clean(
    folder: Path, reading: Reading, found: Audit, source: Path, columns: Columns | None = None
) -> None:
    """The questions that passed, and those that the audit could not hold against anything (open
    ones, without a known answer), into `folder`. Questions of a plain table keep all its columns.
    """
    failed = {i.question_id: i.fails for i in found.items if i.fails}
    questions = [
        replace(q, drop=f"audit: {', '.join(failed[q.question_id])}")
        if q.question_id in failed
        else q
        for q in reading.questions
    ]
    if reading.layout == "table":
        table.write(questions, folder, source=source, given=columns)
    elif reading.layout == "mlvu" and source.stem == "test_mcq_gt":
        mlvu.write_test(questions, folder, reading.videos)
    else:
        WRITERS[reading.layout](questions, folder, reading.videos)
