"""A stage at work on a few rows, one after the other, so that it is known what the rest will take.

Where its models are paid for, the offline rules stand in for them: the prompts are rendered from
the real video, what the store has is not asked for, and of every other call the tokens, the money
and the seconds are counted. Nothing is sent, and what the rules say is not stored. The rules can
look for the answers of their own kinds of questions alone; any other is taken to be sound: who
looks finds its answer at its evidence, and nowhere else.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import itertools
import json
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from actors.calls.coordinator import Coordinator
from actors.calls.endpoint import CHARACTERS_PER_TOKEN
from actors.calls.gateway import Gateway, MeteredModel
from actors.engine.hardware import Hardware
from actors.engine.session import Session
from actors.engine.stage import RowTask, Stage, StageWorker
from actors.llm.offline import OfflineLlm, revision
from actors.part import LlmConfig, RunContext
from mustsee import schemas
from mustsee.calls.llm import RULES, Llm, Reply, Request
from mustsee.errors import BadRow, MustseeError
from mustsee.records import Question, Span
from mustsee.run.estimate import TriedRow, costs
from mustsee.run.record import NOTHING, RowOutcome, WorkTimes
from mustsee.store import ReadOnlyStore, Store
from mustsee.text import LETTERS

# characters per token of English text; the gateway reserves more than it expects
CHARS_PER_TOKEN = 4.0
QUIET_S = 0.006  # seconds without a new call after which all that can be asked has been asked
FIRST, SPEED = 0.7, 70.0  # seconds to the first token, tokens a second: assumed of an endpoint
WORDS_PER_SECOND = 2.3  # words a second, in what stands in for a transcription (140 a minute)
NARRATION = (
    "First we put the water on and wait until it boils. My brother built this table from the wood "
    "of an old door. The second box holds the small screws, and the long ones are over there. "
    "After an hour the rain stopped and we went down to the river. She asked him why the red "
    "boat had left without them. Turn it slowly until you hear it click, then let go. Nobody "
    "knew that the bridge had been closed for three weeks. In the end we painted all of it blue."
)


class SimulatedClock:
    """Seconds that calls take, without waiting for them. When nothing moves any more but calls, the
    first of them to end ends, and what waited for it goes on. `slept`: seconds really spent on it.
    """

    def __init__(self) -> None:
        self.now = self.slept = 0.0
        self._waiting: list[tuple[float, int, asyncio.Future[None]]] = []
        self._order = itertools.count()
        self._came = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._running: asyncio.Task[None] | None = None

    async def wait(self, seconds: float) -> None:
        """End when a call of `seconds` that starts now would have."""
        loop = asyncio.get_running_loop()
        if self._loop is None or self._loop.is_closed():
            self._loop, self._threads = loop, _Threads()
            loop.set_default_executor(self._threads)
        if loop is not self._loop:  # a judge's own loop, for which this one waits
            return
        ended: asyncio.Future[None] = loop.create_future()
        heapq.heappush(self._waiting, (self.now + seconds, next(self._order), ended))
        self._came += 1
        if self._running is None or self._running.done():
            self._running = loop.create_task(self._run())
        await ended

    async def _run(self) -> None:
        while self._waiting:
            await self._quiet()
            self.now, _, ended = heapq.heappop(self._waiting)
            if not ended.done():
                ended.set_result(None)

    async def _quiet(self) -> None:
        came = -1
        while came != self._came or self._threads.busy:
            came = self._came
            started = time.monotonic()
            await asyncio.sleep(QUIET_S)
            if not self._threads.busy:
                self.slept += time.monotonic() - started


class _Threads(ThreadPoolExecutor):
    """Knows how much of what it was given is not done."""

    busy = 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.busy += 1
        future = super().submit(fn, *args, **kwargs)
        future.add_done_callback(self._ended)
        return future

    def _ended(self, _: Future[Any]) -> None:
        self.busy -= 1


@dataclass(frozen=True)
class RuleStandIn:
    """A paid model's place, taken by rules; `call_seconds`: of any call, None: by its tokens.
    `known`: the questions of the rows, by their texts.
    """

    config: Any
    clock: SimulatedClock
    call_seconds: float | None = None
    known: Mapping[str, Question] = field(default_factory=dict[str, Question])

    @property
    def identity(self) -> str:
        """The model's own: what it has said already is found in the store."""
        return self.config.identity

    async def complete(self, request: Request) -> Reply:
        """Raises BadRow for a prompt without a rule."""
        text, words = await self._said(request)
        estimate = self.config.estimate(request)
        characters = sum(len(m.text) for m in request.messages)
        over = characters / CHARACTERS_PER_TOKEN - characters / CHARS_PER_TOKEN
        tokens_in, tokens_out = estimate.tokens_in - over, words / CHARS_PER_TOKEN
        usd = self.config.endpoint.price.usd(tokens_in, tokens_out)
        if not estimate.tokens_in:  # paid by the minute
            tokens_in, usd = 0.0, estimate.usd
        seconds = FIRST + tokens_out / SPEED if self.call_seconds is None else self.call_seconds
        await self.clock.wait(seconds)
        return Reply(
            text=text, model=self.config.endpoint.model,
            tokens_in=round(tokens_in), tokens_out=round(tokens_out), usd=usd,
        )  # fmt: skip

    async def _said(self, request: Request) -> tuple[str, int]:
        """A reply of the right form, and how many of its characters are paid as tokens."""
        if request.prompt == "hear":
            return _heard(request.messages[0].images[0]), 0
        if request.prompt == "embed":
            return _vectors([m.text for m in request.messages]), 0
        looks = request.prompt.startswith("filters/sight")
        asked = self.known.get(request.variables["question"]) if looks else None
        try:
            if asked is not None and request.messages[-1].clips:  # which rules do not watch
                raise BadRow
            text = (await OfflineLlm(f"{RULES} {revision()}").complete(request)).text
        except BadRow:
            if asked is None:
                raise
            text = _found(asked, request.variables)
        return text, len(text)


