"""Checks before the judge's routes: keys, sizes, load, request ids, metrics, access log.

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
from serve.guard import Arrivals, Receive, Scope, Send, replay, whole_number
from serve.judge_batch import Full

log = logging.getLogger("mustsee.judge.access")
CODES = {400: "bad_request", 401: "invalid_api_key", 404: "not_found", 405: "method_not_allowed",
         408: "timeout", 409: "conflict", 413: "too_large", 422: "invalid_request",
         429: "overloaded", 503: "unavailable"}  # fmt: skip
# paths without a key: they reveal neither texts nor the model
OPEN_PATHS = ("/health", "/docs", "/openapi.json")
MAX_CLAIMED_WAIT_S = 600.0  # seconds; a longer claimed wait comes from a wrong clock
SMALL_BYTES = 4_000  # bytes that cost as much as the fixed work of a request (judge=mini)
# requests at once before the first reply, when the time of a request is unknown
MAX_UNTIMED_REQUESTS = 8
MAX_ARRIVING_BODIES = 1024  # bodies that may arrive at once
ARRIVING_BYTES = 128_000_000  # bytes of these bodies together
MAX_REFUSED_BODIES = 256  # refused bodies that are still read and discarded at once
REFUSED_SECONDS = 5  # seconds for reading one of them
MAX_RETRY_AFTER_S = 30.0  # largest Retry-After, in seconds


@dataclass(frozen=True, kw_only=True)
class RequestLimits:
    """The limits of requests.

    `body`: bytes. `items`: in one request. `characters`: in one field; a longer field is an error
    of its item. `seconds`: for one request. `arrival`: seconds in which its body must be complete.
    `waiting`: requests at once; more get a 429.
    """

    body: int = 4_000_000
    items: int = 512
    characters: int = 20_000
    seconds: float = 30.0
    arrival: float = 10.0
    waiting: int = 256


@dataclass(frozen=True, kw_only=True)
class Keys:
    """SHA-256 digests of the keys that may call; no key is stored.

    `watchers`: digests of keys that may only read the metrics. Without `digests`, only callers on
    loopback are served.
    """

    digests: tuple[str, ...] = ()
    watchers: tuple[str, ...] = ()

    @staticmethod
    def read(text: str, watchers: str = "") -> Keys:
        """Parse keys separated by commas or lines, with # comments. Raises UserError."""
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
        """Whether a request with this header and address may pass, compared in constant time."""
        if path == "/health" or (path in OPEN_PATHS and self.digests):
            return True
        if not self.digests:
            return _loopback(host)
        scheme, _, key = authorization.partition(" ")
        given = hashlib.sha256(key.strip().encode("utf-8", "surrogateescape")).hexdigest()
        allowed = self.digests + (self.watchers if path == "/metrics" else ())
        matches = [hmac.compare_digest(given, digest) for digest in allowed]
        return scheme.lower() == "bearer" and any(matches)


def _loopback(host: str | None) -> bool:
    try:
        return ipaddress.ip_address(host or "").is_loopback
    except ValueError:
        return False


