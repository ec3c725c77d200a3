"""The stand-in for a paid model, which sends and stores nothing and counts the calls, and the
simulated clock of these calls.
"""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from actors.calls.endpoint import Endpoint
from actors.calls.gateway import KIND, keep
from actors.hear.openai import Transcriptions
from actors.llm.openai import OpenAI
from mustsee.calls.llm import Asker, Message, Reply, Request
from mustsee.errors import BadRow
from mustsee.media.frames import encode
from mustsee.prompts import Prompts
from mustsee.recipes.neptune.ask import neptune
from mustsee.recipes.neptune.settings import NeptuneSettings
from mustsee.records import Question, Span
from mustsee.store import Store
from mustsee.verify.look_replies import CANNOT, Choice, look_form
from ray_jobs.runtime.rehearse import RuleStandIn, SimulatedClock, open_rules_session
from tests.support.neptune_video import sample_video

CLOSED = "http://127.0.0.1:9/v1"
PRICES = {"m": (1.0, 2.0)}
MODEL = OpenAI(model="m", base_url=CLOSED, key_env="NO_SUCH_KEY", prices=PRICES)


def test_parallel_calls_take_the_time_of_one_and_sequential_calls_add_up() -> None:
    clock = SimulatedClock()

    async def row() -> None:
        await asyncio.gather(*(clock.wait(2.0) for _ in range(20)))
        await asyncio.gather(clock.wait(1.0), clock.wait(5.0), chain())

    async def chain() -> None:
        await clock.wait(3.0)
        await asyncio.to_thread(time.sleep, 0.05)  # work on a thread takes no time of the calls
        await clock.wait(4.0)

    started = time.monotonic()
    asyncio.run(row())
    assert clock.now == pytest.approx(2 + 7)
    assert time.monotonic() - started < 5


def test_a_recipe_is_counted_without_a_key_or_an_endpoint(tmp_path: Path) -> None:
    session = open_rules_session(str(tmp_path), 2.0)
    asker = Asker(llm=session.context().llm(MODEL), prompts=Prompts())
    asked_row = asyncio.run(neptune(sample_video(), asker, NeptuneSettings()))
    assert asked_row.questions
    tally = session.coordinator.snapshot().llm.by_prompt
    assert tally["neptune/questions"].calls >= 1
    total = session.coordinator.snapshot().llm.total
    expected_usd = (
        total.tokens_in + 2 * total.tokens_out
    ) / 1e6  # tokens of a call are whole numbers
    assert total.usd == pytest.approx(expected_usd, rel=1e-3)
    assert total.tokens_in > 1000
    assert 2 * 3 <= session.clock.now <= 2 * total.calls
    assert list(tmp_path.iterdir()) == []


def test_stored_replies_are_not_counted(tmp_path: Path) -> None:
    request = Request(
        prompt="judge/equivalence", digest="", messages=(Message("user", "x"),), variables={}
    )
    store = Store(str(tmp_path))
    keep(store, request.key(MODEL.identity), Reply(text="said before", model="m"))
    session = open_rules_session(str(tmp_path), None)
    reply = asyncio.run(session.context().llm(MODEL).complete(request))
    assert (reply.text, reply.cached) == ("said before", True)
    total = session.coordinator.snapshot().llm.total
    assert (total.calls, total.cached) == (0, 1)
    assert [p.name for p in tmp_path.iterdir()] == [KIND]


def test_audio_is_paid_by_the_minute_and_counted_as_speech(tmp_path: Path) -> None:
    config = Transcriptions(
        endpoint=Endpoint(model="w", base_url=CLOSED, prices={"w": (0, 0)}), usd_per_minute=0.006
    )
    wav = bytes(44 + 2 * 16_000 * 60)
    request = Request(prompt="hear", digest="", messages=(Message("user", "", (wav,)),))
    reply = asyncio.run(RuleStandIn(config, SimulatedClock(), 1.0).complete(request))
    assert reply.usd == pytest.approx(0.006)
    assert 120 <= len(json.loads(reply.text)["text"].split()) <= 160


@pytest.mark.parametrize(
    ("cuts", "options", "choice"),
    [
        ((), ("red", "blue"), 1),
        ((Span(3.0, 5.0),), ("red", "blue"), CANNOT),  # its span was cut out
        ((Span(8.0, 9.0),), ("red", "blue"), 1),
        ((), (), 0),
        ((Span(3.0, 5.0),), (), CANNOT),
    ],
)
def test_a_question_that_the_rules_cannot_verify_counts_as_sound(
    cuts: tuple[Span, ...], options: tuple[str, ...], choice: Choice, tmp_path: Path
) -> None:
    session = open_rules_session(str(tmp_path), 2.0)
    llm = session.context().llm(MODEL)
    variables = {
        "question": "What does she feel?", "options": options, "cuts": cuts, "whole": True,
        "lines": (), "frames": (1.0,), "earlier_frames": (), "earlier_lines": (),
    }  # fmt: skip
    image = encode(np.zeros((8, 8, 3), np.uint8), 80)
    request = Request(
        prompt="filters/sight" if options else "filters/sight_open", digest="",
        messages=(Message("user", "look", (image,)),), variables=variables,
    )  # fmt: skip
    with pytest.raises(BadRow):
        asyncio.run(llm.complete(replace(request, seed=1)))
    session.questions["What does she feel?"] = Question(
        question_id="q", video_id="v", recipe="neptune", question="What does she feel?",
        question_type="Other", answer="blue", evidence=(Span(4.0, 6.0),),
    )  # fmt: skip
    look = look_form(len(options)).read(asyncio.run(llm.complete(request)).text)
    assert look.choice == choice
    assert look.evidence == (() if choice == CANNOT else (Span(4.0, 6.0),))
    assert options or look.words == ("CANNOT BE TOLD" if choice == CANNOT else "blue")
