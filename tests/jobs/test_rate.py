"""The rating job: a sample that stays, links that are printed once, verdicts written back."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from mustsee import schemas
from mustsee.errors import UserError
from mustsee.raters.ballots import Ballots
from mustsee.records import Question, Video
from ray_jobs.running.launch import build, compose

YES = {"answer_right": "yes", "only_answer": "yes", "needs_film": "yes"}
NO = {**YES, "answer_right": "no"}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    questions = [
        Question(
            question_id=f"q{i}", video_id=f"v{i % 2}", recipe="r", question="?", question_type="k",
            answer="a", drop="blind: known" if i == 9 else None,
        )
        for i in range(10)
    ]  # fmt: skip
    videos = [Video(video_id=f"v{i}", uri=f"/films/v{i}.mp4") for i in range(2)]
    pq.write_table(schemas.table(questions, Question), tmp_path / "questions.parquet")
    pq.write_table(schemas.table(videos, Video), tmp_path / "videos.parquet")
    (tmp_path / "run.json").write_text(json.dumps({"recipe": "r"}))
    return tmp_path


def rate(run: Path, *overrides: str) -> Any:
    return build(compose("rate", [f"questions={run}", *overrides]))


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The applications that would have been served."""
    made: list[Any] = []
    keep: Callable[..., None] = lambda app, **_: made.append(app)  # noqa: E731
    monkeypatch.setattr("uvicorn.run", keep)
    return made


def test_a_sample_stays_and_a_link_is_said_once(
    run: Path, served: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert rate(run, "sample=4", "names=[ana,ben,eve]")() == 0
    first = capsys.readouterr().out
    box = Ballots(path=run / "rating-verify" / "votes.sqlite")
    asked = box.open()
    assert (len(asked), len(served), first.count("/r/")) == (4, 1, 3)
    assert "q9" not in asked
    assert rate(run, "sample=6", "names=[ana,ben,eve]", "renew=[eve]")() == 0
    again = capsys.readouterr().out
    assert box.open() == asked
    assert again.count("/r/") == 1
    assert "4 questions drawn before" in again


def test_votes_are_written_and_the_old_table_is_kept(
    run: Path, served: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    rate(run, "sample=3")()
    box = Ballots(path=run / "rating-verify" / "votes.sqlite")
    wrong, *right = box.open()
    for name in (wrong, *right):
        for number in range(3):
            box.take(f"rater_{number + 1}", 0)
            assert box.vote(name, f"rater_{number + 1}", NO if name == wrong else YES, 5)
    before = (run / "questions.parquet").read_bytes()
    capsys.readouterr()
    for _ in range(2):
        assert rate(run, "do=write")() == 0
    assert "3 checked by people, 2 right" in capsys.readouterr().out
    assert (run / "questions.1.parquet").read_bytes() == before
    assert not (run / "questions.2.parquet").exists()
    rows = pq.read_table(run / "questions.parquet").to_pylist()
    found = {q.question_id: q for q in (schemas.load(Question, row) for row in rows)}
    assert len(found) == 10
    assert found[wrong].drop == "people_verify: answer_right=no"
    assert [found[name].drop for name in right] == [None, None]
    assert {len(found[name].verdicts) for name in (wrong, *right)} == {3}
    record = json.loads((run / "run.json").read_text())
    assert record["recipe"] == "r"
    ((entry),) = record["checked"]
    assert (entry["form"], entry["n"], entry["right"], entry["by"]) == ("verify", 3, 2, "people")


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (["raters=0"], "raters=0"),
        (["sample=0"], "sample=0"),
        (["wanted=1"], "wanted=1"),
        (["names=[ana,ben]"], "raters=3"),
        (["names=[ana,ana,ana]"], "names="),
        (["renew=[zoe]"], "zoe"),
        (["do=write"], "nobody has rated"),
    ],
)
def test_mistakes_are_said(run: Path, overrides: list[str], said: str) -> None:
    with pytest.raises(UserError, match=said):
        rate(run, *overrides)()


def test_a_folder_without_a_run_is_said(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"has no questions\.parquet"):
        rate(tmp_path)()
