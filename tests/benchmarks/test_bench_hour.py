"""The benchmark of an hour: a video repeated with its sound, and a model that sends its replies."""

from __future__ import annotations

import asyncio
from pathlib import Path

import av
import pytest

from actors.llm.scripted import fill_reply
from benchmarks.hour import ScriptedAtEndpoint
from benchmarks.memory import repeat
from loopback.endpoint import Loopback
from mustsee.calls.llm import Message, Request
from tests.support.every_prompt import calls

VIDEO, SECONDS = "examples/videos/birdhouse.mp4", 150.0  # of 64.7 s


def test_a_repeated_video_has_picture_and_sound_to_its_end(tmp_path: Path) -> None:
    repeat(VIDEO, target := str(tmp_path / "long.mp4"), SECONDS)
    with av.open(VIDEO) as once, av.open(target) as long:
        assert [s.type for s in long.streams] == [s.type for s in once.streams]
        shown = [frame.time for frame in long.decode(video=0)]
        rate = float(once.streams.video[0].average_rate or 0)
    assert shown == sorted(set(shown))
    assert len(shown) == pytest.approx(SECONDS * rate, abs=2)
    with av.open(target) as long:
        heard = [frame.time for frame in long.decode(audio=0)]
    assert heard[-1] == pytest.approx(SECONDS, abs=0.1)


def test_its_model_gets_back_what_it_sent_and_pays_for_it() -> None:
    call = calls()["facts/extract"]
    variables = call.variables()
    request = Request(
        prompt="facts/extract", digest="", messages=(Message("user", "List what is there."),),
        variables=variables, form=call.form.schema,
    )  # fmt: skip

    async def ask(url: str) -> tuple[str, float]:
        reply = await ScriptedAtEndpoint(model="gpt-6-luna", url=url).open().complete(request)
        return reply.text, reply.usd

    with Loopback(reply=lambda payload: payload["scripted"]) as server:
        text, usd = asyncio.run(ask(server.url))
    assert text == fill_reply(request)
    assert call.form.read(text)
    assert usd > 0
