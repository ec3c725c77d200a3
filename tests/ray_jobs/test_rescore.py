"""The job rescore: from the folder of an evaluation to tables, a page and a summary."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from mustsee.errors import UserError
from mustsee.evaluate.answers import verdict_on_reply
from mustsee.files import schemas
from mustsee.files.parquet import write_parquet
from mustsee.records import Question
from ray_jobs.cli.launch import build, compose
from tests.support.evaluation import questions

HOSTILE = "<script>alert(1)</script> & b"


def evaluation(folder: Path, replies: Sequence[str]) -> Path:
    """Write the questions of an evaluation with these replies; return its folder."""
    folder.mkdir()
    given = [
        replace(q, verdicts=(verdict_on_reply(q, reply, model="m <b>"),))
        for q, reply in zip(questions(len(replies)), replies, strict=True)
    ]
    write_parquet(schemas.table(given, Question), folder / "questions.parquet")
    return folder


def rescore(folder: Path, *words: str) -> int:
    return build(compose("rescore", [f"evaluation={folder}", *words]))()


def test_a_rescored_evaluation_has_a_table_a_page_and_a_summary(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = evaluation(tmp_path / "run", ["B", "b", "no idea", HOSTILE] * 3)
    assert rescore(folder, "benchmark=egoschema") == 0
    out = folder / "rescore"
    record = json.loads((out / "rescore.json").read_text())
    ours, theirs = record["results"][:2]
    assert (ours["scorer"], ours["replies"]) == ("ours", 12)
    assert theirs["guessed"] >= 3
    rows = pq.read_table(out / "rescored.parquet").to_pylist()
    assert len(rows) == 12
    assert rows[2]["ours_letter"] is None
    assert rows[2]["lmms_eval_points"] == pytest.approx(0.2)
    page = (out / "rescore.html").read_text()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    said = capsys.readouterr().out
    assert "ours - lmms_eval" in said
    assert "official has no rule for the benchmark of 12 replies" in said
    assert json.loads((out / "run.json").read_text())["recipe"] == "rescore"
    first = (out / "rescored.parquet").read_bytes()
    assert rescore(folder, "benchmark=egoschema") == 0
    assert (out / "rescored.parquet").read_bytes() == first


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["scorers=[ours,mine]"], "scorers="),
        (["benchmark=mmmu"], "benchmark='mmmu'"),
        (["examples=-1"], "examples=-1"),
        (["evaluation=nowhere"], "nowhere"),
    ],
)
def test_wrong_keys_are_refused_before_any_work(
    tmp_path: Path, words: list[str], says: str
) -> None:
    folder = evaluation(tmp_path / "run", ["A"])
    with pytest.raises(UserError, match=says):
        rescore(folder, *words)
    assert not (folder / "rescore").exists()


def test_a_folder_without_replies_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "made"
    folder.mkdir()
    write_parquet(schemas.table(questions(3), Question), folder / "questions.parquet")
    with pytest.raises(UserError, match="no reply"):
        rescore(folder)


def test_another_recipe_s_folder_is_not_overwritten(tmp_path: Path) -> None:
    folder = evaluation(tmp_path / "run", ["A"])
    (folder / "run.json").write_text('{"recipe": "evaluate"}')
    with pytest.raises(UserError, match="choose another out="):
        rescore(folder, f"out={folder}")
