"""Checks in front of the judge's routes: keys, sizes, load, request ids, metrics, access log.

Every error has OpenAI's shape. The access log holds no text of a question or an answer.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import ipaddress
import json
import logging
import math
import re
import time
import uuid
from collections import Counter as Tally
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any

from fastapi.responses import Response
from prometheus_client import CollectorRegistry, Counter, Histogram
from starlette.requests import ClientDisconnect

from mustsee.errors import UserError
from serve.body import Arrivals, Receive, Scope, Send, replay
from serve.judge_batch import Full

log = logging.getLogger("mustsee.judge.access")
CODES = {400: "bad_request", 401: "invalid_api_key", 404: "not_found", 405: "method_not_allowed",
         408: "timeout", 409: "conflict", 413: "too_large", 422: "invalid_request",
         429: "overloaded", 503: "unavailable"}  # fmt: skip
# to whoever asks: they tell of no text and no model
OPEN_PATHS = ("/health", "/docs", "/openapi.json")
MAX_CLAIMED_WAIT_S = 600.0  # seconds; what claims to have waited longer has another clock
SMALL_BYTES = 4_000  # bytes whose reading takes as long as what is done once for a request (mini)
# requests inside at once before the first answer has shown how long one takes
MAX_UNTIMED_REQUESTS = 8
MAX_ARRIVING_BODIES = 1024  # bodies that may arrive at once
ARRIVING_BYTES = 128_000_000  # of these bodies together
MAX_REFUSED_BODIES = 256  # refused bodies that are still read, and thrown away, at once
REFUSED_SECONDS = 5  # for each of them
MAX_RETRY_AFTER_S = 30.0  # seconds; nobody is told to come back later


@dataclass(frozen=True, kw_only=True)
class RequestLimits:
    """`body` in bytes, `items` in one request, `characters` in one field (longer ones are that
    item's error), `seconds` for one request, `arrival` seconds for its body to be whole;
    `waiting`: requests at once, more are answered 429.
    """

    body: int = 4_000_000
    items: int = 512
    characters: int = 20_000
    seconds: float = 30.0
    arrival: float = 10.0
    waiting: int = 256


@dataclass(frozen=True, kw_only=True)
class Keys:
    """SHA-256 digests of the keys that may call, so that no key is ever kept; `watchers` may read
    the metrics and nothing else. Without any that may call, only callers on loopback are served.
    """

    digests: tuple[str, ...] = ()
    watchers: tuple[str, ...] = ()

    @staticmethod
    def read(text: str, watchers: str = "") -> Keys:
        """From keys separated by commas or lines; a line may hold a # comment. Raises UserError."""
        return Keys(digests=Keys._digests(text), watchers=Keys._digests(watchers))

    @staticmethod
    def _digests(text: str) -> tuple[str, ...]:
        lines = [line.split("#")[0] for line in text.splitlines()]
        keys = [key.strip() for line in lines for key in line.split(",") if key.strip()]
        for key in keys:
            if len(key) < 16:
                raise UserError(
                    f"a judge key has {len(key)} characters: use at least 16, for example from "
                    "`openssl rand -hex 24`"
                )
        return tuple(hashlib.sha256(k.encode()).hexdigest() for k in keys)

    def admit(self, authorization: str, host: str | None, path: str = "/v1/") -> bool:
        """Whether a request with this header, from this address, may pass. In constant time."""
        if path == "/health" or (path in OPEN_PATHS and self.digests):
            return True
        if not self.digests:
            return _loopback(host)
        scheme, _, key = authorization.partition(" ")
        found = hashlib.sha256(key.strip().encode("utf-8", "surrogateescape")).hexdigest()
        allowed = self.digests + (self.watchers if path == "/metrics" else ())
        matches = [hmac.compare_digest(found, digest) for digest in allowed]
        return scheme.lower() == "bearer" and any(matches)


def _loopback(host: str | None) -> bool:
    try:
        return ipaddress.ip_address(host or "").is_loopback
    except ValueError:
        return False


class LatencyGate:
    """Lets in what is expected to be answered in time, by what the last requests took for each byte
    that was inside with them: a request may wait at places that no queue of the judge counts.

    `sharing`: several clients share it. Then none may hold more than it leaves free, so that there
    is always room for one more client.

    Who is turned away is told a time to come back, each the time of one request later than the one
    before: all at the same time they would find no more room than now.
    """

    def __init__(
        self,
        limits: RequestLimits,
        *,
        sharing: bool = False,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._limits, self._sharing, self._clock = limits, sharing, clock
        self._inside, self._bytes, self._each = 0, 0, 0.0
        self._invited = 0.0  # when the last of those turned away comes back
        self._inside_of, self._bytes_of = Tally[str](), Tally[str]()

    def check(self, size: int, waited: float = 0.0, client: str = "") -> None:
        """Raises Full where a request of `size` bytes cannot be let in now. `waited`: seconds that
        it took to the door.
        """
        size += SMALL_BYTES
        patience, most = self._limits.seconds / 2, self._limits.waiting
        if not self._each:
            most = min(most, MAX_UNTIMED_REQUESTS)
        own = self._inside_of[client] if self._sharing else 0
        if self._inside + own >= most:
            after = self._appointment(size, 1.0)
            raise Full("the judge has more requests than it can take", after)
        held = self._bytes + size + (self._bytes_of[client] if own else 0)
        seconds = waited + (held * self._each if self._inside else 0.0)
        if seconds > patience:
            after = self._appointment(size, seconds - patience / 2)
            raise Full("the judge has more work than it can do in time", after)

    def _appointment(self, size: int, least: float) -> float:
        """Seconds until a request that is turned away should come back."""
        now, each = self._clock(), size * self._each or 1 / MAX_UNTIMED_REQUESTS
        self._invited = min(max(self._invited, now) + each, now + MAX_RETRY_AFTER_S)
        return float(math.ceil(min(max(least, self._invited - now, 1), MAX_RETRY_AFTER_S)))

    def enter(self, size: int, waited: float = 0.0, client: str = "") -> Callable[[int], None]:
        """What to call with the status when the request has been answered. Raises Full."""
        self.check(size, waited, client)
        size += SMALL_BYTES
        self._count(client, 1, size)
        held, began = self._bytes, self._clock()

        def leave(status: int) -> None:
            self._count(client, -1, -size)
            took = self._clock() - began
            if status == 200 or took >= self._limits.seconds:  # a refusal tells of no time
                each = took / held
                self._each = each if not self._each else 0.8 * self._each + 0.2 * each

        return leave

    def _count(self, client: str, one: int, size: int) -> None:
        self._inside, self._bytes = self._inside + one, self._bytes + size
        self._inside_of[client] += one
        self._bytes_of[client] += size
        if not self._inside_of[client]:
            del self._inside_of[client], self._bytes_of[client]


def waited_seconds(header: str, now: float) -> float:
    """Seconds since a request was sent, by the header X-Request-Start that proxies set: `t=` and
    the time since 1970 in seconds, milliseconds or microseconds. 0 where it says nothing sensible.
    """
    try:
        sent = float(header.strip().removeprefix("t="))
    except ValueError:
        return 0.0
    seconds = sent / (1e6 if sent > 1e14 else 1e3 if sent > 1e11 else 1)
    return now - seconds if 0 < now - seconds < MAX_CLAIMED_WAIT_S else 0.0


class Metrics:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        one = self.registry
        self.requests = Counter("judge_requests", "requests", ["route", "status"], registry=one)
        self.items = Counter("judge_items", "items by outcome", ["outcome"], registry=one)
        self.tokens = Counter("judge_prompt_tokens", "prompt tokens read", registry=one)
        self.seconds = Histogram(
            "judge_request_seconds", "seconds to answer", ["route"], registry=one
        )


def failure(
    status: int,
    message: str,
    headers: Mapping[str, str] | None = None,
    param: str | None = None,
) -> Response:
    """An error in OpenAI's shape."""
    kind = "invalid_request_error" if status < 429 else "server_error"
    body = {"message": message, "type": kind, "param": param, "code": CODES.get(status, "error")}
    # ASCII only: a lone surrogate that a caller sent must not break the answer to it
    text = json.dumps({"error": body})
    return Response(text, status, dict(headers or {}), "application/json")


class JudgeGuard:
    """The outermost layer: request ids, keys, the size of bodies, whether there is time for them,
    metrics, the access log.

    What the headers decide is decided before a byte of the body is awaited; a request counts as
    inside once its body is whole.
    """

    def __init__(self, app: Any, keys: Keys, limits: RequestLimits, metrics: Metrics) -> None:
        self.app, self.keys, self.limits, self.metrics = app, keys, limits, metrics
        self._door = LatencyGate(limits, sharing=len(keys.digests) > 1)
        self._arrivals = Arrivals(
            seconds=limits.arrival, count=MAX_ARRIVING_BODIES, size=ARRIVING_BYTES
        )
        self._rest = Arrivals(seconds=REFUSED_SECONDS, count=MAX_REFUSED_BODIES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = time.perf_counter()
        headers = {k.decode("latin-1").lower(): v.decode("latin-1") for k, v in scope["headers"]}
        given = headers.get("x-request-id", "")
        request_id = given if re.fullmatch(r"[\w.-]{1,64}", given) else uuid.uuid4().hex
        scope["state"] = {**scope.get("state", {}), "request_id": request_id, "items": 0}
        status = 0  # of a client that went away before it was answered

        async def reply(message: MutableMapping[str, Any]) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [
                    *message.get("headers", []), (b"x-request-id", request_id.encode())
                ]  # fmt: skip
            await send(message)

        try:
            await self._answer(scope, headers, receive, reply)
        finally:
            self._note(scope, status, time.perf_counter() - started)

    async def _answer(
        self, scope: Scope, headers: Mapping[str, str], receive: Receive, send: Send
    ) -> None:
        client, late = _client(scope, headers), _waited_before(headers)
        refusal = self._refusal(scope, headers, client, late)
        if refusal is not None:
            if _closes(scope, headers):
                await self._refuse(refusal, client, scope, receive, send)
            else:  # the server throws away by itself what still comes of the body
                await refusal(scope, receive, send)
            return
        if not _scores(scope):
            await self.app(scope, replay(b"", receive), send)
            return
        try:
            body = await self._arrivals.read(client, receive, self.limits.body)
            leave = None if body is None else self._door.enter(len(body), late, client)
        except ClientDisconnect:
            return
        except TimeoutError:
            await self._overdue()(scope, receive, send)
            return
        except Full as full:
            await failure(429, str(full), full.headers)(scope, receive, send)
            return
        if body is None or leave is None:
            await self._too_large()(scope, receive, send)
            return
        status = 500

        async def note_status(message: MutableMapping[str, Any]) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            await self.app(scope, replay(body, receive), note_status)
        finally:
            leave(status)

    def _refusal(
        self, scope: Scope, headers: Mapping[str, str], client: str, late: float
    ) -> Response | None:
        """What is answered by the headers alone, or None."""
        host = (scope.get("client") or (None,))[0]
        if not self.keys.admit(headers.get("authorization", ""), host, scope["path"]):
            message = "missing or wrong key: send the header 'Authorization: Bearer KEY'"
            if not self.keys.digests:
                message = "this judge runs without keys and serves loopback only"
            return failure(401, message, {"WWW-Authenticate": "Bearer"})
        length = headers.get("content-length", "0")
        if not length.isdigit() or int(length[:12]) > self.limits.body:
            return self._too_large()
        if _scores(scope):
            try:
                self._door.check(int(length), late, client)
            except Full as full:
                return failure(429, str(full), full.headers)
        return None

    def _too_large(self) -> Response:
        return failure(
            413, f"the body is larger than {self.limits.body} bytes: send fewer items at a time"
        )

    def _overdue(self) -> Response:
        message = (
            f"the body did not arrive within {self.limits.arrival:g} s, or sooner where many "
            "bodies arrive at once: send it again, at once as a whole"
        )
        return failure(408, message, {"Connection": "close"})

    async def _refuse(
        self, refusal: Response, client: str, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Answer at once, then read the body on for a while and throw it away: a client whose
        connection is closed while it sends never sees the answer.
        """

        async def send_unfinished(message: MutableMapping[str, Any]) -> None:
            body = message["type"] == "http.response.body"
            await send({**message, "more_body": True} if body else message)

        await refusal(scope, receive, send_unfinished)
        with contextlib.suppress(TimeoutError, ClientDisconnect):
            await self._rest.read(client, receive, 0)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "other")
        self.metrics.requests.labels(route, str(status)).inc()
        self.metrics.seconds.labels(route).observe(seconds)
        state = scope["state"]
        line = {
            "request_id": state["request_id"], "route": route, "status": status,
            "ms": round(1000 * seconds, 2), "items": state["items"],
        }  # fmt: skip
        log.info(json.dumps(line))


def _scores(scope: Scope) -> bool:
    """Whether the body of a request is read at all: only what is to be scored comes in one."""
    return scope["method"] == "POST" and scope["path"].startswith("/v1/")


def _closes(scope: Scope, headers: Mapping[str, str]) -> bool:
    """Whether the connection ends with the answer."""
    return scope["http_version"] == "1.0" or "close" in headers.get("connection", "").lower()


def _client(scope: Scope, headers: Mapping[str, str]) -> str:
    """Whose request it is: the header with the key, hashed, or the address without one."""
    given = headers.get("authorization", "")
    if given:
        return hashlib.sha256(given.encode("utf-8", "surrogateescape")).hexdigest()
    return (scope.get("client") or ("",))[0]


def _waited_before(headers: Mapping[str, str]) -> float:
    return waited_seconds(headers.get("x-request-start", ""), time.time())


__all__ = ["JudgeGuard", "Keys", "LatencyGate", "Metrics", "RequestLimits", "failure"]
