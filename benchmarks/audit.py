"""`audit` on the planted set: does it report each planted fault, and nothing else?

    python -m benchmarks.bench what=audit [json=figures.json]

40 videos with 400 questions (`audit_videos`). A scripted model behind the loopback endpoint answers
from the JPEGs and transcript lines that it receives (`AuditReplies`). Between them work the job's
own part and its gateway, in one process. The whole set is audited, then its clean half alone.

The scripted model measures the shape in each frame, takes their order for the video's, and reads
the lines. What neither shows it guesses: half of the questions by content, half by choosing the
first option. A share of its replies is another letter.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import re
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from actors.answer.battery import Battery, puts
from actors.answer.llm import AnswerLlm
from actors.calls.coordinator import Coordinator
from actors.llm.openai import OpenAI
from benchmarks import sight_videos
from benchmarks.audit_videos import (
    GUESSED,
    KINDS,
    SHORTCUTS,
    PlantedQuestion,
    Set,
    plant_questions,
)
from benchmarks.figures import BenchTable, Cell
from benchmarks.harness import open_part, user_content
from benchmarks.sight_model import LETTERS, FrameFacts, measure_frame
from loopback.endpoint import Loopback
from mustsee.audit import repeats
from mustsee.audit.audit import Audit, AuditedQuestion, RepeatReport, audit
from mustsee.calls.usage import CallCounts
from mustsee.evaluate.score_show import percent
from mustsee.files.store import Store
from mustsee.records import Video
from mustsee.verify.conditions.seen import Condition

_OPTION = re.compile(r"^([A-Z])\. (.*)$", re.MULTILINE)
_NEXT = re.compile(
    rf"the (first|second) shape (after|before) the ({'|'.join(sight_videos.RARE)})\?"
)
_LONE = re.compile(rf"what colour is the ({'|'.join(sight_videos.RARE)})\?")
_SAID = re.compile(r"The shape at (\w+) is ([a-z ]+)\.")


@dataclass(frozen=True)
class AuditReplies:
    """Reply to chat payloads; a share `noise` of the replies is another letter."""

    noise: float = 0.03

    def __call__(self, payload: Mapping[str, Any]) -> str:
        content = json.dumps(payload, sort_keys=True)
        dice = random.Random(hashlib.sha256(content.encode()).hexdigest())
        parts, text = user_content(payload)
        question = next(x for x in text.splitlines() if x.startswith("On the way from"))
        options = [option for _, option in _OPTION.findall(text)]
        shots = [measure_frame(p["image_url"]["url"]) for p in parts if p["type"] == "image_url"]
        choice = pick(question, options, known_value(question, text, shots))
        if choice is None:
            choice = guess_option(question, options)
        if dice.random() < self.noise:
            choice = dice.choice([n for n in range(len(options)) if n != choice])
        return LETTERS[choice]


def known_value(question: str, text: str, shots: Sequence[FrameFacts]) -> str | None:
    """Return the value that decides the question; None where it is not shown."""
    like = re.search(r"the same as ([^?]+)\?", question)
    if like:
        return next(colour for colour, thing in sight_videos.LIKE.items() if thing == like[1])
    stop = re.search(r"the shape at (\w+)", question)
    if stop:
        return dict(_SAID.findall(text)).get(stop[1])
    if "the bar along" in question:
        return shots[0].bar if shots else None
    lone = _LONE.search(question)
    if lone:
        return next((s.colour for s in shots if s.form == lone[1]), None)
    neighbour = _NEXT.search(question)
    if not neighbour:
        return None
    steps = (1 if neighbour[1] == "first" else 2) * (1 if neighbour[2] == "after" else -1)
    place = "where in" in question or "is it at the" in question
    return neighbour_of(neighbour[3], steps, shots, place=place)


def neighbour_of(form: str, steps: int, shots: Sequence[FrameFacts], *, place: bool) -> str | None:
    """Return the colour or place of the shape `steps` after the one of a form; None where that one
    is not seen, or seen twice because the frames are out of order.
    """
    runs: list[FrameFacts] = []
    for shot in shots:
        if not runs or (shot.form, shot.colour, shot.place) != (
            runs[-1].form, runs[-1].colour, runs[-1].place,
        ):  # fmt: skip
            runs.append(shot)
    at = [n for n, run in enumerate(runs) if run.form == form]
    if len(at) != 1:
        return None
    other = at[0] + steps
    if not 0 <= other < len(runs):
        return None
    return runs[other].place if place else runs[other].colour


def pick(question: str, options: Sequence[str], value: str | None) -> int | None:
    """Return the number of the option that states the value, if exactly one does."""
    if value is None:
        return None
    if "yes" in options:
        meant = re.search(r"is it (?:at the )?([a-z ]+),", question)
        return list(options).index("yes" if meant and meant[1] == value else "no")
    matches = [n for n, o in enumerate(options) if re.search(rf"\b{value}\b", o)]
    return matches[0] if len(matches) == 1 else None


def guess_option(question: str, options: Sequence[str]) -> int:
    """Guess by content for half of the questions, by place for the others."""
    dice = random.Random(f"{question}/{sorted(options)}")
    if dice.random() < 0.5:
        return list(options).index(dice.choice(sorted(options)))
    return 0


FRAMES, LONGEST = 30, 160  # frames that the model gets, and their longer side in pixels
ROWS_IN_FLIGHT = 8
SHORTCUT_CONDITIONS = {  # kind -> the conditions that show enough to answer
    "blind": set(SHORTCUTS), "one_frame": {"one_frame", "shuffled"},
}  # fmt: skip

Answerer = Callable[[Video], Awaitable[Video]]


@dataclass(frozen=True, kw_only=True)
class Done:
    """The audits of the whole set and of its clean half, and the cost of each condition."""

    set: Set
    whole: Audit
    clean: Audit
    costs: Mapping[str, CallCounts] = field(default_factory=dict[str, CallCounts])

    @property
    def truth(self) -> float:
        """The share of the questions for which this model has a shortcut."""
        return sum(p.kind in SHORTCUTS for p in self.set.planted) / len(self.set.planted)


@dataclass(frozen=True, kw_only=True)
class AuditBench:
    """`videos`: number of videos, with ten questions each. `noise`: share of the model's replies
    that are another letter. `prices`: USD per million tokens, in and out.
    """

    videos: int = 40
    noise: float = 0.03
    prices: Sequence[float] = (0.4, 1.6)
    seed: int = 0

    def __call__(self) -> BenchTable:
        began = time.process_time()
        done = self.run_audit()
        rows = [self._row(kind, done) for kind in (*KINDS, "clean")]
        whole, clean = done.whole.figures[0].shortcuts, done.clean.figures[0].shortcuts
        return BenchTable(
            title=f"audit of {len(done.set.planted)} planted questions on {self.videos} videos",
            columns=("kind", "questions", "found", "by"),
            rows=tuple(rows),
            notes=(
                f"shortcut ratio {percent(whole.ratio)}, truth {done.truth:.1%}; before the "
                f"correction {whole.raw:.1%}",
                f"clean half alone: ratio {percent(clean.ratio)}, raw "
                f"{clean.raw:.1%}; alarms: "
                f"{', '.join(alarms(done.clean)) or 'none'}; keys in doubt "
                f"{len(done.clean.suspects)}, repeats {len(done.clean.duplicates)}",
                *(
                    f"{name}: {cost.calls} calls, {cost.tokens_in:,} tokens in, ${cost.usd:.4f}"
                    for name, cost in done.costs.items()
                ),
                f"{time.process_time() - began:.0f} CPU s",
            ),
        )

    def _row(self, kind: str, done: Done) -> tuple[Cell, ...]:
        planted = [p for p in done.set.planted if p.kind == kind]
        items = {i.question_id: i for i in done.whole.items}
        right = sum(is_found(p, items[p.question.question_id]) for p in planted)
        groups = [g for g in done.whole.types if g.name == kind]
        names = [t.name for g in groups for t in g.battery if t.alarm]
        return (kind, len(planted), right, ", ".join(names))

    def run_audit(self) -> Done:
        """Plant the set, answer its questions under each condition, and audit the replies."""
        with tempfile.TemporaryDirectory(prefix="mustsee-bench-") as name:
            folder = Path(name)
            planted_set = plant_questions(folder, self.videos, self.seed)
            with Loopback(reply=AuditReplies(self.noise)) as server:
                battery = self.battery(server.url)
                rows, costs = asyncio.run(answer_rows(battery, planted_set.rows, folder))
        runs = [put.condition_run for put in battery.puts]
        questions = [q for r in rows for q in r.questions or ()]
        clean = {p.question.question_id for p in planted_set.planted if p.kind == "clean"}
        half = [q for q in questions if q.question_id in clean]
        repeated = RepeatReport(
            duplicates=repeats.repeats_within(questions),
            overlap=repeats.overlap(questions, planted_set.benchmark, "benchmark"),
        )
        own = RepeatReport(duplicates=repeats.repeats_within(half))
        return Done(
            set=planted_set,
            whole=audit(questions, rows, runs, repeated, seed=self.seed),
            clean=audit(half, rows, runs, own, seed=self.seed),
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
    """Whether the audit reports the planted fault, or none on a clean question."""
    fails = set(item.fails) - {"balance"}
    if planted.kind in SHORTCUTS:
        return bool(SHORTCUT_CONDITIONS.get(planted.kind, {planted.kind}) & set(item.shortcuts))
    if planted.kind in GUESSED:
        return GUESSED[planted.kind] in item.guessers
    marks = {"repeat": "duplicate", "repeat elsewhere": "duplicate", "wrong key": "error",
             "taken": "overlap"}  # fmt: skip
    if planted.kind in marks:
        return marks[planted.kind] in fails
    return not fails


def alarms(result: Audit) -> list[str]:
    """Return the names of the alarms of the dataset and of its types."""
    return [
        *(t.name for t in result.alarms),
        *(f"{g.name}: {t.name}" for g in result.types for t in g.battery if t.alarm),
    ]


async def answer_rows(
    battery: Battery, rows: Sequence[Video], folder: Path
) -> tuple[list[Video], dict[str, CallCounts]]:
    """Return the rows with all replies, and the cost of each condition."""
    store, costs = Store(str(folder / "store")), dict[str, CallCounts]()
    answered = list(rows)
    room = asyncio.Semaphore(ROWS_IN_FLIGHT)
    model = battery.puts[0].part.llm
    assert isinstance(model, OpenAI)
    chat = model.open()
    for put in battery.puts:
        coordinator = Coordinator()
        answer = open_part(Battery(puts=(put,)), model, chat, store, coordinator)

        async def answer_row(row: Video, answer: Answerer = answer) -> Video:
            async with room:
                return await answer(row)

        answered = list(await asyncio.gather(*map(answer_row, answered)))
        summary, counts = coordinator.snapshot().llm.summary(), CallCounts()
        for name, value in vars(counts).items():
            setattr(counts, name, type(value)(summary.get(name, value)))
        costs[put.condition] = counts
    return answered, costs
