"""The evaluation job: from a released file to results, resumed, compared and under faults."""

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import mustsee
from actors.answer.llm import AnswerLlm
from actors.llm.openai import OpenAI
from loopback.endpoint import Faults, Loopback
from loopback.refusals import refuse_in_words_of
from mustsee.errors import UserError
from mustsee.evaluate import score
from mustsee.evaluate.compare import BLIND, FRAMES, GUESS, WORDS
from mustsee.files import schemas
from mustsee.layouts import QuestionFile, ours, read
from mustsee.recipes.egoschema import layout as egoschema
from mustsee.recipes.neptune import layout as neptune
from mustsee.records import Caption, Line, Video
from ray_jobs.cli.launch import build, compose
from ray_jobs.evaluate import describe_shown
from ray_jobs.runtime.cluster import connect_ray
from ray_jobs.runtime.question_rows import rows_of, whole
from tests.support import sample_videos
from tests.support.bench import Bench
from tests.support.evaluation import questions, rows


@pytest.fixture(scope="module")
def ray() -> Iterator[None]:
    with connect_ray():
        yield


def run(job: str, **overrides: object) -> int:
    return build(compose(job, [f"{k}={v}" for k, v in overrides.items()]))()


@pytest.mark.usefixtures("ray")
def test_an_evaluation_writes_results_and_can_be_resumed(tmp_path: Path) -> None:
    release = tmp_path / "neptune_full.json"
    neptune.write(questions(), release)
    blind, guess = tmp_path / "blind", tmp_path / "guess"
    assert run("evaluate", questions=release, out=blind, answer="blind") == 0
    longest = {"answer": "guess", "answer.by": "longest"}
    assert run("evaluate", questions=release, out=guess, **longest) == 0
    record = json.loads((guess / "results.json").read_text())
    (one,) = record["results"]
    assert one["model"] == "guess longest"
    assert one["weighted"]["n"] == 24
    assert one["failed"] == 0
    replies = pq.read_table(blind / "replies.parquet").to_pylist()
    assert len(replies) == len({row["text_hash"] for row in replies}) == 24
    (template,) = {row["prompt"] for row in replies}
    (sources,) = json.loads((blind / "prompts.json").read_text()).items()
    assert sources[0] == template
    assert all("{%" in text for text in sources[1].values())
    assert not (guess / "prompts.json").exists()
    assert record["shown"] == GUESS
    assert list((blind / "pictures").iterdir())
    first = (blind / "results.json").read_bytes()
    assert run("evaluate", questions=release, out=blind, answer="blind") == 0
    again = json.loads((blind / "run.json").read_text())
    assert again["computed"] == {"answer": 0}
    assert again["reused"] == {"answer": 12}
    assert (blind / "results.json").read_bytes() == first
    assert run("export", questions=blind, layout="hf", out=tmp_path / "hf") == 0
    assert pq.read_table(tmp_path / "hf/data/test.parquet").num_rows == 24


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (["answer=blind"], BLIND),
        (["answer=options"], BLIND),
        (["answer=asr"], WORDS),
        (["answer=captions"], WORDS),
        (["answer=openai", "answer.see.frames=8"], FRAMES),
        (["answer=openai", "answer.see.frames=8", "answer.see.condition=blind"], BLIND),
        (["answer=openai", "answer.rag.clips=4"], FRAMES),
        (["answer=guess"], GUESS),
        (["answer=file", "answer.path=x"], ""),
    ],
)
def test_what_a_model_was_shown_is_written_with_the_results(given: list[str], shown: str) -> None:
    overrides = ["questions=q", "out=o", "llm=offline", *given]
    assert describe_shown(build(compose("evaluate", overrides)).answer) == shown


