"""Runs a stage on a few rows, one after the other, to measure what the other rows will take.

The offline rules stand in for paid models: prompts are rendered from the real video, replies in the
store are reused, and tokens, money and seconds of every other call are counted. Nothing is sent,
and the rules' replies are not stored (`ray_jobs.runtime.stand_in`).
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from collections.abc import Callable, MutableMapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from actors.calls.coordinator import Coordinator
from actors.calls.endpoint import CHARACTERS_PER_TOKEN
from actors.calls.gateway import Gateway, MeteredModel
from actors.engine.local import LocalSession
from actors.engine.stage import Stage, StageWorker
from actors.llm.replay import Replay
from actors.part import LlmConfig
from mustsee import schemas
from mustsee.calls.llm import Llm, Reply, Request
from mustsee.records import Question
from mustsee.run.estimate import TriedRow, costs
from mustsee.store import ReadOnlyStore, Store
from ray_jobs.runtime.stand_in import stand_in_reply

# Characters per token of English text. The gateway reserves more tokens than it expects.
CHARS_PER_TOKEN = 4.0
QUIET_S = 0.006  # seconds without a new call after which every possible call is waiting
FIRST_TOKEN_S = 0.7  # seconds to the first token, assumed of an endpoint
TOKENS_PER_SECOND = 70.0  # tokens per second after the first, assumed of an endpoint


class SimulatedClock:
    """A clock for calls without a wait in real time.

    When all work waits for calls, the clock moves to the end of the earliest one and wakes its
    caller. `now`: simulated seconds. `slept`: real seconds spent on detecting this.
    """

    def __init__(self) -> None:
        self.now = self.slept = 0.0
        self._calls: list[tuple[float, int, asyncio.Future[None]]] = []
        self._order = itertools.count()
        self._call_count = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._running: asyncio.Task[None] | None = None

    async def wait(self, seconds: float) -> None:
        """Return at the simulated end of a call of `seconds` that starts now."""
        loop = asyncio.get_running_loop()
        if self._loop is None or self._loop.is_closed():
            self._loop, self._threads = loop, _Threads()
            loop.set_default_executor(self._threads)
        if loop is not self._loop:  # A judge runs its own loop while the first one waits for it.
            return
        ended: asyncio.Future[None] = loop.create_future()
        heapq.heappush(self._calls, (self.now + seconds, next(self._order), ended))
        self._call_count += 1
        if self._running is None or self._running.done():
            self._running = loop.create_task(self._run())
        await ended

    async def _run(self) -> None:
        while self._calls:
            await self._quiet()
            self.now, _, ended = heapq.heappop(self._calls)
            if not ended.done():
                ended.set_result(None)

    async def _quiet(self) -> None:
        """Return once no new call came and no thread worked for `QUIET_S`."""
        count = -1
        while count != self._call_count or self._threads.busy:
            count = self._call_count
            started = time.monotonic()
            await asyncio.sleep(QUIET_S)
            if not self._threads.busy:
                self.slept += time.monotonic() - started


class _Threads(ThreadPoolExecutor):
    """A thread pool that counts its unfinished tasks (`busy`)."""

    busy = 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.busy += 1
        future = super().submit(fn, *args, **kwargs)
        future.add_done_callback(self._ended)
        return future

    def _ended(self, _: Future[Any]) -> None:
        self.busy -= 1


@dataclass
class FrameUsd:
    """USD of the frames of calls to models that take video: as `images`, and as `clips` of a frame
    a second.
    """

    images: float = 0.0
    clips: float = 0.0

    def add(self, config: Any, request: Request) -> None:
        if not hasattr(config, "frame_tokens"):
            return
        price = config.endpoint.price
        for message in (m for m in request.messages if m.images):
            clip = config.frame_tokens(message, clip=True)
            if clip is not None:
                self.images += price.usd(config.frame_tokens(message, clip=False), 0)
                self.clips += price.usd(clip, 0)


@dataclass(frozen=True)
class RuleStandIn:
    """The rules in the place of a paid model.

    `call_seconds`: duration of any call; None: from its tokens.
    `questions`: the questions of the rows, by their text.
    `frames`: what the frames of the calls cost.
    """

    config: Any
    clock: SimulatedClock
    call_seconds: float | None = None
    questions: MutableMapping[str, Question] = field(default_factory=dict[str, Question])
    frames: FrameUsd = field(default_factory=FrameUsd)

    @property
    def identity(self) -> str:
        """The model's own identity, so that its earlier replies are cache hits."""
        return self.config.identity

    async def complete(self, request: Request) -> Reply:
        """Return a reply of the rules with the tokens and price of the model. Raises BadRow for a
        prompt without a rule.
        """
        text, paid_characters = await stand_in_reply(request, self.questions)
        estimate = self.config.estimate(request)
        self.frames.add(self.config, request)
        characters = sum(len(m.text) for m in request.messages)
        excess = characters / CHARACTERS_PER_TOKEN - characters / CHARS_PER_TOKEN
        tokens_in, tokens_out = estimate.tokens_in - excess, paid_characters / CHARS_PER_TOKEN
        usd = self.config.endpoint.price.usd(tokens_in, tokens_out)
        if not estimate.tokens_in:  # The model is paid by the minute.
            tokens_in, usd = 0.0, estimate.usd
        seconds = self.call_seconds
        if seconds is None:
            seconds = FIRST_TOKEN_S + tokens_out / TOKENS_PER_SECOND
        await self.clock.wait(seconds)
        return Reply(
            text=text, model=self.config.endpoint.model,
            tokens_in=round(tokens_in), tokens_out=round(tokens_out), usd=usd,
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class RulesSession(LocalSession):
    """A session of one process in which rules stand in for paid models.

    `clock`: simulated time of their calls. `call_seconds`: duration of any call; None: from its
    tokens. `questions`, `frames`: as of `RuleStandIn`.
    """

    clock: SimulatedClock
    call_seconds: float | None = None
    questions: dict[str, Question] = field(default_factory=dict[str, Question])
    frames: FrameUsd = field(default_factory=FrameUsd)

    def connect_model(self, config: LlmConfig, stage: str) -> Llm:
        replay = config if isinstance(config, Replay) else None
        model = (replay and replay.record) or config
        is_metered = isinstance(model, MeteredModel)
        if model is config and not is_metered:
            return super().connect_model(config, stage)
        llm = (
            RuleStandIn(model, self.clock, self.call_seconds, self.questions, self.frames)
            if is_metered
            else model.open()
        )
        if replay:
            llm = replay.make_recorder(llm, None)  # It appends nothing to the recording.
        return Gateway(llm, self.store, self.coordinator, stage=stage)


def open_rules_session(store: str, call_seconds: float | None) -> RulesSession:
    """A session that calls no model and stores nothing."""
    return RulesSession(
        store=ReadOnlyStore(store),
        coordinator=Coordinator(),
        clock=SimulatedClock(),
        call_seconds=call_seconds,
    )


class RehearsalWorker:
    """A worker process like those of the run, in which stages are rehearsed one after the other."""

    def open(self, stage: Stage, store: Store, **settings: Any) -> None:
        """Begin with a stage. `settings`: as of `Rehearsal`."""
        self._rehearsal = Rehearsal(stage, store, **settings)

    def play(self, row: pa.Table) -> tuple[pa.Table, TriedRow | None]:
        return self._rehearsal.play(row)


class Rehearsal:
    """A stage with a coordinator of its own.

    `made_up`: rules stand in for a model of this stage or of an earlier one, or its replies are to
    be recorded, so nothing is stored.
    `budget_usd`: budget of real calls; None: rules stand in for paid models.
    """

    def __init__(
        self, stage: Stage, store: Store, *, made_up: bool, budget_usd: float | None,
        call_seconds: float | None,
    ) -> None:  # fmt: skip
        self._stage, self._clock = stage, SimulatedClock()
        self._coordinator = Coordinator(budget_usd)
        self._questions, self._frames = dict[str, Question](), FrameUsd()
        kept = ReadOnlyStore(store.root) if made_up else store
        session = (
            LocalSession(store=kept, coordinator=self._coordinator)
            if budget_usd is not None
            else RulesSession(
                store=kept, coordinator=self._coordinator, clock=self._clock,
                call_seconds=call_seconds, questions=self._questions, frames=self._frames,
            )
        )  # fmt: skip
        self._worker = StageWorker(stage, session)

    def play(self, row: pa.Table) -> tuple[pa.Table, TriedRow | None]:
        """The row after the stage, and the work that it took; None where the store had it."""
        before, clock = self._coordinator.snapshot(), self._clock
        if "questions" in row.column_names:
            for fields in row["questions"][0].as_py() or ():
                question = schemas.load(Question, fields)
                self._questions[question.question] = question
        started, slept, frames = clock.now, clock.slept, replace(self._frames)
        table = self._worker(row)
        after, name = self._coordinator.snapshot(), self._stage.name
        if after.stage(name).computed == before.stage(name).computed:
            return table, None
        seconds = after.stage(name).seconds - before.stage(name).seconds
        return table, TriedRow(
            work=max(0.0, seconds - (clock.slept - slept)),
            waited=clock.now - started,
            took=seconds,
            prompts=costs(after.llm, before.llm),
            usd_images=self._frames.images - frames.images,
            usd_clips=self._frames.clips - frames.clips,
        )
