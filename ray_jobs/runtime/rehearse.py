"""Takes a few rows through the stages, to measure what the other rows will take.

The scripted model stands in for paid models: prompts are rendered from the real video, replies in
the store are reused, and tokens, money and seconds of every other call are counted. Nothing is
sent, and no scripted reply is stored.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import json
import time
from collections.abc import Callable, MutableMapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from actors.calls.coordinator import Coordinator
from actors.calls.endpoint import CHARACTERS_PER_TOKEN
from actors.calls.gateway import KIND, Gateway, MeteredModel
from actors.engine.hardware import Hardware
from actors.engine.local import LocalSession
from actors.engine.stage import Stage, StageWorker
from actors.llm.replay import Replay
from actors.llm.scripted import fill_reply
from actors.part import LlmConfig, RunContext, models_of
from mustsee.calls.llm import Llm, Reply, Request
from mustsee.files import schemas
from mustsee.files.store import ReadOnlyStore, Store
from mustsee.records import Question
from mustsee.run.estimate import TriedRow, costs
from mustsee.verify.conditions.video_frames import CountedFrames

# Characters per token of English text. The gateway reserves more tokens than it expects.
CHARS_PER_TOKEN = 4.0
QUIET_S = 0.006  # seconds without a new call after which every possible call is waiting
FIRST_TOKEN_S = 0.7  # seconds to the first token, assumed of an endpoint
TOKENS_PER_SECOND = 70.0  # tokens per second after the first, assumed of an endpoint
SEGMENT_S = 3.0  # seconds of a segment of a transcript that stands in
SPOKEN = (  # the segments in turn: 150 words a minute
    "First we put the water on until it boils.",
    "My brother built this table from an old door.",
    "The second box holds small screws.",
    "After an hour the rain stopped.",
    "She asked why the red boat had left.",
    "Turn it slowly until you hear a click.",
    "Nobody knew that the bridge was closed.",
    "In the end all of it was painted blue.",
)


class SimulatedClock:
    """A clock for calls without a wait in real time.

    When all work waits for calls, the clock moves to the end of the earliest one and wakes its
    caller. `now`: simulated seconds. `slept`: real seconds spent on detecting this. `stopped`: no
    call takes any time.
    """

    def __init__(self, *, stopped: bool = False) -> None:
        self.now = self.slept = 0.0
        self._stopped = stopped
        self._calls: list[tuple[float, int, asyncio.Future[None]]] = []
        self._order = itertools.count()
        self._call_count = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._running: asyncio.Task[None] | None = None

    async def wait(self, seconds: float) -> None:
        """Return at the simulated end of a call of `seconds` that starts now."""
        if self._stopped:
            return
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
class StandIn:
    """The scripted model in the place of a paid one.

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
        """Return a scripted reply with the tokens and price of the model."""
        text = self._fill(request)
        estimate = self.config.estimate(request)
        self.frames.add(self.config, request)
        characters = sum(len(m.text) for m in request.messages)
        excess = characters / CHARACTERS_PER_TOKEN - characters / CHARS_PER_TOKEN
        tokens_in, tokens_out = estimate.tokens_in - excess, len(text) / CHARS_PER_TOKEN
        if request.prompt in ("hear", "embed"):
            tokens_out = 0.0  # Only chat models are paid for what they reply.
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

    def _fill(self, request: Request) -> str:
        if request.prompt == "hear":
            segments = transcribe(len(request.messages[0].images[0]) / 32_000)
            text = " ".join(each["text"] for each in segments)
            return json.dumps(
                {"language": "english", "text": text, "words": [], "segments": segments}
            )
        if request.prompt == "embed":
            return _vectors(len(request.messages))
        text = fill_reply(request, self.questions)
        if request.prompt == "filters/repair":  # Its verifier is asked about the new wording.
            old: Question = request.variables["question"]
            new = json.loads(text)["questions"][0]
            self.questions[new["question"]] = replace(
                old, question=new["question"], answer=new.get("correct_answer", old.answer)
            )
        return text


def transcribe(seconds: float) -> list[dict[str, Any]]:
    """Return the segments of a made-up transcript, at the pace of speech."""
    return [
        {"start": SEGMENT_S * n, "end": SEGMENT_S * (n + 1), "text": text, "avg_logprob": -0.1}
        for n, text in zip(range(max(1, int(seconds / SEGMENT_S))), itertools.cycle(SPOKEN))
    ]


def _vectors(count: int) -> str:
    """Random vectors, encoded as `actors.stages.embed` does."""
    import numpy as np

    from actors.stages.embed import encode_vectors

    rng = np.random.default_rng(0)
    return encode_vectors(rng.normal(size=(count, 384)).astype(np.float32))


