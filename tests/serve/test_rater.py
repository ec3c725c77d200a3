"""The rater's page: access, escaping of texts, forms, and videos by byte ranges."""

from __future__ import annotations

import re
import sqlite3
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import av
import pytest
from starlette.testclient import TestClient

from mustsee.media.video import facts
from mustsee.raters.assignment import Training, items
from mustsee.raters.ballots import Ballots, hash_token
from mustsee.raters.form import FormField, FormStep, RatingForm
from mustsee.raters.results import results
from mustsee.records import Line, Question, Span, Video
from ray_jobs.cli.launch import build, compose
from serve.guard import RequestRate
from serve.rater import COOKIE, RatingDesk, create_app, csrf
from serve.rater_show import Tasks, clock, nearby
from serve.rater_video import ServedVideos, key_of
from tests.support import sample_videos

EVIL = "<script>alert(1)</script>"
GOOD = {"answer_right": "yes", "only_answer": "yes", "needs_video": "no"}


def form_named(name: str) -> RatingForm:
    return build(compose("rate", ["questions=x", f"form={name}"])).form


@cache
def video_bytes(name: str, tone: float) -> bytes:
    with TemporaryDirectory() as folder:
        path = sample_videos.write(Path(folder) / name, sample_videos.cuts([48]), tone=tone)
        return path.read_bytes()


class World:
    """A desk with two questions: on a video that browsers play, and on one that they do not.

    `drill`: makes the first question a training item.
    """

    def __init__(
        self,
        folder: Path,
        form: str | RatingForm = "verify",
        drill: Training | None = None,
        **more: Any,
    ) -> None:
        self.now = 1000.0
        playable, other = folder / "a.mp4", folder / "b.mkv"
        playable.write_bytes(video_bytes("a.mp4", tone=2.0))
        other.write_bytes(video_bytes("b.mkv", tone=1.5))
        evil = (Line(start=0.5, end=1.0, text=f"said {EVIL}"),)
        videos = [
            Video(video_id="a/../a", uri=str(playable), lines=evil),
            Video(video_id="b", uri=str(other), lines=()),
        ]
        questions = [
            Question(
                question_id=name, video_id=video, recipe="r", question=f"why {EVIL}?",
                question_type=EVIL, options=(EVIL, "b", "c"), answer_index=0, answer=EVIL,
                evidence=(Span(0.5, 1.0),),
            )
            for name, video in (("q1", "a/../a"), ("q2", "b"))
        ]  # fmt: skip
        self.form = form_named(form) if isinstance(form, str) else form
        self.ballots = Ballots(where=folder / "votes.sqlite")
        fresh = items(
            self.form, ["q2"] if drill else ["q1", "q2"], raters=2, people=list("abcde"),
            training=["q1"] if drill else (),
        )  # fmt: skip
        self.asked = self.ballots.open(fresh)
        by_id = {q.question_id: q for q in questions}
        self.desk = RatingDesk(
            tasks=Tasks(
                form=self.form,
                items={i.name: i for i in self.asked},
                questions=by_id,
                videos={v.video_id: v for v in videos},
                served=ServedVideos(videos, folder / "clips"),
                training={"q1": drill} if drill else {},
            ),
            ballots=self.ballots,
            results=lambda: results(
                self.form, by_id, self.asked, self.ballots.votes(), wanted=0.95
            ),
            admin=hash_token("admin"),
            clock=lambda: self.now,
            **more,
        )

    def client(self, name: str | None = None, *, senior: bool = False) -> TestClient:
        """A browser; of a rater, one that has followed the link."""
        made = TestClient(create_app(self.desk), base_url="http://127.0.0.1")
        if name is not None:
            token = self.ballots.invite(name, self.now + 100, senior=senior)
            reply = made.get(f"/r/{token}", follow_redirects=False)
            assert (reply.status_code, reply.headers["location"]) == (303, "/task")
            assert "HttpOnly" in reply.headers["set-cookie"]
        return made

    def reach(self, name: str, item: str) -> str:
        """The item in a rater's hands, what was dealt to them before it done."""
        for each in self.asked:
            if self.ballots.take(name, self.now) == item:
                break
            self.ballots.vote(each.name, name, {}, self.now)
        assert self.ballots.current_item(name, self.now) == item
        return item


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def form_of(client: TestClient, item: str = "q1/verify", **answers: str) -> dict[str, str]:
    return {"csrf": csrf(client.cookies[COOKIE]), "item": item, **answers}


