"""The client behind the gateway, against a server that fails in every way."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from actors.calls.connection import retry_after_s
from actors.calls.coordinator import Coordinator
from actors.llm.openai import OpenAI
from actors.llm.replay import Replay
from loopback.endpoint import KINDS, Faults, Loopback, RefusedRequest
from loopback.replies import recorded_replies
from mustsee.calls.budget import AdmissionRequest
from mustsee.calls.llm import Asker, Sampling
from mustsee.errors import BadRow, BudgetSpent, Transient, Unparsed, UserError
from mustsee.prompts import Prompts
from mustsee.replies.forms import free
from tests.support.openai_llm import asked, config, connect, once

pytestmark = pytest.mark.usefixtures("key")
FASTER = 100  # factor by which the coordinator's clock is faster, so that its waits are short


def quick_coordinator() -> Coordinator:
    return Coordinator(clock=lambda: FASTER * time.monotonic())


@pytest.mark.parametrize("kind", KINDS)
def test_every_fault_occurs_and_is_recovered_from(kind, tmp_path):
    faults = Faults(share=1.0, kinds=(kind,), most=2, hang=2.0, retry_after=3.0)
    with Loopback(faults=faults, reply=lambda payload: "fine") as server:
        coordinator = quick_coordinator()
        llm = connect(server, tmp_path, coordinator, timeout=0.3)
        reply = asyncio.run(llm.complete(asked()))
        summary = coordinator.snapshot().llm.summary()
        assert server.stats[f"fault {kind}"] == (1 if kind in ("refusal", "wrong_format") else 2)
    if kind == "refusal":
        assert reply.finish == "refusal"
    elif kind == "wrong_format":  # left to the parser
        assert reply.text != "fine"
    else:
        assert (reply.text, reply.finish, summary["retries"]) == ("fine", "stop", 2)
    assert summary["retry_after_seconds"] == (6.0 if kind in ("429", "503") else 0.0)


def test_a_slow_body_within_the_timeout_is_waited_for(tmp_path):
    faults = Faults(share=1.0, kinds=("slow",), hang=0.2)
    with Loopback(faults=faults) as server:
        coordinator = Coordinator()
        asyncio.run(connect(server, tmp_path, coordinator, timeout=10).complete(asked()))
    assert coordinator.snapshot().llm.summary()["retries"] == 0


def test_faults_neither_change_nor_lose_a_reply(tmp_path):
    retried = tuple(k for k in KINDS if k not in ("refusal", "wrong_format", "timeout", "slow"))

    def replies(server: Loopback, folder: str, coordinator: Coordinator) -> list[str]:
        async def run():
            llm = connect(server, tmp_path / folder, coordinator)
            requests = [asked(f"question {i}") for i in range(150)]
            return [r.text for r in await asyncio.gather(*map(llm.complete, requests))]

        return asyncio.run(run())

    with Loopback() as server:
        without = replies(server, "without", quick_coordinator())
    with Loopback(faults=Faults(share=0.3, kinds=retried, retry_after=0.01)) as server:
        coordinator = quick_coordinator()
        assert replies(server, "with", coordinator) == without
        met = sum(n for name, n in server.stats.items() if name.startswith("fault"))
    summary = coordinator.snapshot().llm.summary()
    assert summary["calls"] == 150
    assert summary["retries"] == met > 30


def test_refusals_and_unparseable_replies_are_retried(tmp_path):
    def parse(text: str) -> str:
        if text != "B":
            raise Unparsed("no letter")
        return text

    (tmp_path / "test").mkdir()
    (tmp_path / "test/x.j2").write_text("{% block user %}Pick a letter.{% endblock %}")
    for kind in ("refusal", "wrong_format"):
        faults = Faults(share=1.0, kinds=(kind,), most=1)
        with Loopback(faults=faults, reply=lambda payload: "B") as server:
            coordinator = Coordinator()
            llm = connect(server, tmp_path / kind, coordinator)
            asker = Asker(llm=llm, prompts=Prompts(str(tmp_path)), tries=3)
            with pytest.raises(BadRow):  # every new prompt meets the fault once
                asyncio.run(asker.ask("test/x", free(parse)))
            server.faults = Faults()
            assert asyncio.run(asker.ask("test/x", free(parse), seed=1)) == "B"
        assert coordinator.snapshot().llm.summary()["asked_again"] == 2


def test_a_truncated_reply_is_retried_with_twice_the_tokens(tmp_path):
    (tmp_path / "test").mkdir()
    (tmp_path / "test/x.j2").write_text("{% block user %}Write it all.{% endblock %}")
    long = "word " * 100
    with Loopback(reply=lambda payload: long, payloads=[]) as server:
        coordinator = Coordinator()
        llm = connect(server, tmp_path, coordinator)
        sampling = Sampling(max_tokens=40)
        asker = Asker(llm=llm, prompts=Prompts(str(tmp_path)), sampling=sampling)
        assert asyncio.run(asker.ask("test/x", free(str))) == long
        asked_for = [p["max_completion_tokens"] for p in server.payloads]
        assert [len(p["messages"]) for p in server.payloads] == [1, 1, 1]
    assert asked_for == [40, 80, 160]
    reasons = coordinator.snapshot().llm.total.reasons()
    assert reasons == [("it was cut off after 40 tokens", 1), ("it was cut off after 80 tokens", 1)]


@pytest.mark.parametrize(
    ("refused", "kind"),
    [
        (RefusedRequest(402, "Insufficient Balance"), BudgetSpent),
        (RefusedRequest(400, "API key not valid. Please pass a valid API key."), UserError),
        (RefusedRequest(400, "no", "unsupported_parameter", "seed"), UserError),
        (RefusedRequest(400, "too long", "context_length_exceeded"), BadRow),
    ],
)
def test_an_error_of_all_calls_is_not_a_problem_of_a_row(refused, kind):
    """Otherwise every row would be stored as a bad row."""

    def reply(payload):
        raise refused

    with Loopback(reply=reply) as server, pytest.raises(kind):
        once(server, asked())


def test_an_unreachable_endpoint_is_transient():
    chosen = OpenAI(model="m", base_url="http://127.0.0.1:9/v1")
    with pytest.raises(Transient, match=r"127\.0\.0\.1:9"):
        asyncio.run(chosen.open().complete(asked()))


def test_the_budget_stops_paid_calls_and_keeps_the_rest(tmp_path):
    async def run(llm):
        requests = [asked(f"question {i}", sampling=Sampling(max_tokens=10)) for i in range(40)]
        return await asyncio.gather(*map(llm.complete, requests), return_exceptions=True)

    with Loopback(reply=lambda payload: "four word long reply") as server:
        coordinator = Coordinator(budget_usd=5e-4)
        replies = asyncio.run(run(connect(server, tmp_path, coordinator)))
        served = server.stats["chat"]
    spent = [r for r in replies if isinstance(r, BudgetSpent)]
    assert 0 < len(spent) < 40
    assert served == 40 - len(spent)
    assert 3e-4 < coordinator.snapshot().llm.summary()["usd"] <= 5e-4


def test_limits_reported_by_an_endpoint_apply_to_later_calls(tmp_path):
    limits = {"limit": "60", "remaining": "1", "reset": "59s"}
    headers = {f"x-ratelimit-{name}-requests": value for name, value in limits.items()}
    with Loopback(headers=headers) as server:
        coordinator = Coordinator()
        llm = connect(server, tmp_path, coordinator)
        asyncio.run(llm.complete(asked("a")))
        account = config(server).account
    asks = [AdmissionRequest(key=key, account=account, prompt="p") for key in "xyz"]
    first, second, third = coordinator.exchange("o", [], asks)
    assert (first.answer, first.wait) == ("go", pytest.approx(0.0, abs=0.2))
    assert second.wait == pytest.approx(1.0, abs=0.2)
    assert third.answer == "hold"
    assert list(coordinator.snapshot().held) == ["x-ratelimit-limit-requests=60"]


def test_a_recording_answers_as_the_model_did(tmp_path):
    path = str(tmp_path / "replies.jsonl")
    with Loopback() as server:
        recorder = Replay(path=path, record=config(server)).open()
        first = asyncio.run(recorder.complete(asked("a", (b"\xff\xd8",))))
        calls = server.counts["chat"]
        again = Replay(path=path, record=config(server)).open()
        assert asyncio.run(again.complete(asked("a", (b"\xff\xd8",)))) == first
        assert server.counts["chat"] == calls  # what is recorded is not asked for again
    player = Replay(path=path)
    assert asyncio.run(player.open().complete(asked("a", (b"\xff\xd8",)))) == first
    other_pixels = asked("a", (b"\xff\xd8\xff",))
    assert asyncio.run(player.open().complete(other_pixels)) == first
    with pytest.raises(BadRow, match="test/x"):
        asyncio.run(player.open().complete(asked("b")))
    with pytest.raises(BadRow, match="test/x"):
        asyncio.run(player.open().complete(asked("a", (b"1", b"2"))))
    with Loopback(reply=recorded_replies(path, lambda payload: "unknown")) as server:
        assert once(server, asked("a", (b"\xff\xd8",))).text == first.text
        assert once(server, asked("b")).text == "unknown"
    with pytest.raises(UserError, match="nowhere"):
        Replay(path=str(tmp_path / "nowhere")).open()


def test_replies_to_a_prompt_that_has_changed_are_named(tmp_path, capsys):
    from mustsee.prompts import Prompts

    path = tmp_path / "replies.jsonl"
    line = {"key": "k", "words": "w", "prompt": "facts/look", "reply": {}}
    digests = [Prompts().digest("facts/look"), "another", "another"]
    path.write_text("\n".join(json.dumps({**line, "key": d, "digest": d}) for d in digests))
    Replay(path=str(path)).check(None)
    assert "facts/look (2)" in capsys.readouterr().err


CHILD = """
import asyncio, sys
from tests.support.openai_llm import connect, asked
from types import SimpleNamespace

