"""Blind readers of a training set: models that answer its rows from the text alone, several times.

Every call goes through the gateway and the store, so a run that was killed asks nothing twice.
"""

from __future__ import annotations

import asyncio
import random
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from actors.answer.llm import AnswerLlm
from actors.answer.look import AnswererFrames
from actors.engine.session import Session
from actors.part import ConfiguredJudge, RunContext, gather_all, prompts_in
from mustsee.calls.llm import Llm, Reply, Request
from mustsee.clean.columns import TrainingRow
from mustsee.clean.rule import FAILED, RIGHT, WRONG, grade_by_rules
from mustsee.clean.table_parts import TablePart
from mustsee.clean.work import CleanWork, as_question
from mustsee.errors import MustseeError, Transient
from mustsee.evaluate.answers import answers
from mustsee.files.folders import write_whole
from mustsee.judge.judge import JudgeConfig, JudgeItem
from mustsee.records import Video

STAGE = "answer"
CLOSE_S = 10.0  # seconds in which connections end
ROWS_AT_ONCE = 400  # rows whose calls wait at once in one part


@dataclass(frozen=True, kw_only=True)
class BlindReaders:
    """The models that read, as answerers; `of`: replies of each. `judge`: of open answers."""

    answerers: tuple[AnswerLlm, ...]
    of: int
    judge: JudgeConfig
    seed: int

    def open(self, context: RunContext) -> OpenReaders:
        return OpenReaders(self, context)


_row_usd: ContextVar[list[float]] = ContextVar("_row_usd")  # of the calls for the row at hand


@dataclass
class MeteredLlm:
    """A model that counts what its replies cost, whether they were stored or not."""

    llm: Llm
    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0

    @property
    def identity(self) -> str:
        return self.llm.identity

    async def complete(self, request: Request) -> Reply:
        reply = await self.llm.complete(request)
        self.calls += 1
        _row_usd.get().append(reply.usd)
        self.tokens_in += reply.tokens_in
        self.tokens_out += reply.tokens_out
        return reply


@dataclass
class RowReplies:
    """`given` [reader][reply] of one row, as RIGHT, WRONG or FAILED, and the `usd` of its calls."""

    given: list[list[int]]
    usd: float = 0.0


