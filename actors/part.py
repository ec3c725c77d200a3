"""What a stage runs: a `Part`, and what it is given when it starts.

A part is a frozen dataclass: its fields are its configuration and bear identity, except those
declared with `hardware()` (batch sizes, devices), which may change without anything being computed
anew. It is small and picklable; `open` loads the model or the connection, once per worker process
and only when a row must be computed.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

from mustsee.calls.llm import Llm, VideoInput
from mustsee.records import Video
from mustsee.store import Store

Opened = Callable[[Video], Video | Awaitable[Video]]
Each = Callable[[Iterable[Any]], Iterator[Any]]


class LlmConfig(Protocol):
    """A configured model (`conf/llm/*.yaml`), light and picklable; `open` connects."""

    @property
    def identity(self) -> str: ...

    def open(self) -> Llm: ...


@dataclass(frozen=True, kw_only=True)
class Capabilities:
    """What a configured model can do; its property `capabilities` returns it.

    `images`: it takes images. `video`: how it is given videos; null: it takes none. `local`: its
    replies are computed in the worker, by one core, so several rows at once only wait for each
    other. `batch_rows`: rows that a worker holds at once so that their calls fill a batch; 0: calls
    are not batched.
    """

    images: bool = True
    video: VideoInput | None = None
    local: bool = False
    batch_rows: int = 0


def capabilities_of(llm: LlmConfig) -> Capabilities:
    """The capabilities of a model; the defaults for one without the property."""
    return getattr(llm, "capabilities", DEFAULT_CAPABILITIES)


DEFAULT_CAPABILITIES = Capabilities()


def compute_pieces_here(part: ChunkedPart) -> Each:
    """A video's pieces done one after the other, here."""
    return functools.partial(map, part.open_chunked())


@dataclass(frozen=True)
class RunContext:
    """What a part may use of the running job.

    `llm(config)` connects a configured model through the gateway: rate limits, retries, coalescing,
    store, budget, usage totals. `count(name, n)` adds to a counter that ends up in `run.json`.
    `pieces(part)` maps the pieces of a video to their results, in the same order: some of them
    elsewhere, where workers are free.
    """

    store: Store
    llm: Callable[[LlmConfig], Llm]
    count: Callable[[str, int], None]
    pieces: Callable[[ChunkedPart], Each] = compute_pieces_here


class Part(Protocol):
    """`reads`: the columns that decide the result (identity). `needs`: columns it uses but that
    decide nothing, such as `uri` beside `digest`. `writes`: the columns that the returned row may
    change; nothing else is taken over.

    The opened part maps one row to one row. A plain function is called for one row at a time; an
    async one for as many rows at once as the stage's `concurrency` allows, all on one event loop.
    It raises BadRow for a row that can never work.

    What else a part may be is declared below: `Skippable`, `Threaded`, `Checkable`, `NamesModels`,
    `NamedAnswerer`, `Answerer`, `ChunkedPart`.
    """

    version: ClassVar[str]
    reads: ClassVar[tuple[str, ...]]
    needs: ClassVar[tuple[str, ...]]
    writes: ClassVar[tuple[str, ...]]

    def open(self, run: RunContext) -> Opened: ...


class ChunkedPart(Protocol):
    """A part that does a long video piece by piece. `open_chunked` loads its model and returns what
    makes a record of the class `result` of each piece, whatever it did before. A piece can be
    pickled, and `mustsee.store.identity` tells it from any other.
    """

    result: ClassVar[type]

    def open_chunked(self) -> Callable[[Any], Any]: ...


class Skippable(Part, Protocol):
    """A part whose stage the job leaves out where it has nothing to do."""

    @property
    def is_on(self) -> bool: ...


@runtime_checkable
class Threaded(Protocol):
    """A part that says (`threaded = True`) whether its plain function is safe to call from several
    threads at once; that of any other part is called by one thread at a time.
    """

    threaded: ClassVar[bool]


@runtime_checkable
class Checkable(Protocol):
    """A part, or a model in one of its fields, that can say beforehand whether it could work."""

    def check(self, budget_usd: float | None) -> None:
        """Called before the job starts. Raises UserError for what would fail anyway: no key, no
        such model, no price where there is a budget.
        """
        ...


@runtime_checkable
class NamesModels(Protocol):
    """A part that names the models that it asks, by their keys in its conf."""

    @property
    def roles(self) -> Mapping[str, LlmConfig]: ...


def models_of(part: object) -> tuple[LlmConfig, ...]:
    """The models that a part asks."""
    return tuple(part.roles.values()) if isinstance(part, NamesModels) else ()


def is_local(part: Part) -> bool:
    """Whether a part asks models, all of which compute in the worker."""
    models = models_of(part)
    return bool(models) and all(capabilities_of(llm).local for llm in models)


@runtime_checkable
class NamedAnswerer(Protocol):
    """An answerer: results are listed under its name."""

    @property
    def name(self) -> str: ...


@runtime_checkable
class Answerer(NamedAnswerer, Protocol):
    """An answerer that may use more than the question. `looks`: it is shown pictures of the video,
    `frames` of them (null where they are chosen otherwise). `listens`: it uses the transcript.
    `open_ended`: it is not shown the options, and writes its answer.
    """

    @property
    def frames(self) -> int | None: ...
    @property
    def looks(self) -> bool: ...
    @property
    def listens(self) -> bool: ...
    @property
    def open_ended(self) -> bool: ...
