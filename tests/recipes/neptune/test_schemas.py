"""Neptune with an endpoint that obeys schemas, refuses them, or ignores them."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from actors.calls.coordinator import Coordinator
from actors.calls.gateway import Gateway
from actors.llm.openai import OpenAI
from actors.llm.replay import Replay
from actors.part import LlmConfig, RunContext
from actors.stages.ask import Ask
from actors.stages.vet import Vet
from loopback.endpoint import Loopback
from loopback.replies import recorded_replies
from loopback.schemas import Schemas
from mustsee.files.store import Store
from mustsee.recipes.neptune.ask import neptune
from mustsee.recipes.neptune.settings import NeptuneSettings
from mustsee.records import Video
from mustsee.verify.giveaways import Giveaways
from mustsee.verify.guess.filters import BlindGuess
from mustsee.verify.repair import RepairRule
from tests.support.every_prompt import Rules
from tests.support.neptune_video import sample_video

FILTERS = (
    Giveaways(),
    BlindGuess(name="blind", prompt="filters/blind", drops=False),
    BlindGuess(name="asr", prompt="filters/asr", transcript=True, drops=False),
)


def ran(model: LlmConfig, folder: Path) -> tuple[Video, Counter[str], Coordinator]:
    """Return the video with vetted questions, and the counts."""
    store, coordinator, counted = Store(str(folder)), Coordinator(), Counter[str]()
    context = RunContext(
        store=store,
        llm=lambda config: Gateway.connect(config, store, coordinator),
        count=lambda name, n: counted.update({name: n}),
    )
    settings = NeptuneSettings(questions=4, spare=1, dense_words=300, support_words=60)
    asked = Ask(recipe=neptune, settings=settings, llm=model)
    roles = dict.fromkeys(("guesser", "repairer"), model)
    vet = Vet(
        filters={f.name: f for f in FILTERS},
        repair=RepairRule(see=None, near=None),
        subset="mma",
        **roles,
    )  # type: ignore[arg-type]

    async def both() -> Video:
        return await vet.open(context)(await asked.open(context)(sample_video(repeat=2)))  # type: ignore[misc]

    return asyncio.run(both()), counted, coordinator


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> tuple[Video, str]:
    folder = tmp_path_factory.mktemp("plain")
    path = str(folder / "replies.jsonl")
    return ran(Replay(path=path, record=Rules()), folder)[0], path


@pytest.mark.parametrize("schemas", ["honoured", "refused", "ignored"])
def test_schemas_change_no_question(
    schemas: Schemas, plain: tuple[Video, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789")
    video, path = plain
    with Loopback(reply=recorded_replies(path), schemas=schemas, payloads=[]) as server:
        model = OpenAI(model="m", base_url=server.url, prices={"m": [1.0, 2.0]})
        asked_video, _, coordinator = ran(model, tmp_path)
        assert server.payloads is not None
        sent = ["response_format" in payload for payload in server.payloads]
    assert asked_video.segments == video.segments
    notes = [
        [(q.question_id, q.options, q.evidence, q.metrics, q.subsets, q.drop, len(q.verdicts))
         for q in row.questions or ()]
        for row in (asked_video, video)
    ]  # fmt: skip
    assert notes[0] == notes[1] != []
    assert sum("mma" in q.subsets for q in video.questions or ()) > 0
    assert coordinator.snapshot().llm.total.asked_again == 0
    assert sum(sent) > 0
    if schemas == "refused":  # it is asked once for each connection, and by calls on their way
        assert sum(sent) < len(sent) / 3
    if schemas == "honoured":
        replies = [
            v.reply for q in asked_video.questions or () for v in q.verdicts if v.model != "rules"
        ]
        assert replies
        assert all(reply.startswith("* ANSWER: ") for reply in replies)  # in lines all the same