@dataclass
class OpenReaders:
    """The readers of one process, connected. `failed`: messages of failed calls."""

    readers: BlindReaders
    context: RunContext
    failed: Counter[str] = field(default_factory=Counter[str])
    _starting: threading.Lock = field(default_factory=threading.Lock)

    @cached_property
    def models(self) -> list[MeteredLlm]:
        """The models, connected with the first row."""
        return [MeteredLlm(self.context.llm(a.llm)) for a in self.readers.answerers]

    @cached_property
    def _judge(self) -> ConfiguredJudge:
        return ConfiguredJudge(self.readers.judge, self.context)

    @cached_property
    def _loop(self) -> asyncio.AbstractEventLoop:
        import uvloop

        loop = uvloop.new_event_loop()
        loop.set_exception_handler(_show_error)
        threading.Thread(target=loop.run_forever, name=STAGE, daemon=True).start()
        return loop

    def ask(self, rows: Sequence[TrainingRow]) -> list[RowReplies]:
        """Ask every reader `of` times at each row, and grade the replies. Any thread may call it.
        Raises BudgetSpent.
        """
        with self._starting:
            loop = self._loop
        return asyncio.run_coroutine_threadsafe(self._ask(rows), loop).result()

    def close(self) -> None:
        """End what waits for the run's other processes, which end before this one."""
        if "_loop" in self.__dict__:
            asyncio.run_coroutine_threadsafe(_cancel_tasks(), self._loop).result(CLOSE_S)

    async def _ask(self, rows: Sequence[TrainingRow]) -> list[RowReplies]:
        room = asyncio.Semaphore(ROWS_AT_ONCE)

        async def ask_row(row: TrainingRow) -> tuple[list[list[str | int]], float]:
            _row_usd.set([])  # of this task and of those that it starts
            async with room:
                return await self._ask_row(row), sum(_row_usd.get())

        return await self._graded(rows, await gather_all(map(ask_row, rows)))

    async def _ask_row(self, row: TrainingRow) -> list[list[str | int]]:
        """Return the replies of each reader: a text to be graded, or a grade."""
        if row.left:
            return []
        return list(
            await asyncio.gather(
                *(
                    asyncio.gather(*(self._reply(row, a, m, n) for n in range(self.readers.of)))
                    for a, m in zip(self.readers.answerers, self.models, strict=True)
                )
            )
        )

    async def _reply(
        self, row: TrainingRow, answerer: AnswerLlm, llm: MeteredLlm, number: int
    ) -> str | int:
        question = as_question(row)
        answerer = replace(answerer, seed=self.readers.seed + number)
        turn = _turn(row, self.readers.seed, number)
        prompts = prompts_in(answerer.prompts, answerer.language)
        try:
            verdict = await answerer.answer_question(
                Video(video_id=row.video, uri=""), question, turn, AnswererFrames(), llm, prompts
            )
        except Transient as error:
            self.failed[str(error)[:200]] += 1
            return FAILED
        (answer,) = answers(replace(question, verdicts=(verdict,)))
        if answer.failed is not None:
            self.failed[answer.failed[:200]] += 1
            return FAILED
        if row.options:
            return RIGHT if verdict.correct else WRONG
        return verdict.reply

    async def _graded(
        self,
        rows: Sequence[TrainingRow],
        given: Sequence[tuple[Sequence[Sequence[str | int]], float]],
    ) -> list[RowReplies]:
        results, doubtful = list[RowReplies](), dict[JudgeItem, list[tuple[list[int], int]]]()
        for row, (by_reader, usd) in zip(rows, given, strict=True):
            grades = list[list[int]]()
            for replies in by_reader:
                own = list[int]()
                grades.append(own)
                for number, reply in enumerate(replies):
                    grade = reply if isinstance(reply, int) else grade_by_rules(row, reply)
                    if grade is None:
                        item = JudgeItem(
                            question=row.question, candidate=str(reply), references=(row.answer,)
                        )
                        doubtful.setdefault(item, []).append((own, number))
                    own.append(WRONG if grade is None else int(grade))
            results.append(RowReplies(given=grades, usd=usd))
        if doubtful:
            items = list(doubtful)
            _, scores = await self._judge.scores(items)
            for item, score in zip(items, scores, strict=True):
                if score.error:
                    self.failed[f"not judged: {score.error}"[:200]] += len(doubtful[item])
                for own, number in doubtful[item]:
                    own[number] = FAILED if score.error else int(bool(score.equivalent))
        return results


def _turn(row: TrainingRow, seed: int, number: int) -> int:
    """Return the rotation of a row's options for one reply; no two are the same until all were."""
    count = len(row.options)
    if not count:
        return 0
    drawn = random.Random(f"{seed}/{row.question_id}/turns").sample(range(count), count)
    return drawn[number % count]


def _show_error(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Show an error outside of the requests, but for aiohttp's complaint that a connection was not
    closed: a model's connection lives as long as its process.
    """
    if not str(context.get("message", "")).startswith("Unclosed "):
        loop.default_exception_handler(context)


async def _cancel_tasks() -> None:
    """Cancel all other tasks of this event loop, and wait for their end."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=CLOSE_S / 2)


class PartPass:
    """A pass over parts in a worker: `work` is called with each part."""

    def __init__(self, work: Callable[[TablePart], object]) -> None:
        self._work = work

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        for part in batch["part"]:
            self._work(TablePart(**part))
        return {"done": [len(batch["part"])]}


class AskPass:
    """The pass "ask" in a worker: it asks the readers at each part, and writes the replies."""

    def __init__(self, work: CleanWork, readers: BlindReaders, session: Session) -> None:
        self._clean, self._session = work, session
        self._readers = readers.open(session.context(STAGE))

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        for part in batch["part"]:
            self.ask_part(TablePart(**part))
        return {"done": [len(batch["part"])]}

    def ask_part(self, part: TablePart) -> None:
        """Ask at the rows of one part. Raises MustseeError, and tells the run why it ends."""
        try:
            rows = self._clean.rows(part)
            replies = self._readers.ask(rows)
        except MustseeError as error:
            self._session.abort(error)
            raise
        sink = pa.BufferOutputStream()
        nested = pa.list_(pa.list_(pa.int8()))
        given = pa.array([r.given for r in replies], nested)
        failed = [f"{n} x {why}" for why, n in self._readers.failed.most_common(3)]
        table = pa.table({"replies": given}).replace_schema_metadata({"failed": "; ".join(failed)})
        pq.write_table(table, sink)
        write_whole(Path(self._clean.path("replies", part)), sink.getvalue().to_pybytes())