@pytest.mark.usefixtures("ray")
def test_errata_change_scores_and_ranks_and_say_so(tmp_path: Path) -> None:
    release, preds = tmp_path / "neptune_full.json", {}
    neptune.write(questions(), release)
    asked = mustsee.read(release).questions
    keys = {q.question_id: q.answer_index or 0 for q in asked}
    wrong, bad = asked[0], asked[1]
    other = (keys[wrong.question_id] + 1) % 5
    for name, options in (
        ("a", keys),
        ("b", {**keys, wrong.question_id: other, bad.question_id: (keys[bad.question_id] + 1) % 5}),
    ):
        preds[name] = tmp_path / f"{name}.json"
        preds[name].write_text(json.dumps({n: "ABCDE"[k] for n, k in options.items()}))
    errata = tmp_path / "errata.jsonl"
    rows = [
        {"id": wrong.question_id, "old": wrong.answer, "new": wrong.options[other], "who": "ana"},
        {"id": bad.question_id, "old": "ABCDE"[keys[bad.question_id]], "new": "bad"},
        {"id": asked[2].question_id, "old": "nothing like it", "new": "bad"},
        {"id": "gone", "old": "x", "new": "bad"},
    ]
    errata.write_text("".join(json.dumps(row) + "\n" for row in rows))
    board, corrected = tmp_path / "board", tmp_path / "corrected"
    for name, path in preds.items():
        assert run("evaluate", questions=release, out=board / name, answer="file",
                   **{"answer.path": path}) == 0  # fmt: skip
    assert run("evaluate", questions=release, out=corrected, answer="file", errata=errata,
               **{"answer.path": preds["b"]}) == 0  # fmt: skip
    record = json.loads((corrected / "results.json").read_text())
    said = record["errata"]
    assert (said["applied"], said["unknown"]) == (2, ["gone"])
    assert [m["id"] for m in said["mismatched"]] == [asked[2].question_id]
    (scored,) = record["results"]
    assert (scored["weighted"]["n"], scored["weighted"]["value"]) == (23, 1)
    assert "2 entries applied" in (corrected / "report" / "index.html").read_text()
    out = tmp_path / "compared"
    assert run("compare", evaluations=board, out=out, errata=errata) == 0
    page = (out / "report" / "index.html").read_text()
    assert "2 entries applied" in page
    assert "a: 100.0 before the errata, 95.7 after; rank 1 to 2" in page
    assert "b: 91.7 before the errata, 100.0 after; rank 2 to 1" in page


def test_a_model_grades_itself_only_if_that_is_allowed(tmp_path: Path) -> None:
    """By rubrics or as the judge it is refused before any work, unless allowed. Rules may."""
    (tmp_path / "9_summary.json").write_text(json.dumps([
        {"video": "a.mp4", "duration": 300, "question": "Summarise it.", "answer": "A boat.",
         "question_type": "summary"}]))  # fmt: skip
    overrides = [f"questions={tmp_path}", f"out={tmp_path / 'out'}", "llm=openai", "key_env=null",
             "base_url=http://127.0.0.1:9/v1", "try_endpoints=false", "answer=blind"]  # fmt: skip
    with pytest.raises(UserError, match=r"would grade its own answers.*grade\.llm\.model"):
        build(compose("evaluate", overrides))()
    detail = [*overrides, "grade.llm.detail=high"]  # the same model with another setting
    with pytest.raises(UserError, match="would grade its own answers"):
        build(compose("evaluate", detail))()
    part = build(compose("evaluate", [*overrides, "grade.llm.model=other"]))
    part.grade.check_grader_differs(part.answer.llm, rubrics=True, judged=False)
    own = build(compose("evaluate", [*overrides, "grade.own=true"]))
    own.grade.check_grader_differs(own.answer.llm, rubrics=True, judged=True)
    rules = build(compose("evaluate", [*overrides[:2], "answer=blind"]))
    rules.grade.check_grader_differs(rules.answer.llm, rubrics=True, judged=True)
    judged = build(compose("evaluate", [*overrides, "judge=llm", "grade/llm=offline"]))
    with pytest.raises(UserError, match=r"judge\.engine\.llm\.model"):
        judged.grade.check_grader_differs(judged.answer.llm, rubrics=True, judged=True)


def spoken(payload: Any) -> str:
    """A model that has a reply for every prompt."""
    text = json.dumps(payload["messages"])
    return f"[{random.Random(text).choice('ABCDE')}]: I think so."


