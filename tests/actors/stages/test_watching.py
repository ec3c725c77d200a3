"""Videos shown to models that take them: the right clips, in the right order, within limits."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from actors.answer.llm import AnswerLlm
from actors.llm.openai import OpenAI
from actors.llm.scripted import ScriptedModel
from actors.part import RunContext, video_input_of
from actors.stages.ask import Ask
from actors.stages.vet import Vet
from loopback.endpoint import Loopback
from loopback.replies import videos
from mustsee.calls.llm import Message, Request, VideoClip, VideoInput
from mustsee.errors import UserError
from mustsee.evaluate.answers import answers
from mustsee.files.store import Store, digest, identity
from mustsee.media.clips import copy_span
from mustsee.recipes.neptune.settings import WholeSettings
from mustsee.recipes.neptune.whole import whole
from mustsee.records import Line, Question, Span, Video
from mustsee.verify.conditions.seen import Condition
from mustsee.verify.conditions.video_frames import KIND, VideoPreparer
from mustsee.verify.look_replies import OPEN, RIGHT, WRONG, OptionVerdict, say
from mustsee.verify.sight import Sight
from tests.support import neptune_video
from tests.support.behind import Behind
from tests.support.coloured import SECONDS, coloured, row, seconds_in

pytestmark = pytest.mark.usefixtures("key")
OPTIONS = ("red", "green", "blue", "yellow", "purple")
LINES = (Line(start=4.5, end=5.5, text="Here it goes."),)


@pytest.fixture(scope="module")
def video(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return coloured(tmp_path_factory.mktemp("videos") / "a video.mp4")


def model(server: Loopback, watches: bool = True, **video: Any) -> OpenAI:
    take = VideoInput(**{"fps": 4.0, "longest": 96, **video})
    return OpenAI(model="m", base_url=server.url, watches=watches, video=take)


def context(tmp_path: Path) -> RunContext:
    return RunContext(
        store=Store(str(tmp_path)), llm=lambda config: config.open(), count=lambda name, n: None
    )


def question(**changes: Any) -> Question:
    base = Question(
        question_id="q", video_id="v", recipe="neptune", question="Which colour?",
        question_type="Other", options=OPTIONS, answer_index=0, answer="red",
        evidence=(Span(4.0, 6.0), Span(9.0, 10.0)),
    )  # fmt: skip
    return replace(base, **changes)


def shown(payload: Mapping[str, Any]) -> list[list[int]]:
    """The seconds of the test video that each received video shows."""
    return [seconds_in(one.colours) for one in videos(payload)]


def answered(server: Loopback, video: Path, tmp_path: Path, see: Condition, **limits: Any) -> Any:
    part = AnswerLlm(llm=model(server, **limits), see=see)
    asked_row = row(video, questions=(question(),), lines=LINES)
    (answered_question,) = asyncio.run(part.open(context(tmp_path))(asked_row)).questions or ()  # type: ignore[arg-type]
    assert server.payloads
    return answers(answered_question)[0], server.payloads[-1]


@pytest.mark.parametrize(
    ("condition", "seconds"),
    [
        ("whole", [list(range(SECONDS))]),
        ("evidence", [[4, 5], [9]]),
        ("without_evidence", [[0, 1, 2, 3], [6, 7, 8], [10, 11]]),
    ],
)
def test_an_answerer_is_shown_the_clips_of_its_condition(
    condition: Any, seconds: list[list[int]], video: Path, tmp_path: Path
) -> None:
    with Loopback(reply=lambda payload: "A", payloads=[]) as server:
        verdict, payload = answered(
            server, video, tmp_path, Condition(condition=condition, frames=4)
        )
        assert verdict.letter == "A"
        kinds = [part["type"] for part in payload["messages"][-1]["content"]]
        assert kinds == [*["video_url"] * len(seconds), "text"]
        shown_seconds = shown(payload)
        if condition == "evidence":  # a copy may end a few frames late
            shown_seconds = [
                one[: len(expected)] for one, expected in zip(shown_seconds, seconds, strict=True)
            ]
        assert shown_seconds == seconds
        assert all(one.loud is None for one in videos(payload))  # the transcript is not shown


def test_clips_have_sound_if_the_transcript_is_shown(video: Path, tmp_path: Path) -> None:
    with Loopback(reply=lambda payload: "A", payloads=[]) as server:
        see = Condition(frames=4, transcript=True)
        _, payload = answered(server, video, tmp_path, see)
    (one,) = videos(payload)
    assert one.loud == pytest.approx(0.35, abs=0.05)


@pytest.mark.parametrize(
    ("see", "limits"),
    [
        ({"condition": "one_frame"}, {}),
        ({"condition": "frames"}, {}),
        ({"condition": "shuffled"}, {}),
        ({}, {"max_seconds": 11.0}),
        ({}, {"max_mb": 0.002}),
        ({"condition": "evidence"}, {"max_parts": 1}),
    ],
)
def test_frames_replace_videos_that_the_model_does_not_take(
    see: dict[str, Any], limits: dict[str, Any], video: Path, tmp_path: Path
) -> None:
    with Loopback(reply=lambda payload: "A", payloads=[]) as server:
        _, payload = answered(server, video, tmp_path, Condition(**{"frames": 4, **see}), **limits)
    kinds = {part["type"] for part in payload["messages"][-1]["content"]}
    assert kinds == {"image_url", "text"}


def test_a_video_that_is_too_large_is_recoded_once_and_stored(video: Path, tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    whole = copy_span(str(video), Span(0.0, 12.0), sound=False, max_bytes=10**7)
    assert whole is not None
    room = len(whole.mp4) / 2e6
    watch = VideoPreparer(VideoInput(fps=1.0, longest=64, max_mb=room), store)
    (first,) = watch.clips(row(video), (Span(0.0, 12.0),), sound=False, exact=False) or ()
    assert len(first.mp4) <= room * 1e6
    assert store.get(KIND, first.digest) == first.mp4
    store.put(KIND, first.digest, b"as it is kept")
    (second_clip,) = watch.clips(row(video), (Span(0.0, 12.0),), sound=False, exact=False) or ()
    assert second_clip.mp4 == b"as it is kept"


def test_a_video_at_an_address_is_not_sent(video: Path, tmp_path: Path) -> None:
    see = Condition(frames=4, transcript=True)
    with Loopback(reply=lambda payload: "A", payloads=[]) as server:
        _, payload = answered(server, video, tmp_path, see, address="https://videos.example/x/")
        (part, _) = payload["messages"][-1]["content"]
        assert part["video_url"]["url"] == "https://videos.example/x/a%20video.mp4"
        _, silent = answered(server, video, tmp_path, Condition(frames=4), address="https://x")
    assert videos(silent)  # sent without sound, as speech is not shown


def test_an_endpoint_that_ignores_the_video_ends_the_run(video: Path, tmp_path: Path) -> None:
    """Only the count of tokens shows that such an endpoint ignored the video."""
    clip = VideoClip(span=Span(0.0, 60.0), digest="x", mp4=video.read_bytes())
    request = Request(prompt="x", digest="", messages=(Message("user", "What?", clips=(clip,)),))
    body = {"choices": [{"message": {"content": "A"}, "finish_reason": "stop"}]}
    with Loopback() as server:
        chat = model(server).open()
        with pytest.raises(UserError, match="seems to ignore the video"):
            chat.read(request, {**body, "usage": {"prompt_tokens": 1, "completion_tokens": 1}})
        counted = chat.read(
            request, {**body, "usage": {"prompt_tokens": 6000, "completion_tokens": 1}}
        )
        assert counted.text == "A"
        assert model(server).estimate(request).tokens_in == pytest.approx(60 * 290, abs=10)


def test_gemini_takes_a_video_as_an_image(video: Path, tmp_path: Path) -> None:
    with Loopback(reply=lambda payload: "A", payloads=[]) as server:
        _, payload = answered(server, video, tmp_path, Condition(frames=4), part="image_url")
    (part, _) = payload["messages"][-1]["content"]
    assert part["image_url"]["url"].startswith("data:video/mp4;base64,")
    assert shown(payload) == [list(range(SECONDS))]


def verifier(reply: Callable[[list[list[int]]], str]) -> Callable[[Mapping[str, Any]], str]:
    return lambda payload: reply(shown(payload))


def test_sight_shows_the_video_without_the_evidence_and_then_the_evidence(
    video: Path, tmp_path: Path
) -> None:
    """The answer is shown only in seconds 5 and 6, which the verifier finds by its clips. No clip
    is new in a turn if it was sent in an earlier one.
    """

    def reply(payload: Mapping[str, Any]) -> str:
        seconds = {second for one in shown(payload) for second in one}
        right = OptionVerdict(RIGHT, (Span(5.0, 7.0),))
        other = OptionVerdict(WRONG if {5, 6} <= seconds else OPEN)
        options = _options(json.dumps(payload["messages"][-1]))
        fits = [o if {5, 6} <= seconds else "" for o in options.values()]
        return say([right if o == "red" else other for o in fits], "red")

    with Loopback(reply=reply, payloads=[]) as server:
        llm = model(server)
        vet = Vet(filters={"sight": Sight()}, verifier=llm)
        asked_row = row(video, questions=(question(evidence=(Span(5.0, 7.0),)),), lines=LINES)
        (result,) = asyncio.run(vet.open(context(tmp_path))(asked_row)).questions or ()  # type: ignore[arg-type]
        assert server.payloads
        sent = [shown(payload) for payload in server.payloads]
        texts = [json.dumps(payload["messages"][-1]) for payload in server.payloads]
    assert result.drop is None
    assert result.metrics["sight_needed"] == 1.0
    details = [json.loads(v.detail) for v in result.verdicts]
    assert [d["condition"] for d in details] == ["without_evidence", "evidence"]
    assert [d["frames"] for d in details] == [[]] * 2
    rest = [[0, 1, 2], [9, 10, 11]]  # two seconds are cut on both sides
    assert sent[0] == rest
    assert sent[1][:2] == rest
    assert sent[1][2][:6] == [3, 4, 5, 6, 7, 8]  # all that was cut, in a turn of its own
    assert details[1]["clips"] == [[3.0, pytest.approx(9.0, abs=0.2)]]
    assert "More of the same video" not in texts[0]
    assert "More of the same video" in texts[1]


def _options(text: str) -> dict[str, str]:
    lines = text.split("\\n")
    return {x[0]: x[3:] for x in lines if x[1:3] == ". " and x[3:] in OPTIONS}


def test_taking_videos_is_part_of_the_key_and_limits_are_checked() -> None:
    plain = OpenAI(model="m")
    video = replace(plain, watches=True)
    assert video_input_of(plain) is None
    assert video_input_of(video) == VideoPreparer(VideoInput())
    assert plain.identity == video.identity  # stored replies to texts stay valid
    parts = [identity(Vet(filters={"sight": Sight()}, verifier=llm)) for llm in (plain, video)]
    assert parts[0] != parts[1]
    mine, other = (
        Request(prompt="x", digest="", messages=(Message("user", "?", clips=clips),)).key("m")
        for clips in ((), (VideoClip(span=Span(0, 1), digest="a"),))
    )
    assert mine != other
    assert digest(VideoInput()) != digest(VideoInput(max_mb=1))
    with pytest.raises(UserError, match=r"video\.max_mb"):
        VideoInput(max_mb=0)


def test_a_clip_of_a_longer_video_is_extracted(video: Path, tmp_path: Path) -> None:
    part_of = Video(video_id="c", uri=str(video), start=6.0, end=9.0, questions=(question(),))
    with Loopback(reply=lambda payload: "A", payloads=[]) as server:
        part = AnswerLlm(llm=model(server), see=Condition(frames=2))
        asyncio.run(part.open(context(tmp_path))(part_of))  # type: ignore[arg-type]
        assert server.payloads
        assert shown(server.payloads[-1])[0][:3] == [6, 7, 8]


def annotated(video: Path) -> Video:
    """The video with the columns of a small hand-made video, within twelve seconds."""
    hand = neptune_video.sample_video()
    small = SECONDS / 80.0

    def moved(item: Any) -> Any:
        names = {"start", "end", "time"} & set(vars(item))
        return replace(item, **{n: getattr(item, n) and getattr(item, n) * small for n in names})

    columns = {
        name: tuple(map(moved, getattr(hand, name) or ()))
        for name in ("shots", "captions", "texts", "lines")
    }
    return row(video, digest="video", **columns)


def test_the_writer_behind_an_endpoint_sees_the_video_and_writes_the_same(
    video: Path, tmp_path: Path
) -> None:
    """The scripted model at the endpoint, against the same one run here with frames: both write
    from transcript and on-screen text, and so the same.
    """
    settings = WholeSettings(see=Condition(fps=0.5, longest=96, transcript=True), spare=1.0)
    plain = Ask(recipe=whole, settings=settings, llm=ScriptedModel())
    here = asyncio.run(plain.open(context(tmp_path / "here"))(annotated(video)))  # type: ignore[arg-type]
    behind = Behind()
    with Loopback(reply=behind.reply, payloads=[]) as server:
        llm = replace(model(server), prices={"m": [0.3, 2.5]})
        there = asyncio.run(
            replace(plain, llm=llm).open(behind.context(str(tmp_path / "there")))(annotated(video))  # type: ignore[arg-type]
        )
        (payload,) = server.payloads or ()
    assert shown(payload) == [list(range(SECONDS))]
    question_lists = [
        [replace(q, provenance=None) for q in v.questions or ()] for v in (here, there)
    ]
    assert question_lists[0] == question_lists[1] != []
    assert all(q.provenance and "openai m" in q.provenance.llm for q in there.questions or ())
    total = behind.coordinator.snapshot().llm.total
    assert total.calls == 1
    system, user = payload["messages"]
    text = len(system["content"]) + sum(len(str(p.get("text", ""))) for p in user["content"])
    assert total.tokens_in == pytest.approx(SECONDS * 290 + text / 4, rel=0.1)
