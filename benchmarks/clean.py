"""`clean` on a training set with planted shortcuts: speed, memory, kills, forecast, what it finds.

    python -m benchmarks.bench what=clean 'what.questions=[val.csv,multi-choice.json]'

The rows are released questions, repeated with other words and another order of the options:
multiple choice, open, yes/no, boxes and spans. In three sources a shortcut is planted: the right
option stands first, it has one more word, or the model of a loopback endpoint knows it. The model
guesses at the others. Each run is made twice: undisturbed, and killed (`kill -9`) three times.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil

import mustsee
from benchmarks.errata import draw_questions
from benchmarks.figures import BenchTable, Cell
from loopback.endpoint import Loopback
from mustsee.audit.guessers import askable_questions
from mustsee.questions.balance import hit
from mustsee.questions.learned import learned_guess
from mustsee.records import Question

PRICES = (1.0, 2.0)  # USD per million tokens in and out of the loopback model
PLANTED = ("by position", "by words", "by knowledge")
POLL_S = 0.2
_NUMBER = re.compile(r"\(clip (\d+)\)")
_OPTION = re.compile(r"^([A-Z])\. (.*)$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class PlantedRow:
    """A row of the table, its right answer, and whether the model knows it."""

    row: Mapping[str, Any]
    answer: str
    known: bool


def plant_rows(questions: Sequence[Question], count: int, seed: int = 0) -> Iterator[PlantedRow]:
    """Yield `count` rows. A tenth has each of the planted shortcuts; of the other rows some are
    open, yes/no, boxes and spans. All rows made of a video's questions are of this video.
    """
    for number in range(count):
        rng = random.Random(f"{seed}/{number}")
        question = questions[number % len(questions)]
        options = rng.sample(question.options, len(question.options))
        answer = question.options[question.answer_index or 0]
        source = PLANTED[number % 10] if number % 10 < len(PLANTED) else f"plain {number % 2}"
        row: dict[str, Any] = {
            "id": f"row-{number}",
            "video": f"{question.video_id}.mp4",
            "problem": f"{question.question} (clip {number})",
            "problem_type": question.question_type,
            "data_source": source,
            "duration": 5.0 * (1 + number % 300),
        }
        if source == "by position":
            options = [answer, *(o for o in options if o != answer)]
        if source == "by words":
            options[options.index(answer)] = answer = f"{answer} indeed"
        kind = number // 10 % 10 if source.startswith("plain") else 0
        if kind == 9:
            answer = rng.choice(["[10, 20, 30, 40]", "12.5 - 18.0 s"])
        elif kind == 8:
            shown, answer = rng.choice(options), rng.choice(["Yes", "No"])
            row["problem"] += f" Is it: {shown}?"
        elif kind != 7:
            row["options"] = [f"{'ABCDEFGH'[n]}. {option}" for n, option in enumerate(options)]
        is_choice = "options" in row
        row["solution"] = (
            f"<answer>{'ABCDEFGH'[options.index(answer)] if is_choice else answer}</answer>"
        )
        yield PlantedRow(row=row, answer=answer, known=source == "by knowledge")


@dataclass
class BlindModel:
    """The replies of a model that knows some rows, and guesses at the others."""

    rows: Sequence[PlantedRow]
    seed: int = 0

    def __call__(self, payload: Mapping[str, Any]) -> str:
        content = payload["messages"][-1]["content"]
        text = content if isinstance(content, str) else "".join(c.get("text", "") for c in content)
        match, options = _NUMBER.search(text), _OPTION.findall(text)
        if match is None:
            return "Hello."
        row = self.rows[int(match[1])]
        if row.known:
            return next((letter for letter, o in options if o == row.answer), row.answer)
        rng = random.Random(f"{self.seed}/{text}/{payload.get('seed')}")
        return rng.choice([letter for letter, _ in options] or ["I cannot tell.", "Yes", "No"])


@dataclass
class CleanJob:
    """`mustsee clean` as a process. `peak`: MB of the driver; `seconds`: of its last run;
    `cpu_seconds`: of all runs, with what they started.
    """

    questions: Path
    out: Path
    overrides: Sequence[str] = ()
    peak: float = 0.0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    said: list[str] = field(default_factory=list[str])

    def run(self, kill_when: str = "", share: float = 0.5) -> bool:
        """Run it. `kill_when`: kill it when the pass that leaves such files has done a `share` of
        the parts. Returns whether it ended by itself.
        """
        started, log = time.monotonic(), self.out.with_suffix(".log")
        with log.open("w") as said:
            job = subprocess.Popen(
                [sys.executable, "-m", "ray_jobs.clean", f"questions={self.questions}",
                 f"out={self.out}", *self.overrides],
                stdout=said, stderr=subprocess.STDOUT,
            )  # fmt: skip
            process = psutil.Process(job.pid)
            while job.poll() is None:
                self.peak = max(self.peak, _peak_mb(job.pid))
                self.cpu_seconds = max(self.cpu_seconds, _cpu_seconds(process))
                if kill_when and self._done(kill_when) >= share:
                    _kill(process)
                    job.wait()
                    return False
                time.sleep(POLL_S)
        self.seconds, self.said = time.monotonic() - started, log.read_text().splitlines()
        if job.returncode:
            raise RuntimeError(f"clean ended with {job.returncode}: {self.said[-8:]}")
        return True

    def _done(self, name: str) -> float:
        folder = self.out / ".parts"
        plan = folder / "plan.json"
        if not plan.exists():
            return 0.0
        parts = len(json.loads(plan.read_bytes())["parts"])
        return len(list(folder.glob(f"{name}-*"))) / parts

    @property
    def record(self) -> dict[str, Any]:
        return json.loads((self.out / "clean.json").read_bytes())

    def digest(self) -> str:
        """Return a hash of all rows that it wrote."""
        total = hashlib.sha256()
        files = [p for n in ("rows", "kept", "dropped") for p in sorted((self.out / n).iterdir())]
        for file in (*files, self.out / "chat.jsonl"):
            total.update(file.read_bytes())
        return total.hexdigest()


def _peak_mb(pid: int) -> float:
    """Return the peak memory of a process, MB of 10^6 bytes."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    match = re.search(r"VmHWM:\s+(\d+) kB", status)
    return int(match[1]) * 1024 / 1e6 if match else 0.0


