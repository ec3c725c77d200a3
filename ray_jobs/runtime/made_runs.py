"""Reads the output folders of question-making runs, for `mustsee compare runs=`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from mustsee.errors import UserError
from mustsee.files.parquet import check_digests
from mustsee.files.tables import one_line_error
from mustsee.run.compare_runs import (
    COLUMNS,
    ComparedRun,
    RunsComparison,
    compare_runs,
    figures_of,
    notes_of,
)
from mustsee.run.tables import Tables, asked_models
from mustsee.text import LETTERS
from ray_jobs.runtime.evaluations import RECORD, local_folders, read_object

KEY, QUESTIONS = "runs", "questions.parquet"
NOT_MAKING = ("audit", "certificate", "evaluate")  # recipes whose questions come from elsewhere


def read_runs(folders: Sequence[str]) -> RunsComparison:
    """Read and compare runs. Raises UserError for fewer than two, for a folder that comes twice or
    is not the output of a finished run, and for runs without a common video.
    """
    if not 2 <= len(folders) <= len(LETTERS):
        raise UserError(
            f"runs={list(folders)!r}: give the out= of two runs that made questions, or of up to "
            f"{len(LETTERS)}, as runs=[A,B]"
        )
    places = local_folders(KEY, folders)
    return compare_runs([read_run(name, at) for name, at in zip(folders, places, strict=True)])


def read_run(name: str, folder: Path) -> ComparedRun:
    """Read `run.json` and `questions.parquet`. Raises UserError."""
    try:
        record = read_object(folder, RECORD)
    except ValueError as error:
        raise _unfit(name, str(error)) from error
    if record.get("recipe") in NOT_MAKING:
        raise _unfit(name, f"it is the output of mustsee {record['recipe']}")
    if not (folder / QUESTIONS).exists():
        raise _unfit(name, f"it has no {QUESTIONS}")
    check_digests(folder, QUESTIONS)
    tables = Tables(folder)
    try:
        questions = tuple(tables.questions(*COLUMNS))
        judges = dict.fromkeys(chain.from_iterable(asked_models(tables).values()))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _unfit(name, f"{QUESTIONS} cannot be read: {one_line_error(error)}") from error
    run = ComparedRun(name=name, record=record, questions=questions, judges=tuple(judges))
    try:
        _ = (run.models, run.videos, [*figures_of(run)], [*notes_of(run)])
    except (KeyError, TypeError, AttributeError, ValueError, IndexError) as error:
        fault = f"{type(error).__name__}: {one_line_error(error)}"
        raise _unfit(name, f"{RECORD} is not as a run writes it: {fault}") from error
    return run


def _unfit(name: str, reason: str) -> UserError:
    return UserError(
        f"{KEY}={name!r} is not the output of a run that made questions (mustsee make, neptune, "
        f"...): {reason}; run it again (it reuses finished work), or leave it out"
    )
