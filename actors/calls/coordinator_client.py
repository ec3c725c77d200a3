"""The coordinator's client, which sends the messages of one gateway's many calls in groups.

A call is admitted before it starts and reported when it ends. Whatever arrives within `GATHER_S`
seconds is one message, so thousands of calls a second cost the coordinator a few hundred messages.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from actors.calls.admission import AdmissionRequest, Grant
from actors.calls.coordinator import Coordinator
from actors.calls.coordinator_actor import mustsee_error
from actors.calls.coordinator_handle import CoordinatorHandle
from mustsee.calls.usage import CallOutcome

GATHER_S = 0.005  # seconds for which messages are gathered into one


class CoordinatorClient:
    """Connects one gateway to the coordinator (a `Coordinator`, or its Ray actor). `owner`: returns
    the owner of calls that start now.
    """

    def __init__(
        self, coordinator: Coordinator | CoordinatorHandle, owner: Callable[[], str]
    ) -> None:
        self._coordinator, self._owner = coordinator, owner
        self._entries: list[tuple[CallOutcome, asyncio.Future[None]]] = []
        self._asks: list[tuple[AdmissionRequest, asyncio.Future[Grant]]] = []
        self._sending: set[asyncio.Task[None]] = set()

    async def report(self, entry: CallOutcome) -> None:
        """Report the end of a call, and wait until the coordinator has counted it."""
        future: asyncio.Future[None] = self._wake()
        self._entries.append((entry, future))
        await future

    async def ask(self, ask: AdmissionRequest) -> Grant:
        """Ask whether a call may start."""
        future: asyncio.Future[Grant] = self._wake()
        self._asks.append((ask, future))
        return await future

    def _wake(self) -> asyncio.Future[Any]:
        loop = asyncio.get_running_loop()
        if not self._entries and not self._asks:
            loop.call_later(GATHER_S, self._send)
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
        entries: list[tuple[CallOutcome, asyncio.Future[None]]],
        asks: list[tuple[AdmissionRequest, asyncio.Future[Grant]]],
    ) -> None:
        message = self._owner(), [entry for entry, _ in entries], [ask for ask, _ in asks]
        try:
            if isinstance(self._coordinator, Coordinator):
                grants = self._coordinator.exchange(*message)
            else:
                grants = await self._coordinator.exchange.remote(*message)
        except Exception as error:
            for _, future in (*entries, *asks):
                if not future.done():
                    future.set_exception(mustsee_error(error))
            return
        for _, future in entries:
            if not future.done():
                future.set_result(None)
        for (_, future), grant in zip(asks, grants, strict=True):
            if not future.done():
                future.set_result(grant)
