"""Checks in front of the judge's routes: keys, sizes, load, request ids, metrics, access log.

Every error has OpenAI's shape. The access log holds no text of a question or an answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import ipaddress
import json
import logging
import re
import time
import uuid
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any

from fastapi.responses import Response
from prometheus_client import CollectorRegistry, Counter, Histogram

from mustsee.errors import UserError
from serve.body import Receive, Scope, Send, read, replay
from serve.judge_batch import Full, too_late

log = logging.getLogger("mustsee.judge.access")
CODES = {400: "bad_request", 401: "invalid_api_key", 404: "not_found", 405: "method_not_allowed",
         409: "conflict", 413: "too_large", 422: "invalid_request", 429: "overloaded",
         503: "unavailable"}  # fmt: skip
OPEN = ("/health", "/docs", "/openapi.json")  # to whoever asks: they tell of no text and no model
OLDEST = 600.0  # seconds; what claims to have waited longer has another clock
SMALL = 4_000  # bytes whose reading takes as long as what is done once for a request (mini)
REST_SECONDS = 5  # that a refused body is still read, and thrown away


@dataclass(frozen=True, kw_only=True)
class Limits:
    """`body` in bytes, `items` in one request, `characters` in one field (longer ones are that
    item's error), `seconds` for one request; `waiting`: requests at once, more are answered 429.
    """

    body: int = 4_000_000
    items: int = 512
    characters: int = 20_000
    seconds: float = 30.0
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
        if path == "/health" or (path in OPEN and self.digests):
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


class Door:
    """Lets in what is expected to be answered in time, by what the last requests took for each byte
    that was inside with them: a request may wait at places that no queue of the judge counts.
    """

    def __init__(self, limits: Limits, clock: Callable[[], float] = time.perf_counter) -> None:
        self._limits, self._clock = limits, clock
        self._inside, self._bytes, self._each = 0, 0, 0.0

    def enter(self, size: int, waited: float = 0.0) -> Callable[[int], None]:
        """What to call with the status when the request has been answered. `waited`: seconds that
        it took to the door. Raises Full.
        """
        size += SMALL
        held, patience = self._bytes + size, self._limits.seconds / 2
        if self._inside >= self._limits.waiting:
            raise Full("the judge has more requests than it can take", 1.0)
        seconds = waited + (held * self._each if self._inside else 0.0)
        if seconds > patience:
            raise too_late(seconds, patience)
        self._inside, self._bytes, began = self._inside + 1, held, self._clock()

        def leave(status: int) -> None:
            self._inside, self._bytes = self._inside - 1, self._bytes - size
            took = self._clock() - began
            if status == 200 or took >= self._limits.seconds:  # a refusal tells of no time
                each = took / held
                self._each = each if not self._each else 0.8 * self._each + 0.2 * each

        return leave


def waited(header: str, now: float) -> float:
    """Seconds since a request was sent, by the header X-Request-Start that proxies set: `t=` and
    the time since 1970 in seconds, milliseconds or microseconds. 0 where it says nothing sensible.
    """
    try:
        sent = float(header.strip().removeprefix("t="))
    except ValueError:
        return 0.0
    seconds = sent / (1e6 if sent > 1e14 else 1e3 if sent > 1e11 else 1)
    return now - seconds if 0 < now - seconds < OLDEST else 0.0


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


class Guard:
    """The outermost layer: request ids, keys, the size of bodies, whether there is time for them,
    metrics, the access log.
    """

    def __init__(self, app: Any, keys: Keys, limits: Limits, metrics: Metrics) -> None:
        self.app, self.keys, self.limits, self.metrics = app, keys, limits, metrics
        self._door = Door(limits)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = time.perf_counter()
        headers = {k.decode("latin-1").lower(): v.decode("latin-1") for k, v in scope["headers"]}
        given = headers.get("x-request-id", "")
        request_id = given if re.fullmatch(r"[\w.-]{1,64}", given) else uuid.uuid4().hex
        scope["state"] = {**scope.get("state", {}), "request_id": request_id, "items": 0}
        status, leave = 500, None

        async def reply(message: MutableMapping[str, Any]) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [
                    *message.get("headers", []), (b"x-request-id", request_id.encode())
                ]  # fmt: skip
            await send(message)

        try:
            refusal, body = await self._admit(scope, headers, receive)
            if refusal is None and scope["method"] == "POST":
                try:  # before the body is read as JSON: a refusal must cost little
                    late = waited(headers.get("x-request-start", ""), time.time())
                    leave = self._door.enter(len(body), late)
                except Full as full:
                    refusal = failure(429, str(full), full.headers)
            if refusal is not None:
                await refusal(scope, receive, reply)
            else:
                await self.app(scope, replay(body, receive), reply)
        finally:
            if leave is not None:
                leave(status)
            route = getattr(scope.get("route"), "path", "other")
            seconds = time.perf_counter() - started
            self.metrics.requests.labels(route, str(status)).inc()
            self.metrics.seconds.labels(route).observe(seconds)
            log.info(
                json.dumps(
                    {
                        "request_id": request_id,
                        "route": route,
                        "status": status,
                        "ms": round(1000 * seconds, 2),
                        "items": scope["state"]["items"],
                    }
                )
            )

    async def _admit(
        self, scope: Scope, headers: Mapping[str, str], receive: Receive
    ) -> tuple[Any, bytes]:
        host = (scope.get("client") or (None,))[0]
        if not self.keys.admit(headers.get("authorization", ""), host, scope["path"]):
            message = "missing or wrong key: send the header 'Authorization: Bearer KEY'"
            if not self.keys.digests:
                message = "this judge runs without keys and serves loopback only"
            await _read_on(receive)
            return failure(401, message, {"WWW-Authenticate": "Bearer"}), b""
        length = headers.get("content-length", "0")
        too_large = failure(
            413, f"the body is larger than {self.limits.body} bytes: send fewer items at a time"
        )
        if not length.isdigit() or int(length[:12]) > self.limits.body:
            await _read_on(receive)
            return too_large, b""
        body = await read(receive, self.limits.body)
        return (None, body) if body is not None else (too_large, b"")


async def _read_on(receive: Receive) -> None:
    """Throw away the body of a request that is refused whatever it holds."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(REST_SECONDS):
            await read(receive, 0)


__all__ = ["Door", "Guard", "Keys", "Limits", "Metrics", "failure"]
