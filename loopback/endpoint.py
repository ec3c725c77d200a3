"""An OpenAI-compatible server on 127.0.0.1 for tests and benchmarks, with planned faults.

    python -m loopback.endpoint --port 8099 --latency 2 --in-flight 256 --faults 0.2

It serves chat (text, images, videos, JSON schema, logprobs), the same by batch, embeddings, audio
transcriptions (a word for each burst of sound), `/v1/models`, and its own counters on `/stats`. The
fault of a request depends on its content, the seed and the number of earlier equal requests: the
same run meets the same faults.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import random
import resource
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from loopback.batches import BATCH_FAULTS, Batches
from loopback.refusals import FAMILIES, HiddenLimit, Refuse, refuse_in_words_of
from loopback.replies import (
    Payload,
    Thinks,
    canned_reply,
    completion,
    content_hash,
    embeddings,
    recorded_replies,
    words_of,
)
from loopback.schemas import SchemaReply, Schemas

TRIAL = [{"role": "user", "content": "Hello"}]  # messages of the trial in `actors.calls.trial`
KINDS = (
    "429", "500", "503", "timeout", "slow", "truncated", "dropped", "empty", "refusal",
    "wrong_format", "html",
)  # fmt: skip


class RefusedRequest(Exception):
    """Raised by a `reply` to refuse the request with an HTTP status, a message, a code and the
    parameter at fault.
    """

    def __init__(
        self, status: int, message: str, code: str | None = None, param: str | None = None
    ) -> None:
        super().__init__(status, message, code, param)
        self.status, self.message, self.code, self.param = status, message, code, param


@dataclass(frozen=True, kw_only=True)
class Faults:
    """Fail a `share` of the requests in ways drawn from `kinds`, the same request at most `most`
    times. `retry_after`: seconds, sent with 429 and 503. `hang`: seconds until a "timeout" is
    answered, and duration of a "slow" body.
    """

    share: float = 0.0
    kinds: Sequence[str] = KINDS
    seed: int = 0
    most: int = 2
    retry_after: float = 0.05
    hang: float = 5.0

    def draw(self, content: str, before: int) -> str | None:
        """Return the fault of a request that has come `before` times already, or None."""
        rng = random.Random(f"{self.seed}/{content}/{before}")
        if before >= self.most or rng.random() >= self.share:
            return None
        return rng.choice(list(self.kinds))


@dataclass(kw_only=True)
class Loopback:
    """The server, which runs within a `with` block; `url` ends in /v1.

    `reply`: payload -> text. `hear`: WAV file -> transcription. `in_flight`: requests served at
    once; others wait. `thinks`: reasoning between tags or in a field of its own, which counts
    towards the token limit. `key`: the only accepted key. `echoes`: every error repeats the
    received key. `schemas`: honour a request's schema, refuse the request for it, or ignore it.
    `refuse`: payload -> status and body of a refusal (`loopback.refusals`), counted as "refused".
    `hidden`: a limit beyond which calls are refused. `gate`: replies wait until it is set.
    `models`: the served models; None: any. `meter`: factor on the counted tokens, given the number
    of earlier replies. `headers`: added to every reply. `payloads`: collects the chat payloads.
    """

    reply: Callable[[Payload], str] = canned_reply
    hear: Callable[[bytes], Mapping[str, Any]] = words_of
    faults: Faults = field(default_factory=Faults)
    latency: float = 0.0
    in_flight: int = 10_000
    thinks: Thinks = "not"
    key: str | None = None
    models: Sequence[str] | None = None
    echoes: bool = False
    schemas: Schemas = "ignored"
    refuse: Refuse = field(default=lambda payload: None)
    hidden: HiddenLimit | None = None
    batches: Batches = field(default_factory=Batches)
    gate: threading.Event | None = None
    meter: Callable[[int], float] = lambda before: 1.0
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    port: int = 0
    counts: Counter[str] = field(default_factory=Counter[str])
    payloads: list[Payload] | None = None

    def __enter__(self) -> Loopback:
        self._came: Counter[str] = Counter()
        self.used: list[Mapping[str, int]] = []  # counted tokens of each reply
        self._honouring = SchemaReply(lambda payload: self.reply(payload))
        self._now = self._peak = 0
        self._first = 0.0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(timeout=30)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result(timeout=30)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=30)
        self._loop.close()

    @property
    def stats(self) -> dict[str, float]:
        """Requests by route, faults by kind, the most requests in flight (`peak`), the time of the
        first one (`first`, UNIX seconds), and the CPU seconds of the server's process.
        """
        used = resource.getrusage(resource.RUSAGE_SELF)
        cpu = used.ru_utime + used.ru_stime
        own = {"peak": self._peak, "first": self._first, "cpu": cpu}
        return {**self.counts, **self.batches.counts, **own}

    def _reply(self, payload: Payload) -> str:
        return (self._honouring if self.schemas == "honoured" else self.reply)(payload)

    async def _start(self) -> None:
        self._slots = asyncio.Semaphore(self.in_flight)
        app = web.Application(client_max_size=1 << 28)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_post("/v1/embeddings", self._embeddings)
        app.router.add_post("/v1/audio/transcriptions", self._transcriptions)
        app.router.add_get("/v1/models", self._listing)
        app.router.add_get("/v1/models/{name}", self._listing)
        app.router.add_get("/stats", self._stats)
        self.batches.routes(app, self._in_batch)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port, backlog=1024)
        await site.start()
        self.port = self._runner.addresses[0][1]
        self.url = f"http://127.0.0.1:{self.port}/v1"

    async def _listing(self, request: web.Request) -> web.StreamResponse:
        """List the models, without faults."""
        self.counts["models"] += 1
        if self._has_wrong_key(request):
            return _error(401, "wrong key", code="invalid_api_key")
        name = request.match_info.get("name")
        if name is None:
            models = [{"id": each, "object": "model"} for each in self.models or ("loopback",)]
            return web.json_response({"object": "list", "data": models})
        if self.models is not None and name not in self.models:
            return _error(404, f"no model {name}", code="model_not_found")
        return web.json_response({"id": name, "object": "model"})

    async def _stats(self, request: web.Request) -> web.StreamResponse:
        return web.json_response(self.stats)

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        payload = await request.json()
        if self.models is not None and payload["model"] not in self.models:
            return _error(404, f"no model {payload['model']}", code="model_not_found")
        is_trial = payload["messages"] == TRIAL
        self.counts["trials"] += is_trial
        if self.payloads is not None and not is_trial:
            self.payloads.append(payload)
        if (refused := self._refused(payload)) is not None:
            await asyncio.sleep(self.latency)
            return web.json_response(refused[1], status=refused[0])
        if is_trial:
            return web.json_response(completion(payload, canned_reply))
        return await self._serve(
            request,
            "chat",
            content_hash(payload),
            lambda: self._metered(completion(payload, self._reply, self.thinks)),
        )

    def _refused(self, payload: Payload) -> tuple[int, Any] | None:
        """Return the status and body of a refused chat, or None."""
        refused = self.refuse(payload)
        if refused is None and self.schemas == "refused" and "response_format" in payload:
            error = {"message": "unknown field response_format", "param": "response_format"}
            refused = 400, {"error": error}
        self.counts["refused"] += refused is not None
        return refused

    def _metered(self, answer: dict[str, Any]) -> dict[str, Any]:
        factor = self.meter(self.counts["metered"])
        self.counts["metered"] += 1
        usage = {name: round(factor * tokens) for name, tokens in answer["usage"].items()}
        self.used.append(usage)
        return {**answer, "usage": usage}

    def _in_batch(self, payload: Payload) -> tuple[int, Any]:
        """Return the chat route's status and reply for one call of a batch."""
        if self.payloads is not None:
            self.payloads.append(payload)
        if (refused := self._refused(payload)) is not None:
            return refused
        return 200, completion(payload, self._reply, self.thinks)

    async def _embeddings(self, request: web.Request) -> web.StreamResponse:
        payload = await request.json()
        return await self._serve(
            request, "embeddings", content_hash(payload), lambda: embeddings(payload)
        )

    async def _transcriptions(self, request: web.Request) -> web.StreamResponse:
        form = await request.post()
        sound = form["file"].file.read()  # type: ignore[union-attr]
        digest = hashlib.sha256(sound).hexdigest()
        return await self._serve(request, "transcriptions", digest, lambda: self.hear(sound))

    async def _serve(
        self, request: web.Request, route: str, content: str, answer: Callable[[], Any]
    ) -> web.StreamResponse:
        self.counts[route] += 1
        self._first = self._first or time.time()
        if self._has_wrong_key(request):
            return _error(401, "wrong key", code="invalid_api_key")
        before = self._came[content]
        self._came[content] += 1
        if self.hidden is not None and (wait := self.hidden.enter()) is not None:
            self._came[content] -= 1
            return _error(429, "too many", headers={"retry-after": f"{wait:.3f}"} if wait else None)
        fault = self.faults.draw(content, before)
        if fault is not None:
            self.counts[f"fault {fault}"] += 1
        self._now += 1
        self._peak = max(self._peak, self._now)
        try:
            async with self._slots:
                await asyncio.sleep(self.latency)
                while self.gate is not None and not self.gate.is_set():
                    await asyncio.sleep(0.01)
                if fault is not None:
                    return await self._fail(request, fault, answer())
                return web.json_response(answer(), headers=self.headers)
        except RefusedRequest as refused:
            message = refused.message + self._echo(request)
            return _error(refused.status, message, code=refused.code, param=refused.param)
        finally:
            self._now -= 1
            if self.hidden is not None:
                self.hidden.leave()

    def _has_wrong_key(self, request: web.Request) -> bool:
        sent = request.headers.get("authorization")
        return self.key is not None and sent != f"Bearer {self.key}"

    def _echo(self, request: web.Request) -> str:
        return f" (you sent {request.headers.get('authorization')})" if self.echoes else ""

    async def _fail(self, request: web.Request, fault: str, answer: Any) -> web.StreamResponse:
        wait = {"retry-after": f"{self.faults.retry_after:g}"}
        body = json.dumps(answer).encode()
        if fault in ("429", "503"):
            return _error(int(fault), "busy" + self._echo(request), headers=wait)
        if fault == "500":
            return _error(500, "something broke" + self._echo(request))
        if fault == "html":
            return web.Response(text="<html><h1>Bad gateway</h1></html>", content_type="text/html")
        if fault == "truncated":
            return web.Response(body=body[: len(body) // 2], content_type="application/json")
        if fault == "timeout":
            await asyncio.sleep(self.faults.hang)
            return web.json_response(answer)
        if fault in ("slow", "dropped"):
            return await self._trickle(request, body, cut=fault == "dropped")
        return web.json_response(_malformed(answer, fault, self.schemas))

    async def _trickle(self, request: web.Request, body: bytes, *, cut: bool) -> web.StreamResponse:
        """Send the body in ten chunks over `hang` seconds, or one chunk and a broken connection."""
        response = web.StreamResponse(headers={"content-type": "application/json"})
        response.content_length = len(body)
        await response.prepare(request)
        for i in range(10):
            await response.write(body[len(body) * i // 10 : len(body) * (i + 1) // 10])
            if cut:
                assert request.transport is not None
                request.transport.abort()
                break
            await asyncio.sleep(self.faults.hang / 10)
        return response


def _malformed(answer: Any, fault: str, schemas: Schemas) -> Any:
    """Return a well-formed response with other content than requested. A reply that honours a
    schema keeps its form.
    """
    if "choices" not in answer:  # embeddings, transcriptions
        return {"object": "error"}
    if fault == "empty":
        return {**answer, "choices": []}
    choice = dict(answer["choices"][0])
    honours_schema = schemas == "honoured" and str(choice["message"]["content"]).startswith("{")
    if honours_schema and fault == "wrong_format":
        return answer
    refused = {"role": "assistant", "content": None, "refusal": "I cannot help with that."}
    wrong = {"role": "assistant", "content": "Certainly! As you can see, it depends."}
    choice["message"] = refused if fault == "refusal" else wrong
    return {**answer, "choices": [choice]}


def _error(status: int, message: str, *, headers: Any = None, **more: Any) -> web.Response:
    error = {"message": message, "type": "error", "param": None, "code": None, **more}
    return web.json_response({"error": error}, status=status, headers=headers)


def main() -> None:
    """Serve until interrupted; the first line of stdout is the address."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before each reply")
    parser.add_argument("--in-flight", type=int, default=10_000, help="requests served at once")
    parser.add_argument("--faults", type=float, default=0.0, help="share of requests that fail")
    parser.add_argument("--kinds", nargs="*", default=KINDS, help="kinds of faults: %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="seed of the faults")
    parser.add_argument("--schemas", choices=("honoured", "refused", "ignored"), default="ignored")
    parser.add_argument("--refuses", nargs="*", default=(), help="parameters that are refused")
    parser.add_argument("--words", choices=tuple(FAMILIES), default="openai", help="of refusals")
    parser.add_argument("--thinks", choices=("not", "tags", "field"), default="not")
    parser.add_argument("--batch-seconds", type=float, default=0.0, help="duration of a batch")
    parser.add_argument("--batch-faults", nargs="*", default=(), choices=BATCH_FAULTS)
    parser.add_argument("--replies", help="file that llm=replay recorded")
    args = parser.parse_args()
    reply = recorded_replies(args.replies) if args.replies else canned_reply
    faults = Faults(share=args.faults, kinds=args.kinds, seed=args.seed)
    with Loopback(
        reply=reply,
        faults=faults,
        latency=args.latency,
        in_flight=args.in_flight,
        thinks=args.thinks,
        schemas=args.schemas,
        refuse=refuse_in_words_of(args.words, args.refuses),
        batches=Batches(seconds=args.batch_seconds, faults=args.batch_faults),
        port=args.port,
    ) as server:
        print(server.url, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
