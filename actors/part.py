"""`Part`, which a stage runs, and `RunContext`, which a part gets when it starts; the options that
parts which ask a model have in common, and the judge of a part.

A part is a frozen dataclass. Its fields are its configuration, and their values are part of the
store's key; fields declared with `hardware()` (batch sizes, devices) are not, so changing them
computes nothing again. A part is small and picklable. `open` loads the model or connects to it,
once per worker process and only when a row must be computed.
"""

from __future__ import annotations

import asyncio
import functools
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar, runtime_checkable

from mustsee.calls.llm import Asker, Llm, Sampling, VideoInput
from mustsee.files.store import Store, identity, keyed_by
from mustsee.prompts import ENGLISH, Prompts
from mustsee.records import Video, is_rules
from mustsee.verify.conditions.video_frames import VideoFrames, VideoPreparer

if TYPE_CHECKING:  # Every worker imports this module, and few of them a judge.
    from mustsee.judge.judge import Judge, JudgeConfig, JudgeItem, Score

T = TypeVar("T")

Opened = Callable[[Video], Video | Awaitable[Video]]
Each = Callable[[Iterable[Any]], Iterator[Any]]
SAMPLING = Sampling()


class LlmConfig(Protocol):
    """A configured model (`conf/llm/*.yaml`), small and picklable. `open` connects it."""

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
    """Return what maps the chunks of a video to their results in this process, one by one."""
    return functools.partial(map, part.open_chunked())


@dataclass(frozen=True)
class RunContext:
    """What a part may use of the running job.

    `llm(config)` connects a configured model through the gateway: rate limits, retries, coalescing,
    store, budget, usage totals. `count(name, n)` adds to a counter of `run.json`. `pieces(part)`
    maps the chunks of a video to their results, in order; helper processes compute some of them
    where workers are free. `retry_problems`: a model of which the store has unparseable replies
    only is asked again. `frames(video, crop=...)` opens the frames of a row that models are shown.
    """

    store: Store
    llm: Callable[[LlmConfig], Llm]
    count: Callable[[str, int], None]
    pieces: Callable[[ChunkedPart], Each] = compute_pieces_here
    retry_problems: bool = False
    frames: Callable[..., VideoFrames] = VideoFrames


class Part(Protocol):
    """`reads`: columns that decide the result; they are in the store's key. `needs`: columns that
    it uses but that decide nothing, such as `uri` beside `digest`. `writes`: columns of the
    returned row that are kept; changes of others are ignored.

    The opened part maps one row to one row. A plain function is called for one row at a time, an
    async one for up to `concurrency` rows of the stage at once, all on one event loop. It raises
    BadRow for a row that can never succeed.

    Optional abilities of parts are declared below: `Skippable`, `NeedsRows`, `Threaded`,
    `Checkable`, `NamesModels`, `NamedAnswerer`, `Answerer`, `ChunkedPart`.
    """

    version: ClassVar[str]
    reads: ClassVar[tuple[str, ...]]
    needs: ClassVar[tuple[str, ...]]
    writes: ClassVar[tuple[str, ...]]

    def open(self, run: RunContext) -> Opened: ...


class ChunkedPart(Protocol):
    """A part that processes a long video in chunks. `open_chunked` loads its model and returns a
    function from a chunk to a record of the class `result`; no chunk depends on another. A chunk
    can be pickled, and its `mustsee.files.store.identity` is unique.
    """

    result: ClassVar[type]

    def open_chunked(self) -> Callable[[Any], Any]: ...


class Skippable(Part, Protocol):
    """A part whose stage the job skips where it has nothing to do."""

    @property
    def is_on(self) -> bool: ...


@runtime_checkable
class NeedsRows(Protocol):
    """A part whose settings depend on the rows of a run. `for_rows` returns it for the rows of some
    ids.
    """

    def for_rows(self, names: Sequence[str]) -> Any: ...


@runtime_checkable
class Threaded(Protocol):
    """A part whose plain function several threads may call at once (`threaded = True`). The
    function of any other part is called by one thread at a time.
    """

    threaded: ClassVar[bool]


@runtime_checkable
class Checkable(Protocol):
    """A part, or a model in one of its fields, that checks its configuration before a job."""

    def check(self, budget_usd: float | None) -> None:
        """Raise UserError for a configuration that would fail: a missing key, an unknown model, a
        model without a price where there is a budget.
        """
        ...


@runtime_checkable
class NamesModels(Protocol):
    """A part that lists the models that it asks, by their keys in its configuration."""

    @property
    def roles(self) -> Mapping[str, LlmConfig]: ...


def models_of(part: object) -> tuple[LlmConfig, ...]:
    """The models that a part asks."""
    return tuple(part.roles.values()) if isinstance(part, NamesModels) else ()


def computes_locally(part: Part) -> bool:
    """Whether a part lists its models, and none or only such as compute in the worker."""
    return isinstance(part, NamesModels) and all(
        capabilities_of(llm).local for llm in part.roles.values()
    )


@runtime_checkable
class NamedAnswerer(Protocol):
    """An answerer, whose results are listed under its name."""

    @property
    def name(self) -> str: ...


@runtime_checkable
class Answerer(NamedAnswerer, Protocol):
    """An answerer that may use more than the question. `looks`: it is shown the video, in `frames`
    evenly spread frames; null: chosen in another way. `listens`: it uses the transcript.
    `open_ended`: it writes its answer without seeing the options.
    """

    @property
    def frames(self) -> int | None: ...
    @property
    def looks(self) -> bool: ...
    @property
    def listens(self) -> bool: ...
    @property
    def open_ended(self) -> bool: ...


