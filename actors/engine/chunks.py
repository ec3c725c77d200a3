"""A long video piece by piece: by the stage's worker, and by helpers where the cluster has room.

A part that is `ChunkedPart` gives the pieces of a video one after the other and takes their results
in the same order, so that it makes no difference who did which. Each result is kept in the store:
what a killed run has done of a video is not done again. A helper has what a worker of the stage
has, does nothing but pieces of one video, and goes with it. A video of a single piece meets none of
this.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

from actors.calls.coordinator_actor import call_coordinator
from actors.calls.coordinator_handle import CoordinatorHandle
from actors.engine.hardware import Hardware
from actors.engine.meter import Meter
from actors.part import ChunkedPart, Each
from mustsee import schemas
from mustsee.run.record import WorkTimes
from mustsee.store import Store, digest, identity


@dataclass(frozen=True, kw_only=True)
class ChunkRunner:
    """How the worker of a stage does its videos. `took`: adds what a helper's work took;
    `coordinator`: says how many helpers there may be; `here`: the folder from which paths count.
    """

    stage: str
    hardware: Hardware
    store: Store
    count: Callable[[str, int], None]
    took: Callable[[WorkTimes], object]
    coordinator: CoordinatorHandle
    here: str

    def __call__(self, part: ChunkedPart) -> Each:
        """As `RunContext.pieces`: loads the part's model."""
        work = part.open_chunked()

        def each_chunk(pieces: Iterable[Any]) -> Iterator[Any]:
            left = iter(pieces)
            first = list(islice(left, 2))
            if len(first) < 2:
                yield from map(work, first)
                return
            video = self.key(part, first[0])
            with contextlib.ExitStack() as held:
                held.callback(self.coordinator.release_helpers.remote, self.stage, video)
                yield from ChunkPool(self, part, video, held).results(chain(first, left), work)

        return each_chunk

    def key(self, part: ChunkedPart, piece: Any) -> str:
        """Of a piece's result in the store, in the form that it has now."""
        form = str(schemas.schema(part.result))
        return digest([self.stage, form, identity(part), identity(piece)])

    def helper_quota(self, video: str, wanted: int) -> int:
        """How many helpers the video may have, of so many."""
        most = self.hardware.max_workers
        return call_coordinator(
            self.coordinator.acquire_helpers.remote(self.stage, video, wanted, most)
        )

    def free_workers(self) -> int:
        """How many more workers of this stage the cluster has room for."""
        import ray

        free = ray.available_resources()
        wanted = self.hardware.resources
        return min((int(free.get(r, 0.0) / n + 1e-9) for r, n in wanted.items()), default=0)


@dataclass(frozen=True)
class ChunkTask:
    """A piece at work: its place in the video, and the key of its result."""

    number: int
    piece: Any
    key: str


class Helper:
    """A process that does pieces, as a Ray actor."""

    def __init__(self, part: ChunkedPart, here: str) -> None:
        if os.path.isdir(here):
            os.chdir(here)
        self._work, self._meter = part.open_chunked(), Meter()

    def ready(self) -> None:
        """Answers when the model is loaded."""

    def work(self, piece: Any) -> tuple[Any, WorkTimes]:
        """The result of a piece, and what it took."""
        stint = self._meter.row_work()
        stint.begin()
        return self._work(piece), stint.end()


@dataclass(frozen=True)
class ChunkWorker:
    """One who does pieces, and how to dismiss it: the worker itself stays."""

    begin: Callable[[Any], Future[Any]]
    dismiss: Callable[[], object] | None = None