def test_endpoint_faults_change_no_score_and_lose_no_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    kinds = ("429", "500", "503", "truncated", "dropped", "empty", "html")
    scores = []
    for name, faults in (("no", Faults()), ("with", Faults(share=0.3, kinds=kinds, retry_after=0))):
        with Loopback(reply=spoken, faults=faults) as server:
            part = AnswerLlm(llm=OpenAI(model="m", base_url=server.url))
            done = Bench(tmp_path / name).run(part, *rows())
            met = sum(n for k, n in server.stats.items() if k.startswith("fault"))
        (result,) = score.score([q for v in done for q in v.questions or ()], done)
        scores.append(replace(result, model="m"))
        assert result.failed == 0
        assert (met > 0) == (name == "with")
    assert scores[0] == scores[1]


@pytest.mark.usefixtures("ray")
def test_a_question_with_a_missing_video_counts_as_failed_not_as_wrong(tmp_path: Path) -> None:
    folder = tmp_path / "videos"
    folder.mkdir()
    sample_videos.write(folder / "v0.mp4", sample_videos.cuts([12, 12]))
    (folder / "v1.mp4").write_bytes(b"no video at all")
    release = tmp_path / "q.json"
    neptune.write(questions(4), release)
    out = tmp_path / "out"
    code = run("evaluate", questions=release, out=out, videos=folder, answer="openai",
               **{"answer.see.frames": 2})  # fmt: skip
    assert code in (0, 3)
    (one,) = json.loads((out / "results.json").read_text())["results"]
    assert (one["asked"], one["failed"], one["weighted"]["n"]) == (4, 2, 2)
    assert pq.read_table(out / "problems.parquet")["video_id"].to_pylist() == ["v1"]
    blind = tmp_path / "blind"
    assert run("evaluate", questions=release, out=blind, videos=folder, answer="blind") == 0
    (one,) = json.loads((blind / "results.json").read_text())["results"]
    assert (one["failed"], one["weighted"]["n"]) == (0, 4)  # Its answerer needs no video.


def test_a_limit_counts_only_questions_that_were_not_dropped() -> None:
    mixed = [replace(q, drop="blind" if i % 2 else None, answer="")
            for i, q in enumerate(questions())]  # fmt: skip
    reading = QuestionFile(layout="ours", questions=tuple(mixed))
    rows = [schemas.load(Video, row) for row in rows_of(reading, None, limit=8).to_pylist()]
    kept = [q for row in rows for q in row.questions or ()]
    assert [q.drop for q in kept] == [None] * 8
    assert all(q.answer == q.options[q.answer_index or 0] for q in kept)
    for limit in (0, -3):
        with pytest.raises(UserError, match="limit="):
            rows_of(reading, None, limit=limit)
    with pytest.raises(UserError, match="no questions"):
        rows_of(replace(reading, questions=tuple(q for q in mixed if q.drop)), None)


def test_a_limit_takes_whole_groups() -> None:
    some = [replace(q, group=f"g{i // 4}" if i < 16 else None) for i, q in enumerate(questions())]
    reading = QuestionFile(layout="ours", questions=tuple(some))
    for limit, seed in ((9, 0), (11, 1), (5, 2)):
        table = rows_of(reading, None, limit=limit, seed=seed)
        rows = [schemas.load(Video, row) for row in table.to_pylist()]
        sizes = Counter(q.group for row in rows for q in row.questions or ())
        assert {n for group, n in sizes.items() if group} <= {4}
        assert limit - 3 <= sizes.total() <= limit
    sets = replace(reading, questions=tuple(some[:16]))
    assert sum(len(row["questions"]) for row in rows_of(sets, None, limit=3).to_pylist()) == 3


def test_rows_of_a_table_that_match_no_file_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("cuts/a", "whole/a", "cuts/b"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / f"{name}.mp4").write_bytes(name.encode())
    named = [
        "cuts/a.mp4",
        "whole/a.mp4",
        "b.mp4",
        "gone.mp4",
        "x/gone.mp4",
        f"{tmp_path}/cuts/b.mp4",
    ]
    file = tmp_path / "q.csv"
    file.write_text("video,q,a0,a1,answer\n" + "".join(f"{v},Who?,x,y{v},0\n" for v in named))
    table = rows_of(read(file), str(tmp_path))
    uris = {row["video_id"]: row["uri"].removeprefix(f"{tmp_path}/") for row in table.to_pylist()}
    assert uris == {"cuts/a": "cuts/a.mp4", "whole/a": "whole/a.mp4", "b": "cuts/b.mp4", "gone": ""}
    said = capsys.readouterr().err
    assert (
        f"mustsee: videos='{tmp_path}' has no file of 1 of 4 videos, with 2 of 6 questions" in said
    )
    assert "mustsee: no video has this id or file name: x/gone.mp4 (2 questions)" in said


