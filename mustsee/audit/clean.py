"""`clean/`: a dataset without the questions that failed its audit, in the dataset's own layout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from mustsee.audit.audit import Audit
from mustsee.files.parquet import read_parquet, write_parquet
from mustsee.layouts import QuestionFile, ours, table, tempcompass
from mustsee.layouts.card import Card, CardCounts, card_text
from mustsee.layouts.columns import TableColumns
from mustsee.papers import papers
from mustsee.records import Question

NOTE = "Questions that failed an audit were left out (`python -m ray_jobs.audit`)."


def write_clean(
    folder: Path,
    reading: QuestionFile,
    audited: Audit,
    source: Path,
    columns: TableColumns | None = None,
) -> None:
    """Write the questions that passed into `folder`, and those that could not be audited
    (open-ended, or without a known answer) unless they are broken. Questions from a plain table
    keep all its columns.
    """
    failed = {i.question_id: i.fails for i in audited.items if i.fails}
    failed |= dict.fromkeys(audited.unusable, ("broken",))
    questions = [
        replace(q, drop=f"audit: {', '.join(failed[q.question_id])}")
        if q.question_id in failed
        else q
        for q in reading.questions
    ]
    if reading.layout == "ours" and source.is_dir() and not ours.table_of(source).exists():
        _write_dataset(questions, folder, source)
    elif reading.layout == "table":
        table.write(questions, folder, source=source, given=columns)
    elif reading.layout == "tempcompass":
        tempcompass.write(questions, folder, source=source)
    elif reading.layout == "ours":
        ours.write(questions, folder, reading.videos)
    else:
        paper = papers()[reading.layout]
        if write := paper.load_clean():
            write(questions, folder, reading.videos, source)
        else:
            paper.load_layout().write(questions, folder, reading.videos)


def _write_dataset(questions: Sequence[Question], folder: Path, source: Path) -> None:
    """Write a Hugging Face folder with the same splits and a new card.

    The task file of an lmms-eval folder names its data by a full path, so it is not copied:
    `ray_jobs.export layout=lmms_eval` makes one.
    """
    import pyarrow as pa

    kept = {q.question_id: q for q in questions if q.drop is None}
    tally = CardCounts()
    for question in questions:
        tally.count_made(question)
    for file in sorted(source.rglob("*.parquet")):
        rows = read_parquet(file)
        chosen = rows.filter(pa.array(n in kept for n in rows["question_id"].to_pylist()))
        (folder / "data").mkdir(parents=True, exist_ok=True)
        write_parquet(chosen, folder / "data" / file.name)
        tally.by_split[file.stem] = 0
        for name in chosen["question_id"].to_pylist():
            tally.keep(kept[name], file.stem)
    text = card_text(Card(notes=NOTE), tally, [], files="data/{}.parquet")
    (folder / "README.md").write_text(text, encoding="utf-8")
