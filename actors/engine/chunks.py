"""Long videos in chunks, processed by the stage's worker and by helpers where the cluster has room.

A `ChunkedPart` yields the chunks of a video in order and takes their results in the same order, so
the rows do not depend on which process computed a chunk. Each result is stored, so a run that is
started again after a kill computes only the missing chunks. A helper has the resources of a worker
of the stage, processes chunks of one video, and ends with that video. A video of a single chunk
uses no helpers.
"""

from __future__ import annotations

import contextlib
import functools
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import islice
from typing import Any

from actors.calls.coordinator_actor import CoordinatorHandle, call_coordinator
from actors.engine.hardware import Hardware
from actors.engine.memory import free_memory
from actors.engine.meter import Meter
from actors.part import ChunkedPart, Each
from mustsee.files import schemas
from mustsee.files.store import Store, digest, identity
from mustsee.run.record import WorkTimes


@dataclass(frozen=True, kw_only=True)
class ChunkRunner:
    """Processes the chunked videos of a worker. `took`: adds the time that a helper worked.
    `coordinator`: grants helpers. `here`: the folder that relative paths start from.
    """

    stage: str
    hardware: Hardware
    store: Store
    count: Callable[[str, int], None]
    took: Callable[[WorkTimes], object]
    coordinator: CoordinatorHandle
    here: str

    def __call__(self, part: ChunkedPart) -> Each:
        """Load the part's model; as `RunContext.pieces`."""
        compute = part.open_chunked()

        def work(chunk: Any) -> Any:
            began = time.monotonic()
            result = compute(chunk)
            free_memory(time.monotonic() - began)
            return result

        def each_chunk(chunks: Iterable[Any]) -> Iterator[Any]:
            rest = iter(chunks)
            ahead = deque(islice(rest, 2))
            if len(ahead) < 2:
                yield from map(compute, ahead)  # the stage frees the memory of a whole video
                return
            video = self.key(part, ahead[0])
            with contextlib.ExitStack() as resources:
                resources.callback(self.coordinator.release_helpers.remote, self.stage, video)
                pool = ChunkPool(self, part, video, resources)
                yield from pool.results(_let_go(ahead, rest), work)

        return each_chunk

    def key(self, part: ChunkedPart, chunk: Any) -> str:
        """The store's key of a chunk's result. It includes the schema: results of another one are
        computed again.
        """
        schema = str(schemas.schema(part.result))
        return digest([self.stage, schema, identity(part), identity(chunk)])

    def helper_quota(self, video: str, wanted: int) -> int:
        """The number of helpers that the video may have, at most `wanted`."""
        max_workers = self.hardware.max_workers
        return call_coordinator(
            self.coordinator.acquire_helpers.remote(self.stage, video, wanted, max_workers)
        )

    def free_workers(self) -> int:
        """The number of further workers of this stage that the cluster has room for."""
        import ray

        free = ray.available_resources()
        needed = self.hardware.resources
        return min((int(free.get(r, 0.0) / n + 1e-9) for r, n in needed.items()), default=0)


@dataclass(frozen=True)
class ChunkTask:
    """A chunk to be processed: its place in the video, and the key of its result."""

    number: int
    chunk: Any
    key: str


class Helper:
    """A process that processes chunks, as a Ray actor."""

    def __init__(self, part: ChunkedPart, here: str) -> None:
        if os.path.isdir(here):
            os.chdir(here)
        self._work, self._meter = part.open_chunked(), Meter()

    def ready(self) -> None:
        """Return when the model is loaded."""

    def work(self, chunk: Any) -> tuple[Any, WorkTimes]:
        """Process a chunk and return its result and the time that it took."""
        timer = self._meter.row_work()
        timer.begin()
        result, times = self._work(chunk), timer.end()
        free_memory(times.busy)
        return result, times


@dataclass(frozen=True)
class ChunkWorker:
    """A process that computes chunks. `begin` starts one; `dismiss` ends a helper, and is None for
    the stage's own worker.
    """

    begin: Callable[[Any], Future[Any]]
    dismiss: Callable[[], object] | None = None