def test_videos_of_other_questions_are_refused(tmp_path: Path) -> None:
    sample_videos.write(tmp_path / "other.mp4", sample_videos.cuts([6]))
    release = tmp_path / "q.json"
    neptune.write(questions(4), release)
    with pytest.raises(UserError, match="no video for any question"):
        rows_of(neptune.read(release), str(tmp_path))


@pytest.mark.usefixtures("ray")
def test_captions_come_from_another_run_and_those_by_rules_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = questions(1)[0]
    release = tmp_path / "q.json"
    neptune.write([own], release)
    sent: list[str] = []

    def reply(payload: dict[str, Any]) -> str:
        sent.append(json.dumps(payload))
        return "A"

    rules = "The picture is bright, mostly white; the text on screen reads 'BREAD'."
    for name, text in (("model", "Ann cuts a loaf."), ("rules", rules)):
        made = tmp_path / name
        made.mkdir()
        video = Video(
            video_id="mine", uri=f"/films/{own.video_id}.mp4", captions=(Caption(1, text),)
        )
        pq.write_table(schemas.table([video], Video), made / "videos.parquet")
        with Loopback(reply=reply) as endpoint:
            code = run("evaluate", questions=release, videos=made, out=tmp_path / f"{name}-out",
                       answer="captions", llm="openai", base_url=endpoint.url, key_env="null",
                       **{"llm.model": "m"})  # fmt: skip
        assert code == 0
        assert text in sent.pop()
        said = capsys.readouterr()
        about = json.loads((tmp_path / f"{name}-out" / "results.json").read_text())["captions"]
        by_rules = "the captions of 1 of 1 videos were measured by rules (caption=pixels"
        assert (by_rules in said.err) == (name == "rules")
        assert (by_rules in " ".join(said.out.split())) == (name == "rules")
        assert about.startswith(by_rules) == (name == "rules")


@pytest.mark.usefixtures("ray")
def test_dialogue_that_a_release_brings_is_sent_with_the_frames(tmp_path: Path) -> None:
    """CinePile's subtitles have no times, and its videos none; Neptune's videos are transcribed."""
    own, other = questions(4)[0], questions(4)[2]
    for name in ("v0", "v1"):
        sample_videos.write(tmp_path / f"{name}.mp4", sample_videos.cuts([72]))
    (tmp_path / "v1.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\nBread is cut.\n")
    said = (Line(start=0.0, end=0.0, text="I love you."),)
    videos = [Video(video_id="v0", uri="v0.mp4", lines=said), Video(video_id="v1", uri="v1.mp4")]
    asked = [replace(own, recipe="cinepile"), replace(other, recipe="neptune")]
    ours.write(asked, tmp_path / "set", videos)
    sent: list[str] = []

    def reply(payload: dict[str, Any]) -> str:
        sent.append(json.dumps(payload))
        return "A"

    with Loopback(reply=reply) as endpoint:
        preset = ["+experiment=paper", "llm=openai", f"base_url={endpoint.url}", "key_env=null"]
        given = [f"questions={tmp_path}/set", f"videos={tmp_path}/*.mp4", f"out={tmp_path}/out"]
        assert build(compose("evaluate", [*given, *preset, "answer.see.frames=2"]))() == 0
    asked_of_both = [text for text in sent if "What about the" in text]
    assert len(asked_of_both) == 2
    assert sum("I love you." in text for text in asked_of_both) == 1
    assert sum("Bread is cut." in text for text in asked_of_both) == 1
    assert all("data:image/jpeg" in text for text in asked_of_both)


def test_the_file_of_a_video_is_not_taken_for_one_made_of_it(tmp_path: Path) -> None:
    sample_videos.write(tmp_path / "v0.mp4", sample_videos.cuts([6]))
    own, again = questions(2)
    made = Video(video_id="r0", uri="made/r0.mp4", source="v0", plan="{}", duration=6.0)
    asked = (replace(own, video_id="v0"), replace(again, video_id="r0"))
    reading = QuestionFile(layout="ours", questions=asked, videos=(made,))
    uris = {row["video_id"]: row["uri"] for row in rows_of(reading, str(tmp_path)).to_pylist()}
    assert uris == {"v0": str(tmp_path / "v0.mp4"), "r0": "made/r0.mp4"}


