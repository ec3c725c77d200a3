"""Protects the rater's page and the report: headers against foreign scripts and frames, a limit on
the size of a body, and a limit on the rate of requests.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from typing import Any

from starlette.datastructures import MutableHeaders
from starlette.requests import Request

from serve.body import Receive, Scope, Send, read, replay

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
