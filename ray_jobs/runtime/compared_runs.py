"""Finds and reads what runs have written, for `mustsee compare`: evaluations, and runs that made
questions.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from mustsee.errors import UserError
from mustsee.evaluate.answers import mark_replies
from mustsee.evaluate.compare import ComparedEvaluation, score_evaluation
from mustsee.evaluate.score import clusters_of
from mustsee.files.parquet import check_digests
from mustsee.files.tables import one_line_error
from mustsee.layouts import ours
from mustsee.layouts.errata import Errata
from mustsee.records import Question
from mustsee.run.compare_runs import (
    COLUMNS,
    ComparedRun,
    RunsComparison,
    compare_runs,
    figures_of,
    notes_of,
)
from mustsee.run.lease import FOLDER as LEASE
from mustsee.run.tables import Tables, asked_models
from mustsee.text import LETTERS

RECIPE = "evaluate"
RECORD, RESULTS, QUESTIONS = "run.json", "results.json", "questions.parquet"
NOT_MAKING = ("audit", "certificate", RECIPE)  # recipes whose questions come from elsewhere
UNREADABLE = "(unreadable)"  # what stands in place of a recipe


@dataclass(frozen=True, kw_only=True)
class FoundEvaluations:
    """The evaluations of a folder, and why folders in it could not be read."""

    evaluations: tuple[ComparedEvaluation, ...]
    unread: Mapping[str, str]


def read_evaluations(source: str | Sequence[str], errata: Errata | None = None) -> FoundEvaluations:
    """Read the evaluations of a list, or all in one folder. `errata`: correct the questions, and
    mark the replies by the corrected keys.

    Raises UserError for a folder of a list that cannot be read, for one that comes twice, and for a
    folder without evaluations. In one folder, those that cannot be read are `unread`.
    """
    if not isinstance(source, str):
        return FoundEvaluations(evaluations=tuple(_read_listed(source, errata)), unread={})
    root = _local("evaluations", source)
    evaluations, unread = list[ComparedEvaluation](), dict[str, str]()
    for folder in find_folders(root):
        try:
            evaluations.append(read_evaluation(folder, errata))
        except UserError as error:
            unread[str(folder)] = str(error)
    if not evaluations:
        reasons = "".join(f"; {reason}" for reason in unread.values())
        raise UserError(
            f"evaluations={source!r} holds no evaluation that can be read: give the out= of "
            f"mustsee evaluate, or a folder with several of them{reasons}"
        )
    return FoundEvaluations(evaluations=tuple(evaluations), unread=unread)


def _read_listed(folders: Sequence[str], errata: Errata | None) -> Iterator[ComparedEvaluation]:
    if not folders:
        raise UserError("evaluations=[] names no evaluation: give the out= of mustsee evaluate")
    local_folders("evaluations", folders)
    for folder in folders:
        yield read_evaluation(Path(folder), errata)


def local_folders(key: str, folders: Sequence[str]) -> list[Path]:
    """Return the places of the folders that `key`= lists. Raises UserError for one that is not a
    folder on this machine, and for one that comes twice.
    """
    places, given = list[Path](), dict[Path, str]()
    for folder in folders:
        places.append(_local(key, folder))
        place = places[-1].resolve()
        if place in given:
            raise UserError(f"{key}= names {given[place]!r} twice (as {folder!r}): leave out one")
        given[place] = folder
    return places


def _local(key: str, folder: str) -> Path:
    if "://" in folder.removeprefix("file://"):
        raise UserError(f"{key}={folder!r}: expected a folder on this machine; copy it here")
    place = Path(folder.removeprefix("file://"))
    if not place.is_dir():
        raise UserError(f"{key}={folder!r} is not a folder (looked for {place.resolve()})")
    return place


def find_folders(root: Path) -> Iterator[Path]:
    """Yield, by name, the output folders of evaluations in `root`, and of runs that have not ended
    or whose record cannot be read. What is inside a run's folder is not searched, `root` excepted.
    """

    def search(folder: Path) -> Iterator[Path]:
        recipe = _recipe(folder)
        open_run = recipe is None and (folder / LEASE).is_dir()
        if recipe in (RECIPE, UNREADABLE) or open_run:
            yield folder
        if folder != root and (recipe is not None or open_run):
            return
        for child in sorted(folder.iterdir()):
            if child.is_dir() and child.name[0] != "." and child.name not in (LEASE, "store"):
                yield from search(child)

    return search(root)


def _recipe(folder: Path) -> str | None:
    """Return the recipe of a run's folder; `UNREADABLE` if its record is, None without one."""
    try:
        record: Any = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError):
        return UNREADABLE
    return str(record.get("recipe")) if isinstance(record, dict) else UNREADABLE


