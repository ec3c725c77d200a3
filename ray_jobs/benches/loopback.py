"""An OpenAI-compatible server on 127.0.0.1 for tests and measurements, with faults by plan.

    python -m ray_jobs.benches.loopback --port 8099 --latency 2 --in-flight 256 --faults 0.2

It serves chat (text, pictures, JSON schema, logprobs), embeddings, audio transcriptions (a word per
burst of sound), `/v1/models`, and its own counters on `/stats`. Whether a request meets a fault is
decided by its content, the seed and the number of times it came before: the same run meets the same
faults.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import hashlib
import io
import json
import random
import threading
import time
import wave
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from aiohttp import web

from actors.llm.replay import read, spoken
from mustsee.llm import PICTURE as PICTURE_MARK
from mustsee.llm import Message, correction

Payload = Mapping[str, Any]
KINDS = (
    "429", "500", "503", "timeout", "slow", "truncated", "dropped", "empty", "refusal",
    "wrong_format", "html",
)  # fmt: skip
DIMENSIONS = 384
PICTURE = 258  # tokens, as Gemini counts a small one
CORRECTION = correction("|").partition("|")[0]


class Refused(Exception):
    """What a `reply` raises to have the request refused: an HTTP status, a message, a code, the
    parameter at fault.
    """

    def __init__(
        self, status: int, message: str, code: str | None = None, param: str | None = None
    ) -> None:
        super().__init__(status, message, code, param)
        self.status, self.message, self.code, self.param = status, message, code, param


@dataclass(frozen=True, kw_only=True)
class Faults:
    """A `share` of the requests fails, in ways drawn from `kinds`; the same request at most `most`
    times. `retry_after`: seconds, sent with 429 and 503. `hang`: seconds before a "timeout" is
    answered after all, and over which a "slow" body comes.
    """

    share: float = 0.0
    kinds: Sequence[str] = KINDS
    seed: int = 0
    most: int = 2
    retry_after: float = 0.05
    hang: float = 5.0

    def draw(self, content: str, before: int) -> str | None:
        """The fault that a request meets that came `before` times already."""
        rng = random.Random(f"{self.seed}/{content}/{before}")
        if before >= self.most or rng.random() >= self.share:
            return None
        return rng.choice(list(self.kinds))


def canned(payload: Payload) -> str:
    """A reply that depends on the question: an instance of the schema, or a short sentence."""
    schema = (payload.get("response_format") or {}).get("json_schema", {}).get("schema")
    if schema is not None:
        return json.dumps(instance(schema))
    return f"Reply {content_hash(_asked(payload['messages']))[:8]}."


def instance(schema: Any) -> Any:
    """Something small that a plain JSON schema allows."""
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type")
    if kind == "object":
        return {name: instance(inner) for name, inner in schema.get("properties", {}).items()}
    if kind == "array":
        return [instance(schema.get("items", {})) for _ in range(schema.get("minItems", 1))]
    return {"string": "text", "integer": 1, "number": 1.0, "boolean": True}.get(kind)


def recorded(path: str, otherwise: Callable[[Payload], str] = canned) -> Callable[[Payload], str]:
    """Replies from a file that `llm=replay` recorded; a question asked again in other words after a
    wrong form gets the reply to the question itself.
    """
    replies = {line["spoken"]: line["reply"]["text"] for line in read(path).values()}

    def reply(payload: Payload) -> str:
        messages = [_message(m) for m in _asked(payload["messages"])]
        reply = replies.get(spoken(messages, payload.get("seed", 0)))
        return otherwise(payload) if reply is None else reply

    return reply


def _asked(messages: Sequence[Payload]) -> Sequence[Payload]:
    """A conversation up to the question itself, without what was said about replies of a wrong
    form.
    """
    while len(messages) > 2 and str(messages[-1]["content"]).startswith(CORRECTION):
        messages = messages[:-2]
    return messages


def _message(said: Payload) -> Message:
    content = said["content"]
    if isinstance(content, str):
        return Message(said["role"], content)
    text = ""
    for part in content:
        text += part["text"] if part["type"] == "text" else PICTURE_MARK if text else ""
    urls = [part["image_url"]["url"] for part in content if part["type"] == "image_url"]
    images = tuple(base64.b64decode(url.partition(",")[2]) for url in urls)
    return Message(said["role"], text, images)


def content_hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def bursts(sound: bytes) -> list[tuple[float, float]]:
    """(start, end) in seconds of the loud stretches of a WAV file: what the server hears."""
    with wave.open(io.BytesIO(sound)) as file:
        rate = file.getframerate()
        samples = np.frombuffer(file.readframes(file.getnframes()), "<i2") / 32768
    step = rate // 50
    level = np.abs(samples[: len(samples) // step * step].reshape(-1, step)).max(axis=1)
    loud = np.flatnonzero(level > 0.05)
    pieces = np.split(loud, np.flatnonzero(np.diff(loud) > 5) + 1) if len(loud) else []
    return [(float(p[0]) / 50, float(p[-1] + 1) / 50) for p in pieces]


def words_of(sound: bytes) -> dict[str, Any]:
    """The transcription of a WAV file: every burst is the word "beep"."""
    heard = bursts(sound)
    words = [{"word": "beep", "start": start, "end": end} for start, end in heard]
    segments = [
        {"id": i, "start": start, "end": end, "text": " beep", "avg_logprob": -0.1}
        for i, (start, end) in enumerate(heard)
    ]
    text = " ".join("beep" for _ in heard)
    return {"language": "english", "text": text, "words": words, "segments": segments}


@dataclass(kw_only=True)
class Loopback:
    """The server, while the `with` block runs; `url` ends in /v1. `reply`: payload -> text.
    `in_flight`: requests served at once, the others wait. `thinks`: where thoughts stand, in the
    text between tags or in a field of their own; they count towards the limit of tokens. `key`: the
    only key that is let in. `echoes`: every error repeats the key that came.
    """

    reply: Callable[[Payload], str] = canned
    hear: Callable[[bytes], Mapping[str, Any]] = words_of
    faults: Faults = field(default_factory=Faults)
    latency: float = 0.0
    in_flight: int = 10_000
    thinks: Literal["not", "tags", "field"] = "not"
    key: str | None = None
    echoes: bool = False
    schemas: bool = True
    port: int = 0
    counts: Counter[str] = field(default_factory=Counter[str])
    payloads: list[Payload] | None = None

    def __enter__(self) -> Loopback:
        self._came: Counter[str] = Counter()
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
        """Requests by route, faults by kind, the most requests at once (`peak`), when the first one
        came (`first`, UNIX seconds).
        """
        return {**self.counts, "peak": self._peak, "first": self._first}

    async def _start(self) -> None:
        self._room = asyncio.Semaphore(self.in_flight)
        app = web.Application(client_max_size=1 << 28)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_post("/v1/embeddings", self._embeddings)
        app.router.add_post("/v1/audio/transcriptions", self._transcriptions)
        app.router.add_get("/v1/models", self._models)
        app.router.add_get("/stats", self._stats)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port, backlog=1024)
        await site.start()
        self.port = self._runner.addresses[0][1]
        self.url = f"http://127.0.0.1:{self.port}/v1"

    async def _models(self, request: web.Request) -> web.StreamResponse:
        return web.json_response({"object": "list", "data": [{"id": "loopback"}]})

    async def _stats(self, request: web.Request) -> web.StreamResponse:
        return web.json_response(self.stats)

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        payload = await request.json()
        if self.payloads is not None:
            self.payloads.append(payload)
        if not self.schemas and "response_format" in payload:
            return _error(400, "unknown field response_format", param="response_format")
        return await self._serve(
            request,
            "chat",
            content_hash(payload),
            lambda: completion(payload, self.reply, self.thinks),
        )

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
        if self.key is not None and request.headers.get("authorization") != f"Bearer {self.key}":
            return _error(401, "wrong key", code="invalid_api_key")
        before = self._came[content]
        self._came[content] += 1
        fault = self.faults.draw(content, before)
        if fault is not None:
            self.counts[f"fault {fault}"] += 1
        self._now += 1
        self._peak = max(self._peak, self._now)
        try:
            async with self._room:
                await asyncio.sleep(self.latency)
                if fault is not None:
                    return await self._fail(request, fault, answer())
                return web.json_response(answer())
        except Refused as refused:
            said = refused.message + self._echo(request)
            return _error(refused.status, said, code=refused.code, param=refused.param)
        finally:
            self._now -= 1

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
        return web.json_response(_odd(answer, fault))

    async def _trickle(self, request: web.Request, body: bytes, *, cut: bool) -> web.StreamResponse:
        """The body in ten pieces over `hang` seconds, or its first piece and a lost connection."""
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


def _odd(answer: Any, fault: str) -> Any:
    """A well-formed response that is not what was asked for."""
    if "choices" not in answer:  # embeddings, transcriptions
        return {"object": "error"}
    if fault == "empty":
        return {**answer, "choices": []}
    choice = dict(answer["choices"][0])
    refused = {"role": "assistant", "content": None, "refusal": "I cannot help with that."}
    wrong = {"role": "assistant", "content": "Certainly! As you can see, it depends."}
    choice["message"] = refused if fault == "refusal" else wrong
    return {**answer, "choices": [choice]}


def _error(status: int, message: str, *, headers: Any = None, **more: Any) -> web.Response:
    error = {"message": message, "type": "error", "param": None, "code": None, **more}
    return web.json_response({"error": error}, status=status, headers=headers)


THOUGHT = "Okay, the user wants QUESTION: Is it? ANSWER: B. Wait, let me look at it once more." * 40


def completion(
    payload: Payload,
    reply: Callable[[Payload], str],
    thinks: Literal["not", "tags", "field"] = "not",
) -> dict[str, Any]:
    """A chat completion with the usage that four characters a token and `PICTURE` tokens a picture
    give; what goes beyond the limit of tokens is cut off.
    """
    text, thought = reply(payload), "" if thinks == "not" else THOUGHT
    limit = payload.get("max_completion_tokens") or payload.get("max_tokens") or 1 << 30
    said = [_message(m) for m in payload["messages"]]
    tokens_in = sum(len(m.text) // 4 + 1 + PICTURE * len(m.images) for m in said)
    whole = f"<think>{thought}</think>\n{text}" if thinks == "tags" else text
    room = 4 * limit - (len(thought) if thinks == "field" else 0)
    message = {"role": "assistant", "content": whole[: max(0, room)], "refusal": None}
    if thinks == "field":
        message["reasoning_content"] = thought[: 4 * limit]
    tokens_out = min((len(whole) + (len(thought) if thinks == "field" else 0)) // 4 + 1, limit)
    choice: dict[str, Any] = {
        "index": 0,
        "message": message,
        "finish_reason": "length" if len(whole) > room else "stop",
        "logprobs": None,
    }
    if payload.get("logprobs"):
        token = {"token": text, "logprob": -0.1, "bytes": None}
        other = {"token": "other", "logprob": -2.5, "bytes": None}
        choice["logprobs"] = {"content": [{**token, "top_logprobs": [token, other]}]}
    return {
        "id": f"chatcmpl-{content_hash(payload)[:12]}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": payload["model"],
        "choices": [choice],
        "usage": {
            "prompt_tokens": tokens_in,
            "completion_tokens": tokens_out,
            "total_tokens": tokens_in + tokens_out,
        },
    }


def embeddings(payload: Payload) -> dict[str, Any]:
    """Unit vectors drawn by the text's hash."""
    texts = [payload["input"]] if isinstance(payload["input"], str) else payload["input"]
    data: list[dict[str, Any]] = []
    for i, text in enumerate(texts):
        seed = int(hashlib.sha256(text.encode()).hexdigest()[:8], 16)
        vector = np.random.default_rng(seed).normal(size=payload.get("dimensions", DIMENSIONS))
        vector = (vector / np.linalg.norm(vector)).astype("<f4")
        packed = payload.get("encoding_format") == "base64"
        value = base64.b64encode(vector.tobytes()).decode() if packed else vector.tolist()
        data.append({"object": "embedding", "index": i, "embedding": value})
    tokens = sum(len(text) // 4 + 1 for text in texts)
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "model": payload["model"], "data": data, "usage": usage}


def main() -> None:
    """Serve until interrupted; the first line says where."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before each answer")
    parser.add_argument("--in-flight", type=int, default=10_000, help="requests served at once")
    parser.add_argument("--faults", type=float, default=0.0, help="share of requests that fail")
    parser.add_argument("--kinds", nargs="*", default=KINDS, help="of faults: %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="of the faults")
    parser.add_argument("--thinks", choices=("not", "tags", "field"), default="not")
    parser.add_argument("--replies", help="file that llm=replay recorded")
    args = parser.parse_args()
    reply = recorded(args.replies) if args.replies else canned
    faults = Faults(share=args.faults, kinds=args.kinds, seed=args.seed)
    with Loopback(
        reply=reply,
        faults=faults,
        latency=args.latency,
        in_flight=args.in_flight,
        thinks=args.thinks,
        port=args.port,
    ) as server:
        print(server.url, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