def test_texts_are_escaped_and_foreign_scripts_are_forbidden(world: World) -> None:
    reply = world.client("ana").get("/task")
    assert reply.status_code == 200
    assert EVIL not in reply.text
    assert reply.text.count("&lt;script&gt;") >= 4  # question, type, option, transcript
    assert reply.text.count("<script") == 2  # the script of the page, and the data of the timeline
    assert "script-src 'self'" in reply.headers["content-security-policy"]
    assert reply.headers["referrer-policy"] == "no-referrer"
    assert reply.headers["cache-control"] == "no-store"


def test_every_imported_script_is_served(world: World) -> None:
    asked, client = {"rater.js"}, world.client()
    for _ in range(3):
        for name in sorted(asked):
            reply = client.get(f"/page/{name}")
            assert reply.status_code == 200, name
            asked |= set(re.findall(r'from "\./([^"]+)"', reply.text))
    assert asked == {"rater.js", "player.js", "video.js", "parts.js"}


def test_a_vote_counts_once_and_the_next_question_follows(world: World) -> None:
    ana = world.client("ana")
    assert "0 done, 2 to go" in ana.get("/task").text
    world.now += 12
    reply = ana.post("/vote", data=form_of(ana, **GOOD, comment=EVIL), follow_redirects=False)
    assert (reply.status_code, reply.headers["location"]) == (303, "/task")
    assert ana.post("/vote", data=form_of(ana, **GOOD), follow_redirects=False).status_code == 303
    (vote,) = world.ballots.votes()
    assert (vote.question_id, vote.seconds) == ("q1", 12.0)
    assert vote.answers == {**GOOD, "comment": EVIL}
    assert "1 done, 1 to go" in ana.get("/task").text
    sent = form_of(ana, "q2/verify", **GOOD)
    assert ana.post("/vote", data=sent, headers={"accept": "application/json"}).json()
    assert "Thank you" in ana.get("/task").text


def test_a_draft_survives_a_reload(world: World) -> None:
    ana = world.client("ana")
    ana.get("/task")
    draft = form_of(ana, answer_right="no", comment="half </textarea> done")
    assert ana.post("/draft", data=draft).status_code == 204
    text = " ".join(ana.get("/task").text.split())
    assert 'value="no" checked' in text
    assert "half &lt;/textarea&gt; done" in text


def test_missing_answers_are_reported_and_given_ones_are_kept(world: World) -> None:
    ana = world.client("ana")
    ana.get("/task")
    reply = ana.post("/vote", data=form_of(ana, answer_right="no"))
    assert reply.status_code == 422
    assert "is not answered" in reply.text
    assert 'value="no" checked' in " ".join(reply.text.split())
    assert not world.ballots.votes()


@pytest.mark.parametrize(
    ("path", "data", "status"),
    [
        ("/vote", {"csrf": "wrong", "item": "q1/verify", **GOOD}, 403),
        ("/vote", {"item": "q1/verify", **GOOD}, 403),
        ("/draft", {"item": "q1/verify", **GOOD}, 403),
        ("/vote", {"item": "q9", **GOOD}, 404),
        ("/vote", {"item": "../q1", **GOOD}, 404),
        ("/vote", {"item": "q2/verify", **GOOD}, 409),  # This item is not assigned to ana.
        ("/draft", {"item": "q2/verify", **GOOD}, 409),
        ("/vote", {"item": "q1/verify", **GOOD, "answer_right": "maybe"}, 422),
        ("/vote", {"item": "q1/verify", **GOOD, "rater": "ben"}, 422),
        ("/vote", {"item": "q1/verify", **GOOD, "comment": "x" * 4001}, 422),
        ("/draft", {"item": "q1/verify", "other": "1"}, 422),
        ("/draft", {"item": "q1/verify", "comment": "x" * 70_000}, 413),
        ("/vote", {"item": "q1/verify", "step": "-1", **GOOD}, 404),
        ("/vote", {"item": "q1/verify", "step": "9", **GOOD}, 409),
        ("/draft", {"item": "q1/verify", "step": "1", **GOOD}, 409),
        ("/vote", {"item": "q1/verify", **GOOD, "active": "nan", "other": "1"}, 422),
    ],
)
def test_hostile_forms_are_refused(
    world: World, path: str, data: dict[str, str], status: int
) -> None:
    ana = world.client("ana")
    ana.get("/task")
    sent = data if status == 403 else {"csrf": csrf(ana.cookies[COOKIE]), **data}
    assert ana.post(path, data=sent).status_code == status
    assert not world.ballots.votes()


