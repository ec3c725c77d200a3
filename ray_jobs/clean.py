"""Clean: takes the rows out of a training set that can be answered without the video.

    python -m ray_jobs.clean questions=Q out=O [llm=openai llm.model=M]

Models answer each row from its text alone, some times, and a learned guess is fitted in folds by
video. It reads tables of any size part by part, and writes rows/, kept/, dropped/, chat.jsonl,
clean.json and clean.txt. See docs/clean.md.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from actors.answer.battery import every_model
from actors.answer.blind_rows import STAGE, AskPass, BlindReaders, PartPass
from actors.answer.llm import AnswerLlm
from actors.calls.coordinator import Coordinator
from actors.engine.local import LocalSession
from actors.engine.session import Session
from actors.llm.offline import Offline
from actors.part import Part, RunContext
from mustsee.clean import report
from mustsee.clean.columns import columns_of, count_from
from mustsee.clean.report import CleanForecast, extrapolate
from mustsee.clean.rule import FAILED, LEARNED, BlindRule, LearnedGuesser, ReaderScores
from mustsee.clean.table_parts import TablePart, join_pieces, plan_parts, read_part, table_files
from mustsee.clean.work import CHAT, DROPPED, KEPT, ROWS, CleanWork
from mustsee.errors import UserError
from mustsee.files.folders import write_json, write_whole
from mustsee.files.store import Store, digest, identity, is_local
from mustsee.judge.judge import JudgeConfig
from mustsee.run import outputs
from ray_jobs.cli.launch import launch
from ray_jobs.runtime import trials
from ray_jobs.runtime.asked_models import asked_endpoints, describe_models
from ray_jobs.runtime.cluster import cores
from ray_jobs.runtime.heartbeat import show_step
from ray_jobs.runtime.provenance import git_revision, versions
from ray_jobs.runtime.rehearse import open_scripted_session
from ray_jobs.runtime.run import JobSettings, RunningJob

RECIPE, VERSION = "clean", "2"
FOLDER, PLAN, ESTIMATE = ".parts", "plan.json", "estimate.json"
PART_ROWS = 1000  # rows of a part
LIGHT_BYTES = 4 << 20  # size of a table that is cleaned in this process, without Ray
DETECTED_ROWS = 2000  # rows from which the columns, and how options are numbered, are detected
PARTS_IN_FLIGHT = 2  # parts in one worker that asks, so that its calls never run dry
SHOWN_ENDS = ("clean.json", "clean.txt")


@dataclass(frozen=True, kw_only=True)
class Clean:
    """`conf/clean.yaml` explains the fields."""

    run: JobSettings
    questions: str
    table: Mapping[str, Any] | None
    seed: int
    answer: Part
    also: Sequence[Mapping[str, Any]]
    judge: JudgeConfig
    rule: BlindRule
    learned: LearnedGuesser
    sample: int

    def __call__(self) -> int:
        if self.sample < 1:
            raise UserError(f"sample={self.sample!r}: at least 1")
        if self.run.preview:
            raise UserError(f"preview={self.run.preview}: clean makes no questions of videos")
        if not is_local(self.run.out):
            raise UserError(
                f"out={self.run.out!r}: a local folder, or one that all nodes mount, is needed"
            )
        readers = self.readers()
        if not readers.answerers and not self.learned.on:
            raise UserError("there is no reader: set llm=openai llm.model=M, or learned.on=true")
        for answerer in readers.answerers:
            trials.check(answerer, self.run.budget_usd, endpoints=not self.run.rehearsal.free)
        light = sum(f.stat().st_size for f in table_files(self.questions)) <= LIGHT_BYTES
        with self.run.open(RECIPE, light=light) as running:
            return CleanRun(self, readers, running, light=light)()

    def readers(self) -> BlindReaders:
        """The models that read; rules are none."""
        if not isinstance(self.answer, AnswerLlm) or self.answer.looks or self.answer.listens:
            raise UserError("answer= must be blind: clean shows the models the text alone")
        models = [m for m in every_model(self.answer.llm, self.also) if not isinstance(m, Offline)]
        answerers = tuple(replace(self.answer, llm=model) for model in models)
        return BlindReaders(answerers=answerers, of=self.rule.of, judge=self.judge, seed=self.seed)

    @property
    def part_rows(self) -> int:
        return self.run.rows_per_block or PART_ROWS


class CleanRun:
    """A run in progress. `light`: in this process, without Ray."""

    def __init__(
        self, job: Clean, readers: BlindReaders, running: RunningJob, *, light: bool
    ) -> None:
        self.job, self.readers, self.running, self.light = job, readers, running, light
        self.folder = Path(job.run.out.removeprefix("file://")).absolute() / FOLDER
        self.folder.mkdir(parents=True, exist_ok=True)
        self.parts: list[TablePart] = []
        self.work: CleanWork

    def __call__(self) -> int:
        rehearsal = self.job.run.rehearsal
        if not rehearsal.dry_run and self.readers.answerers:
            with show_step("testing the endpoints"):
                for answerer in self.readers.answerers:
                    trials.check_here(
                        answerer, self.job.run.budget_usd, endpoints=self.job.run.try_endpoints
                    )
        self.plan()
        work, parts = self.work, self.parts
        print(
            f"{sum(p.rows for p in parts):,} rows in parts of {self.job.part_rows:,}; "
            f"{work.rule.sentence}",
            flush=True,
        )
        self.compute("reading the rows", work.read, "rows")
        if work.learned.on:
            with show_step("counting common answers"):
                work.count_answers(parts)
            self.compute("hashing the words", work.make_features, "features", ".npz")
            with show_step("fitting the learned guess"):
                work.fit(parts)
        forecast = self.forecast() if self.readers.answerers or rehearsal.dry_run else None
        if forecast is not None:
            for line in forecast.lines(work.rule):
                print(line, flush=True)
        if rehearsal.dry_run:
            out = Path(self.job.run.out.removeprefix("file://"))
            content = {**asdict(forecast), "models": self.models().plain()} if forecast else {}
            write_json(out / ESTIMATE, content)
            for line in (*self.models().unpriced, self.models().prices):
                if line:
                    print(line)
            return 0
        if self.readers.answerers:
            self.ask()
        with show_step("comparing the readers with chance"):
            scores = work.scores(parts)
        self.compute("writing the rows", work.write, "tally", ".json")
        return self.publish(scores, forecast)

    def models(self) -> Any:
        return describe_models(asked_endpoints(self.readers.answerers))

    def plan(self) -> None:
        """Plan the parts, or read the plan of a run that was killed. The parts of another plan, of
        other rows or settings, are removed.
        """
        job = self.job
        files = [(str(f), f.stat().st_size, f.stat().st_mtime_ns) for f in
                 table_files(job.questions)]  # fmt: skip
        settings = [
            VERSION, files, job.table, job.seed, job.part_rows, job.learned,
            job.rule, [identity(a) for a in self.readers.answerers],
            identity(job.judge) if self.readers.answerers else None,
        ]  # fmt: skip
        key, place = digest(settings), self.folder / PLAN
        if place.exists():
            plan: Any = json.loads(place.read_bytes())
            if plan["key"] == key:
                self.parts = [TablePart(**part) for part in plan["parts"]]
            else:
                print("the settings or the rows are others: the parts are made anew", flush=True)
        if not self.parts:
            shutil.rmtree(self.folder)
            self.folder.mkdir()
            with show_step("planning the parts"):
                self.parts = list(plan_parts(job.questions, job.part_rows, self.folder))
            content = {"key": key, "parts": [asdict(part) for part in self.parts]}
            write_whole(place, json.dumps(content).encode())
        rows, faults = list[Mapping[str, Any]](), set[str]()
        step = max(1, len(self.parts) * job.part_rows // DETECTED_ROWS)
        for part in self.parts[::step]:
            read = read_part(part)
            rows += [row.values for row in read if not row.fault]
            faults |= {row.fault for row in read if row.fault}
        rows = rows[:DETECTED_ROWS]
        if not rows:
            why = ", ".join(sorted(faults))
            raise UserError(f"questions={job.questions!r}: no row can be read: {why}")
        names = list(dict.fromkeys(name for row in rows for name in row))
        columns = count_from(rows, columns_of(names, job.table))
        self.work = CleanWork(
            folder=str(self.folder),
            columns=columns,
            source=Path(job.questions).stem if len({p.file for p in self.parts}) == 1 else "",
            rule=job.rule,
            learned=job.learned,
            readers=reader_names(self.readers.answerers),
            seed=job.seed,
        )

    def compute(
        self, step: str, do: Callable[[TablePart], object], leaves: str, suffix: str = ".parquet",
    ) -> None:  # fmt: skip
        """Run a pass over the parts that lack its file."""
        todo = [p for p in self.parts if not self.work.path(leaves, p, suffix).exists()]
        if self.light:
            with show_step(step):
                for part in todo:
                    do(part)
        else:
            self.stream(step, todo, PartPass, (do,), concurrency=1, workers=None)

    def stream(
        self, step: str, parts: Sequence[TablePart], worker: type[Any], arguments: tuple[Any, ...],
        *, concurrency: int, workers: tuple[int, int, float] | None,
    ) -> None:  # fmt: skip
        """Stream the numbers of parts through workers of Ray Data. `workers`: their least and most
        number, and the CPUs of each; null: one on each core.
        """
        if not parts:
            return
        _ = self.running.session  # starts Ray
        import ray

        least, most, cpus = workers or (1, max(1, min(int(cores()), len(parts))), 1.0)
        done = 0
        with show_step(lambda: f"{step}: {done:,} of {len(parts):,} parts"):
            rows = ray.data.from_items(
                [{"part": asdict(part)} for part in parts],
                override_num_blocks=min(len(parts), 2000),
            )
            computed = rows.map_batches(
                worker,
                fn_constructor_args=arguments,
                batch_size=1,
                num_cpus=cpus,
                compute=ray.data.ActorPoolStrategy(
                    min_size=least,
                    max_size=most,
                    max_concurrent_calls_per_actor=concurrency,
                    max_tasks_in_flight_per_actor=2 * concurrency,
                    enable_true_multi_threading=concurrency > 1,
                ),
            )
            batches: Any = computed.iter_batches(batch_size=None, batch_format="numpy")
            for batch in batches:
                done += int(batch["done"].sum())

    def forecast(self) -> CleanForecast:
        """Ask about a sample of the rows, whose replies are kept, and extrapolate."""
        work, rehearsal = self.work, self.job.run.rehearsal
        count = sum(part.rows for part in self.parts)
        numbers = random.Random(f"{self.job.seed}/sample").sample(
            range(count), min(self.job.sample, count)
        )
        rows, guesses, first = [], [], 0
        for part in self.parts:
            chosen = [n - first for n in numbers if first <= n < first + part.rows]
            first += part.rows
            if chosen:
                own, guessed = work.rows(part), work.guesses(part)
                rows += [own[n] for n in chosen]
                guesses += [guessed[n] for n in chosen]
        models = self.readers.open(self.context())
        with show_step(f"asking about a sample of {len(rows)} rows"):
            try:
                replies = models.ask(rows)
            finally:
                models.close()
        usd, given = [each.usd for each in replies], [each.given for each in replies]
        calls = sum(m.calls for m in models.models)
        scores = {name: ReaderScores() for name in work.names}
        work.add_scores(scores, rows, guesses, given)
        beating = {name: each.beats_chance() for name, each in scores.items()}
        if rehearsal.free:
            beating |= dict.fromkeys(work.readers, frozenset[str]())
        known = [
            work.verdict(row, guess, own, beating).decided == "known"
            for row, guess, own in zip(rows, guesses, given, strict=True)
        ]
        factor = count / len(rows)
        return CleanForecast(
            rows=count,
            sampled=len(rows),
            calls=calls * factor,
            tokens_in=factor * sum(m.tokens_in for m in models.models),
            tokens_out=factor * sum(m.tokens_out for m in models.models),
            usd=extrapolate(usd, count),
            known=extrapolate([float(k) for k in known], count),
            made_up=rehearsal.free and bool(work.readers),
        )

    def context(self) -> RunContext:
        """What the sample is asked with: the run's session, or in a dry run rules or a budget of
        its own.
        """
        run = self.job.run
        if run.rehearsal.free:
            return open_scripted_session(run.store, run.rehearsal.dry_run_call_seconds).context()
        if run.rehearsal.dry_run:
            store, coordinator = Store(run.store), Coordinator(run.rehearsal.dry_run_usd)
            return LocalSession(store=store, coordinator=coordinator).context()
        return self.running.session.context(STAGE)

    def ask(self) -> None:
        """Ask the models about the parts that lack replies."""
        if self.job.run.retry_problems:
            for part in self.parts:
                place = self.work.path("replies", part)
                if place.exists() and any(
                    FAILED in replies for given in self.work.replies(part) for replies in given
                ):
                    place.unlink()
                    for written in self.folder.glob("tally-*"):  # The verdicts may be others.
                        written.unlink()
        todo = [p for p in self.parts if not self.work.path("replies", p).exists()]
        session: Session = self.running.session
        if self.light:
            asker = AskPass(self.work, self.readers, session)
            with show_step("asking the models"):
                for part in todo:
                    asker.ask_part(part)
            return
        hard = self.job.run.cluster.stages[STAGE]
        with self.running.naming_aborts():
            self.stream(
                "asking the models", todo, AskPass, (self.work, self.readers, session),
                concurrency=PARTS_IN_FLIGHT, workers=(hard.least, hard.max_workers, hard.cpus),
            )  # fmt: skip

    def publish(self, scores: Mapping[str, ReaderScores], forecast: CleanForecast | None) -> int:
        """Write the output folder and print the report. Returns the exit code."""
        work, run = self.work, self.job.run
        failed = self.failed_calls()
        lines = list[str]()

        def write(target: Path) -> Mapping[str, Any]:
            weights = ["clean_weight"] if work.rule.then == "weigh" else []
            for name, added in (
                (ROWS, work.added_columns), (KEPT, weights), (DROPPED, work.added_columns)
            ):  # fmt: skip
                join_pieces(
                    self.parts, lambda p, name=name: work.piece(name, p), added, target / name
                )
            with (target / f"{CHAT}.jsonl").open("wb") as chat:
                for part in self.parts:
                    chat.write(work.path(CHAT, part, ".jsonl").read_bytes())
            judge = type(self.job.judge.engine).__name__.lower()
            record = report.make_record(
                work, work.tally(self.parts), scores, judge=judge, forecast=forecast,
                bill=self.bill(), failed=failed,
            )  # fmt: skip
            lines.extend(report.lines(record))
            write_json(target / "clean.json", record)
            (target / "clean.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
            return {
                "recipe": RECIPE, "config": dict(run.config), "git": git_revision(),
                "versions": versions(),
            }  # fmt: skip

        with show_step("joining the parts"):
            outputs.publish(run.out, write)
        shutil.rmtree(self.folder)
        for line in lines:
            print(line)
        print(f"made: {run.out}/ rows/, kept/, dropped/, chat.jsonl, {', '.join(SHOWN_ENDS)}")
        asked = sum(failed.values())
        calls = self.work.rule.of * len(self.work.readers) * sum(p.rows for p in self.parts)
        if asked > run.max_problem_share * max(1, calls):
            print(f"{asked:,} calls failed: {next(iter(failed))}", file=sys.stderr)
            return 3
        return 0

    def bill(self) -> dict[str, float]:
        """Calls, tokens and USD of all runs of this folder."""
        if not self.readers.answerers:
            return {}
        total = self.running.snapshot().spent.total
        return {key: getattr(total, key) for key in ("calls", "tokens_in", "tokens_out", "usd")}

    def failed_calls(self) -> dict[str, int]:
        """The replies that are missing, by the message that their part names first."""
        failed = Counter[str]()
        for part in self.parts if self.readers.answerers else ():
            place = self.work.path("replies", part)
            count = sum(r.count(FAILED) for given in self.work.replies(part) for r in given)
            if count:
                said = (pq.read_schema(place).metadata or {}).get(b"failed", b"").decode()
                failed[re.sub(r"^\d+ x ", "", said.partition("; ")[0]) or "not known"] += count
        return dict(failed)


def reader_names(answerers: Sequence[AnswerLlm]) -> tuple[str, ...]:
    """Return a short name of each model, which its column has, too."""
    names = list[str]()
    for answerer in answerers:
        model = getattr(answerer.llm, "model", None) or answerer.llm.identity.split(" {")[0]
        name = re.sub(r"\W+", "_", str(model)).strip("_") or "model"
        taken = {*names, "verdict", "weight", "kind", "known_by", "reason", LEARNED}
        names.append(next(n for n in (name, *(f"{name}_{i}" for i in range(2, 99)))
                          if n not in taken))  # fmt: skip
    return tuple(names)


if __name__ == "__main__":
    launch("clean")
