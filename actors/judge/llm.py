"""The judge `llm`: any model behind the LLM seam, asked with the judge's prompt.

With `verdict="logprobs"` the probability comes from the alternatives of the first token that is a
label; a reply without logprobs is an error of the item. With `verdict="word"` the reply must be
TRUE or FALSE, and the score is near 0 or 1.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import re
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass
from typing import Literal

from actors.calls.gateway import MeteredModel
from actors.part import LlmConfig, RunContext
from mustsee.calls.llm import FreshReplies, Llm, Message, Reply, Request, Sampling
from mustsee.errors import BadRow, Transient
from mustsee.files.store import hardware
from mustsee.judge.judge import Engine, ForwardPass, Identity, PreparedTriple
from mustsee.judge.prompt import OPENING, PROMPT, Triple, prompt_hash, render

MAX_RETRY_AFTER_S = 30.0  # greatest Retry-After that is waited for, in seconds
WORD_LOGIT = math.log(1e6)  # logit of a verdict in words: a probability of one in a million
_WORD = re.compile(rf"\W*(?:{OPENING})?\W*(TRUE|FALSE)\W*", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class LlmJudge:
    """The judge `llm`."""

    llm: LlmConfig
    """A choice of conf/llm."""
    verdict: Literal["word", "logprobs"] = "word"
    """Form of the verdict: word, or logprobs (an item without them is an error)."""
    connections: int = hardware(16)
    """Calls in flight."""

    def open(self) -> Engine:
        attempts = self.llm.endpoint.attempts if isinstance(self.llm, MeteredModel) else 1
        return LlmEngine(self, RetryingModel(self.llm.open(), attempts))

    def for_run(self, run: RunContext) -> ConnectedLlmJudge:
        """The same judge, its calls through the run's gateway: limits, store, budget, usage."""
        llm = run.llm(self.llm)
        if run.retry_problems:
            llm = FreshReplies(llm=llm, readable=lambda reply: not self.read(reply).error)
        return ConnectedLlmJudge(self, llm)

    def read(self, reply: Reply) -> ForwardPass:
        """Return the score of a reply, or why it has none."""
        return word(reply) if self.verdict == "word" else alternatives(reply)


@dataclass(frozen=True)
class ConnectedLlmJudge:
    """A judge whose model is connected."""

    judge: LlmJudge
    llm: Llm

    def open(self) -> Engine:
        return LlmEngine(self.judge, self.llm)


@dataclass(frozen=True)
class RetryingModel:
    """A model whose retryable failures are retried, as the gateway does in a run."""

    llm: Llm
    attempts: int

    @property
    def identity(self) -> str:
        return self.llm.identity

    async def complete(self, request: Request) -> Reply:
        """As `Llm.complete`."""
        for attempt in range(1, self.attempts):
            try:
                return await self.llm.complete(request)
            except Transient as error:
                retry_after = error.retry_after or 0.0
                if retry_after > MAX_RETRY_AFTER_S:
                    raise
                await asyncio.sleep(max(retry_after, 0.25 * 2**attempt))
        return await self.llm.complete(request)


class LlmEngine:
    """The judge on an event loop of its own, so that `score` may be called from any thread."""

    limit = 4096  # tokens, roughly; the endpoint enforces its own limit

    def __init__(self, config: LlmJudge, llm: Llm) -> None:
        self._config, self._llm = config, llm
        self.identity = Identity(
            engine=f"llm/{config.verdict}",
            weights=hashlib.sha256(llm.identity.encode()).hexdigest(),
            prompt=prompt_hash(),
            dtype="unknown",
        )
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True, name="judge-llm").start()

    def prepare(self, triple: Triple) -> PreparedTriple:
        text = render(triple)
        return PreparedTriple(triple, math.ceil(len(text) / 4), text)

    def score(self, prepared: Sequence[PreparedTriple]) -> list[ForwardPass]:
        async def score_all() -> list[ForwardPass]:
            gate = asyncio.Semaphore(self._config.connections)
            return await asyncio.gather(*(self._one(p, gate) for p in prepared))

        future: Future[list[ForwardPass]] = asyncio.run_coroutine_threadsafe(
            score_all(), self._loop
        )
        return future.result()

    async def _one(self, prepared: PreparedTriple, gate: asyncio.Semaphore) -> ForwardPass:
        words = self._config.verdict == "word"
        request = Request(
            prompt=PROMPT,
            digest=prompt_hash()[:16],
            messages=(Message("user", prepared.payload),),
            variables=asdict(prepared.triple),
            sampling=Sampling(max_tokens=16, top_logprobs=0 if words else 20),
        )
        async with gate:
            try:
                reply = await self._llm.complete(request)
            except BadRow as error:
                return ForwardPass(math.nan, error=str(error))
        return self._config.read(reply)


def word(reply: Reply) -> ForwardPass:
    """The score of a reply in words, or an error."""
    verdict = _WORD.fullmatch(reply.text.strip())
    if verdict is None:
        return ForwardPass(
            math.nan, error=f"{reply.model} answered {reply.text[:80]!r}, not a label"
        )
    return ForwardPass(WORD_LOGIT if verdict.group(1).upper() == "TRUE" else -WORD_LOGIT)


def alternatives(reply: Reply) -> ForwardPass:
    """The score from the alternatives of the first token that is a label."""
    if not reply.logprobs:
        return ForwardPass(
            math.nan, error=f"{reply.model} gave no logprobs: set judge.engine.verdict=word"
        )
    for token in reply.logprobs:
        likeliest = max(token, key=lambda t: token[t])
        if likeliest.strip().upper() in ("TRUE", "FALSE"):
            true, false = _mass(token, "TRUE"), _mass(token, "FALSE")
            # A label outside the alternatives is less probable than the least of them.
            floor = math.exp(min(token.values()))
            diff = math.log(max(true, min(floor, 1e-6))) - math.log(max(false, min(floor, 1e-6)))
            return ForwardPass(diff, min(true + false, 1.0))
    return ForwardPass(math.nan, error=f"{reply.model} answered {reply.text[:80]!r}, not a label")


def _mass(token: Mapping[str, float], label: str) -> float:
    return sum(math.exp(v) for t, v in token.items() if t.strip().upper() == label)
