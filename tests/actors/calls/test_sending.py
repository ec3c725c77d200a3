"""The sender process: how many calls are in flight, and when a reply is stored and reported."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pytest

from actors.calls import sender, sending
from actors.calls.gateway import KIND
from actors.calls.sender import (
    MAX_STARTS,
    Call,
    CallEnded,
    CoordinatorLost,
    Pipe,
    Sender,
    SenderModel,
    SenderStart,
)
from actors.calls.sending import MAX_GATHER_S, SenderProcess, gather_seconds
from actors.engine.session import Session
from mustsee.calls.limits import Quota
from mustsee.calls.llm import Message, Reply, Request
from mustsee.errors import DiskFull, MustseeError
from mustsee.files.store import Store
from tests.support.disks import fill_disk, small_disk


@dataclass(frozen=True)
class ScriptedEndpoint:
    """An endpoint that takes `max_connections` calls, and answers each on command."""

    max_connections: int
    out: ClassVar[dict[str, asyncio.Event]] = {}
    quotas: ClassVar[dict[str, Quota]] = {}

    @property
    def endpoint(self) -> ScriptedEndpoint:
        return self

    @property
    def identity(self) -> str:
        return "scripted"

    def estimate(self, request: Request) -> Any: ...

    def open(self) -> ScriptedEndpoint:
        return self

    async def complete(self, request: Request) -> Reply:
        text = request.messages[0].text
        self.out[text] = asyncio.Event()
        await self.out[text].wait()
        del self.out[text]
        return Reply(text=text, model="scripted", tokens_in=1, tokens_out=1, usd=0.0)


@dataclass
class Worker:
    """The worker's end of a sender, with the ends of calls that it received."""

    pipe: Pipe
    ended: dict[int, CallEnded] = field(default_factory=dict[int, CallEnded])
    lost_coordinator: bool = False

    def call(self, number: int) -> None:
        request = Request(prompt="test", digest="", messages=(Message("user", f"{number}"),))
        self.pipe.send(Call(number, 0, key(number), request))


def key(number: int) -> str:
    return f"{number:064}"


@asynccontextmanager
async def begun(store: Path, most: int) -> AsyncGenerator[Worker]:
    """A sender in this process, with one model."""
    loop, (ours, theirs) = asyncio.get_running_loop(), socket.socketpair()

    def got(message: Any) -> None:
        if isinstance(message, CallEnded):
            worker.ended[message.number] = message
        worker.lost_coordinator |= isinstance(message, CoordinatorLost)

    with socket.create_server(("127.0.0.1", 0)) as coordinator:
        sender, worker = SenderProcess(theirs, loop), Worker(Pipe(ours, got, lambda: None))
        worker.pipe.attach(loop)
        worker.pipe.send(SenderStart("one", str(store), coordinator.getsockname()))
        worker.pipe.send(SenderModel(0, ScriptedEndpoint(most)))
        yield worker
        coordinator.accept()[0].close()
        await until(lambda: worker.lost_coordinator)
        loop.remove_reader(ours)
        ours.close()
        await sender.wait()


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not true():
            await asyncio.sleep(0)


def test_an_ended_call_frees_its_slot_and_is_reported_when_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, keep = threading.Event(), sending.keep

    def slow(*arguments: Any) -> None:
        gate.wait(20)
        keep(*arguments)

    async def work() -> None:
        async with begun(tmp_path, most=2) as worker:
            for number in range(4):
                worker.call(number)
            await until(lambda: len(ScriptedEndpoint.out) == 2)
            ScriptedEndpoint.out["0"].set()
            await until(
                lambda: set(ScriptedEndpoint.out) == {"1", "2"}
            )  # although no end was reported yet
            assert not worker.ended
            gate.set()
            await until(lambda: 0 in worker.ended)
            assert Store(str(tmp_path)).get(KIND, key(0)) is not None
            assert set(ScriptedEndpoint.out) == {"1", "2"}
            for number in range(1, 4):
                await until(lambda: str(number) in ScriptedEndpoint.out)  # noqa: B023
                ScriptedEndpoint.out[str(number)].set()
            await until(lambda: set(worker.ended) == set(range(4)))
            assert all(ended.reply for ended in worker.ended.values())

    monkeypatch.setattr(sending, "keep", slow)
    asyncio.run(work())


def test_the_duration_of_a_call_excludes_its_wait_for_a_slot(tmp_path: Path) -> None:
    async def work() -> tuple[float, float]:
        async with begun(tmp_path, most=1) as worker:
            began = time.monotonic()
            worker.call(0)
            worker.call(1)
            await until(lambda: "0" in ScriptedEndpoint.out and time.monotonic() > began + 0.2)
            ScriptedEndpoint.out["0"].set()
            await until(lambda: "1" in ScriptedEndpoint.out)
            ScriptedEndpoint.out["1"].set()
            await until(lambda: len(worker.ended) == 2)
            seconds = time.monotonic() - began
            return sum(ended.seconds for ended in worker.ended.values()), seconds

    in_calls, seconds = asyncio.run(work())
    assert 0.1 < in_calls <= seconds


