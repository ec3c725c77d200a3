"""The judge's routes as an ASGI app. Keys, limits and metrics are in `judge_guard`.

The app depends on neither Ray nor models: a `Backend` scores. Every error has OpenAI's shape, and
no request, however malformed, ends in a traceback or a 500.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Protocol

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, PlainTextResponse, Response
from prometheus_client import generate_latest
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from mustsee.errors import Transient
from mustsee.judge.judge import JudgeItem, Score
from serve.judge_batch import Full
from serve.judge_guard import JudgeGuard, Keys, LatencyGate, Metrics, RequestLimits, failure
from serve.judge_shapes import (
    ERRORS,
    ChatReply,
    ChatRequest,
    Health,
    Models,
    ScoreReply,
    ScoreRequest,
    VerdictReply,
    VerdictRequest,
    page,
)

HEALTH_WAIT_S = 1.0  # seconds that a health check waits for a starting judge
RETRY_AFTER_HEADER = {"Retry-After": "5"}
CLOSED_POLICY_HEADER = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"}


class Backend(Protocol):
    """A judge in this process, or behind a Serve handle."""

    async def describe(self) -> Mapping[str, Any]:
        """Return `model`, `prompt_version`, `threshold`, `record` and `limit`."""
        ...

    async def score(self, items: list[JudgeItem], threshold: float | None) -> list[Score]:
        """Score the items. Raises Transient, with `retry_after`, if it cannot take them."""
        ...

    async def ready(self) -> str | None:
        """Return None if a fixed pair is scored correctly, otherwise the fault."""
        ...


def create_app(backend: Backend, keys: Keys, limits: RequestLimits) -> FastAPI:
    """The app. Every route except `judge_guard.OPEN_PATHS` needs a bearer key."""
    app = FastAPI(title="Mustsee judge", version="1", docs_url=None, redoc_url=None)
    metrics, gate = Metrics(), LatencyGate(limits, sharing=len(keys.digests) > 1)
    start = Start(backend, gate)
    app.add_middleware(JudgeGuard, keys=keys, limits=limits, metrics=metrics, gate=gate)
    _handle_errors(app)
    _add_checks(app, backend, limits, metrics, start)
    judge = Routes(backend, limits, metrics, start, gate)
    options: dict[str, Any] = {"responses": ERRORS, "response_model_exclude_none": False}
    app.post("/v1/equivalence", response_model=VerdictReply, **options)(judge.equivalence)
    app.post("/v1/score", response_model=ScoreReply, **options)(judge.score)
    app.post("/v1/chat/completions", response_model=ChatReply, **options)(judge.chat)
    return app


def _handle_errors(app: FastAPI) -> None:
    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        if first["type"] == "json_invalid":
            return failure(400, f"the body is not JSON: {first.get('ctx', {}).get('error', '')}")
        place = ".".join(str(p) for p in first["loc"] if p != "body")
        status = 413 if first["type"] == "too_long" and place == "items" else 422
        return failure(status, f"{place or 'body'}: {first['msg']}", param=place or None)

    @app.exception_handler(HTTPException)
    async def handle_http_error(request: Request, error: HTTPException) -> Response:
        detail = str(error.detail)
        if error.status_code == 400 and "parsing the body" in detail:  # This is FastAPI's wording.
            detail = "the body is not JSON"
        return failure(error.status_code, detail, error.headers)

    @app.exception_handler(Transient)
    async def busy(request: Request, error: Transient) -> Response:
        if isinstance(error, Full):
            return failure(429, str(error), error.headers)
        wait = str(max(1, round(error.retry_after or 1)))
        return failure(503, str(error), {"Retry-After": wait})

    @app.exception_handler(TimeoutError)
    async def late(request: Request, error: TimeoutError) -> Response:
        return failure(503, "the judge did not answer in time: retry later", {"Retry-After": "5"})

    @app.exception_handler(Exception)
    async def handle_error(request: Request, error: Exception) -> Response:
        logging.getLogger("mustsee.judge").exception("request failed", exc_info=error)
        return failure(503, "the judge failed on this request; the reason is in its log")


class Start:
    """Tracks whether the judge has scored a pair since it was started.

    Its address answers before models are loaded and programs compiled. The `gate` learns the pace
    from a second trial, which has to load and compile nothing.
    """

    def __init__(self, backend: Backend, gate: LatencyGate) -> None:
        self._backend, self._gate, self._scored = backend, gate, False
        self._trial: asyncio.Task[str | None] | None = None

    async def find_fault(self, patience: float) -> str | None:
        """Return None once a fixed pair was scored correctly, otherwise the fault.

        It waits at most `patience` seconds. Only one trial runs at a time, and none after a
        successful one.
        """
        if self._scored:
            return None
        trial = self._trial = self._trial or asyncio.create_task(self._try())
        await asyncio.wait([trial], timeout=patience)
        if not trial.done():
            return "the judge is starting: its model has not scored anything yet"
        self._trial = None
        fault = str(trial.exception()) if trial.exception() else trial.result()
        self._scored = fault is None
        return fault

    async def _try(self) -> str | None:
        fault = await self._backend.ready()
        if fault is None:
            began = time.perf_counter()
            fault = await self._backend.ready()
            self._gate.note_trial(time.perf_counter() - began)
        return fault


def _add_checks(
    app: FastAPI, backend: Backend, limits: RequestLimits, metrics: Metrics, start: Start
) -> None:
    refusals: dict[int | str, dict[str, Any]] = {s: ERRORS[s] for s in (401, 503)}

    @app.get("/health", response_model=Health, responses={503: ERRORS[503]})
    async def health() -> Any:
        """The process is up and has scored a fixed pair correctly since it was started."""
        fault = await start.find_fault(HEALTH_WAIT_S)
        return {"status": "ok"} if fault is None else failure(503, fault, RETRY_AFTER_HEADER)

    @app.get("/ready", response_model=Health, responses=refusals)
    async def ready() -> Any:
        """A fixed pair was just scored correctly."""
        async with asyncio.timeout(limits.seconds):
            fault = await backend.ready()
        return {"status": "ready"} if fault is None else failure(503, fault)

    @app.get("/docs", response_class=HTMLResponse, include_in_schema=False)
    async def docs() -> Response:
        """The schema as a page."""
        return HTMLResponse(page(app.openapi()), headers=CLOSED_POLICY_HEADER)

    @app.get("/metrics", response_class=PlainTextResponse, responses=refusals)
    async def figures() -> Response:
        """Metrics as Prometheus text."""
        return PlainTextResponse(generate_latest(metrics.registry))

    @app.get("/v1/models", response_model=Models, responses=refusals)
    async def models() -> dict[str, Any]:
        """The judge: weights, prompt, threshold record."""
        async with asyncio.timeout(limits.seconds):
            fields = dict(await backend.describe())
        model = {"id": fields.pop("model"), "object": "model", "owned_by": "mustsee", **fields}
        return {"object": "list", "data": [model]}


class Routes:
    """The scoring routes over a backend."""

    def __init__(
        self,
        backend: Backend,
        limits: RequestLimits,
        metrics: Metrics,
        start: Start,
        gate: LatencyGate,
    ) -> None:
        self.backend, self.limits, self.metrics = backend, limits, metrics
        self._start, self._gate = start, gate

    async def equivalence(self, request: Request, body: VerdictRequest) -> dict[str, Any]:
        """Is each candidate as good an answer as (one of) its references?"""
        description = await self._describe(body.prompt_version)
        items = [item.item() for item in body.items]
        scores = await self._score(request, items, body.threshold)
        threshold = description["threshold"] if body.threshold is None else body.threshold
        data = [
            {"index": index, "id": item.id, "object": "equivalence", **asdict(score)}
            for index, (item, score) in enumerate(zip(items, scores, strict=True))
        ]
        head = {"prompt_version": description["prompt_version"], "threshold": threshold}
        return {**_reply("eqv", "list", body, description, scores), **head, "data": data}

    async def score(self, request: Request, body: ScoreRequest) -> dict[str, Any]:
        """A shim in the shape of `/v1/score`: `text_1` are references, `text_2` candidates."""
        description = await self._describe(None)
        scores = await self._score(request, body.items(), None)
        for index, score in enumerate(scores):
            if score.error is not None:
                raise HTTPException(422, f"text_2[{index}]: {score.error}")
        data = [{"index": i, "object": "score", "score": s.score} for i, s in enumerate(scores)]
        return {**_reply("score", "list", body, description, scores), "data": data}

    async def chat(self, request: Request, body: ChatRequest) -> dict[str, Any]:
        """A shim for clients that support only chat.

        The last message is JSON with `question`, `candidate` and `reference`; the reply is TRUE or
        FALSE.
        """
        description = await self._describe(None)
        (score,) = await self._score(request, [body.item()], None)
        if score.error is not None or score.score is None:
            raise HTTPException(422, f"messages: {score.error}")
        word = "TRUE" if score.equivalent else "FALSE"
        reply = _reply("chatcmpl", "chat.completion", body, description, [score])
        total = reply["usage"]["total_tokens"] + 1
        choice = {
            "index": 0,
            "finish_reason": "stop",
            "message": {"role": "assistant", "content": word},
            "logprobs": {"content": [_token(word, score)]},
        }
        usage = {**reply["usage"], "completion_tokens": 1, "total_tokens": total}
        return {**reply, "choices": [choice], "usage": usage}

    async def _describe(self, version: str | None) -> Mapping[str, Any]:
        """The judge's description. Raises if it is starting or has another prompt version."""
        fault = await self._start.find_fault(self.limits.seconds / 2)
        if fault is not None:
            raise Transient(fault, 5.0)
        async with asyncio.timeout(self.limits.seconds):
            description = await self.backend.describe()
        if version is not None and version != description["prompt_version"]:
            raise HTTPException(
                409,
                f"prompt_version={version[:80]!r}: this judge has "
                f"{description['prompt_version']!r}",
            )
        return description

    async def _score(
        self, request: Request, items: list[JudgeItem], threshold: float | None
    ) -> list[Score]:
        if len(items) > self.limits.items:
            raise HTTPException(
                413, f"{len(items)} items: send at most {self.limits.items} at a time"
            )
        request.state.items = len(items)
        errors = [self._too_long(item) for item in items]
        judged = [item for item, error in zip(items, errors, strict=True) if error is None]
        self._refuse_too_much(judged)
        async with asyncio.timeout(self.limits.seconds):
            scored = iter(await self.backend.score(judged, threshold) if judged else [])
        scores = [next(scored) if error is None else Score(error=error) for error in errors]
        for score in scores:
            outcome = "error" if score.error else "true" if score.equivalent else "false"
            self.metrics.items.labels(outcome).inc()
        self.metrics.tokens.inc(sum(score.prompt_tokens for score in scores))
        return scores

    def _refuse_too_much(self, items: list[JudgeItem]) -> None:
        """Raise HTTPException 413 for items that cannot all be scored in the time of a request. A
        single one is always tried, so that a pace that was measured too low mends itself.
        """
        texts = [t for i in items for t in (i.question, i.candidate, *i.references)]
        size = sum(len(text.encode()) for text in texts)
        seconds, limit = self._gate.seconds_alone(size), self.limits.seconds
        if len(items) > 1 and seconds > limit:
            fewer = max(1, int(len(items) * limit / seconds / 2))
            raise HTTPException(
                413,
                f"{len(items)} items with {size} bytes of text take about {seconds:.0f} s at this "
                f"judge's pace, and a request has {limit:g} s: send at most {fewer} such items at "
                "a time",
            )

    def _too_long(self, item: JudgeItem) -> str | None:
        limit = self.limits.characters
        for name, text in (
            ("question", item.question),
            ("candidate", item.candidate),
            *(("reference", r) for r in item.references),
        ):
            if len(text) > limit:
                return f"the {name} has {len(text)} characters: the limit is {limit}"
        if len(item.references) > 64:
            return f"{len(item.references)} references: the limit is 64"
        return None


def _reply(
    kind: str, form: str, body: BaseModel, description: Mapping[str, Any], scores: list[Score]
) -> dict[str, Any]:
    """What all replies hold. The id is the same for the same request to the same judge."""
    model, version = description["model"], description["prompt_version"]
    digest = hashlib.sha256(f"{model}\0{version}\0{body.model_dump_json()}".encode()).hexdigest()
    tokens = sum(score.prompt_tokens for score in scores)
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {
        "id": f"{kind}-{digest[:24]}", "object": form, "created": int(time.time()),
        "model": model, "usage": usage,
    }  # fmt: skip


def _token(word: str, score: Score) -> dict[str, Any]:
    """The two labels in the shape of OpenAI's token alternatives."""
    import math

    p = min(max(score.score or 0.0, 1e-12), 1 - 1e-12)
    labels = [{"token": "TRUE", "logprob": math.log(p), "bytes": None},
            {"token": "FALSE", "logprob": math.log1p(-p), "bytes": None}]  # fmt: skip
    chosen = next(t for t in labels if t["token"] == word)
    return {**chosen, "top_logprobs": sorted(labels, key=lambda t: -float(str(t["logprob"])))}