class LatencyGate:
    """Admits requests that are expected to be answered in time.

    The expectation is the time of the last requests per byte that was in progress with them, since
    a request may wait where no queue of the judge counts it.

    `sharing`: several clients use the judge. No client may then use more than it leaves free, so
    there is always room for one more.

    Refused requests get different retry times, each later than the one before by the time of one
    request. If all came back at once, there would be no more room than now.
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
        self._each_of_trial = 0.0
        self._last_retry = 0.0  # time at which the last refused request may retry
        self._inside_of, self._bytes_of = Tally[str](), Tally[str]()

    def check(self, size: int, waited: float = 0.0, client: str = "") -> None:
        """Raise Full if a request of `size` bytes cannot be admitted now.

        `waited`: seconds since the client sent it.
        """
        size += SMALL_BYTES
        patience, max_requests = self._limits.seconds / 2, self._limits.waiting
        if not self._each:
            max_requests = min(max_requests, MAX_UNTIMED_REQUESTS)
        own = self._inside_of[client] if self._sharing else 0
        if self._inside + own >= max_requests:
            after = self._retry_after(size, 1.0)
            raise Full("the judge has more requests than it can take", after)
        in_progress = self._bytes + size + (self._bytes_of[client] if own else 0)
        seconds = waited + (in_progress * self._each if self._inside else 0.0)
        if seconds > patience:
            after = self._retry_after(size, seconds - patience / 2)
            raise Full("the judge has more work than it can do in time", after)

    def note_trial(self, seconds: float) -> None:
        """Take the seconds of a pair that was scored before the first request as the pace."""
        self._each_of_trial = seconds / SMALL_BYTES

    def seconds_alone(self, size: int) -> float:
        """The expected seconds of a request of `size` bytes while there is no other one; 0 before
        anything was scored.
        """
        return (size + SMALL_BYTES) * (self._each or self._each_of_trial)

    def _retry_after(self, size: int, least: float) -> float:
        """Seconds after which a refused request should retry."""
        now, each = self._clock(), size * self._each or 1 / MAX_UNTIMED_REQUESTS
        self._last_retry = min(max(self._last_retry, now) + each, now + MAX_RETRY_AFTER_S)
        return float(math.ceil(min(max(least, self._last_retry - now, 1), MAX_RETRY_AFTER_S)))

    def enter(self, size: int, waited: float = 0.0, client: str = "") -> Callable[[int], None]:
        """Admit a request; returns the function to call with its status. Raises Full."""
        self.check(size, waited, client)
        size += SMALL_BYTES
        self._count(client, 1, size)
        bytes_inside, started = self._bytes, self._clock()

        def leave(status: int) -> None:
            self._count(client, -1, -size)
            took = self._clock() - started
            if status == 200 or took >= self._limits.seconds:  # A refusal has no usable time.
                each = took / bytes_inside
                self._each = each if not self._each else 0.8 * self._each + 0.2 * each

        return leave

    def _count(self, client: str, one: int, size: int) -> None:
        self._inside, self._bytes = self._inside + one, self._bytes + size
        self._inside_of[client] += one
        self._bytes_of[client] += size
        if not self._inside_of[client]:
            del self._inside_of[client], self._bytes_of[client]


def waited_seconds(header: str, now: float) -> float:
    """Seconds since a request was sent, from the header X-Request-Start that proxies set.

    The header is `t=` and the time since 1970 in seconds, milliseconds or microseconds. Returns 0
    for an implausible value.
    """
    try:
        sent = float(header.strip().removeprefix("t="))
    except ValueError:
        return 0.0
    seconds = sent / (1e6 if sent > 1e14 else 1e3 if sent > 1e11 else 1)
    return now - seconds if 0 < now - seconds < MAX_CLAIMED_WAIT_S else 0.0


class Metrics:
    """The judge's Prometheus metrics, in a registry of their own."""

    def __init__(self) -> None:
        registry = self.registry = CollectorRegistry()
        self.requests = Counter(
            "judge_requests", "requests", ["route", "status"], registry=registry
        )
        self.items = Counter("judge_items", "items by outcome", ["outcome"], registry=registry)
        self.tokens = Counter("judge_prompt_tokens", "prompt tokens read", registry=registry)
        self.seconds = Histogram(
            "judge_request_seconds", "seconds to answer", ["route"], registry=registry
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
    # ASCII, so that a lone surrogate sent by a caller cannot break the reply.
    text = json.dumps({"error": body})
    return Response(text, status, dict(headers or {}), "application/json")


class JudgeGuard:
    """The outermost layer: request ids, keys, sizes of bodies, admission, metrics, access log.

    Headers are checked before the body is read. A request counts as in progress once its body is
    complete.
    """

    def __init__(
        self, app: Any, keys: Keys, limits: RequestLimits, metrics: Metrics, gate: LatencyGate
    ) -> None:
        self.app, self.keys, self.limits, self.metrics = app, keys, limits, metrics
        self._gate = gate
        self._arrivals = Arrivals(
            seconds=limits.arrival, count=MAX_ARRIVING_BODIES, size=ARRIVING_BYTES
        )
        self._discarded = Arrivals(seconds=REFUSED_SECONDS, count=MAX_REFUSED_BODIES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = time.perf_counter()
        headers = {k.decode("latin-1").lower(): v.decode("latin-1") for k, v in scope["headers"]}
        given = headers.get("x-request-id", "")
        request_id = given if re.fullmatch(r"[\w.-]{1,64}", given) else uuid.uuid4().hex
        scope["state"] = {**scope.get("state", {}), "request_id": request_id, "items": 0}
        status = 0  # stays 0 if the client leaves before the reply

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
            else:  # The server discards the rest of the body by itself.
                await refusal(scope, receive, send)
            return
        if not _scores(scope):
            await self.app(scope, replay(b"", receive), send)
            return
        try:
            body = await self._arrivals.read(client, receive, self.limits.body)
            leave = None if body is None else self._gate.enter(len(body), late, client)
        except ClientDisconnect:
            return
        except TimeoutError:
            await self._late_body()(scope, receive, send)
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
        """The reply that the headers alone decide, or None."""
        host = (scope.get("client") or (None,))[0]
        if not self.keys.admit(headers.get("authorization", ""), host, scope["path"]):
            message = "missing or wrong key: send the header 'Authorization: Bearer KEY'"
            if not self.keys.digests:
                message = "this judge runs without keys and serves only loopback"
            return failure(401, message, {"WWW-Authenticate": "Bearer"})
        length = whole_number(headers.get("content-length", "0"))
        if length is None or length > self.limits.body:
            return self._too_large()
        if _scores(scope):
            try:
                self._gate.check(length, late, client)
            except Full as full:
                return failure(429, str(full), full.headers)
        return None

    def _too_large(self) -> Response:
        return failure(
            413, f"the body is larger than {self.limits.body} bytes: send fewer items at a time"
        )

    def _late_body(self) -> Response:
        message = (
            f"the body did not arrive within {self.limits.arrival:g} s (less if many bodies arrive "
            "at once): send it again, without pauses"
        )
        return failure(408, message, {"Connection": "close"})

    async def _refuse(
        self, refusal: Response, client: str, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Reply at once, then read and discard the body for a while.

        A client whose connection is closed while it sends never sees the reply.
        """

        async def send_unfinished(message: MutableMapping[str, Any]) -> None:
            body = message["type"] == "http.response.body"
            await send({**message, "more_body": True} if body else message)

        await refusal(scope, receive, send_unfinished)
        with contextlib.suppress(TimeoutError, ClientDisconnect):
            await self._discarded.read(client, receive, 0)
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
    """Whether this is a scoring request, the only kind whose body is read."""
    return scope["method"] == "POST" and scope["path"].startswith("/v1/")


def _closes(scope: Scope, headers: Mapping[str, str]) -> bool:
    """Whether the connection closes after the reply."""
    return scope["http_version"] == "1.0" or "close" in headers.get("connection", "").lower()


def _client(scope: Scope, headers: Mapping[str, str]) -> str:
    """The sender of a request: the hashed key header, or the address without one."""
    given = headers.get("authorization", "")
    if given:
        return hashlib.sha256(given.encode("utf-8", "surrogateescape")).hexdigest()
    return (scope.get("client") or ("",))[0]


def _waited_before(headers: Mapping[str, str]) -> float:
    return waited_seconds(headers.get("x-request-start", ""), time.time())
