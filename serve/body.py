"""The body of a request, read whole within a limit before the app sees it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
REST = 32_000_000  # bytes of a refused body that are still read, and thrown away


async def read(receive: Receive, limit: int) -> bytes | None:
    """The body, or None if it has more than `limit` bytes.

    What is too much is read all the same and thrown away, within bounds: a client whose connection
    is closed while it sends never sees why.
    """
    body, seen = bytearray(), 0
    while seen < limit + REST:
        message = await receive()
        part = message.get("body", b"")
        seen += len(part)
        if seen <= limit:
            body += part
        if message["type"] != "http.request" or not message.get("more_body", False):
            break
    return bytes(body) if seen <= limit else None


def replay(body: bytes, receive: Receive) -> Receive:
    """What the app receives: the body that was read, then what comes after it."""
    sent = False

    async def again() -> MutableMapping[str, Any]:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again