async def gather_all(work: Iterable[Awaitable[T]]) -> list[T]:
    """Return the results of all, in their order. The first error is raised after all have ended, so
    that every paid reply is stored.
    """
    results = await asyncio.gather(*work, return_exceptions=True)
    if failures := [each for each in results if isinstance(each, BaseException)]:
        raise failures[0]
    return [each for each in results if not isinstance(each, BaseException)]


def model_identity(llm: LlmConfig) -> list[Any]:
    """What counts in the store's key of a part that may show videos to a model."""
    return [llm.identity, identity(video_input_of(llm))]


def video_input_of(llm: LlmConfig, store: Store | None = None) -> VideoPreparer | None:
    """What prepares videos for a model, keeping recoded clips in `store`; None: it takes none."""
    video = capabilities_of(llm).video
    return VideoPreparer(video, store) if video is not None else None


def _if_asking(name: str) -> Callable[[Any], Any]:
    """The key of an option: options of a part without a model do not change its rows."""
    return lambda part: getattr(part, name) if part.prompt_names else None


@dataclass(frozen=True, kw_only=True)
class AskOptions(ABC):
    """What every part that asks a model has in common."""

    prompts: str | None = keyed_by(
        lambda part: part.load_prompts().digest(*part.prompt_names) if part.prompt_names else None,
        default=None,
    )
    """Another folder of prompts; null: the project's own."""
    language: str = keyed_by(_if_asking("language"), default=ENGLISH)
    """Language of the generated text."""
    sampling: Sampling = keyed_by(_if_asking("sampling"), default=SAMPLING)
    tries: int = keyed_by(_if_asking("tries"), default=3)
    """Attempts at one call while replies are unparseable; then the window, look or ranking is
    left out."""

    @property
    @abstractmethod
    def prompt_names(self) -> tuple[str, ...]:
        """The prompts that are rendered, or folders of them; none where no model is asked."""

    def load_prompts(self) -> Prompts:
        """The prompts in `prompts`, in `language`."""
        return prompts_in(self.prompts, self.language)

    def open_asker(
        self, llm: LlmConfig, run: RunContext, watch: VideoPreparer | None = None
    ) -> Asker:
        """A model connected for the run, asked with these options."""
        return Asker(
            llm=run.llm(llm),
            prompts=self.load_prompts(),
            sampling=self.sampling,
            tries=self.tries,
            retries_stored=run.retry_problems,
            watch=watch,
        )


def prompts_in(folder: str | None, language: str) -> Prompts:
    """The prompts in a folder; None: the project's own, wherever this process has it."""
    return Prompts(language=language) if folder is None else Prompts(folder, language)


@runtime_checkable
class AsksModel(Protocol):
    """An engine that asks a configured model."""

    def for_run(self, run: RunContext) -> Any:
        """The same engine with its calls through the run's gateway: limits, store, budget,
        usage.
        """
        ...


@runtime_checkable
class TakesCallers(Protocol):
    """A configured engine that scores several batches at once."""

    @property
    def callers(self) -> int: ...


class ConfiguredJudge:
    """The judge of a configuration. If it asks a model, it does so through the run's gateway."""

    def __init__(self, config: JudgeConfig, run: RunContext) -> None:
        engine = config.engine
        if isinstance(engine, AsksModel):
            config = replace(config, engine=engine.for_run(run))
        self._config = config
        self._judge: Judge | None = None
        self._opening = Lock()
        callers = engine.callers if isinstance(engine, TakesCallers) else 1
        self._threads = ThreadPoolExecutor(callers)

    async def scores(self, items: Sequence[JudgeItem]) -> tuple[Judge, list[Score]]:
        """The judge, and its scores in the order of the items."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self._score, items)

    async def equivalent(
        self, question: str, candidate: str, references: tuple[str, ...]
    ) -> bool | None:
        """Whether the candidate is equivalent to a reference; None if it cannot be judged."""
        from mustsee.judge.judge import JudgeItem

        item = JudgeItem(question=question, candidate=candidate, references=references)
        _, (score,) = await self.scores((item,))
        return None if score.error else score.equivalent

    def _score(self, items: Sequence[JudgeItem]) -> tuple[Judge, list[Score]]:
        with self._opening:
            judge = self._judge = self._judge or self._config.open()
        return judge, judge.score(items)


def same_model_warnings(models: Mapping[str, str]) -> tuple[str, ...]:
    """Return warnings where a model guesses at its own questions, and where guessers are one model.

    `models`: configuration key ("ask.llm", "vet.guesser") -> identity. Rules are left out, because
    those that write and those that guess have nothing in common, and a recording, because it holds
    the replies of several models.
    """
    by_key = {
        key: name
        for key, name in models.items()
        if not is_rules(name) and not name.startswith("replay ")
    }
    guessers = {key: name for key, name in by_key.items() if key.startswith("vet.guesser")}
    writers = {name: key for key, name in reversed(by_key.items()) if key.startswith("ask.")}
    lines = [
        f"The same model writes and filters the questions ({writers[name]} and {', '.join(keys)}: "
        f"{name}), so the filter is too kind. Set another one: {keys[0].replace('.', '/')}=openai "
        f"{keys[0]}.model=..."
        for name, keys in _keys_by_model(guessers)
        if name in writers
    ]
    lines += [
        f"{', '.join(keys)} are one model ({name}), each with its own seeds and option orders: if "
        "they agree, one model agrees with itself"
        for name, keys in _keys_by_model(guessers)
        if len(keys) > 1
    ]
    return tuple(lines)


def _keys_by_model(models: Mapping[str, str]) -> list[tuple[str, list[str]]]:
    return [(n, [k for k, m in models.items() if m == n]) for n in dict.fromkeys(models.values())]
