"""Another account takes over when the first does not answer, and the rows name it."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from actors.calls.coordinator import Coordinator
from actors.calls.gateway import Gateway
from actors.calls.no_answer import RETRY_ACCOUNT_AFTER_S, Failover
from actors.llm.openai import OpenAI
from loopback.endpoint import Loopback, RefusedRequest
from mustsee.calls.llm import ProvenanceRecorder, Reply, Sampling
from mustsee.errors import BudgetSpent, MustseeError, UserError
from mustsee.files.store import Store
from tests.support.openai_llm import asked

PRICES = {"first": [1.0, 2.0], "second": [100.0, 200.0]}


def dying(refused: RefusedRequest, after: int):
    """A reply function of an endpoint that stops answering after a number of calls."""
    count = iter(range(1 << 30))

    def reply(payload) -> str:
        if next(count) >= after:
            raise refused
        return "first"

    return reply


def configured(first: Loopback, second: Loopback, **more) -> OpenAI:
    other = {"model": "second", "base_url": second.url}
    return OpenAI(
        model="first", base_url=first.url, key_env=None, prices=PRICES, fallback=(other,),
        max_connections=1, **more,
    )  # fmt: skip


async def answers(llm, n: int) -> list[Reply]:
    return await asyncio.gather(*(llm.complete(asked(f"question {i}")) for i in range(n)))


@pytest.mark.parametrize(
    "refused",
    [
        RefusedRequest(402, "Insufficient Balance"),
        RefusedRequest(401, "wrong key", "invalid_api_key"),
        RefusedRequest(503, "overloaded"),
    ],
)
def test_a_run_continues_when_the_first_endpoint_dies(refused, tmp_path):
    with Loopback(reply=dying(refused, 4)) as first, Loopback(reply=lambda p: "second") as second:
        config, coordinator = configured(first, second, patience=0.2), Coordinator()
        llm = Gateway.connect(config, Store(str(tmp_path)), coordinator)
        replies = asyncio.run(answers(llm, 10))
        repeated = asyncio.run(
            answers(Gateway.connect(config, Store(str(tmp_path)), Coordinator()), 10)
        )
        paid = second.stats["chat"]
    assert sorted(r.text for r in replies) == ["first"] * 4 + ["second"] * 6
    assert {r.by for r in replies} == {"", config.ways[1].identity}
    usage = coordinator.snapshot().llm
    assert usage.instead == {("second", "first"): 6}
    assert usage.by_model["second"].usd == pytest.approx(sum(r.usd for r in replies if r.by))
    assert usage.by_model["second"].usd > 10 * usage.by_model["first"].usd > 0
    assert [r.text for r in repeated] == [r.text for r in replies]  # no call is paid for twice
    assert all(r.cached for r in repeated)
    assert paid == 6


def test_the_death_of_both_endpoints_is_one_line(tmp_path):
    refused = RefusedRequest(402, "Insufficient Balance")
    with Loopback(reply=dying(refused, 1)) as first, Loopback(reply=dying(refused, 1)) as second:
        llm = Gateway.connect(configured(first, second), Store(str(tmp_path)), Coordinator())
        with pytest.raises(MustseeError, match="none of the 2 accounts") as raised:
            asyncio.run(answers(llm, 10))
    assert not isinstance(raised.value, UserError | BudgetSpent)
    assert "\n" not in str(raised.value)
    assert first.url in str(raised.value)
    assert second.url in str(raised.value)


def test_the_budget_covers_both_accounts(tmp_path):
    with Loopback(reply=dying(RefusedRequest(402, "no credit"), 0)) as first, Loopback() as second:
        coordinator = Coordinator(budget_usd=0.009)
        llm = Gateway.connect(configured(first, second), Store(str(tmp_path)), coordinator)

        async def run() -> list[Reply | BaseException]:
            calls = (
                llm.complete(asked(f"question {i}", sampling=Sampling(max_tokens=20)))
                for i in range(10)
            )
            return await asyncio.gather(*calls, return_exceptions=True)

        replies = asyncio.run(run())
    spent = [r for r in replies if isinstance(r, BudgetSpent)]
    assert 0 < len(spent) < 10
    assert coordinator.snapshot().llm.total.usd <= 0.009


class Fake:
    def __init__(self, identity: str) -> None:
        self.identity, self.error = identity, None

    async def stored_reply(self, request) -> None:
        return None

    async def complete(self, request) -> Reply:
        if self.error is not None:
            raise self.error
        return Reply(text=self.identity, model=self.identity)


def test_the_first_account_is_asked_again_after_a_while():
    from mustsee.errors import NoAnswer

    now, first, second = [0.0], Fake("a"), Fake("b")
    llm = Failover([first, second], clock=lambda: now[0])

    def who() -> str:
        return asyncio.run(llm.complete(asked("x"))).text

    first.error = NoAnswer("silence")
    assert who() == "b"
    first.error = None
    assert who() == "b"
    now[0] = RETRY_ACCOUNT_AFTER_S + 1
    assert who() == "a"


def test_a_row_names_all_models_that_answered():
    class Turns(Fake):
        async def complete(self, request) -> Reply:
            reply = await super().complete(request)
            return replace(reply, by="b") if request.seed else reply

    witness = ProvenanceRecorder(Turns("a"))
    assert witness.identity == "a"
    asyncio.run(witness.complete(asked("x", seed=1)))
    assert witness.identity == "b"
    asyncio.run(witness.complete(asked("x")))
    assert witness.identity == "b + a"


def test_an_unknown_key_of_a_fallback_is_named(key):
    config = OpenAI(model="m", fallback=({"modle": "n"},))
    with pytest.raises(UserError, match="modle"):
        config.check(None)