def test_replies_are_gathered_only_if_others_are_expected() -> None:
    assert gather_seconds(2.0, 1) == gather_seconds(2.0, 16) == gather_seconds(0.0, 256) == 0.0
    assert gather_seconds(2.0, 256) == pytest.approx(0.04)
    assert gather_seconds(0.1, 256) == pytest.approx(0.002)
    assert gather_seconds(10.0, 256) == MAX_GATHER_S
    assert gather_seconds(60.0, 256) == 0.0


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "small") as folder:
        yield folder


def test_replies_in_flight_when_the_disk_fills_are_kept(small: Path) -> None:
    calls = 200

    async def work() -> dict[int, CallEnded]:
        async with begun(small / "store", most=calls) as worker:
            for number in range(calls):
                worker.call(number)
            await until(lambda: len(ScriptedEndpoint.out) == calls)
            fill_disk(small)
            ScriptedEndpoint.out["0"].set()
            await until(lambda: 0 in worker.ended)
            worker.call(calls)
            await until(lambda: calls in worker.ended)
            assert len(ScriptedEndpoint.out) == calls - 1  # the late call is not sent
            for event in ScriptedEndpoint.out.values():
                event.set()
            await until(lambda: len(worker.ended) == calls + 1)
            return worker.ended

    ended = asyncio.run(work())
    assert all(isinstance(ended[number].error, DiskFull) for number in range(calls))
    late = ended[calls].error
    assert isinstance(late, MustseeError)
    assert not isinstance(late, DiskFull)  # so that it does not count as paid
    stored = Store(str(small / "store")).keys(KIND)
    assert len(stored) == calls
    assert all(Store(str(small / "store")).get(KIND, name) for name in stored)


@pytest.fixture
def starting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Sender]]:
    """Makes a sender that runs some code at its start; `$DO` is the usual start."""
    senders: list[Sender] = []
    with socket.create_server(("127.0.0.1", 0)) as coordinator:

        async def address() -> tuple[str, int]:
            return coordinator.getsockname()

        def start(code: str) -> Sender:
            monkeypatch.setattr(sender, "START", code.replace("$DO", sender.START))
            senders.append(Sender(str(tmp_path / "store"), address))
            return senders[-1]

        yield start
        for each in senders:
            if each._pipe is not None:
                each._pipe._socket.close()


def test_a_sender_killed_at_its_start_is_started_again(
    starting: Callable[[str], Sender], tmp_path: Path
) -> None:
    seen = tmp_path / "seen"
    dies = f"open({str(seen)!r}, 'w'); os.kill(os.getpid(), 9)"
    started = starting(f"import os\nif not os.path.exists({str(seen)!r}): {dies}\n$DO")
    asyncio.run(started.begin())
    assert seen.exists()
    assert started.name


def test_a_sender_killed_at_every_start_ends_the_run_in_a_line(
    starting: Callable[[str], Sender],
) -> None:
    with pytest.raises(MustseeError, match=f"killed {MAX_STARTS} times when it started"):
        asyncio.run(starting("import os; os.kill(os.getpid(), 9)").begin())


def test_limits_reported_by_an_endpoint_arrive_with_the_end_of_a_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ScriptedEndpoint, "quotas", {"tokens": Quota(200_000, 7, 60.0)})

    async def work() -> CallEnded:
        async with begun(tmp_path, most=1) as worker:
            worker.call(0)
            await until(lambda: "0" in ScriptedEndpoint.out)
            ScriptedEndpoint.out["0"].set()
            await until(lambda: 0 in worker.ended)
            return worker.ended[0]

    assert asyncio.run(work()).quotas == {"tokens": Quota(200_000, 7, 60.0)}


def test_a_job_that_has_ended_is_asked_for_no_coordinator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call to one would start another Ray."""
    addresses: list[Any] = []
    monkeypatch.setattr(sender, "Sender", lambda store, address: addresses.append(address))
    Session(store=Store(str(tmp_path)), coordinator=object()).context()
    with pytest.raises(ConnectionError, match="has ended"):
        asyncio.run(addresses[0]())


def test_a_sender_that_lost_the_coordinator_of_an_ended_job_is_left_alone() -> None:
    async def has_ended() -> tuple[str, int]:
        raise ConnectionError("the job's Ray has ended")

    asyncio.run(Sender("store", has_ended)._reconnect())
