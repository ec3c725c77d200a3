"""Audit: how much of a dataset needs its videos, in any layout.

    python -m ray_jobs.audit questions=Q out=O [videos=V answer=openai llm=openai llm.model=M]

Guessers without a model; then, with a model, what it gets right blind, from the transcript, one
picture, pictures out of order, the evidence, the whole. Writes audit.json, audit.parquet, clean/
and the report beside what every job writes. See docs/audit.md.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import RenderableType
from rich.text import Text

from actors.answer.battery import Battery, ConditionAnswerer, puts
from actors.answer.llm import AnswerLlm
from actors.part import LlmConfig, Part
from mustsee.audit import page, repeats, show, versions
from mustsee.audit.audit import FAILS, Audit, RepeatReport, audit, unusable_because
from mustsee.audit.clean import write_clean
from mustsee.audit.guessers import askable_questions
from mustsee.audit.looks import looks
from mustsee.errors import NotInstalled, UserError
from mustsee.layouts import QuestionFile, read, table
from mustsee.layouts.table import TableColumns
from mustsee.media.files import content_digest
from mustsee.records import Question, Video
from mustsee.run.inputs import read_videos
from mustsee.run.tables import Tables
from ray_jobs.cli.launch import launch
from ray_jobs.runtime.question_rows import rows_of
from ray_jobs.runtime.run import JobSettings


@dataclass(frozen=True, kw_only=True)
class AuditJob:
    """`also`: further models, each by what differs from `answer.llm`."""

    run: JobSettings
    questions: str
    videos: str | None
    format: str | None
    table: Mapping[str, Any] | None
    limit: int | None
    seed: int
    probe: Part
    hear: Part
    answer: Part
    guessers_only: bool
    also: Sequence[Mapping[str, Any]]
    turns: int
    few: int
    benchmarks: Sequence[str]
    benchmark_videos: Sequence[str]
    encoder: str | None
    alike: float
    drops: Sequence[str]
    against: Sequence[str]

    def __call__(self) -> int:
        reading = read(self.questions, self.format, self.columns)
        self.check(reading)
        if unknown := sorted(set(self.drops) - set(FAILS)):
            raise UserError(f"drops: {unknown} are none of {', '.join(FAILS)}")
        if len(self.benchmark_videos) > len(self.benchmarks):
            raise UserError("benchmark_videos: one for each of benchmarks=, in the same order")
        earlier = [versions.earlier(folder) for folder in self.against]
        others = {path: read(path) for path in self.benchmarks}
        battery = Battery(puts=() if self.guessers_only else self.puts(reading))
        rows = rows_of(reading, self.videos, limit=self.limit, seed=self.seed)
        embed = self.embed()
        with self.run.open("audit") as run:
            run.read(rows)
            if self.videos is not None:
                run.stage("probe", self.probe)
                if battery.listens:
                    run.stage("hear", self.hear)
            if battery.puts:
                run.stage("answer", battery)

            def files(folder: Path, tables: Tables) -> list[RenderableType]:
                found = self.audit_table(tables, reading, battery, others, embed)
                return self.report(folder, found, tables, reading, earlier)

            return run.publish(files=files, page=page.write)

    def check(self, reading: QuestionFile) -> None:
        """Raises UserError where none of the questions can be audited."""
        stand = [q for q in reading if q.drop is None]
        if askable_questions(stand):
            return
        why = Counter(
            reading.unusable_reasons.get(q.question_id) or unusable_because(q) for q in stand
        )
        told = ", ".join(f"{what} ({n})" for what, n in why.most_common()) or "there are none"
        hint = ""
        if reading.layout == "table" and self.table is None:
            hint = f"; another column may hold the answers: '{table.named_in(self.questions)}'"
        raise UserError(
            f"{self.questions!r}: none of {len(stand)} questions can be audited: {told}{hint}"
        )

    @cached_property
    def columns(self) -> TableColumns | None:
        if self.table is None:
            return None
        known = {f.name for f in fields(TableColumns)}
        if wrong := sorted(set(self.table) - known):
            raise UserError(f"table: {wrong} are none of {', '.join(sorted(known))}")
        if missing := {"video", "question", "options"} - set(self.table):
            raise UserError(f"table: {sorted(missing)} must be named, too")
        return TableColumns(**self.table)

    def puts(self, reading: QuestionFile) -> tuple[ConditionAnswerer, ...]:
        """What is asked. Raises UserError for an answerer that asks no model."""
        if not isinstance(self.answer, AnswerLlm):
            raise UserError(
                "answer= asks no model here: the guessers are in the battery anyway; answer=blind "
                "or answer=openai with llm= do"
            )
        listens = self.videos is not None or any(v.lines for v in reading.videos)
        looks = self.videos is not None
        answer = replace(self.answer, rotations=self.turns)
        return puts(answer, self.models(), few=self.few, looks=looks, listens=listens)

    def models(self) -> list[LlmConfig]:
        """Those that are asked, under names of their own. Raises UserError."""
        assert isinstance(self.answer, AnswerLlm)
        first: Any = self.answer.llm
        known = {f.name for f in fields(first)}
        for differs in self.also:
            if wrong := sorted(set(differs) - known):
                raise UserError(f"also: {wrong} are no keys of llm: {', '.join(sorted(known))}")
        every = [first, *(replace(first, **differs) for differs in self.also)]
        names = [model.identity for model in every]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise UserError(f"also: {twice} are named twice: their replies could not be told apart")
        return every

    def audit_table(
        self,
        tables: Tables,
        reading: QuestionFile,
        battery: Battery,
        others: Mapping[str, QuestionFile],
        embed: repeats.Embed | None,
    ) -> Audit:
        questions, videos = list(tables.questions()), list(tables.videos())
        standing = [q for q in questions if q.drop is None]
        return audit(
            questions,
            videos,
            [put.condition_run for put in battery.puts],
            self.find_repeats(standing, videos, others, embed),
            broken=reading.unusable_reasons,
            drops=self.drops,
            seed=self.seed,
        )

    def find_repeats(
        self,
        questions: Sequence[Question],
        videos: Sequence[Video],
        others: Mapping[str, QuestionFile],
        embed: repeats.Embed | None,
    ) -> RepeatReport:
        overlap = [
            pair
            for name, reading in others.items()
            for pair in repeats.overlap(questions, reading.questions, name, embed, alike=self.alike)
        ]
        return RepeatReport(
            duplicates=repeats.repeats_within(questions, embed, alike=self.alike),
            overlap=overlap,
            shared_videos=self.shared_videos(videos, others),
        )

    def shared_videos(
        self, videos: Sequence[Video], others: Mapping[str, QuestionFile]
    ) -> list[repeats.SharedVideo]:
        """Those that a benchmark has, too: by id; by content and looks where it has videos."""
        folders = dict(zip(self.benchmarks, self.benchmark_videos, strict=False))
        mine = {v.uri: found for v in videos if folders and v.uri
                if (found := looks(v.uri)) is not None}  # fmt: skip
        same: list[repeats.SharedVideo] = []
        for name, reading in others.items():
            known = list(reading.videos)
            theirs = dict[str, NDArray[np.float32]]()
            if name in folders:
                files = read_videos(folders[name]).select(["video_id", "uri"]).to_pylist()
                known += [Video(**row, digest=content_digest(row["uri"])) for row in files]
                theirs = {r["uri"]: seen for r in files if (seen := looks(r["uri"])) is not None}
            same += repeats.shared_videos(videos, known, name, {**theirs, **mine})
        return same

    def embed(self) -> repeats.Embed | None:
        """The sentence encoder; none where it is not installed: words alone are compared then."""
        if self.encoder is None:
            return None
        from mustsee.nn.bert import Encoder

        try:
            encoder = Encoder.load(self.encoder)
        except NotInstalled as error:
            print(f"what occurs twice is found by words alone: {error}", file=sys.stderr)
            return None
        return lambda texts: encoder.encode(list(texts))

    def report(
        self,
        folder: Path,
        found: Audit,
        tables: Tables,
        reading: QuestionFile,
        earlier: Sequence[versions.AuditVersion],
    ) -> list[RenderableType]:
        """Write what was found; returns what is said at the end."""
        compared = [versions.compare(found, tables, old) for old in earlier]
        about = {
            "dataset": self.questions,
            "layout": reading.layout,
            "seed": self.seed,
            "findings": [f.plain() for f in reading.findings],
            "against": [asdict(c) for c in compared],
        }
        show.write(folder, found, about, self.seed)
        write_clean(folder / "clean", reading, found, Path(self.questions), self.columns)
        return [
            *([show.findings(reading.findings)] if reading.findings else []),
            Text(show.count_sentence(found)),
            show.battery(found.battery),
            Text(show.rules(found), style="bold"),
            show.headline(found),
            show.drop_reasons_table(found),
            *map(versions.table, compared),
        ]


if __name__ == "__main__":
    launch("audit")
