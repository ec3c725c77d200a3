"""Batched calls: gathering, failures, and that no call is paid for twice."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from actors.calls.batches import KIND, BatchSettings, blocks_held
from actors.calls.coordinator import Coordinator
from actors.calls.gateway import Gateway
from loopback.batches import BATCH_FAULTS, Batches
from loopback.endpoint import Loopback
from mustsee.calls.llm import Reply, Sampling
from mustsee.errors import BadRow, BudgetSpent, Transient, UserError
from mustsee.files.store import Store
from tests.support.bench import at_once
from tests.support.openai_llm import FORM, asked, config

pytestmark = pytest.mark.usefixtures("key")

QUICK = {"quiet": 0.05, "longest": 0.2, "pauses": (0.01, 0.02), "least": 1}
CALLS = 12


def said(payload: Any) -> str:
    return f"reply to {payload['messages'][-1]['content']}"


@contextmanager
def endpoint(faults: tuple[str, ...] = (), **more: Any) -> Iterator[Loopback]:
    batches = {k: more.pop(k) for k in ("seconds", "most", "there") if k in more}
    with Loopback(
        reply=said, payloads=[], batches=Batches(faults=faults, **batches), **more
    ) as server:
        yield server


def connect(
    server: Loopback,
    folder: Path,
    coordinator: Coordinator,
    batch: str = "always",
    counts: dict[str, int] | None = None,
    **rules: Any,
) -> Gateway:
    counts = {} if counts is None else counts

    def count(name: str, n: int) -> None:
        counts[name] = counts.get(name, 0) + n

    chosen = config(server, batch=batch, batches=BatchSettings(**{**QUICK, **rules}))
    store = Store(str(folder))
    coordinator.register_account(chosen.account, chosen.limits)
    batched = chosen.by_batch(store, count)
    return Gateway(chosen.open(), store, coordinator, chosen, batched=batched, sleep=at_once)


def answers(llm: Gateway, n: int = CALLS, **more: Any) -> list[Any]:
    async def run() -> list[Any]:
        requests = [asked(f"question {i}", **more) for i in range(n)]
        return await asyncio.gather(*map(llm.complete, requests), return_exceptions=True)

    return asyncio.run(run())


def texts(replies: list[Any]) -> list[str]:
    return [r.text if isinstance(r, Reply) else repr(r) for r in replies]


EXPECTED = [f"reply to question {i}" for i in range(CALLS)]


def total(coordinator: Coordinator) -> dict[str, Any]:
    return coordinator.snapshot().llm.summary()


def test_calls_that_wait_together_are_one_batch_at_half_the_price(tmp_path):
    with endpoint() as server:
        direct, batched = Coordinator(), Coordinator()
        one = answers(connect(server, tmp_path / "a", direct, "never"))
        two = answers(connect(server, tmp_path / "b", batched))
        assert (server.stats["chat"], server.stats["batches"]) == (CALLS, 1)
        first, second = server.payloads[:CALLS], server.payloads[CALLS:]
    assert sorted(map(json.dumps, first)) == sorted(map(json.dumps, second))
    assert texts(one) == texts(two) == EXPECTED
    for name in ("calls", "tokens_in", "tokens_out"):
        assert total(direct)[name] == total(batched)[name] > 0
    assert (total(direct)["batched"], total(batched)["batched"]) == (0, CALLS)
    assert total(batched)["usd"] == pytest.approx(total(direct)["usd"] / 2)


@pytest.mark.parametrize("fault", [f for f in BATCH_FAULTS if f not in ("slow", "full")])
@pytest.mark.parametrize("batch", ["always", "auto"])
def test_calls_lost_by_a_batch_are_sent_again(fault, batch, tmp_path):
    with endpoint((fault,)) as server:
        coordinator = Coordinator()
        assert texts(answers(connect(server, tmp_path, coordinator, batch))) == EXPECTED
        stats, asked_for = server.stats, [said(p) for p in server.payloads]
    assert sorted(asked_for) == sorted(EXPECTED)  # no call is made or paid for twice
    whole = fault in ("duplicates", "disorder", "unreadable")
    failed = fault == "failed" and batch == "auto"  # such calls do not wait for another batch
    assert stats["batches"] == (1 if whole or failed else 2)
    assert stats.get("chat", 0) == (CALLS if failed else 0)
    lost = {"failed": CALLS, "partial": CALLS // 3, "errors": CALLS // 3}.get(fault, CALLS // 2)
    assert total(coordinator)["retries"] == (0 if whole else lost)
    assert total(coordinator)["batched"] == (0 if failed else CALLS)


def test_a_batch_too_large_for_the_queue_is_sent_in_halves(tmp_path):
    with endpoint(("full",), most=2) as server:
        coordinator = Coordinator()
        assert texts(answers(connect(server, tmp_path, coordinator))) == EXPECTED
        sizes = [len(server.batches.files[b["input_file_id"]].splitlines())
                 for b in server.batches.batches.values()]  # fmt: skip
    assert sizes == [12, 6, 6, 3, 3]
    assert total(coordinator)["retries"] == 0


@pytest.mark.parametrize(("batch", "direct"), [("always", 0), ("auto", CALLS // 2)])
def test_a_batch_past_its_deadline_is_cancelled_and_its_replies_are_used(batch, direct, tmp_path):
    with endpoint(("slow",)) as server:
        coordinator = Coordinator()
        llm = connect(server, tmp_path, coordinator, batch, deadline=0.3)
        assert texts(answers(llm)) == EXPECTED
        states = [b["status"] for b in server.batches.batches.values()]
        assert server.stats.get("chat", 0) == direct
    assert states == ["cancelled"] if direct else ["cancelled", "completed"]
    assert total(coordinator)["batched"] == CALLS - direct


def test_an_endpoint_without_the_batch_route(tmp_path):
    with endpoint(there=False) as server:
        coordinator = Coordinator()
        assert texts(answers(connect(server, tmp_path / "a", coordinator, "auto"))) == EXPECTED
        assert (total(coordinator)["batched"], total(coordinator)["retries"]) == (0, 0)
        (error, *_) = answers(connect(server, tmp_path / "b", Coordinator()))
    assert isinstance(error, UserError)
    assert "batch=auto" in str(error)


def test_few_calls_do_not_wait_for_a_batch(tmp_path):
    with endpoint() as server:
        coordinator = Coordinator()
        llm = connect(server, tmp_path, coordinator, "auto", least=CALLS + 1)
        assert texts(answers(llm)) == EXPECTED
        assert (server.stats.get("batches", 0), server.stats["chat"]) == (0, CALLS)
    assert (total(coordinator)["batched"], total(coordinator)["retries"]) == (0, 0)


def test_a_batch_is_no_larger_than_allowed(tmp_path):
    with endpoint() as server:
        assert texts(answers(connect(server, tmp_path / "a", Coordinator(), most=5))) == EXPECTED
        files = [server.batches.files[b["input_file_id"]] for b in server.batches.batches.values()]
        assert sorted(len(f.splitlines()) for f in files) == [2, 5, 5]
        most = len(files[0]) // 5 * 3
        llm = connect(server, tmp_path / "b", Coordinator(), most_bytes=most)
        assert texts(answers(llm)) == EXPECTED
        later = list(server.batches.batches.values())[3:]
        assert max(len(server.batches.files[b["input_file_id"]]) for b in later) <= most


def test_bad_requests_and_unsupported_schemas_in_a_batch(tmp_path):
    with endpoint(schemas="refused") as server:
        coordinator = Coordinator()
        llm = connect(server, tmp_path / "a", coordinator)
        assert texts(answers(llm, form=FORM)) == EXPECTED
        assert total(coordinator)["retries"] == CALLS
    with endpoint() as server:
        server.batches._answer = lambda payload: (400, {"error": {"message": "too long"}})
        replies = answers(connect(server, tmp_path / "b", Coordinator()))
    assert {type(error) for error in replies} == {BadRow}


def test_an_endpoint_that_loses_every_call_is_given_up(tmp_path):
    with endpoint(("failed",), most=100) as server:
        replies = answers(connect(server, tmp_path, Coordinator()), 3)
        assert server.stats["batches"] == 6
    assert {type(error) for error in replies} == {Transient}
    assert "invalid_json_line of this batch" in str(replies[0])


def test_the_budget_counts_half_the_price(tmp_path):
    sampling = Sampling(max_tokens=1000)
    with endpoint() as server:
        most = config(server).estimate(asked("question 0", sampling=sampling)).usd
        coordinator = Coordinator(budget_usd=most * 0.5 * CALLS * 1.001)
        fits = answers(connect(server, tmp_path / "a", coordinator), sampling=sampling)
        assert server.stats["batches"] == 2  # a few calls, to learn their cost, then the rest
        none = Coordinator(budget_usd=most * 0.4)
        spent = answers(connect(server, tmp_path / "b", none), sampling=sampling)
    assert texts(fits) == EXPECTED
    assert {type(error) for error in spent} == {BudgetSpent}


CHILD = """
import asyncio, sys
from pathlib import Path
from types import SimpleNamespace
from actors.calls.coordinator import Coordinator
from tests.actors.calls.test_batches import answers, connect