@pytest.mark.parametrize("body", [b"\xff\xfe=1", b"a=%ff%fe", b"&".join([b"a=1"] * 300)])
def test_a_body_that_is_not_a_form_is_refused(world: World, body: bytes) -> None:
    kind = {"content-type": "application/x-www-form-urlencoded"}
    assert world.client("ana").post("/vote", content=body, headers=kind).status_code == 400


def test_a_form_sent_by_another_site_is_refused(world: World) -> None:
    ana = world.client("ana")
    ana.get("/task")
    sent = {"data": form_of(ana, **GOOD), "headers": {"sec-fetch-site": "cross-site"}}
    assert ana.post("/vote", **sent).status_code == 403


def test_only_invited_raters_have_access_until_the_link_expires(world: World) -> None:
    key = key_of("a/../a")
    stranger = world.client()
    for path in ("/", "/task", f"/video/{key}", f"/video/{key}/0", "/r/guess", "/results"):
        assert stranger.get(path).status_code == 401, path
    assert stranger.post("/vote", data={"item": "q1/verify"}).status_code == 401
    ana = world.client("ana")
    world.now += 100
    assert ana.get("/task").status_code == 401
    assert stranger.get("/task", headers={"host": "evil.example"}).status_code == 400


def test_an_unreachable_database_is_reported_as_not_saved(world: World) -> None:
    ana = world.client("ana")
    ana.get("/task")
    with sqlite3.connect(world.ballots.where) as base:
        base.execute("alter table lease rename to gone")
    reply = ana.post("/draft", data=form_of(ana, comment="half"))
    assert (reply.status_code, "not saved" in reply.text, "lease" in reply.text) == (
        503,
        True,
        False,
    )
    base.execute("alter table gone rename to lease")
    base.close()
    assert ana.post("/draft", data=form_of(ana, comment="half")).status_code == 204


def test_results_need_the_key(world: World) -> None:
    for name in ("ana", "ben"):
        rater = world.client(name)
        rater.get("/task")
        rater.post("/vote", data=form_of(rater, **GOOD))
        assert rater.get("/results").status_code == 401
    reply = world.client().get("/results", headers={"authorization": "Bearer admin"})
    assert (reply.json()["n"], reply.json()["right"], reply.json()["by"]) == (1, 1, "people")
    wrong = {"authorization": "Bearer ädmin".encode()}
    assert world.client().get("/results", headers=wrong).status_code == 401


def test_the_dashboard_shows_progress_and_who_has_what(world: World) -> None:
    ana, ben = world.client("ana"), world.client("ben")
    ana.get("/task")
    ana.post("/vote", data=form_of(ana, **GOOD))
    world.now += 60
    ben.get("/task")
    world.now += 5
    for refused in ("/board", "/board/wrong", "/board/%C3%A4"):
        assert ana.get(refused).status_code == 401
    reply = (owner := world.client()).get("/board/admin", follow_redirects=False)
    assert (reply.status_code, reply.headers["location"]) == (303, "/board")
    assert "HttpOnly" in reply.headers["set-cookie"]
    page = owner.get("/board").text
    assert EVIL not in page
    rows = {
        re.sub(r"<[^>]+>", "", cells[0]): [re.sub(r"<[^>]+>", "", c).strip() for c in cells[1:]]
        for row in re.findall(r"<tr>(.*?)</tr>", page, re.DOTALL)
        if (cells := re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL))
    }
    assert rows["verify"] == ["1 of 4", "0 of 2"]
    assert rows["ana"][:4] == ["1", "0 s", "–", "65 s ago"]
    assert rows["ana"][4].endswith("65 s ago")  # the vote opened the next question
    assert rows["ben"][:4] == ["0", "–", "–", "–"]
    assert rows["ben"][4].startswith("why &lt;script&gt;")
    assert rows["ben"][4].endswith("5 s ago")
    assert "No question has two votes yet." in page