async def run():
    llm = connect(SimpleNamespace(url=sys.argv[1]), sys.argv[2], max_connections=4)
    await asyncio.gather(*(llm.complete(asked(f"question {i}")) for i in range(60)))

asyncio.run(run())
"""


def test_replies_stored_before_a_kill_are_not_asked_for_again(tmp_path):
    served: list[str] = []
    children: list[subprocess.Popen] = []

    def reply(payload) -> str:
        text = payload["messages"][-1]["content"]
        served.append(text)
        if len(served) == 30:
            children[0].send_signal(signal.SIGKILL)
        return f"reply to {text}"

    with Loopback(reply=reply) as server:
        children.append(
            subprocess.Popen(
                [sys.executable, "-c", CHILD, server.url, str(tmp_path / "store")],
                cwd=Path(__file__).parents[3],
            )
        )
        assert children[0].wait(timeout=60) == -signal.SIGKILL
        stored = sum(1 for path in (tmp_path / "store/llm").rglob("*") if path.suffix == ".1")
        assert 20 <= stored <= 30
        before = len(served)

        async def run():
            llm = connect(server, tmp_path / "store")
            return await asyncio.gather(*(llm.complete(asked(f"question {i}")) for i in range(60)))

        replies = asyncio.run(run())
    assert [r.text for r in replies] == [f"reply to question {i}" for i in range(60)]
    assert sum(r.cached for r in replies) == stored
    assert len(served) - before == 60 - stored


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.25"}, 0.25),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:30 GMT",
          "date": "Wed, 21 Oct 2026 07:28:00 GMT"}, 30.0),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT",
          "date": "Wed, 21 Oct 2026 07:29:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
    ],
)  # fmt: skip
def test_retry_after_is_parsed_in_all_its_forms(headers, seconds):
    assert retry_after_s(headers) == seconds