class ChunkPool:
    """The processes that compute a video's chunks: its worker, and helpers while chunks wait. When
    a helper fails, it is dismissed and others compute its chunk. A helper is also dismissed
    when no chunk waits, or when another video has reduced this video's quota.
    """

    def __init__(
        self, runner: ChunkRunner, part: ChunkedPart, video: str, resources: contextlib.ExitStack
    ) -> None:
        self._runner, self._part, self._video, self._resources = runner, part, video, resources
        self._started_helpers = self._helpers = 0
        self._starting: dict[Future[Any], ChunkWorker] = {}
        self._ready: deque[ChunkTask] = deque()
        self._done: dict[int, Any] = {}

    def results(self, chunks: Iterable[Any], work: Callable[[Any], Any]) -> Iterator[Any]:
        """Yield the results in the order of the chunks. At most one chunk more than there are
        processes is in memory.
        """
        # The worker computes on a thread of its own, so that helpers need not wait for it.
        thread = self._resources.enter_context(ThreadPoolExecutor(1))
        free = [ChunkWorker(lambda chunk: thread.submit(work, chunk))]
        running: dict[Future[Any], tuple[ChunkTask, ChunkWorker]] = {}
        rest, due = enumerate(chunks), 0
        while True:
            free = [worker for worker in free if self._is_needed(worker, rest)]
            while free and self._has_task(rest):
                task, worker = self._ready.popleft(), free.pop()
                running[worker.begin(task.chunk)] = (task, worker)
            while due in self._done:
                yield self._done.pop(due)
                due += 1
            if not running:
                return
            if self._has_task(rest):
                self._start_helpers()
            finished, _ = wait([*running, *self._starting], return_when=FIRST_COMPLETED)
            for future in finished:
                task, worker = running.pop(future, None) or (None, self._starting.pop(future))
                if worker.dismiss and future.exception() is not None:
                    self._ready.extendleft([task] if task else [])
                    self._dismiss(worker.dismiss)
                    self._count("helpers.lost")
                    continue
                if task and worker.dismiss:
                    result, times = future.result()
                    self._runner.took(times)
                    self._count("pieces.helped")
                    self._keep(task, result)
                elif task:
                    self._keep(task, future.result())
                free.append(worker)

    def _is_needed(self, worker: ChunkWorker, rest: Iterator[tuple[int, Any]]) -> bool:
        """Whether a free process has more to do; dismisses a helper that has not."""
        if worker.dismiss is None:
            return True
        allowed = self._runner.helper_quota(self._video, self._helpers)
        if self._helpers <= allowed and self._has_task(rest):
            return True
        self._dismiss(worker.dismiss)
        return False

    def _has_task(self, rest: Iterator[tuple[int, Any]]) -> bool:
        """Whether a chunk waits to be computed; takes the results that the store has."""
        while not self._ready and (numbered := next(rest, None)) is not None:
            number, chunk = numbered
            key = self._runner.key(self._part, chunk)
            stored = self._runner.store.get_table(self._kind, key)
            if stored is None:
                self._ready.append(ChunkTask(number, chunk, key))
            else:
                self._done[number] = schemas.load(self._part.result, stored.to_pylist()[0])
        return bool(self._ready)

    def _keep(self, task: ChunkTask, result: Any) -> None:
        table = schemas.table([result], self._part.result)
        self._runner.store.put_table(self._kind, task.key, table)
        self._done[task.number] = result

    def _count(self, name: str) -> None:
        self._runner.count(f"{self._runner.stage}.{name}", 1)

    @property
    def _kind(self) -> str:
        return f"{self._runner.stage}-pieces"

    def _start_helpers(self) -> None:
        """Start as many helpers as there is room for, without waiting for them."""
        import ray

        hard = self._runner.hardware
        actor: Any = ray.remote(Helper)
        more = min(
            self._runner.free_workers() - len(self._starting),
            hard.max_workers - 1 - self._started_helpers,
        )
        allowed = self._runner.helper_quota(self._video, self._helpers + max(more, 0))
        for _ in range(allowed - self._helpers):
            helper = actor.options(
                num_cpus=hard.cpus,
                num_gpus=hard.gpus or None,
                resources={"TPU": hard.tpus} if hard.tpus else None,
                runtime_env=dict(hard.runtime_env) if hard.runtime_env else None,
            ).remote(self._part, self._runner.here)
            dismiss = self._resources.callback(functools.partial(ray.kill, helper))
            self._started_helpers += 1
            self._helpers += 1
            worker = ChunkWorker(functools.partial(_start_chunk, helper), dismiss)
            self._starting[helper.ready.remote().future()] = worker

    def _dismiss(self, dismiss: Callable[[], object]) -> None:
        dismiss()
        self._helpers -= 1


def _let_go(ahead: deque[Any], rest: Iterator[Any]) -> Iterator[Any]:
    """Yield the chunks that were read ahead, then the rest, and hold none of them."""
    while ahead:
        yield ahead.popleft()
    yield from rest


def _start_chunk(helper: Any, chunk: Any) -> Future[Any]:
    return helper.work.remote(chunk).future()