def _found(asked: Question, shown: Mapping[str, Any]) -> str:
    """What a look comes to at a question that is sound."""
    options: Sequence[str] = shown.get("options", ())
    cut = any(spans_overlap(c, e) for c in shown["cuts"] for e in asked.evidence)
    if not options:
        answer = "CANNOT BE TOLD" if cut else asked.answer
    elif cut or asked.answer not in options:
        answer = LETTERS[len(options)]
    else:
        answer = LETTERS[options.index(asked.answer)]
    spans = "; ".join(f"{span.start:.1f}-{span.end:.1f}" for span in asked.evidence)
    evidence = "NONE" if cut else spans or "NONE"
    return f"* SEEN: {NARRATION[:120]}\n* EVIDENCE: {evidence}\n* LOOK: NONE\n* ANSWER: {answer}"


def spans_overlap(one: Span, other: Span) -> bool:
    return max(one.start, other.start) < min(one.end, other.end)


def _heard(wav: bytes) -> str:
    """A transcription of what nobody has heard, at the pace of speech, in lines of three seconds;
    at 16,000 samples of two bytes a second.
    """
    seconds = len(wav) / 32_000
    words = itertools.cycle(NARRATION.split())
    starts = range(0, max(1, int(seconds)), 3)
    said = [" ".join(itertools.islice(words, round(3 * WORDS_PER_SECOND))) for _ in starts]
    segments = [
        {"start": float(start), "end": min(start + 3.0, seconds), "text": text, "avg_logprob": -0.1}
        for start, text in zip(starts, said, strict=True)
    ]
    text = " ".join(said)
    return json.dumps({"language": "english", "text": text, "words": [], "segments": segments})


def _vectors(texts: Sequence[str]) -> str:
    """A vector for each text, in the form of `actors.embed.openai`."""
    import numpy as np

    from actors.embed.openai import encode_vectors

    rng = np.random.default_rng(0)
    return encode_vectors(rng.normal(size=(len(texts), 384)).astype(np.float32))