def test_videos_come_by_key_and_by_range(world: World) -> None:
    ana, key = world.client("ana"), key_of("a/../a")
    assert ana.get(f"/video/{key}").status_code == 404  # She has no current item.
    ana.get("/task")
    whole = ana.get(f"/video/{key}")
    assert whole.headers["accept-ranges"] == "bytes"
    part = ana.get(f"/video/{key}", headers={"range": "bytes=10-19"})
    assert (part.status_code, part.content) == (206, whole.content[10:20])
    for path in ("/video/a.mp4", "/video/..%2Fvotes.sqlite", f"/video/{key_of('b')}", "/page/x.py"):
        assert ana.get(path).status_code == 404, path
    assert ana.get(f"/video/{key}/0").status_code == 404  # It is not served in clips.


def test_videos_that_browsers_do_not_play_come_in_clips(world: World, tmp_path: Path) -> None:
    ana, key = world.client("ana"), key_of("b")
    ana.get("/task")
    assert ana.get(f"/video/{key}/0").status_code == 404  # It belongs to the next question.
    ana.post("/vote", data=form_of(ana, **GOOD))
    reply = ana.get(f"/video/{key}/0")
    assert reply.status_code == 200
    path = tmp_path / "clip.mp4"
    path.write_bytes(reply.content)
    about = facts(str(path))
    assert about.duration == pytest.approx(2.0, abs=0.1)
    with av.open(str(path)) as container:
        names = [stream.codec_context.codec.canonical_name for stream in container.streams]
    assert names == ["h264", "aac"]
    assert ana.get(f"/video/{key}/1").status_code == 404  # It begins after the end of the video.
    assert ana.get(f"/video/{key}/0", headers={"range": "bytes=0-9"}).status_code == 206


def test_a_blind_guess_shows_no_video_and_cannot_be_changed(tmp_path: Path) -> None:
    benchmark = form_named("human_benchmark")
    guess = FormStep(
        note="You have not seen the video. Which answer would you guess?",
        shows=("question", "options"),
        fields=(FormField(name="blind", ask="Your guess", kind="option"),),
    )
    guessed = (replace(r, steps=(guess, *r.steps)) for r in benchmark.rounds)
    world = World(tmp_path, replace(benchmark, rounds=tuple(guessed)))
    name = next(i.rater for i in world.asked if i.name == "q1/three_minutes") or ""
    ana, key = world.client(name), key_of("a/../a")
    item = world.reach(name, "q1/three_minutes")
    page = ana.get("/task").text
    assert "Your guess" in page
    assert "<video" not in page
    assert "said" not in page
    assert "(given as the answer)" not in page
    assert ana.get(f"/video/{key}").status_code == 404
    world.now += 20
    ana.post("/vote", data=form_of(ana, item, step="0", blind="2"))
    page = ana.get("/task").text
    assert "<video" in page
    assert 'data-left="160.0"' in page
    assert ana.get(f"/video/{key}").status_code == 200
    ana.post("/vote", data=form_of(ana, item, step="0", blind="0"))  # The same form is sent again.
    world.now += 30
    ana.post("/vote", data=form_of(ana, item, step="1", answer="1", active="7.5"))
    vote = next(v for v in world.ballots.votes() if v.round == "three_minutes")
    assert vote.answers == {"blind": 2, "answer": 1}
    assert (vote.seconds, vote.active) == (50.0, 7.5)
    assert ana.get(f"/video/{key}").status_code == 404