@pytest.mark.parametrize("named", [True, False])
def test_a_clip_with_its_own_file_is_decoded_from_the_start(tmp_path: Path, named: bool) -> None:
    clip = Video(video_id="v0", uri="", source="long", start=1200.0, end=1380.0)
    own_file = replace(clip, uri="v0.mp4", lines=(Line(start=1230.0, end=1232.0, text="C sits"),))
    assert [x.start for x in whole(own_file).lines or ()] == [30.0]
    egoschema.write([replace(questions(1)[0], question_id="v0")], tmp_path, [clip])
    (tmp_path / "videos").mkdir()
    video = sample_videos.write(tmp_path / "videos" / "v0.mp4", sample_videos.cuts([12]))
    table = rows_of(egoschema.read(tmp_path), str(video.parent) if named else None)
    (row,) = table.to_pylist()
    assert (row["uri"], row["start"], row["end"]) == (str(video), None, None)
    video.rename(video.with_name("long.mp4"))
    (row,) = rows_of(egoschema.read(tmp_path), str(video.parent)).to_pylist()
    assert (row["start"], row["end"]) == (1200.0, 1380.0)


@pytest.mark.usefixtures("ray")
def test_a_certificate_uses_a_vision_model(tmp_path: Path) -> None:
    sample_videos.write(tmp_path / "v0.mp4", sample_videos.cuts([12]))
    release = tmp_path / "q.json"
    neptune.write(questions(1), release)
    with pytest.raises(UserError, match="takes no images"):
        run("certificate", questions=release, videos=tmp_path, out=tmp_path / "out",
            llm="openai", **{"llm.looks": "false", "llm.key_env": "null"})  # fmt: skip


def three_questions(folder: Path) -> Path:
    """Write a table of three questions, of which one fires a gun."""
    file = folder / "q.csv"
    asked = ("Which colour is first?", "Who fires the gun?", "Which colour is last?")
    rows = "".join(f"v{n // 2},{text},red,lime,blue,gray,B\n" for n, text in enumerate(asked))
    file.write_text(f"video,question,A,B,C,D,answer\n{rows}")
    return file


def asked_of(server: Loopback, job: str, file: Path, out: Path, **more: object) -> int:
    answer = {"evaluate": "blind", "audit": "openai"}[job]
    return run(job, questions=file, out=out, answer=answer, llm="openai", **{
        "llm.model": "loopback", "base_url": server.url, "key_env": "null", **more})  # fmt: skip


def refuse_all(payload: Any) -> tuple[int, Any]:
    """A refusal to which no request can be adapted, of every call but the trial."""
    return 400, {"error": {"message": "the template of this model is broken", "code": 400}}


