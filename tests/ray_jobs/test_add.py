"""The job that adds people's questions and tests edited ones: they are vetted as the run's, and the
others of the run stay.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from loopback.endpoint import Loopback
from mustsee import schemas
from mustsee.errors import UserError
from mustsee.layouts.ticks import Tick, append_tick
from mustsee.records import Question, RequestCount, Span, Verdict, Video, passed_metric
from mustsee.run.own_filters import read_filters
from mustsee.run.tables import Tables
from mustsee.store import identity
from ray_jobs.cli.launch import build, compose
from ray_jobs.runtime.cluster import connect_ray
from tests.run.test_own_filters import config_of, save

OLD = Question(
    question_id="old", video_id="v", recipe="facts", question="What is red?", question_type="k",
    options=("hat", "shoe"), answer_index=0, answer="hat", evidence=(Span(0, 1),),
    metrics={passed_metric("blind"): 1.0}, subsets=("mma",),
)  # fmt: skip
TABLE = "table={video:clip,question:ask,options:[w,x,y],answer:key,start:from,end:to}"


@pytest.fixture(scope="module")
def ray() -> Iterator[None]:
    with connect_ray():
        yield


@pytest.fixture
def made(tmp_path: Path) -> Path:
    folder = tmp_path / "made"
    folder.mkdir()
    videos = [Video(video_id="v", uri="/films/pan.mp4", duration=60.0, digest="d", lines=())]
    pq.write_table(schemas.table([OLD], Question), folder / "questions.parquet")
    pq.write_table(schemas.table(videos, Video), folder / "videos.parquet")
    off = ("sight", "one_frame", "shuffled", "asr", "match", "match_asr")
    return save(folder, config_of("make", *(f"vet.filters.{name}=null" for name in off)))


def add(made: Path, rows: str, *overrides: str) -> Any:
    file = made.parent / "mine.csv"
    file.write_text(f"clip,ask,w,x,y,key,from,to\n{rows}")
    out = made.parent / "out"
    return build(compose("add", [f"questions={file}", f"made={made}", f"out={out}", TABLE,
                                 *overrides]))  # fmt: skip


@pytest.mark.slow
@pytest.mark.usefixtures("ray")
def test_questions_are_vetted_by_the_runs_filters_and_never_reworded(
    made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = "pan.mp4,What is  cut?,an egg,a nut,an onion,C,3,5\ngone.mp4,Who?,a,b,c,A,,\n"
    assert add(made, rows, "vet.worth=null")() == 0
    shown = capsys.readouterr()
    assert "1 questions by people added" in shown.err
    assert "1 not added, the run has no such video: gone/1" in shown.err
    assert "questions by people: " in shown.out
    out = made.parent / "out"
    questions = {q.question_id: q for q in Tables(out).questions()}
    mine = questions["pan/0"]
    assert (mine.question, mine.options) == ("What is  cut?", ("an egg", "a nut", "an onion"))
    assert (mine.answer_index, mine.evidence, mine.repairs) == (2, (Span(3, 5),), ())
    assert {v.filter for v in mine.verdicts} >= {"blind", "options"}
    assert {"giveaways", "blind"} <= mine.filter_results.keys()
    assert not mine.filter_results.keys() & {"sight", "one_frame"}
    assert replace(questions["old"], metrics=OLD.metrics) == OLD
    record = json.loads((out / "run.json").read_text())
    assert record["added"]["left_out"] == {"gone/1": "the run has no such video"}
    page = (out / "report" / "index.html").read_text()
    assert "What is  cut?" in page


def test_what_is_no_run_is_refused(made: Path) -> None:
    rows = "pan.mp4,Who?,a,b,c,A,,\n"
    (made / "run.json").write_text(json.dumps({"recipe": "audit", "config": {}}))
    with pytest.raises(UserError, match="'audit' has no filters"):
        add(made, rows)()
    (made / "videos.parquet").unlink()
    with pytest.raises(UserError, match=r"no videos\.parquet"):
        add(made, rows)()


def test_other_models_than_those_of_the_run_are_named(made: Path) -> None:
    config = config_of("make", "llm=openai", "llm.model=gpt-x")
    job = add(made, "")
    assert "the run's guesser was gpt-x" in " ".join(
        job.changed_models(read_filters(save(made, config)))
    )
    assert job.changed_models(read_filters(save(made, config_of("make")))) == []


LOST = RequestCount(what="verdicts by blind", sent=4, unread=1, error="refused", stage="vet")


def write_questions(made: Path, *questions: Question) -> None:
    pq.write_table(schemas.table(questions, Question), made / "questions.parquet")
    (video,) = Tables(made).videos()
    videos = [replace(video, requests=(LOST,))]
    pq.write_table(schemas.table(videos, Video), made / "videos.parquet")


@pytest.mark.slow
@pytest.mark.usefixtures("ray")
def test_edited_questions_alone_are_asked_about_and_once(
    made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = Verdict(filter="blind", model="m", reply="A", correct=True, passed=False)
    metrics = {passed_metric("blind"): 0.0}
    known = replace(OLD, verdicts=(said,), metrics=metrics, subsets=("full",))
    others = (
        replace(OLD, question_id="a", question="What is green?"),
        replace(known, question_id="z", question="What is grey?", drop="sight: none"),
    )
    write_questions(made, others[0], known, others[1])
    append_tick(made, Tick(question_id="old", verdict="edit", question="What is pink?",
                           options=OLD.options))  # fmt: skip
    out = made.parent / "out"
    with Loopback(payloads=[]) as server:
        command = [f"made={made}", f"out={out}", "vet.worth=null", "llm=openai",
                   "llm.model=m", f"base_url={server.url}", "key_env=null"]  # fmt: skip
        assert build(compose("add", command))() == 0
        assert "1 edited, tested again: old" in capsys.readouterr().err
        asked = [json.dumps(payload) for payload in server.payloads or ()]
        first = (out / "questions.parquet").read_bytes()
        assert build(compose("add", command))() == 0
        assert len(server.payloads or ()) == len(asked)
    assert asked
    assert not [text for text in asked if "pink" not in text and "hat" not in text]
    assert not [text for text in asked for word in ("green", "grey", "red?") if word in text]
    assert (out / "questions.parquet").read_bytes() == first
    questions = list(Tables(out).questions())
    assert [q.question_id for q in questions] == ["a", "old", "z"]
    assert (replace(questions[0], metrics=OLD.metrics), questions[2]) == others
    edited = questions[1]
    assert (edited.question, edited.verdicts[0]) == ("What is pink?", said)
    tried = {v.filter for v in edited.verdicts[edited.earlier_verdicts :]}
    assert tried >= {"giveaways", "blind", "options"}
    assert edited.earlier_verdicts == 1
    record = json.loads((out / "run.json").read_text())
    assert record["added"]["edited"] == ["old"]
    lost = {r["what"]: r["unread"] for r in record["requests"]}
    assert lost["verdicts by blind"] >= 1, "what the run could not read is still said"
    own, made_by = read_filters(out), read_filters(made)
    assert identity(own.filters) == identity(made_by.filters)
    capsys.readouterr()
    with pytest.raises(UserError, match="nothing to test"):
        build(compose("add", [f"made={out}", f"out={out}2"]))()
