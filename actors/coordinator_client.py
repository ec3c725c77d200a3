"""The coordinator's client: messages of one gateway's many calls, sent in batches.

A call asks before it starts and is reported when it ends. What comes within `GATHER` seconds is one
message, so that thousands of calls a second cost the coordinator a few hundred messages.
"""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

from actors.coordinator import Ask, Coordinator, Grant
from mustsee.run.ledger import Entry

GATHER = 0.002  # seconds for which messages are gathered into one
HEARTBEAT = 3.0  # seconds


class CoordinatorClient:
    """One gateway's way to the coordinator (a `Coordinator`, or a Ray actor of one)."""

    def __init__(self, coordinator: Any) -> None:
        self._coordinator = coordinator
        self._owner = uuid.uuid4().hex
        self._entries: list[tuple[Entry, asyncio.Future[None]]] = []
        self._asks: list[tuple[Ask, asyncio.Future[Grant]]] = []
        self._sending: set[asyncio.Task[None]] = set()
        self._held: set[str] = set()
        self._beating = False

    async def report(self, entry: Entry) -> None:
        """Report the end of a call. Returns when the coordinator has counted it."""
        future: asyncio.Future[None] = self._wake()
        self._entries.append((entry, future))
        await future

    async def ask(self, ask: Ask) -> Grant:
        """Whether a call may start."""
        future: asyncio.Future[Grant] = self._wake()
        self._asks.append((ask, future))
        return await future

    def _wake(self) -> asyncio.Future[Any]:
        loop = asyncio.get_running_loop()
        if not self._entries and not self._asks:
            loop.call_later(GATHER, self._send)
        return loop.create_future()

    def _send(self) -> None:
        entries, asks = self._entries, self._asks
        self._entries, self._asks = [], []
        self._spawn(self._exchange(entries, asks))

    def _spawn(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def _exchange(
        self,
        entries: list[tuple[Entry, asyncio.Future[None]]],
        asks: list[tuple[Ask, asyncio.Future[Grant]]],
    ) -> None:
        message = self._owner, [entry for entry, _ in entries], [ask for ask, _ in asks]
        try:
            if isinstance(self._coordinator, Coordinator):
                grants = self._coordinator.exchange(*message)
            else:
                grants = await self._coordinator.exchange.remote(*message)
        except Exception as error:
            for _, future in (*entries, *asks):
                if not future.done():
                    future.set_exception(error)
            return
        for _, future in entries:
            if not future.done():
                future.set_result(None)
        for (_, future), grant in zip(asks, grants, strict=True):
            if not future.done():
                future.set_result(grant)
        self._held -= {entry.key for entry, _ in entries}
        self._held |= {
            ask.key for (ask, _), grant in zip(asks, grants, strict=True) if grant.answer == "go"
        }
        if self._held and not self._beating and not isinstance(self._coordinator, Coordinator):
            self._spawn(self._beat())

    async def _beat(self) -> None:
        """Heartbeats while calls are in flight: a silent owner's calls are given to others."""
        self._beating = True
        try:
            while self._held:
                await asyncio.sleep(HEARTBEAT)
                await self._coordinator.exchange.remote(self._owner, [], [])
        finally:
            self._beating = False
