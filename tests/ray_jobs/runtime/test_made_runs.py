"""Runs are read from `run.json` and `questions.parquet`, or refused by name."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from mustsee.errors import UserError
from mustsee.files import schemas
from mustsee.files.parquet import digests_of, write_parquet
from mustsee.records import Provenance, Question, Verdict
from mustsee.run.compare_runs import RunsComparison
from ray_jobs.runtime.compared_runs import read_runs


def ask(name: str, video: str = "v", **fields: Any) -> Question:
    base: dict[str, Any] = {"recipe": "facts", "question": f"What of {name}?",
                            "question_type": "Other", "answer": f"the {name}"}  # fmt: skip
    return Question(question_id=name, video_id=video, **{**base, **fields})


def record_of(read: int = 1, **changes: Any) -> dict[str, Any]:
    """What a comparison reads of `run.json`."""
    step = {"stage": "read", "in": read, "out": read, "dropped": {}, "problems": 0}
    return {"recipe": "make", "config": {}, "git": "", "versions": {}, "prompts": {},
            "funnel": [step], "questions": {}, "llm": {}, **changes}  # fmt: skip


def write_run(folder: Path, questions: Sequence[Question], **changes: Any) -> str:
    """Write what a run leaves, as far as a comparison reads it; return the folder."""
    folder.mkdir(parents=True)
    write_parquet(schemas.table(list(questions), Question), folder / "questions.parquet")
    record = {**record_of(**changes), "tables": digests_of(folder)}
    (folder / "run.json").write_text(json.dumps(record))
    return str(folder)


def read_two(tmp_path: Path, one: Sequence[Question], other: Sequence[Question]) -> RunsComparison:
    return read_runs([write_run(tmp_path / "a", one), write_run(tmp_path / "b", other)])


def test_runs_are_read_with_their_models(tmp_path: Path) -> None:
    made = ask("x", provenance=Provenance(llm="writer", prompts=""),
               verdicts=(Verdict(filter="blind", model="guesser"),))  # fmt: skip
    first = write_run(tmp_path / "a", [made], llm={"by_model": {"caller": {}, "writer": {}}})
    second = write_run(tmp_path / "b", [made])
    found = read_runs([first, second])
    assert [run.name for run in found.runs] == [first, second]
    assert found.runs[0].models == ["writer", "caller", "guesser"]
    assert found.runs[1].models == ["writer", "guesser"]


def test_what_is_not_two_runs_is_refused(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a", [ask("x")])
    link = tmp_path / "link"
    link.symlink_to(run)
    for folders, reason in (
        ([], "give the out= of two runs"),
        ([run], "give the out= of two runs"),
        ([run, f"{run}/"], f"names '{run}' twice"),
        ([run, str(link)], "twice"),
        ([run, "/nowhere"], "runs='/nowhere' is not a folder"),
        ([run, "s3://bucket/x"], "copy it here"),
    ):
        with pytest.raises(UserError, match=reason):
            read_runs(folders)


def test_folders_that_are_not_finished_runs_are_refused_with_the_reason(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a", [ask("x")])
    scored = write_run(tmp_path / "scored", [ask("x")], recipe="evaluate")
    torn = write_run(tmp_path / "torn", [ask("x")])
    (tmp_path / "torn" / "run.json").write_text("{")
    bare = write_run(tmp_path / "bare", [ask("x")])
    (tmp_path / "bare" / "run.json").write_text('{"recipe": "make"}')
    wrong = write_run(tmp_path / "wrong", [ask("x")], llm={"all_runs": {"calls": "many"}})
    empty = write_run(tmp_path / "empty", [ask("x")])
    (tmp_path / "empty" / "questions.parquet").unlink()
    (tmp_path / "open" / "lease").mkdir(parents=True)
    changed = write_run(tmp_path / "changed", [ask("x")])
    table = schemas.table([ask("y")], Question)
    write_parquet(table, tmp_path / "changed" / "questions.parquet")
    for folder, reason in (
        (scored, "it is the output of mustsee evaluate"),
        (torn, "run.json cannot be read"),
        (bare, "run.json is not as a run writes it: KeyError"),
        (wrong, "run.json is not as a run writes it: TypeError"),
        (empty, "it has no questions.parquet"),
        (str(tmp_path / "open"), "has not ended"),
        (changed, "is not as the run wrote it"),
    ):
        with pytest.raises(UserError, match=reason) as error:
            read_runs([run, folder])
        assert folder in str(error.value)
