"""The job that adds people's questions and tests edited ones: they are vetted as the run's, and the
others of the run stay.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from loopback.endpoint import Loopback
from mustsee.errors import UserError
from mustsee.files import schemas
from mustsee.files.store import Store, identity
from mustsee.layouts.ticks import Tick, append_tick
from mustsee.records import Question, RequestCount, Span, Verdict, Video, passed_metric
from mustsee.run.tables import Tables
from ray_jobs.add import read_filters
from ray_jobs.cli.launch import build, compose
from ray_jobs.runtime.cluster import connect_ray
from tests.ray_jobs.test_run_filters import config_of, save

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
    with pytest.raises(UserError, match="the output of mustsee audit"):
        add(made, rows)()
    (made / "run.json").write_text(json.dumps({"recipe": "make", "config": {}}))
    with pytest.raises(UserError, match="'make' has no filters"):
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


def copy_run(made: Path, name: str, *questions: Question, video: str = "v", **config: Any) -> Path:
    """Write another run, on the same file under an id of its own."""
    folder = made.parent / name
    folder.mkdir()
    table = [replace(each, video_id=video) for each in Tables(made).videos()]
    pq.write_table(schemas.table(table, Video), folder / "videos.parquet")
    own = [replace(q, video_id=video) for q in questions]
    pq.write_table(schemas.table(own, Question), folder / "questions.parquet")
    record = json.loads((made / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**record, **config}))
    return folder


def together(*folders: Path, out: str, **more: object) -> Path:
    target = folders[0].parent / out
    names = ",".join(map(str, folders))
    given = [f"made=[{names}]", f"out={target}", *(f"{key}={value}" for key, value in more.items())]
    assert build(compose("add", given))() == 0
    return target


@pytest.mark.slow
@pytest.mark.usefixtures("ray")
def test_runs_become_one_that_other_jobs_read(
    made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = Store(str(made / "store"))
    store.put_table("look", "k", pa.table({"keyframes": schemas.column("keyframes", [()])}))
    (video,) = Tables(made).videos()
    seen = replace(video, lineage={"look": "k"})
    pq.write_table(schemas.table([seen], Video), made / "videos.parquet")
    again = replace(OLD, question_id="twin", question="What is red then?", recipe="neptune")
    fresh = replace(OLD, question_id="new", question="Who sings?", options=("Ana", "Ben"),
                    answer="Ana", recipe="neptune")  # fmt: skip
    other = copy_run(made, "other", OLD, again, fresh, video="pan", recipe="neptune")
    append_tick(other, Tick(question_id="new", verdict="drop", reason="dull"))
    out = together(made, other, out="both", encoder="null")
    said = capsys.readouterr().err
    assert (
        "2 runs merged: 1 videos, 1 of several runs; 3 questions of neptune (2), facts (1)" in said
    )
    assert "1 videos have other ids in other runs: pan is v" in said
    assert "1 questions are in several runs, with the same words" in said
    questions = {q.question_id: q for q in Tables(out).questions()}
    assert {q.video_id for q in questions.values()} == {"v"}
    assert questions["old"] == OLD
    assert questions["new"].drop == "by hand: dull"
    assert Store(str(out / "store")).get("look", "k") == store.get("look", "k")
    record = json.loads((out / "run.json").read_text())
    assert record["added"]["merged"]["recipes"] == {str(made): "make", str(other): "neptune"}
    assert identity(read_filters(out).filters) == identity(read_filters(made).filters)
    score = made.parent / "score"
    assert build(compose("evaluate", [f"questions={out}", f"out={score}", "answer=guess"]))() == 0
    (one,) = json.loads((score / "results.json").read_text())["results"]
    assert one["asked"] == 2
    release = made.parent / "hf"
    assert build(compose("export", [f"questions={out}", "layout=hf", f"out={release}"]))() == 0
    assert pq.read_table(release / "data" / "test.parquet").num_rows == 2
    build(compose("report", [f"out={out}"]))()
    assert "What is red then?" in (out / "report" / "index.html").read_text()
    twice = together(out, other, out="again", encoder="null")
    assert [*Tables(twice).questions()] == [*Tables(out).questions()]
    page = made.parent / "compared"
    assert build(compose("compare", [f"runs=[{out},{twice}]", f"out={page}"]))() == 0


@pytest.mark.slow
@pytest.mark.usefixtures("ray")
def test_repeated_questions_are_named_and_left_out_on_request(
    made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pan, tea = Video(video_id="v", uri="a"), Video(video_id="w", uri="b")
    pq.write_table(schemas.table([pan, tea], Video), made / "videos.parquet")
    weak = {passed_metric("blind"): 0.0}
    asked = (
        replace(OLD, question_id="a", metrics=weak),
        replace(OLD, question_id="b", video_id="w"),
        replace(OLD, question_id="c", video_id="w", options=("hat", "tie", "cup"), answer="hat"),
        replace(OLD, question_id="d", video_id="w", question="What is the first?"),
    )
    pq.write_table(schemas.table(asked, Question), made / "questions.parquet")
    with pytest.raises(UserError, match="nothing to test"):
        build(compose("add", [f"made={made}", f"out={made}-none"]))()
    out = together(made, out="apart", duplicates="drop", encoder="null")
    drops = {q.question_id: q.drop for q in Tables(out).questions()}
    assert drops["a"] == "duplicate: repeats b (exact, 1.00)"
    assert drops["c"] == drops["a"]
    assert drops["b"] is drops["d"] is None
    shown = " ".join(capsys.readouterr().out.split())
    assert "2 questions repeat another one, 1 of them on another video: " in shown
    assert "a repeats b" in shown
    record = json.loads((out / "run.json").read_text())
    assert [(p["question"], p["other"]) for p in record["added"]["duplicates"]] == [
        ("c", "b"), ("a", "b"),
    ]  # fmt: skip
    once = together(out, out="once", duplicates="drop", encoder="null")
    assert [*Tables(once).questions()] == [*Tables(out).questions()]
    assert "no question repeats another one" in capsys.readouterr().out


def test_what_cannot_be_merged_is_refused(made: Path) -> None:
    def refuse(match: str, *given: str) -> None:
        with pytest.raises(UserError, match=match):
            build(compose("add", [f"out={made.parent / 'none'}", "encoder=null", *given]))()

    new = replace(OLD, question_id="new")
    other = copy_run(made, "other", new)
    refuse("each once", f"made=[{made},{made}/]")
    refuse("'name' or 'drop'", f"made={made}", "duplicates=maybe")
    record = json.loads((made / "run.json").read_text())
    record["config"]["vet"]["filters"]["blind"]["runs"] = 7
    (other / "run.json").write_text(json.dumps(record))
    edit = Tick(question_id="new", verdict="edit", question="Who?", options=OLD.options)
    append_tick(other, edit)
    refuse("different filters", f"made=[{made},{other}]")
    (other / "run.json").write_text(json.dumps({"recipe": "evaluate", "config": {}}))
    refuse("the output of mustsee evaluate", f"made=[{made},{other}]")
    (other / "run.json").unlink()
    refuse(r"it has no run\.json", f"made=[{made},{other}]")
