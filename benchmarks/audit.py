"""`audit` on the planted set: is every planted fault found, and nothing else?

    python -m benchmarks.bench what=audit [json=figures.json]

40 videos with 400 questions (`audit_videos`); a model by script behind the loopback endpoint, which
answers from the JPEGs and lines that it is sent (`audit_model`); between them the job's own part
and its gateway, in one process. Then the audit of all, and of the clean half alone.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from actors.answer.battery import Battery, puts
from actors.answer.llm import AnswerLlm
from actors.calls.coordinator import Coordinator
from actors.calls.gateway import Gateway
from actors.llm.openai import OpenAI
from actors.part import LlmConfig, Opened, RunContext
from benchmarks.audit_model import AuditReplies
from benchmarks.audit_videos import (
    GUESSED,
    KINDS,
    SHORTCUTS,
    PlantedQuestion,
    Set,
    plant_questions,
)
from benchmarks.figures import BenchTable, Cell
from loopback.endpoint import Loopback
from mustsee.audit import repeats
from mustsee.audit.audit import Audit, AuditedQuestion, RepeatReport, audit
from mustsee.calls.llm import Llm
from mustsee.calls.usage import CallCounts
from mustsee.records import Video
from mustsee.store import Store
from mustsee.verify.conditions.seen import Condition

FRAMES, LONGEST = 30, 160
ALSO = {  # kind -> the conditions that show enough
    "blind": set(SHORTCUTS), "one_frame": {"one_frame", "shuffled"},
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Done:
    """The set as audited: all of it, and its clean half; what each condition cost."""

    made: Set
    whole: Audit
    clean: Audit
    costs: Mapping[str, CallCounts] = field(default_factory=dict[str, CallCounts])

    @property
    def truth(self) -> float:
        """The share of the questions that have a shortcut to this model."""
        return sum(p.kind in SHORTCUTS for p in self.made.known) / len(self.made.known)


@dataclass(frozen=True, kw_only=True)
class AuditBench:
    """`videos`: how many, with ten questions each; `noise`: share of the model's replies that are
    another letter; `prices`: USD per million tokens in and out.
    """

    videos: int = 40
    noise: float = 0.03
    prices: Sequence[float] = (0.4, 1.6)
    seed: int = 0

    def __call__(self) -> BenchTable:
        began = time.process_time()
        done = self.run_audit()
        rows = [self._row(kind, done) for kind in (*KINDS, "clean")]
        found = done.whole.figures[0]
        told, over = found.shortcuts.ratio, done.clean.figures[0].shortcuts.ratio
        assert told is not None
        assert over is not None
        return BenchTable(
            title=f"audit of {len(done.made.known)} planted questions on {self.videos} videos",
            columns=("kind", "questions", "found", "by"),
            rows=tuple(rows),
            notes=(
                f"shortcut ratio {_share(told)}, truth {done.truth:.1%}; before the correction "
                f"{found.shortcuts.raw:.1%}",
                f"clean half alone: ratio {_share(over)}, raw "
                f"{done.clean.figures[0].shortcuts.raw:.1%}; alarms: "
                f"{', '.join(alarms(done.clean)) or 'none'}; keys in doubt "
                f"{len(done.clean.suspects)}, repeats {len(done.clean.duplicates)}",
                *(
                    f"{name}: {tally.calls} calls, {tally.tokens_in:,} tokens in, ${tally.usd:.4f}"
                    for name, tally in done.costs.items()
                ),
                f"{time.process_time() - began:.0f} CPU s",
            ),
        )

    def _row(self, kind: str, done: Done) -> tuple[Cell, ...]:
        mine = [p for p in done.made.known if p.kind == kind]
        items = {i.question_id: i for i in done.whole.items}
        right = sum(is_found(p, items[p.question.question_id]) for p in mine)
        beat = [g for g in done.whole.types if g.name == kind]
        names = [t.name for g in beat for t in g.battery if t.alarm]
        return (kind, len(mine), right, ", ".join(names))

    def run_audit(self) -> Done:
        """The set, made, asked and audited."""
        with tempfile.TemporaryDirectory(prefix="mustsee-bench-") as name:
            folder = Path(name)
            made = plant_questions(folder, self.videos, self.seed)
            with Loopback(reply=AuditReplies(self.noise)) as server:
                battery = self.battery(server.url)
                rows, costs = asyncio.run(answer_rows(battery, made.rows, folder))
        asked = [put.condition_run for put in battery.puts]
        questions = [q for r in rows for q in r.questions or ()]
        clean = {p.question.question_id for p in made.known if p.kind == "clean"}
        half = [q for q in questions if q.question_id in clean]
        repeated = RepeatReport(
            duplicates=repeats.repeats_within(questions),
            overlap=repeats.overlap(questions, made.benchmark, "benchmark"),
        )
        own = RepeatReport(duplicates=repeats.repeats_within(half))
        return Done(
            made=made,
            whole=audit(questions, rows, asked, repeated, seed=self.seed),
            clean=audit(half, rows, asked, own, seed=self.seed),
            costs=costs,
        )

    def battery(self, url: str) -> Battery:
        model = OpenAI(
            model="scripted", base_url=url, key_env=None, prices={"scripted": self.prices}
        )
        answer = AnswerLlm(
            llm=model, see=Condition(frames=FRAMES, longest=LONGEST, quality=80), rotations=2,
            seed=self.seed,
        )  # fmt: skip
        return Battery(puts=puts(answer, [model], few=4, looks=True, listens=True))


def is_found(planted: PlantedQuestion, item: AuditedQuestion) -> bool:
    """Whether a question is told as what it is."""
    fails = set(item.fails) - {"balance"}
    if planted.kind in SHORTCUTS:
        return bool(ALSO.get(planted.kind, {planted.kind}) & set(item.shortcuts))
    if planted.kind in GUESSED:
        return GUESSED[planted.kind] in item.guessers
    marks = {"repeat": "duplicate", "repeat elsewhere": "duplicate", "wrong key": "error",
             "taken": "overlap"}  # fmt: skip
    if planted.kind in marks:
        return marks[planted.kind] in fails
    return not fails


def alarms(found: Audit) -> list[str]:
    """Of the dataset, and of its types."""
    return [
        *(t.name for t in found.alarms),
        *(f"{g.name}: {t.name}" for g in found.types for t in g.battery if t.alarm),
    ]


async def answer_rows(
    battery: Battery, rows: Sequence[Video], folder: Path
) -> tuple[list[Video], dict[str, CallCounts]]:
    """The rows with all replies; what each condition cost."""
    kept, costs = Store(str(folder / "store")), dict[str, CallCounts]()
    done = list(rows)
    room = asyncio.Semaphore(8)
    model = battery.puts[0].part.llm
    assert isinstance(model, OpenAI)
    chat = model.open()
    for put in battery.puts:
        coordinator = Coordinator()

        def gateway(config: LlmConfig, chat: Llm = chat, counted: Coordinator = coordinator) -> Llm:
            assert isinstance(config, OpenAI)
            return Gateway(chat, kept, counted, config, sleep=_briefly)

        alone = Battery(puts=(put,))
        work = alone.open(RunContext(store=kept, llm=gateway, count=coordinator.count))

        async def answer_row(row: Video, work: Opened = work) -> Video:
            async with room:
                made = work(row)
                return made if isinstance(made, Video) else await made

        done = list(await asyncio.gather(*map(answer_row, done)))
        told, tally = coordinator.snapshot().llm.summary(), CallCounts()
        for name, value in vars(tally).items():
            setattr(tally, name, type(value)(told.get(name, value)))
        costs[put.condition] = tally
    return done, costs


async def _briefly(seconds: float) -> None:
    await asyncio.sleep(min(seconds, 0.02))


def _share(found: object) -> str:
    from mustsee.evaluate.score_show import percent

    return percent(found)  # type: ignore[arg-type]
