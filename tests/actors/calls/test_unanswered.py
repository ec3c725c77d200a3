"""Money that an endpoint bills for calls that failed: late answers, refused replies, errors."""

from __future__ import annotations

import asyncio
import pickle
import random
from collections.abc import Callable

import pytest
from aiohttp import web

from actors.calls.coordinator import Coordinator
from actors.calls.gateway import Gateway
from actors.llm.openai import OpenAI
from loopback.endpoint import Faults, Loopback
from mustsee.calls.budget import AdmissionRequest
from mustsee.calls.limits import Limits
from mustsee.calls.usage import CallOutcome
from mustsee.errors import BadRow, Transient
from mustsee.files.store import Store
from tests.support.openai_llm import asked

USAGE = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
USD = 0.0012  # of USAGE
MESSAGE = {"role": "assistant", "content": "fine"}
REFUSED = {
    "empty": {"choices": [{"message": {**MESSAGE, "content": ""}, "finish_reason": "stop"}]},
    "no choice": {"choices": []},
    "filtered": {"choices": [{"message": MESSAGE, "finish_reason": "content_filter"}]},
    "an error": {"error": {"message": "the model crashed"}},
    "no message": {"choices": [{"finish_reason": "stop"}]},
}
pytestmark = pytest.mark.usefixtures("key")


def model(url: str, **more) -> OpenAI:
    return OpenAI(model="m", base_url=url, prices={"m": (1.0, 2.0)}, attempts=3, **more)


async def nothing(seconds: float) -> None:
    await asyncio.sleep(0)


def books(config: OpenAI, tmp_path, budget: float | None = None):
    """A gateway to the model, and its coordinator."""
    coordinator = Coordinator(budget_usd=budget)
    coordinator.register_account(config.account, Limits(search=False))
    store = Store(str(tmp_path / "store"))
    return Gateway(config.open(), store, coordinator, config, sleep=nothing), coordinator


async def served(answer: Callable[[web.Request], web.StreamResponse], config, tmp_path) -> tuple:
    """One call to a server with this answer; returns its error, and the spending."""

    async def chat(request: web.Request) -> web.StreamResponse:
        await request.read()
        return answer(request)

    app = web.Application()
    app.router.add_post("/v1/chat/completions", chat)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    llm, coordinator = books(config(url), tmp_path)
    try:
        with pytest.raises((Transient, BadRow)) as raised:
            await llm.complete(asked())
    finally:
        await runner.cleanup()
    return raised.value, coordinator.snapshot().spent


@pytest.mark.parametrize("status", [200, 400, 500])
@pytest.mark.parametrize("kind", REFUSED)
def test_a_refused_reply_that_says_what_it_cost_is_in_the_books(kind, status, tmp_path):
    body = {**REFUSED[kind], "usage": USAGE}
    error, spent = asyncio.run(
        served(lambda request: web.json_response(body, status=status), model, tmp_path)
    )
    tries = 1 if isinstance(error, BadRow) else 3
    assert error.usd == pytest.approx(USD)
    assert pickle.loads(pickle.dumps(error)).usage == error.usage  # it comes from another process
    assert spent.total.usd == pytest.approx(tries * USD)
    assert (spent.total.tokens_in, spent.unanswered) == (tries * 1000, 0)


@pytest.mark.parametrize("kind", REFUSED)
def test_a_refused_reply_that_does_not_counts_with_its_likely_cost(kind, tmp_path):
    """An error costs nothing, unless it says so."""
    error, spent = asyncio.run(
        served(lambda request: web.json_response(REFUSED[kind]), model, tmp_path)
    )
    tries = 1 if isinstance(error, BadRow) else 3
    assert spent.unanswered == (0 if kind == "an error" else tries)
    assert (spent.unanswered_usd > 0) == (kind != "an error")


@pytest.mark.parametrize("text", ["{", "[]", "null", '{"choices": '])
def test_a_body_that_cannot_be_parsed_counts_with_its_likely_cost(text, tmp_path):
    _, spent = asyncio.run(served(lambda request: web.Response(text=text), model, tmp_path))
    assert (spent.unanswered, spent.unanswered_usd > 0) == (3, True)


def test_a_call_that_was_never_sent_is_free(tmp_path):
    llm, coordinator = books(model("http://127.0.0.1:9/v1"), tmp_path)
    with pytest.raises(Transient):
        asyncio.run(llm.complete(asked()))
    assert (coordinator.snapshot().spent.unanswered, coordinator.snapshot().spent.total.usd) == (
        0,
        0,
    )


def test_late_answers_are_counted_and_then_waited_for(tmp_path):
    """The first attempt times out; the second one waits for the answer."""
    faults = Faults(share=1.0, kinds=("timeout",), most=9, hang=0.8)
    with Loopback(faults=faults, reply=lambda payload: "fine") as server:
        llm, coordinator = books(model(server.url, timeout=0.5), tmp_path)

        async def two() -> list[str]:
            return [(await llm.complete(asked(f"call {n}"))).text for n in range(2)]

        assert asyncio.run(two()) == ["fine", "fine"]
        assert server.stats["chat"] == 3  # the second call waits at once
    spent = coordinator.snapshot().spent
    assert (spent.total.calls, spent.unanswered) == (2, 1)
    assert spent.unanswered_usd > 0


@pytest.mark.parametrize("late", [0.1, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("times", [0.5, 1.0, 20.0])
def test_bills_of_late_answers_stay_within_the_budget(late, times):
    """The endpoint bills each call at `times` its estimate, the unanswered ones too."""
    rng, coordinator = random.Random(7), Coordinator(budget_usd=1.0, clock=lambda: 0.0)
    coordinator.register_account("a", Limits(search=False))
    billed, dearest, number, answered = 0.0, 0.004 * times, 0, False
    while number < 5000:
        asks = [
            AdmissionRequest(
                key=f"k{number + n}", account="a", prompt="p", model="m", usd=0.004, usd_in=0.003,
                tokens_in=7000, tokens_out=500,
            )
            for n in range(16)
        ]  # fmt: skip
        grants = coordinator.exchange("o", [], asks)
        if all(grant.answer == "spent" for grant in grants):
            break
        for ask, grant in zip(asks, grants, strict=True):
            if grant.answer == "go":
                billed += dearest
                # Until one bill is known, nothing says that calls are dearer than estimated.
                is_late = rng.random() < late and (answered or times <= 1.0)
                answered |= not is_late
                end = {"outcome": "failed"} if is_late else {"outcome": "done", "usd": dearest}
                entry = CallOutcome(
                    model="m", prompt="p", key=ask.key, account="a", tokens_in=7000, **end
                )
                coordinator.exchange("o", [entry], [])
        number += 16
    assert number < 5000
    assert billed <= 1.0 + dearest + 1e-9
