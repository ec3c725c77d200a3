"""The rating job: the sample is kept, links are printed once, verdicts are written back."""

import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import uvicorn

from mustsee.errors import UserError
from mustsee.files import schemas
from mustsee.raters.ballots import Ballots
from mustsee.records import Question, Span, Video
from ray_jobs.cli.launch import build, compose

YES = {"answer_right": "yes", "only_answer": "yes", "needs_video": "yes"}
NO = {**YES, "answer_right": "no"}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    questions = [
        Question(
            question_id=f"q{i}", video_id=f"v{i % 2}", recipe="r", question="?", question_type="k",
            answer="a", evidence=(Span(0, 1),), drop="blind: known" if i == 9 else None,
        )
        for i in range(10)
    ]  # fmt: skip
    videos = [Video(video_id=f"v{i}", uri=str(tmp_path / f"v{i}.mp4")) for i in range(2)]
    for video in videos:
        Path(video.uri).write_bytes(b"a video")
    pq.write_table(schemas.table(questions, Question), tmp_path / "questions.parquet")
    pq.write_table(schemas.table(videos, Video), tmp_path / "videos.parquet")
    (tmp_path / "run.json").write_text(json.dumps({"recipe": "r"}))
    return tmp_path


def rate(run: Path, *overrides: str) -> Any:
    return build(compose("rate", [f"questions={run}", "port=0", *overrides]))


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The applications that were passed to the server."""
    apps: list[Any] = []

    def keep(server: uvicorn.Server, sockets: list[socket.socket]) -> None:
        apps.append(server.config.app)

    monkeypatch.setattr(uvicorn.Server, "run", keep)
    return apps


def test_a_sample_is_kept_and_a_link_is_printed_once(
    run: Path, served: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert rate(run, "sample=4", "names=[ana,ben,eve]")() == 130
    first = capsys.readouterr().out
    box = Ballots(where=run / "rating-verify" / "votes.sqlite")
    drawn = [i.question_id for i in box.open()]
    assert (len(drawn), len(served), first.count("/r/")) == (4, 1, 3)
    assert "the 4 drawn give" in first.partition("/r/")[0], "said before rating starts"
    assert "q9" not in drawn
    assert rate(run, "sample=6", "names=[ana,ben,eve]", "renew=[eve]")() == 130
    again = capsys.readouterr().out
    assert [i.question_id for i in box.open()] == drawn
    assert again.count("/r/") == 1
    assert "4 questions drawn before" in again


def test_votes_are_written_and_the_old_table_is_kept(
    run: Path, served: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    rate(run, "sample=3")()
    box = Ballots(where=run / "rating-verify" / "votes.sqlite")
    wrong, *right = [i.question_id for i in box.open()]
    for name in (wrong, *right):
        for number in range(3):
            box.take(f"rater_{number + 1}", 0)
            assert box.vote(
                f"{name}/verify", f"rater_{number + 1}", NO if name == wrong else YES, 5
            )
    before = (run / "questions.parquet").read_bytes()
    capsys.readouterr()
    for _ in range(2):
        assert rate(run, "do=write")() == 0
    assert "3 checked by people, 2 right" in capsys.readouterr().out
    assert (run / "questions.1.parquet").read_bytes() == before
    assert not (run / "questions.2.parquet").exists()
    rows = pq.read_table(run / "questions.parquet").to_pylist()
    by_id = {q.question_id: q for q in (schemas.load(Question, row) for row in rows)}
    assert len(by_id) == 10
    assert by_id[wrong].drop == "people_verify: answer_right=no"
    assert [by_id[name].drop for name in right] == [None, None]
    assert {len(by_id[name].verdicts) for name in (wrong, *right)} == {3}
    record = json.loads((run / "run.json").read_text())
    assert record["recipe"] == "r"
    ((entry),) = record["checked"]
    assert (entry["form"], entry["n"], entry["right"], entry["by"]) == ("verify", 3, 2, "people")


def test_votes_of_another_tool_are_imported_once(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tasks, export = run / "tasks", run / "export.json"
    assert rate(run, "sample=2", "do=export", f"file={tasks}")() == 0
    rows = json.loads((tasks / "tasks.json").read_text())
    assert len(rows) == 2

    def annotate(rater: str, said: dict[str, str]) -> dict[str, Any]:
        results = [
            {"from_name": name, "to_name": "video", "id": name, "type": "choices",
             "value": {"choices": [value]}}
            for name, value in said.items()
        ]  # fmt: skip
        return {
            "id": 1, "completed_by": {"email": rater}, "was_cancelled": False, "lead_time": 1.0,
            "created_at": "2026-03-09T22:16:08.728353Z", "result": results,
        }  # fmt: skip

    incomplete = dict(list(YES.items())[:1])
    for row in rows:
        said = YES if row is rows[0] else incomplete
        row["annotations"] = [annotate(name, said) for name in ("ana", "ben")]
    export.write_text(json.dumps(rows))
    capsys.readouterr()
    for new in (2, 0):
        assert rate(run, "do=import", f"file={export}")() == 0
        output = capsys.readouterr().out
        assert f"{new} new votes" in output
        assert output.count("left out") == 2
    (first, _) = Ballots(where=run / "rating-verify" / "votes.sqlite").votes()
    assert (first.rater, dict(first.answers)) == ("label_studio:ana", YES)


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (["raters=0"], "raters=0"),
        (["form=egoschema", "names=[ana,ben,eve]"], "takes 6 people"),
        (["form=neptune", "seniors=[]", "names=[ana]"], "takes 3 people"),
        (["trained=1"], "trained=1"),
        (["do=export"], "file="),
        (["do=import", "file=/nowhere/x.json"], "does not exist"),
        (["host=192.0.2.1"], "host='192.0.2.1'"),
        (["training=none.jsonl"], "none.jsonl"),
        (["sample=0"], "sample=0"),
        (["wanted=1"], "wanted=1"),
        (["names=[ana,ben]"], "raters=3"),
        (["names=[ana,ana,ana]"], "names="),
        (["renew=[zoe]"], "zoe"),
        (["do=write"], "holds no votes yet"),
    ],
)
def test_mistakes_are_reported(run: Path, overrides: list[str], said: str) -> None:
    with pytest.raises(UserError, match=said):
        rate(run, *overrides)()


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"has no questions\.parquet"):
        rate(tmp_path)()


def test_a_missing_video_is_reported_before_any_work(run: Path) -> None:
    (run / "v1.mp4").unlink()
    with pytest.raises(UserError, match=r"video 'v1' is missing: .*1 of 2 videos"):
        rate(run)()
    assert not (run / "rating-verify").exists()


def test_questions_without_a_video_or_evidence_are_reported(run: Path, served: list[Any]) -> None:
    rows = pq.read_table(run / "questions.parquet").to_pylist()
    bare = [schemas.load(Question, {**row, "evidence": []}) for row in rows]
    pq.write_table(schemas.table(bare, Question), run / "questions.parquet")
    with pytest.raises(UserError, match="none of the 9 questions"):
        rate(run)()
    assert not (run / "rating-verify").exists()
    assert rate(run, "spans=false")() == 130
    pq.write_table(schemas.table([], Video), run / "videos.parquet")
    with pytest.raises(UserError, match=r"not in videos\.parquet"):
        rate(run, "spans=false")()


def test_a_taken_port_is_reported_before_any_work(run: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UserError, match=f"port={port} cannot be served"):
            rate(run, f"port={port}")()
    assert not (run / "rating-verify").exists()


def test_a_folder_that_is_not_writable_is_reported(run: Path) -> None:
    (run / "file").write_text("")
    with pytest.raises(UserError, match="folder="):
        rate(run, f"folder={run / 'file' / 'votes'}")()


def test_votes_may_be_stored_elsewhere_but_not_mixed_with_another_form(
    run: Path, served: list[Any], votes: str, capsys: pytest.CaptureFixture[str]
) -> None:
    where = f"votes='{votes}'"
    with pytest.raises(UserError, match="holds no votes"):
        rate(run, where, "do=write")()
    assert rate(run, where, "sample=2")() == 130
    assert rate(run, where, "sample=2")() == 130  # a second server on the same votes
    assert capsys.readouterr().out.count("/r/") == 3
    box = Ballots(where=votes)
    (first, *_) = box.open()
    box.take("rater_1", 0)
    assert box.vote(first.name, "rater_1", YES, 5)
    assert rate(run, where, "do=write")() == 0
    assert "verdicts of 1 votes" in capsys.readouterr().out
    assert not (run / "rating-verify" / "votes.sqlite").exists()
    with pytest.raises(UserError, match="votes of another form"):
        rate(run, where, "form=neptune")()


def test_an_unparseable_password_is_not_shown() -> None:
    with pytest.raises(UserError, match="check its quotes") as output:
        compose("rate", ["questions=x", "votes='postgresql://ana:verysecret@h/v"])
    assert "verysecret" not in str(output.value)


def test_a_mistake_is_one_line_and_exit_code_2(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ray_jobs.rate", f"questions={tmp_path}"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "has no questions.parquet" in done.stderr


def test_a_table_of_any_columns_is_rated_in_a_folder_beside_it(
    tmp_path: Path, served: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "films").mkdir()
    for name in ("kitchen.v1", "kitchen.v2"):
        (tmp_path / "films" / f"{name}.mp4").write_bytes(b"a video")
    rows = "".join(f"kitchen.v{n}.mp4,Who is {n}?,Tom,Ann,{n}\n" for n in (1, 2))
    (tmp_path / "mine.csv").write_text(f"Video File,Ask,w,x,Right (1-2)\n{rows}")
    columns = (
        'table={video: "Video File", question: Ask, options: [w, x], answer: "Right (1-2)", '
        "answers: number from 1}"
    )
    settings = (columns, f"videos={tmp_path / 'films'}", "spans=false", "names=[ana,ben,eve]")
    for _ in range(2):  # the second time with the votes of the first
        assert rate(tmp_path / "mine.csv", *settings)() == 130
    said = capsys.readouterr().out
    assert said.count("was read as table") == 1
    box = Ballots(where=tmp_path / "mine-rated" / "rating-verify" / "votes.sqlite")
    (drawn, _) = sorted({i.question_id for i in box.open()})
    for name in ("ana", "ben", "eve"):
        box.take(name, 0)
        assert box.vote(f"{drawn}/verify", name, NO, 5)
    assert rate(tmp_path / "mine.csv", *settings, "do=write")() == 0
    written = pq.read_table(tmp_path / "mine-rated" / "questions.parquet").to_pylist()
    assert {q["question_id"]: bool(q["verdicts"]) for q in written}[drawn]
    (tmp_path / "mine.csv").write_text(f"Video File,Ask,w,x,Right (1-2)\nother.mp4,?,a,b,1\n{rows}")
    with pytest.raises(UserError, match="votes on other questions"):
        rate(tmp_path / "mine.csv", *settings)()
