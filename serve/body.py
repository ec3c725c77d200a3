"""Bodies of requests: read whole, within a limit of bytes and of time, before an app sees them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

from starlette.requests import ClientDisconnect

Scope = MutableMapping[str, Any]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
MAX_DRAINED_BYTES = 32_000_000  # bytes of a refused body that are still read, and thrown away


async def read(
    receive: Receive, limit: int, grew: Callable[[int], None] | None = None
) -> bytes | None:
    """The body, or None if it has more than `limit` bytes. `grew` is told the bytes that are held.

    What is too much is read all the same and thrown away, within bounds: a client whose connection
    is closed while it sends never sees why. Raises ClientDisconnect where the client went away
    before the body was whole.
    """
    body, seen = bytearray(), 0
    while seen < limit + MAX_DRAINED_BYTES:
        message = await receive()
        if message["type"] != "http.request":
            raise ClientDisconnect
        part = message.get("body", b"")
        seen += len(part)
        if seen <= limit:
            body += part
            if grew is not None:
                grew(len(body))
        if not message.get("more_body", False):
            break
    return bytes(body) if seen <= limit else None


def replay(body: bytes, receive: Receive) -> Receive:
    """What the app receives: the body that was read, then what comes after it."""
    sent = False

    async def receive_again() -> MutableMapping[str, Any]:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive_again


@dataclass(eq=False)
class _Arriving:
    deadline: asyncio.Timeout
    size: int = 0


class Arrivals:
    """Bodies that are still arriving: each has `seconds` to be whole; together there are at most
    `count` of them, with at most `size` bytes.

    One more than that ends the oldest body of the client that has most of them. So a client
    that sends only halves displaces its own halves, and a body that arrives at once is never the
    oldest.
    """

    def __init__(self, *, seconds: float, count: int, size: int = MAX_DRAINED_BYTES) -> None:
        self._seconds, self._count, self._size = seconds, count, size
        self._open: dict[str, dict[_Arriving, None]] = {}  # by client, oldest first

    async def read(self, client: str, receive: Receive, limit: int) -> bytes | None:
        """As `read`. Raises TimeoutError for a body that was not whole in time, or whose place was
        needed.
        """
        async with asyncio.timeout(self._seconds) as deadline:
            one = _Arriving(deadline)
            self._open.setdefault(client, {})[one] = None
            self._make_room()

            def on_growth(size: int) -> None:
                one.size = size
                self._make_room()

            try:
                return await read(receive, limit, on_growth)
            finally:
                self._close(client, one)

    def _make_room(self) -> None:
        now = asyncio.get_running_loop().time()
        while self._open and self._used(*self._open.values()) > 1:
            client = max(self._open, key=lambda c: self._used(self._open[c]))
            oldest = next(iter(self._open[client]))
            self._close(client, oldest)
            if not oldest.deadline.expired():
                oldest.deadline.reschedule(now)

    def _used(self, *bodies: dict[_Arriving, None]) -> float:
        """The share of the room that these bodies take: of the places or of the bytes."""
        count = sum(map(len, bodies))
        size = sum(one.size for several in bodies for one in several)
        return max(count / self._count, size / self._size)

    def _close(self, client: str, one: _Arriving) -> None:
        own = self._open.get(client, {})
        own.pop(one, None)
        if not own:
            self._open.pop(client, None)


__all__ = ["Arrivals", "Receive", "Scope", "Send", "read", "replay"]