@pytest.mark.usefixtures("ray")
@pytest.mark.parametrize("job", ["evaluate", "audit"])
def test_a_job_whose_calls_all_fail_exits_3_with_the_reason(
    job: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = three_questions(tmp_path)
    more = {"encoder": "null"} if job == "audit" else {}
    with Loopback(refuse=refuse_all) as server:
        assert asked_of(server, job, file, tmp_path / "out", **more) == 3
        said = " ".join(capsys.readouterr().out.split())
        assert "too little was readable" in said
        assert "the template of this model is broken" in said
        # The same from the store.
        assert asked_of(server, job, file, tmp_path / "out", **more) == 3
        if job == "audit":
            assert "blind was not measured" in said
            record = json.loads((tmp_path / "out" / "audit.json").read_text())
            assert (record["clean"], record["fails"]["untested"]) == (0, 3)


def moderate(how: str) -> Callable[[Any], tuple[int, Any] | None]:
    """The moderation of an endpoint, which lets no gun be fired."""
    error = {"message": "your input was flagged", "code": 403, "metadata": {"reasons": ["x"]}}

    def refuse(payload: Any) -> tuple[int, Any] | None:
        if "fires the gun" not in json.dumps(payload):
            return None
        if how == "refusal":
            message = {"role": "assistant", "content": None, "refusal": "your input was flagged"}
            return 200, {"choices": [{"index": 0, "finish_reason": "stop", "message": message}]}
        return (403 if how == "status 403" else 200), {"error": error}

    return refuse


@pytest.mark.usefixtures("ray")
@pytest.mark.parametrize("how", ["status 403", "status 200", "refusal"])
def test_a_moderated_prompt_is_a_failed_call_and_the_others_are_scored(
    how: str, tmp_path: Path
) -> None:
    with Loopback(refuse=moderate(how), reply=lambda payload: "B") as server:
        assert asked_of(server, "evaluate", three_questions(tmp_path), tmp_path / "out") == 0
    (one,) = json.loads((tmp_path / "out" / "results.json").read_text())["results"]
    assert (one["asked"], one["failed"], one["weighted"]["value"]) == (3, 1, 1.0)
    replies = pq.read_table(tmp_path / "out" / "replies.parquet").to_pylist()
    (failed,) = [row["failed"] for row in replies if row["failed"]]
    assert "your input was flagged" in failed


@pytest.mark.usefixtures("ray")
@pytest.mark.parametrize("how", ["status 403", "refusal"])
def test_lost_answers_alone_are_asked_for_again_and_on_request(how: str, tmp_path: Path) -> None:
    file, out = three_questions(tmp_path), tmp_path / "out"

    def answer(payload: Any) -> str:
        return "B" if "last" not in json.dumps(payload) else "I cannot tell."

    with Loopback(refuse=moderate(how), reply=answer, payloads=[]) as server:
        assert server.payloads is not None
        assert asked_of(server, "evaluate", file, out) == 0
        server.refuse = lambda payload: None
        for retry, sent, failed in ((False, 0, 1), (True, 1, 0), (True, 0, 0), (False, 0, 0)):
            server.payloads.clear()
            assert asked_of(server, "evaluate", file, out, retry_problems=retry) == 0
            assert len(server.payloads) == sent
            assert all("fires the gun" in json.dumps(payload) for payload in server.payloads)
            (one,) = json.loads((out / "results.json").read_text())["results"]
            assert (one["asked"], one["failed"]) == (3, failed)
    replies = pq.read_table(out / "replies.parquet").to_pylist()
    assert [row["reply"] for row in replies if "cannot tell" in row["reply"]] == ["I cannot tell."]


@pytest.mark.usefixtures("ray")
def test_refused_parameters_are_left_out_once_and_recorded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refused = ["max_completion_tokens", "temperature", "seed"]
    file, store = three_questions(tmp_path), tmp_path / "store"
    with Loopback(
        refuse=refuse_in_words_of("mistral", refused), reply=lambda payload: "B"
    ) as server:
        assert asked_of(server, "evaluate", file, tmp_path / "a", store=store) == 0
        said = " ".join(capsys.readouterr().out.split())
        assert "refuses parameters: seed, temperature left out" in said
        assert server.counts["refused"] == 3
        assert server.counts["chat"] == 3
        more: dict[str, object] = {"store": store, "seed": 5}
        assert asked_of(server, "evaluate", file, tmp_path / "b", **more) == 0
        assert server.counts["refused"] == 3
    record = json.loads((tmp_path / "b" / "run.json").read_text())
    (changes,) = record["llm"]["left_out"].values()
    assert changes == {"max_completion_tokens": "max_tokens", "seed": "", "temperature": ""}
    question = next(iter(pq.read_table(tmp_path / "a" / "questions.parquet").to_pylist()))
    (verdict,) = question["verdicts"]
    assert json.loads(verdict["detail"])["left_out"] == ["seed", "temperature"]


@pytest.mark.usefixtures("ray")
def test_a_refused_key_ends_the_run_with_exit_code_2(tmp_path: Path) -> None:
    error = {"message": "Incorrect API key provided", "code": "invalid_api_key"}
    with Loopback(refuse=lambda payload: (401, {"error": error})) as server:
        for tries in (True, False):
            with pytest.raises(UserError, match="wants a key"):
                asked_of(server, "evaluate", three_questions(tmp_path), tmp_path / f"{tries}",
                         try_endpoints=tries)  # fmt: skip