@dataclass(frozen=True, kw_only=True)
class LocalSession(Session):
    """The session of one process, with a plain `Coordinator`. `clock`: rules stand in for models
    that are paid for, by this clock; None: the models are asked.
    """

    coordinator: Coordinator  # pyright: ignore[reportIncompatibleVariableOverride]
    clock: SimulatedClock | None = None
    call_seconds: float | None = None
    known: dict[str, Question] = field(default_factory=dict[str, Question])

    def begin(self, rows: Sequence[str]) -> list[int]:
        return [0] * len(rows)

    def row_deadline(
        self, seconds: float | None, row: str, beside: Sequence[str]
    ) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()  # nobody would start its process again

    def event(
        self, stage: str, outcome: RowOutcome, took: WorkTimes = NOTHING, row: str | None = None,
        rows: int = 1,
    ) -> None:  # fmt: skip
        self.coordinator.event(stage, outcome, took, row, rows)

    def abort(self, error: MustseeError) -> None:
        self.coordinator.abort(type(error).__name__, str(error))

    def context(self, stage: str = "", hardware: Hardware | None = None) -> RunContext:
        def connect_model(config: LlmConfig) -> Llm:
            if self.clock is None or not isinstance(config, MeteredModel):
                return Gateway.connect(config, self.store, self.coordinator, stage=stage)
            standing = RuleStandIn(config, self.clock, self.call_seconds, self.known)
            return Gateway(standing, self.store, self.coordinator, stage=stage)

        return RunContext(store=self.store, llm=connect_model, count=self.coordinator.count)


def open_rules_session(store: str, call_seconds: float | None) -> LocalSession:
    """A session in which nothing is asked and nothing is stored."""
    return LocalSession(
        store=ReadOnlyStore(store),
        coordinator=Coordinator(),
        clock=SimulatedClock(),
        call_seconds=call_seconds,
    )


class Rehearsal:
    """A stage in a process such as it will have. `free`: nothing is paid, and where the stage or
    one before it stands on rules (`made_up`) nothing is stored.
    """

    def __init__(
        self, stage: Stage, store: Store, *, made_up: bool, budget_usd: float | None,
        call_seconds: float | None,
    ) -> None:  # fmt: skip
        self._stage, self._clock = stage, SimulatedClock()
        self._coordinator = Coordinator(budget_usd)
        session = LocalSession(
            store=ReadOnlyStore(store.root) if made_up else store,
            coordinator=self._coordinator,
            clock=self._clock if budget_usd is None else None,
            call_seconds=call_seconds,
        )
        self._worker, self._known = StageWorker(stage, session), session.known

    def play(self, row: pa.Table) -> tuple[pa.Table, TriedRow | None]:
        """The row behind the stage, and what that took; None where the stage did not work on it."""
        before, clock = self._coordinator.snapshot(), self._clock
        if "questions" in row.column_names:
            for asked in row["questions"][0].as_py() or ():
                question = schemas.load(Question, asked)
                self._known[question.question] = question
        started, slept = clock.now, clock.slept
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
        )


class Lookup(StageWorker):
    """A stage that computes nothing: what the store lacks stays as it was."""

    def look_up(self, table: pa.Table) -> tuple[pa.Table, list[str]]:
        """The rows that the store has, or that pass the stage by; the ids of the others."""
        self._lacking: list[str] = []
        if not table.num_rows:
            return table, []
        done = self(table)
        kept = [n not in self._lacking for n in done["video_id"].to_pylist()]
        pieces = [done.slice(i, 1) for i, keep in enumerate(kept) if keep]
        return pa.concat_tables(pieces) if pieces else done.slice(0, 0), self._lacking

    def _compute(self, tasks: Sequence[RowTask], results: list[pa.Table | None]) -> None:
        self._lacking = [task.row.video_id for task in tasks]
