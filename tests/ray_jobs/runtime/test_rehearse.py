"""The stand-in for a paid model, which sends and stores nothing and counts the calls, and the
simulated clock of these calls.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from actors.calls.endpoint import Endpoint
from actors.calls.gateway import KIND, keep
from actors.engine.stage import Stage
from actors.hear.openai import Transcriptions
from actors.llm.openai import OpenAI, image_size
from mustsee.calls.llm import Asker, Message, Reply, Request
from mustsee.errors import BadRow
from mustsee.facts.forms.after import AfterForm
from mustsee.facts.forms.at import AtForm
from mustsee.facts.recipe import ask_facts
from mustsee.facts.settings import DeepRules, FactSettings
from mustsee.facts.work import Roles
from mustsee.files.store import Store
from mustsee.media.frames import encode
from mustsee.prompts import Prompts
from mustsee.recipes.neptune.ask import neptune
from mustsee.recipes.neptune.settings import NeptuneSettings
from mustsee.records import Question, Span, Video
from mustsee.verify.conditions.seen import Condition
from mustsee.verify.conditions.video_frames import CountedFrames, VideoFrames
from mustsee.verify.look_replies import CANNOT, Choice, look_form
from mustsee.verify.repair import FailedWording, repair_form
from ray_jobs.cli.launch import build, compose
from ray_jobs.runtime.rehearse import Rehearsal, SimulatedClock, StandIn, open_scripted_session
from tests.support.neptune_video import sample_video

EXAMPLES = Path(__file__).parents[3] / "examples/videos"
CLOSED = "http://127.0.0.1:9/v1"
PRICES = {"m": (1.0, 2.0)}
WORDS = "these words stand here that other texts with such letters come from them alone"
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
    session = open_scripted_session(str(tmp_path), 2.0)
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
    session = open_scripted_session(str(tmp_path), None)
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
    reply = asyncio.run(StandIn(config, SimulatedClock(), 1.0).complete(request))
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
def test_a_known_question_counts_as_sound(
    cuts: tuple[Span, ...], options: tuple[str, ...], choice: Choice, tmp_path: Path
) -> None:
    session = open_scripted_session(str(tmp_path), 2.0)
    llm = session.context().llm(MODEL)
    variables = {
        "question": "What does she feel?", "options": options, "cuts": cuts, "whole": True,
        "lines": (), "frames": (1.0,), "earlier_frames": (), "earlier_lines": (),
    }  # fmt: skip
    image = encode(np.zeros((8, 8, 3), np.uint8), 80)
    request = Request(
        prompt="filters/sight" if options else "filters/sight_open", digest="",
        messages=(Message("user", "look", (image,)),), variables=variables,
        form=look_form(len(options)).schema,
    )  # fmt: skip
    session.questions["What does she feel?"] = Question(
        question_id="q", video_id="v", recipe="neptune", question="What does she feel?",
        question_type="Other", answer="blue", evidence=(Span(4.0, 6.0),),
    )  # fmt: skip
    look = look_form(len(options)).read(asyncio.run(llm.complete(request)).text)
    assert look.choice == choice
    assert look.evidence == (() if choice == CANNOT else (Span(4.0, 6.0),))
    assert options or look.words == ("CANNOT BE TOLD" if choice == CANNOT else "blue")


class Frames:
    """No frames."""

    async def jpegs(self, times: Sequence[float], see: Any) -> tuple[bytes, ...]:
        return ()


def embed(texts: Sequence[str]) -> NDArray[np.float32]:
    return np.random.default_rng(0).normal(size=(len(texts), 8)).astype(np.float32)


def test_facts_claims_and_open_questions_are_counted_as_many_as_models_write(
    tmp_path: Path,
) -> None:
    session = open_scripted_session(str(tmp_path), 1.0)
    asker = Asker(llm=session.context().llm(MODEL), prompts=Prompts())
    roles = Roles(writer=asker, verifier=asker, guesser=asker)
    forms = {"after": AfterForm(), "holds": AtForm(of="object"), "where": AtForm(of="place")}
    frames: Any = Frames()
    video = Video(video_id="v", uri="v.mp4", duration=120.0)
    counts = Counter[str]()

    def count(name: str, n: int) -> None:
        counts[name] += n

    settings = FactSettings(forms=forms, deep=DeepRules(open_share=2 / 3))
    done = asyncio.run(ask_facts(video, roles, frames, embed, settings, count))
    assert done.questions
    assert all(fact.drop is None for fact in done.facts or ())
    calls = {name: c.calls for name, c in session.coordinator.snapshot().llm.by_prompt.items()}
    assert calls["facts/look"] == 14  # moments of less than nine seconds
    assert calls["facts/rank"] >= 2
    asked = [q for q in done.questions if q.drop is None]
    deep = [q for q in asked if q.points]
    assert settings.deep is not None
    assert len(deep) == settings.deep.open_limit(120.0)
    assert all(claim.drop is None for claim in done.claims or ())
    assert all(q.question.startswith("Tell me: ") for q in asked if not q.points)
    assert len(deep) < len(asked)
    drafts = calls["facts/answer_blind"] - 1  # each alone, and all in view at once
    assert drafts >= len(deep)
    assert calls["facts/grade_answers"] == drafts
    assert {calls[f"facts/{name}"] for name in ("claims", "word", "read_back")} == {1}
    assert (calls["facts/questions"], calls["facts/edit"]) == (1, 2), "mended, and read again"
    assert not {name: n for name, n in counts.items() if "could not be read" in name and n}
    again = asyncio.run(ask_facts(video, roles, frames, embed, settings, count))
    assert again == done
    repeated = {name: c.calls for name, c in session.coordinator.snapshot().llm.by_prompt.items()}
    assert repeated == calls, "all replies are in the store"


def test_as_many_questions_as_are_asked_for_are_sound(tmp_path: Path) -> None:
    session = open_scripted_session(str(tmp_path), 1.0)
    asker = Asker(llm=session.context().llm(MODEL), prompts=Prompts())
    done = asyncio.run(neptune(sample_video(), asker, NeptuneSettings(questions=12, spare=2.5)))
    questions = done.questions or ()
    assert len(questions) >= 30
    assert sum(q.drop is None for q in questions) >= 20
    assert {len(q.options) for q in questions} == {5}
    assert sum(len(q.evidence) == 2 for q in questions) >= 15


def test_a_repaired_question_is_known_with_its_new_answer() -> None:
    question = Question(
        question_id="q", video_id="v", recipe="neptune", question="What does she feel?",
        question_type="Other", answer="joy", evidence=(Span(4.0, 6.0), Span(90.0, 95.0)),
    )  # fmt: skip
    now = FailedWording(
        question=question.question, answer="joy", wrong=tuple("abcd"), reason="blind",
        fault="guessed", replies=(),
    )  # fmt: skip
    form = repair_form(4, 60.0)
    request = Request(
        prompt="filters/repair", digest="", messages=(Message("user", WORDS),),
        variables={"question": question, "now": now}, form=form.schema,
    )  # fmt: skip
    stand_in = StandIn(MODEL, SimulatedClock(), 1.0)
    draft = form.read(asyncio.run(stand_in.complete(request)).text)
    assert draft is not None
    assert (stand_in.questions[draft.question].answer, draft.evidence) == (
        draft.answer, question.evidence,
    )  # fmt: skip


def test_frames_are_counted_and_not_decoded_until_the_store_has_replies(tmp_path: Path) -> None:
    video = Video(video_id="v", uri=str(EXAMPLES / "birdhouse.mp4"), duration=64.0)
    see = Condition(longest=96)
    counted = asyncio.run(CountedFrames(video).jpegs((1.0, 30.0, 60.0), see))
    seen = asyncio.run(VideoFrames(video).jpegs((1.0, 30.0, 60.0), see))
    assert counted == (seen[0],) * 3
    assert [image_size(jpeg) for jpeg in counted] == [image_size(jpeg) for jpeg in seen]
    grey = asyncio.run(CountedFrames(replace(video, uri="")).jpegs((1.0,), see))
    assert image_size(grey[0]) == (96, 54)
    assert asyncio.run(CountedFrames(video).jpegs((), see)) == ()
    with pytest.raises(BadRow):
        asyncio.run(CountedFrames(replace(video, uri="/no/file.mp4")).jpegs((1.0,), see))

    made = build(compose("make", ["videos=v", "out=o", "llm=openai", "llm.model=gpt-6-luna"]))
    stage, store = Stage(name="ask", part=made.ask), Store(str(tmp_path))  # type: ignore[attr-defined]
    fresh = Rehearsal(stage, store, made_up=True, budget_usd=None)
    assert fresh._session.context().frames is CountedFrames
    store.put(KIND, "0" * 64, b"{}")
    later = Rehearsal(stage, store, made_up=True, budget_usd=None)
    assert later._session.context().frames is VideoFrames
    by_rules = build(compose("make", ["videos=v", "out=o"]))
    stage = Stage(name="ask", part=by_rules.ask)  # type: ignore[attr-defined]
    looks = Rehearsal(stage, Store(str(tmp_path / "new")), made_up=False, budget_usd=None)
    assert looks._session.context().frames is VideoFrames