@dataclass(frozen=True, kw_only=True)
class ScriptedSession(LocalSession):
    """A session of one process in which the scripted model stands in for paid models.

    `clock`: simulated time of their calls. `call_seconds`: duration of any call; None: from its
    tokens. `questions`, `frames`: as of `StandIn`. `counts_frames`: frames are not decoded, because
    nobody looks at them.
    """

    clock: SimulatedClock = field(default_factory=SimulatedClock)
    call_seconds: float | None = None
    questions: dict[str, Question] = field(default_factory=dict[str, Question])
    frames: FrameUsd = field(default_factory=FrameUsd)
    counts_frames: bool = False

    def context(self, stage: str = "", hardware: Hardware | None = None) -> RunContext:
        run = super().context(stage, hardware)
        return replace(run, frames=CountedFrames) if self.counts_frames else run

    def connect_model(self, config: LlmConfig, stage: str) -> Llm:
        replay = config if isinstance(config, Replay) else None
        model = (replay and replay.record) or config
        is_metered = isinstance(model, MeteredModel)
        if model is config and not is_metered:
            return super().connect_model(config, stage)
        llm = (
            StandIn(model, self.clock, self.call_seconds, self.questions, self.frames)
            if is_metered
            else model.open()
        )
        if replay:
            llm = replay.make_recorder(llm, None)  # It appends nothing to the recording.
        return Gateway(llm, self.store, self.coordinator, stage=stage)


def open_scripted_session(store: str, call_seconds: float | None) -> ScriptedSession:
    """A session that calls no model and stores nothing."""
    return ScriptedSession(
        store=ReadOnlyStore(store), coordinator=Coordinator(), call_seconds=call_seconds
    )


class Rehearsal:
    """A stage on rows, one after the other, with a coordinator of its own.

    `made_up`: the scripted model stands in for a model of this stage or of an earlier one, or its
    replies are to be recorded, so nothing is stored.
    `budget_usd`: budget of real calls; None: the scripted model stands in for paid models.
    `clock`: simulated time of its calls.

    Frames are decoded only where a model looks at them, or the store has replies to such frames.
    """

    def __init__(
        self, stage: Stage, store: Store, *, made_up: bool, budget_usd: float | None,
        call_seconds: float | None = None, clock: SimulatedClock | None = None,
    ) -> None:  # fmt: skip
        metered = all(isinstance(model, MeteredModel) for model in models_of(stage.part))
        self._session = ScriptedSession(
            store=ReadOnlyStore(store.root) if made_up else store,
            coordinator=Coordinator(budget_usd),
            clock=clock or SimulatedClock(),
            call_seconds=call_seconds,
            counts_frames=metered and not store.has(KIND),
        )
        asking = self._session
        if budget_usd is not None:
            asking = LocalSession(store=asking.store, coordinator=asking.coordinator)
        self._stage, self._worker = stage, StageWorker(stage, asking)

    def play(self, row: pa.Table) -> tuple[pa.Table, TriedRow | None]:
        """The row after the stage, and the work that it took; None where the store had it."""
        session, name = self._session, self._stage.name
        if "questions" in row.column_names:
            for fields in row["questions"][0].as_py() or ():
                question = schemas.load(Question, fields)
                session.questions[question.question] = question
        before, waited, slept = session.snapshot(), session.clock.now, session.clock.slept
        frames = replace(session.frames)
        table = self._worker(row)
        after = session.snapshot()
        if after.stage(name).computed == before.stage(name).computed:
            return table, None
        seconds = after.stage(name).seconds - before.stage(name).seconds
        return table, TriedRow(
            work=max(0.0, seconds - (session.clock.slept - slept)),
            waited=session.clock.now - waited,
            took=seconds,
            prompts=costs(after.llm, before.llm),
            usd_images=session.frames.images - frames.images,
            usd_clips=session.frames.clips - frames.clips,
        )


def needs_worker(stage: Stage) -> bool:
    """Whether this process may lack what a stage needs: an accelerator, or its own environment."""
    hardware = stage.hardware
    return bool(hardware.gpus or hardware.tpus or hardware.runtime_env)


def open_rehearsal(
    stage: Stage, store: Store, **settings: Any
) -> Callable[[pa.Table], tuple[pa.Table, TriedRow | None]]:
    """Return `Rehearsal.play` of a stage, in this process or in a worker like those of the run.
    `settings`: as of `Rehearsal`.
    """
    if not needs_worker(stage):
        return Rehearsal(stage, store, **settings).play
    import ray

    hardware = stage.hardware
    worker: Any = ray.remote(Rehearsal).options(
        num_cpus=hardware.cpus,
        num_gpus=hardware.gpus,
        resources={"TPU": hardware.tpus} if hardware.tpus else {},
        runtime_env=dict(hardware.runtime_env) if hardware.runtime_env else None,
    ).remote(stage, store, **settings)  # fmt: skip
    return lambda row: ray.get(worker.play.remote(row))