def _cpu_seconds(process: psutil.Process) -> float:
    """Return the CPU seconds of a process and of all that it started; parents count ended ones."""
    seconds = 0.0
    try:
        for each in [process, *process.children(recursive=True)]:
            seconds += sum(each.cpu_times()[:4])
    except psutil.NoSuchProcess:
        return 0.0
    return seconds


def _kill(process: psutil.Process) -> None:
    """Kill a process and those that it started, as `kill -9` does."""
    family = [process, *process.children(recursive=True)]
    for each in family:
        try:
            each.kill()
        except psutil.NoSuchProcess:
            continue
    psutil.wait_procs(family[1:], timeout=30)


def guess_released(questions: Sequence[Question]) -> Iterator[tuple[str, str, Cell]]:
    """Yield the share of released questions that the learned guess gets right, and its CPU
    seconds.
    """
    began = time.process_time()
    guesses = learned_guess(questions)
    seconds = time.process_time() - began
    right = sum(hit(q, g) for q, g in zip(questions, guesses, strict=True)) / len(questions)
    where = f"{len(questions):,} questions as released"
    yield "learned guess: right, CPU s", where, f"{right:.1%}, {seconds:.0f}"


@dataclass(frozen=True, kw_only=True)
class CleanBench:
    """`questions`: released datasets; none: questions are drawn. `rows`: of the table that the
    learned guess alone reads; `asked`: of the one that the model reads, too; `released`: questions,
    unplanted, at which it guesses. `suffix`: kind of table. `folder`: kept; null: a temporary one.
    """

    questions: Sequence[str] = ()
    rows: int = 100_000
    asked: int = 2000
    released: int = 0
    suffix: str = "jsonl"
    seed: int = 0
    folder: str | None = None

    def __call__(self) -> BenchTable:
        read = [q for path in self.questions for q in mustsee.read(path).questions]
        questions = askable_questions(read or draw_questions(2000))
        with TemporaryDirectory(prefix="bench-clean-") as temporary:
            folder = Path(self.folder or temporary)
            folder.mkdir(parents=True, exist_ok=True)
            rows = list(self._large(folder, questions)) if self.rows else []
            rows += self._asked(folder, questions) if self.asked else []
            rows += guess_released(questions[: self.released]) if self.released else []
        return BenchTable(
            title=f"clean on rows made of {len(questions)} questions",
            columns=("measure", "of", "value"),
            rows=tuple((name, where, value) for name, where, value in rows),
        )

    def _large(
        self, folder: Path, questions: Sequence[Question]
    ) -> Iterator[tuple[str, str, Cell]]:
        table = folder / f"large.{self.suffix}"
        with table.open("w", encoding="utf-8") as lines:
            for planted in plant_rows(questions, self.rows, self.seed):
                lines.write(json.dumps(planted.row, ensure_ascii=False) + "\n")
        whole, killed = (
            CleanJob(table, folder / "large-whole"),
            CleanJob(table, folder / "large-killed"),
        )
        whole.run()
        where = f"{self.rows:,} rows, learned guess"
        yield "rows a second", where, self.rows / whole.seconds
        yield "seconds, with the start of Ray", where, whole.seconds
        yield "CPU seconds of the driver and its workers", where, whole.cpu_seconds
        yield "driver's peak, MB", where, whole.peak
        kills = [
            not killed.run(*when) for when in (("rows", 0.5), ("features", 0.5), ("tally", 0.3))
        ]
        killed.run()
        yield (
            "killed, then the same bytes",
            where,
            f"{sum(kills)} x: {killed.digest() == whole.digest()}",
        )
        yield from self._found(where, whole.record, ("by position", "by words"))

    def _asked(
        self, folder: Path, questions: Sequence[Question]
    ) -> Iterator[tuple[str, str, Cell]]:
        planted = list(plant_rows(questions, self.asked, self.seed))
        table = folder / f"asked.{self.suffix}"
        with table.open("w", encoding="utf-8") as lines:
            for each in planted:
                lines.write(json.dumps(each.row, ensure_ascii=False) + "\n")
        where = f"{self.asked:,} rows, a model and the learned guess"
        with Loopback(reply=BlindModel(planted)) as server:
            overrides = [
                "llm=openai", "llm.model=m", f"llm.base_url={server.url}", "llm.key_env=null",
                f"+llm.prices.m=[{PRICES[0]},{PRICES[1]}]", "rows_per_block=200",
                "llm.limits.requests_per_minute=null", "llm.limits.tokens_per_minute=null",
            ]  # fmt: skip
            whole = CleanJob(table, folder / "asked-whole", overrides)
            whole.run()
            before = server.counts["chat"]
            killed = CleanJob(table, folder / "asked-killed", overrides)
            kills = [
                not killed.run(*w) for w in (("rows", 0.9), ("replies", 0.3), ("replies", 0.7))
            ]
            killed.run()
            again = server.counts["chat"] - before
        record = whole.record
        forecast, bill = record["forecast"]["usd"][0], record["bill"]["usd"]
        yield (
            "USD forecast from 500 rows, bill",
            where,
            f"{forecast:.4f}, {bill:.4f} ({forecast / bill - 1:+.1%})",
        )
        known = record["forecast"]["known"][0]
        yield "rows dropped forecast, dropped", where, f"{known:.0f}, {record['dropped']}"
        yield (
            "killed, then the same bytes",
            where,
            f"{sum(kills)} x: {killed.digest() == whole.digest()}",
        )
        yield "calls of the run, of the killed one", where, f"{before}, {again}"
        yield from self._found(where, record, PLANTED)

    def _found(
        self, where: str, record: Mapping[str, Any], sources: Sequence[str]
    ) -> Iterator[tuple[str, str, Cell]]:
        for group in record["by"]["source"]:
            if group["name"] in sources:
                yield (
                    f"planted {group['name']}, found",
                    where,
                    f"{group['known'] / group['rows']:.1%}",
                )
        plain = [g for g in record["by"]["source"] if g["name"].startswith("plain")]
        known, rows = (sum(g[key] for g in plain) for key in ("known", "rows"))
        yield "of the other rows, dropped", where, f"{known / rows:.1%}"
        left = record["left_alone"]
        yield "left alone", where, ", ".join(f"{reason} {count}" for reason, count in left.items())
