"""Guards of HTTP services: a body is read whole, within limits of bytes and time, before an app
sees it; the rater's page and the report have headers against foreign scripts and frames, and a
limit on the rate of requests.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter, deque
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from typing import Any

from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

Scope = MutableMapping[str, Any]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
MAX_DRAINED_BYTES = 32_000_000  # bytes of a refused body that are still read and discarded
MAX_BODY_BYTES = 64_000  # bytes of a posted form
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; media-src 'self'; img-src data:;"
    " connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cross-origin-resource-policy": "same-origin",
}


def whole_number(text: str) -> int | None:
    """Return the number of at most 12 decimal digits in an address, a header or a form; None for
    any other text. `int` raises ValueError for thousands of digits.
    """
    return int(text) if len(text) <= 12 and text.isascii() and text.isdecimal() else None


async def read(
    receive: Receive, limit: int, grew: Callable[[int], None] | None = None
) -> bytes | None:
    """The body, or None if it has more than `limit` bytes. `grew` is called with the bytes so far.

    Up to `MAX_DRAINED_BYTES` beyond the limit are read and discarded, because a client whose
    connection is closed while it sends does not see the reply. Raises ClientDisconnect if the
    client leaves before the body is complete.
    """
    body, seen = bytearray(), 0
    while seen < limit + MAX_DRAINED_BYTES:
        message = await receive()
        if message["type"] != "http.request":
            raise ClientDisconnect
        chunk = message.get("body", b"")
        seen += len(chunk)
        if seen <= limit:
            body += chunk
            if grew is not None:
                grew(len(body))
        if not message.get("more_body", False):
            break
    return bytes(body) if seen <= limit else None


def replay(body: bytes, receive: Receive) -> Receive:
    """A `receive` for the app: the body that was read, then the messages after it."""
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
    """Limits the bodies that are arriving: `seconds` for each, at most `count` with `size` bytes.

    A body beyond these limits ends the oldest body of the client that uses most of them. A client
    that sends incomplete bodies thus only displaces its own, and a body that arrives in one go is
    never the oldest.
    """

    def __init__(self, *, seconds: float, count: int, size: int = MAX_DRAINED_BYTES) -> None:
        self._seconds, self._count, self._size = seconds, count, size
        self._open: dict[str, dict[_Arriving, None]] = {}  # by client, oldest first

    async def read(self, client: str, receive: Receive, limit: int) -> bytes | None:
        """Read a body as `read` does.

        Raises TimeoutError if it is not complete in time, or is displaced by another body.
        """
        async with asyncio.timeout(self._seconds) as deadline:
            arriving = _Arriving(deadline)
            self._open.setdefault(client, {})[arriving] = None
            self._make_room()

            def on_growth(size: int) -> None:
                arriving.size = size
                self._make_room()

            try:
                return await read(receive, limit, on_growth)
            finally:
                self._close(client, arriving)

    def _make_room(self) -> None:
        now = asyncio.get_running_loop().time()
        while self._open and self._used(*self._open.values()) > 1:
            client = max(self._open, key=lambda c: self._used(self._open[c]))
            oldest = next(iter(self._open[client]))
            self._close(client, oldest)
            if not oldest.deadline.expired():
                oldest.deadline.reschedule(now)

    def _used(self, *bodies: dict[_Arriving, None]) -> float:
        """The share of the limits that these bodies use, of the count or of the bytes."""
        count = sum(map(len, bodies))
        size = sum(one.size for several in bodies for one in several)
        return max(count / self._count, size / self._size)

    def _close(self, client: str, body: _Arriving) -> None:
        own = self._open.get(client, {})
        own.pop(body, None)
        if not own:
            self._open.pop(client, None)


@dataclass(kw_only=True)
class RequestRate:
    """Limits of requests a minute: for a rater, whose videos come in many ranges (`rater`), and for
    an address without a valid link (`stranger`).
    """

    rater: int = 600
    stranger: int = 60
    _passed: deque[tuple[float, str]] = field(default_factory=deque[tuple[float, str]])
    _counts: Counter[str] = field(default_factory=Counter[str])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def spend(self, who: str, now: float, most: int) -> bool:
        """Whether a request is within the limit of the last 60 s; only then is it counted."""
        with self._lock:
            while self._passed and self._passed[0][0] <= now - 60:
                _, earlier = self._passed.popleft()
                self._counts[earlier] -= 1
                if not self._counts[earlier]:
                    del self._counts[earlier]
            if self._counts[who] >= most:
                return False
            self._counts[who] += 1
            self._passed.append((now, who))
            return True


def is_foreign(request: Request) -> bool:
    """Whether the browser says that a page of another site, or of another port, sent the request.

    Browsers send Sec-Fetch-Site only to https and loopback addresses, Origin to the others too.
    """
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site not in ("same-origin", "none")
    origin = request.headers.get("origin")
    return origin is not None and origin.partition("://")[2] != request.headers.get("host")


class RaterGuard:
    """Adds `HEADERS` and the content policy to every reply, and refuses bodies over
    `MAX_BODY_BYTES`.
    """

    def __init__(self, app: Callable[..., Awaitable[None]], policy: str = POLICY) -> None:
        self._app, self._headers = app, {**HEADERS, "content-security-policy": policy}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if scope["method"] == "POST":
            body = await read(receive, MAX_BODY_BYTES)
            if body is None:
                await _refuse(self._guarded(send))
                return
            receive = replay(body, receive)
        await self._app(scope, receive, self._guarded(send))

    def _guarded(self, send: Send) -> Send:
        async def send_guarded(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers[name] = value
                video = headers.get("content-type", "").startswith("video/")
                headers["cache-control"] = "private, max-age=3600" if video else "no-store"
            await send(message)

        return send_guarded


async def _refuse(send: Send) -> None:
    await send({
        "type": "http.response.start", "status": 413,
        "headers": [(b"content-type", b"text/plain"), (b"connection", b"close")],
    })  # fmt: skip
    await send({"type": "http.response.body", "body": b"too large\n"})


def plain(text: str, status: int) -> Response:
    """A reply of one line of text."""
    return Response(text + "\n", status, media_type="text/plain")