answers(connect(SimpleNamespace(url=sys.argv[1]), Path(sys.argv[2]), Coordinator(), sys.argv[3]))
"""


@pytest.mark.parametrize(("batch", "noted"), [("always", True), ("auto", False)])
def test_a_run_killed_while_it_waits_joins_its_batch(batch, noted, tmp_path, monkeypatch):
    """`noted`: whether it recorded the batch before it was killed."""
    with endpoint(seconds=3600.0) as server:
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, server.url, str(tmp_path), batch],
            cwd=Path(__file__).parents[3],
        )
        store, deadline = Store(str(tmp_path)), time.monotonic() + 120
        while not store.keys(KIND) and time.monotonic() < deadline:
            time.sleep(0.01)
        child.send_signal(signal.SIGKILL)
        assert child.wait(60) == -signal.SIGKILL
        if not noted:
            for path in (tmp_path / KIND).rglob("*"):
                path.is_file() and path.unlink()
        assert server.payloads == []
        server.batches.seconds = 0.0
        coordinator, counts = Coordinator(), dict[str, int]()
        assert texts(answers(connect(server, tmp_path, coordinator, batch, counts))) == EXPECTED
        assert (server.stats["batches"], len(server.payloads)) == (1, CALLS)
    assert (total(coordinator)["batched"], total(coordinator)["retries"]) == (CALLS, 0)
    assert counts == {"calls joined to a batch": CALLS} | ({} if noted else {"batches found": 1})


def test_a_batch_with_a_damaged_record_is_found_at_the_endpoint(tmp_path):
    with endpoint() as server:
        assert texts(answers(connect(server, tmp_path, Coordinator()))) == EXPECTED
        for path in [*tmp_path.glob("batches/*/*"), *tmp_path.glob("llm/*/*")]:
            path.write_bytes(path.read_bytes()[:-1])
        assert texts(answers(connect(server, tmp_path, Coordinator()))) == EXPECTED
        assert server.stats["batches"] == 1  # results are fetched again, but not paid again


def test_later_callers_share_the_results_of_a_batch(tmp_path):
    """A resumed run needs its calls row by row; the file of replies is read once."""
    first = Coordinator()
    with endpoint(seconds=3600.0) as server:

        async def killed() -> None:
            llm = connect(server, tmp_path, first)
            tasks = [asyncio.create_task(llm.complete(asked(f"question {i}"))) for i in range(12)]
            while not Store(str(tmp_path)).keys(KIND):
                await asyncio.sleep(0.01)
            assert first.snapshot().in_batches == CALLS
            for task in tasks:
                task.cancel()

        asyncio.run(killed())
        server.batches.seconds = 0.0

        async def resumed() -> list[Reply]:
            llm = connect(server, tmp_path, Coordinator())
            return [await llm.complete(asked(f"question {i}")) for i in range(12)]

        assert texts(asyncio.run(resumed())) == EXPECTED
        assert (server.stats["batches"], len(server.payloads)) == (1, CALLS)
        assert server.stats["files read"] == 1


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"batches": {"price": 2.0}}, "batches.price=2.0"),
        ({"batches": {"quiet": 0}}, "batches.quiet=0"),
        ({"batch": "sometimes"}, "batch='sometimes'"),
    ],
)
def test_invalid_settings_are_named(wrong, named):
    with pytest.raises(UserError, match=named):
        config(
            type("Server", (), {"url": "http://127.0.0.1:9/v1"}),
            **{
                key: BatchSettings(**value) if key == "batches" else value
                for key, value in wrong.items()
            },
        )


def test_batch_settings_are_not_part_of_the_key(tmp_path):
    with endpoint() as server:
        assert config(server).identity == config(server, batch="always").identity


def test_a_worker_holds_rows_enough_to_fill_a_batch(tmp_path):
    with endpoint() as server:
        for batch, blocks in (("never", 0), ("auto", 32), ("always", 32)):
            models = {"llm": config(server), "guesser": config(server, batch=batch)}
            part = type("Part", (), {"roles": models})()
            assert blocks_held(part, rows_per_block=8) == blocks
