"""The job that adds people's questions: they are vetted as the run's, and the run's stay."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from mustsee import schemas
from mustsee.errors import UserError
from mustsee.records import Question, Span, Video, passed_metric
from mustsee.run.tables import Tables
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
    from mustsee.run.own_filters import read_filters

    config = config_of("make", "llm=openai", "llm.model=gpt-x")
    job = add(made, "")
    assert "the run's guesser was gpt-x" in " ".join(
        job.changed_models(read_filters(save(made, config)))
    )
    assert job.changed_models(read_filters(save(made, config_of("make")))) == []