def read_evaluation(folder: Path, errata: Errata | None = None) -> ComparedEvaluation:
    """Read the output folder of an evaluation. Raises UserError if it is none, has not ended, or
    has a file that cannot be read.
    """
    run, results = (_read_json(folder, name) for name in (RECORD, RESULTS))
    if run.get("recipe") != RECIPE:
        raise _not_evaluation(folder, f"it is the output of mustsee {run.get('recipe')}")
    try:
        names = [str(one["model"]) for one in results["results"]]
        dataset, frames = str(results["questions"]), results["frames"]
        shown = str(results.get("shown", ""))
    except (KeyError, TypeError, AttributeError) as error:
        raise _not_evaluation(folder, f"{RESULTS} lacks {one_line_error(error)}") from error
    for table in (QUESTIONS, "videos.parquet"):
        if not (folder / table).exists():
            raise _not_evaluation(folder, f"it has no {table}")
    try:
        cluster = clusters_of(Tables(folder).videos("source"))
        questions: Iterable[Question] = ours.open_streamed(folder).questions
        if errata is not None:
            questions = (mark_replies(errata.apply(question)) for question in questions)
        scored = score_evaluation(questions, cluster, names)
    except (OSError, ValueError) as error:
        raise _not_evaluation(folder, one_line_error(error)) from error
    return ComparedEvaluation(
        folder=str(folder), dataset=dataset, shown=shown, frames=frames, **scored
    )


def _read_json(folder: Path, name: str) -> dict[str, Any]:
    try:
        return read_object(folder, name)
    except ValueError as error:
        raise _not_evaluation(folder, str(error)) from error


def read_object(folder: Path, name: str) -> dict[str, Any]:
    """Return the JSON object in a file of a run's folder. Raises ValueError with the reason."""
    try:
        record: Any = json.loads((folder / name).read_text(encoding="utf-8"))
    except FileNotFoundError:
        ended = "; its run has not ended" if (folder / LEASE).is_dir() else ""
        raise ValueError(f"it has no {name}{ended}") from None
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"{name} cannot be read: {one_line_error(error)}") from error
    if not isinstance(record, dict):
        raise ValueError(f"{name} is not a JSON object")
    return record


def _not_evaluation(folder: Path, reason: str) -> UserError:
    return UserError(
        f"evaluations={str(folder)!r} is not the output of mustsee evaluate: {reason}; run the "
        "evaluation again (it reuses finished work), or leave it out"
    )


def read_runs(folders: Sequence[str]) -> RunsComparison:
    """Read and compare runs. Raises UserError for fewer than two, for a folder that comes twice or
    is not the output of a finished run, and for runs without a common video.
    """
    if not 2 <= len(folders) <= len(LETTERS):
        raise UserError(
            f"runs={list(folders)!r}: give the out= of two runs that made questions, or of up to "
            f"{len(LETTERS)}, as runs=[A,B]"
        )
    places = local_folders("runs", folders)
    return compare_runs([read_run(name, at) for name, at in zip(folders, places, strict=True)])


def read_run(name: str, folder: Path) -> ComparedRun:
    """Read `run.json` and `questions.parquet`. Raises UserError."""
    try:
        record = read_object(folder, RECORD)
    except ValueError as error:
        raise _not_making(name, str(error)) from error
    if record.get("recipe") in NOT_MAKING:
        raise _not_making(name, f"it is the output of mustsee {record['recipe']}")
    if not (folder / QUESTIONS).exists():
        raise _not_making(name, f"it has no {QUESTIONS}")
    check_digests(folder, QUESTIONS)
    tables = Tables(folder)
    try:
        questions = tuple(tables.questions(*COLUMNS))
        judges = dict.fromkeys(chain.from_iterable(asked_models(tables).values()))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _not_making(name, f"{QUESTIONS} cannot be read: {one_line_error(error)}") from error
    run = ComparedRun(name=name, record=record, questions=questions, judges=tuple(judges))
    try:
        _ = (run.models, run.videos, [*figures_of(run)], [*notes_of(run)])
    except (KeyError, TypeError, AttributeError, ValueError, IndexError) as error:
        fault = f"{type(error).__name__}: {one_line_error(error)}"
        raise _not_making(name, f"{RECORD} is not as a run writes it: {fault}") from error
    return run


def _not_making(name: str, reason: str) -> UserError:
    return UserError(
        f"runs={name!r} is not the output of a run that made questions (mustsee make, neptune, "
        f"...): {reason}; run it again (it reuses finished work), or leave it out"
    )