class ChunkPool:
    """Those who do the pieces of one video: the worker that has it, and helpers while pieces wait.
    What a helper fails to do is done by the others, and the helper dismissed; as is one that finds
    no piece waiting, or is one too many since another video has come.
    """

    def __init__(
        self, pieces: ChunkRunner, part: ChunkedPart, video: str, held: contextlib.ExitStack
    ) -> None:
        self._pieces, self._part, self._video, self._held = pieces, part, video, held
        self._hired = self._helpers = 0
        self._coming: dict[Future[Any], ChunkWorker] = {}
        self._ready: deque[ChunkTask] = deque()
        self._done: dict[int, Any] = {}

    def results(self, pieces: Iterable[Any], work: Callable[[Any], Any]) -> Iterator[Any]:
        """The results in the order of the pieces. Of these as many are held as there are hands, and
        one.
        """
        # In a thread of its own, so that helpers need not wait for the worker.
        thread = self._held.enter_context(ThreadPoolExecutor(1))
        free = [ChunkWorker(lambda piece: thread.submit(work, piece))]
        at_work: dict[Future[Any], tuple[ChunkTask, ChunkWorker]] = {}
        left, due = enumerate(pieces), 0
        while True:
            free = [hand for hand in free if self._stays(hand, left)]
            while free and self._waits(left):
                task, hand = self._ready.popleft(), free.pop()
                at_work[hand.begin(task.piece)] = (task, hand)
            while due in self._done:
                yield self._done.pop(due)
                due += 1
            if not at_work:
                return
            if self._waits(left):
                self._hire()
            finished, _ = wait([*at_work, *self._coming], return_when=FIRST_COMPLETED)
            for future in finished:
                task, hand = at_work.pop(future, None) or (None, self._coming.pop(future))
                if hand.dismiss and future.exception() is not None:
                    self._ready.extendleft([task] if task else [])
                    self._let_go(hand.dismiss)
                    self._count("helpers.lost")
                    continue
                if task and hand.dismiss:
                    result, took = future.result()
                    self._pieces.took(took)
                    self._count("pieces.helped")
                    self._keep(task, result)
                elif task:
                    self._keep(task, future.result())
                free.append(hand)

    def _stays(self, hand: ChunkWorker, left: Iterator[tuple[int, Any]]) -> bool:
        """Whether one who is free has more to do here; a helper that has not is dismissed."""
        if hand.dismiss is None:
            return True
        allowed = self._pieces.helper_quota(self._video, self._helpers)
        if self._helpers <= allowed and self._waits(left):
            return True
        self._let_go(hand.dismiss)
        return False

    def _waits(self, left: Iterator[tuple[int, Any]]) -> bool:
        """Whether there is a piece to be done that nobody does. What the store has is done."""
        while not self._ready and (taken := next(left, None)) is not None:
            number, piece = taken
            key = self._pieces.key(self._part, piece)
            stored = self._pieces.store.get_table(self._kind, key)
            if stored is None:
                self._ready.append(ChunkTask(number, piece, key))
            else:
                self._done[number] = schemas.load(self._part.result, stored.to_pylist()[0])
        return bool(self._ready)

    def _keep(self, task: ChunkTask, result: Any) -> None:
        table = schemas.table([result], self._part.result)
        self._pieces.store.put_table(self._kind, task.key, table)
        self._done[task.number] = result

    def _count(self, name: str) -> None:
        self._pieces.count(f"{self._pieces.stage}.{name}", 1)

    @property
    def _kind(self) -> str:
        return f"{self._pieces.stage}-pieces"

    def _hire(self) -> None:
        """Start as many helpers as there is room for now; nobody waits for them."""
        import ray

        hard = self._pieces.hardware
        actor: Any = ray.remote(Helper)
        more = min(
            self._pieces.free_workers() - len(self._coming), hard.max_workers - 1 - self._hired
        )
        allowed = self._pieces.helper_quota(self._video, self._helpers + max(more, 0))
        for _ in range(allowed - self._helpers):
            helper = actor.options(
                num_cpus=hard.cpus,
                num_gpus=hard.gpus or None,
                resources={"TPU": hard.tpus} if hard.tpus else None,
                runtime_env=dict(hard.runtime_env) if hard.runtime_env else None,
            ).remote(self._part, self._pieces.here)
            dismiss = self._held.callback(functools.partial(ray.kill, helper))
            self._hired, self._helpers = self._hired + 1, self._helpers + 1
            hand = ChunkWorker(functools.partial(_asked, helper), dismiss)
            self._coming[helper.ready.remote().future()] = hand

    def _let_go(self, dismiss: Callable[[], object]) -> None:
        dismiss()
        self._helpers -= 1


def _asked(helper: Any, piece: Any) -> Future[Any]:
    return helper.work.remote(piece).future()