def test_the_video_is_hidden_once_the_question_is_shown(tmp_path: Path) -> None:
    world = World(tmp_path, "human_benchmark")
    for each in ("video_then_text", "frames"):
        made = next(i for i in world.asked if i.name == f"q1/{each}")
        rater, key = made.rater or "", key_of("a/../a")
        ana = world.client(rater)
        world.reach(rater, made.name)
        page = ana.get("/task").text
        if each == "video_then_text":
            assert EVIL.replace("<", "&lt;").replace(">", "&gt;") not in page
            assert ana.get(f"/video/{key}").status_code == 200
            ana.post("/vote", data=form_of(ana, made.name, step="0"))
            assert "why &lt;script&gt;" in ana.get("/task").text
            assert ana.get(f"/video/{key}").status_code == 404
        else:
            ana.post("/vote", data=form_of(ana, made.name, step="0", blind="0"))
            assert 'data-whole="0"' in ana.get("/task").text
            assert ana.get(f"/video/{key}").status_code == 404  # not at its full frame rate
            path = tmp_path / "frames.mp4"
            path.write_bytes(ana.get(f"/video/{key}/0").content)
            assert facts(str(path)).fps == 1


def test_training_answers_are_explained_and_can_exclude_a_rater(tmp_path: Path) -> None:
    drill = Training(answers={"answer_right": "no"}, why=f"It is {EVIL}.")
    world = World(tmp_path, drill=drill, trained=0.5)
    for name, said in (("ana", "yes"), ("ben", "no")):
        rater = world.client(name)
        assert "Practice" in rater.get("/task").text
        assert rater.get("/feedback/q1").status_code == 404
        sent = form_of(rater, "q1/training", **{**GOOD, "answer_right": said})
        reply = rater.post("/vote", data=sent)
        assert reply.url.path == "/feedback/q1"
        assert ("Some answers differ" in reply.text) == (name == "ana")
        assert EVIL not in reply.text
        assert ("Practice is over" in rater.get("/task").text) == (name == "ana")
    about = world.desk.results()
    assert (about.votes, about.work["ana"].trained, about.work["ben"].right) == (0, 1, 1)


def test_only_a_senior_rater_sees_the_answers_of_others(tmp_path: Path) -> None:
    world = World(tmp_path, "neptune")
    good = {"valuable": ["clear", "right", "video", "long"], "needs": "both"}
    for name in ("ana", "ben"):
        rater = world.client(name)
        page = rater.get("/task").text
        assert "The raters' answers" not in page
        asked = world.ballots.current_item(name, world.now)
        sent = {**form_of(rater, asked or "", question="why, then?", answer=EVIL, decoys="b\nc"),
                **good}  # fmt: skip
        assert rater.post("/vote", data=sent, follow_redirects=False).status_code == 303
    assert [v.answers for v in world.ballots.votes()] == [{**good, "question": "why, then?"}] * 2
    page = world.client("zoe", senior=True).get("/task").text
    assert page.count("why, then?") == 4  # shown twice, and offered twice
    assert "ana" not in page


def test_too_many_requests_are_refused(tmp_path: Path) -> None:
    world = World(tmp_path, rate=RequestRate(rater=3, stranger=2))
    ana, ben, stranger = world.client("ana"), world.client("ben"), world.client()
    assert [ana.get("/task").status_code for _ in range(4)] == [200, 200, 200, 429]
    assert [stranger.get("/task").status_code for _ in range(3)] == [401, 401, 429]
    assert ben.get("/task").status_code == 200
    world.now += 59  # Another minute of the clock, but not yet 60 s.
    assert ana.get("/task").status_code == 429
    world.now += 1
    assert ana.get("/task").status_code == 200


def test_the_transcript_is_cut_around_the_evidence() -> None:
    lines = tuple(Line(start=float(t), end=t + 1.0, text=str(t)) for t in range(0, 1000, 10))
    video = Video(video_id="v", uri="", lines=lines)
    near = nearby(video, [Span(500, 510), Span(520, 521)])
    assert (near[0].start, near[-1].start) == (440, 580)
    assert len(nearby(replace(video, lines=None), [])) == 0


def test_times_are_shown_as_on_a_clock() -> None:
    assert [clock(s) for s in (0.04, 61.25, 59.96, 3723.4)] == [
        "0:00.0", "1:01.2", "1:00.0", "1:02:03.4",
    ]  # fmt: skip
