"""Audit: how much of a dataset needs its videos, in any layout.

    python -m ray_jobs.audit questions=Q out=O [videos=V answer=openai llm=openai llm.model=M]

It measures how many questions guessers answer without a model, and how many a model answers from
nothing, the transcript, one frame, shuffled frames, the evidence, and the whole video, and names
doubtful keys. It writes audit.json, audit.parquet, errata.jsonl, clean/ and the report beside the
files of every job. See docs/audit.md and docs/errata.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import RenderableType
from rich.text import Text

from actors.answer.battery import Battery, ConditionAnswerer, every_model, puts
from actors.answer.llm import AnswerLlm
from actors.part import Part
from actors.stages.grade import GradeReplies
from mustsee.audit import repeats, show, versions
from mustsee.audit.audit import FAILS, Audit, RepeatReport, audit, unusable_reason
from mustsee.audit.doubts import PredictedVotes, proposals, read_predicted_votes
from mustsee.audit.guessers import askable_questions
from mustsee.audit.repeats import fingerprint
from mustsee.audit.show import write_clean
from mustsee.errors import UserError
from mustsee.layouts import QuestionFile, read, table
from mustsee.layouts.columns import columns_from
from mustsee.layouts.errata import AppliedErrata, correct_keys, write_errata
from mustsee.media.files import content_digest
from mustsee.records import Question, Video
from mustsee.run.inputs import read_videos
from mustsee.run.tables import Tables
from mustsee.text import printable
from ray_jobs.cli.launch import launch
from ray_jobs.runtime.question_rows import HearMissing, rows_of
from ray_jobs.runtime.run import JobSettings


@dataclass(frozen=True, kw_only=True)
class AuditInputs:
    """`source`: the questions of the file; `reading`: the same with the errata; `predicted`: votes
    of models that answered elsewhere.
    """

    source: QuestionFile
    reading: QuestionFile
    errata: AppliedErrata | None
    predicted: Sequence[PredictedVotes]

    def with_own_keys(self) -> QuestionFile:
        """The file with its own keys, and with a `drop` where errata leave a question out."""
        pairs = zip(self.source.questions, self.reading.questions, strict=True)
        questions = tuple(replace(q, drop=corrected.drop) for q, corrected in pairs)
        return replace(self.source, questions=questions)

    def lines(self) -> list[str]:
        """Lines on the predictions and on the errata that were applied."""
        lines = [each.sentence for each in self.predicted]
        if self.errata is not None:
            lines += self.errata.outcome.lines()
            if self.errata.outcome.corrected:
                lines.append("  clean/ has the file's own keys: read it with errata=, too")
        return lines


@dataclass(frozen=True, kw_only=True)
class AuditJob:
    """`also`: further models, each as the keys in which it differs from `answer.llm`.

    `errata`: entries to apply before the audit. `predictions`: replies of models that answered
    elsewhere, which vote on keys.
    """

    run: JobSettings
    questions: str
    videos: str | None
    format: str | None
    table: Mapping[str, Any] | None
    errata: str | None
    limit: int | None
    seed: int
    probe: Part
    hear: Part
    answer: Part
    predictions: Sequence[str]
    doubt: float
    guessers_only: bool
    also: Sequence[Mapping[str, Any]]
    turns: int
    none_option: bool
    open_ended: bool
    grade: GradeReplies
    few: int
    benchmarks: Sequence[str]
    benchmark_videos: Sequence[str]
    encoder: str | None
    alike: float
    drops: Sequence[str]
    against: Sequence[str]

    def __call__(self) -> int:
        inputs = self.inputs()
        reading = inputs.reading
        self.check(reading)
        if not 0 < self.doubt <= 1:
            raise UserError(f"doubt={self.doubt!r}: must be a probability, above 0 and at most 1")
        if unknown := sorted(set(self.drops) - set(FAILS)):
            raise UserError(f"drops: {unknown} are not among {', '.join(FAILS)}")
        if len(self.benchmark_videos) > len(self.benchmarks):
            raise UserError(
                "benchmark_videos= has more entries than benchmarks=: give one for each"
            )
        earlier = [versions.earlier(folder) for folder in self.against]
        others = {path: read(path) for path in self.benchmarks}
        battery = Battery(puts=() if self.guessers_only else self.puts(reading))
        rows = rows_of(reading, self.videos, limit=self.limit, seed=self.seed)
        needed = others or repeats.needs_vectors(reading.questions)
        embed = repeats.open_encoder(self.encoder) if needed else None
        graded = any(put.part.open_ended for put in battery.puts)
        with self.run.open("audit", light=self.videos is None and not graded) as run:
            run.read(rows)
            if self.videos is not None:
                run.stage("probe", self.probe)
                if battery.listens:
                    run.stage("hear", HearMissing(hear=self.hear))
            if battery.puts:
                run.stage("answer", battery)
            if graded:
                run.stage("grade", self.grade)

            def files(folder: Path, tables: Tables) -> list[RenderableType]:
                result = self.audit_table(tables, inputs, battery, others, embed)
                return self.report(folder, result, tables, inputs, earlier)

            return run.publish(files=files, page=show.write_page, measures=True)

    def inputs(self) -> AuditInputs:
        """Read the questions, errata and predictions. Raises UserError."""
        source = read(self.questions, self.format, columns_from(self.table))
        reading, errata = correct_keys(source, self.errata)
        predicted = read_predicted_votes(self.predictions, reading.questions)
        return AuditInputs(source=source, reading=reading, errata=errata, predicted=predicted)

    def check(self, reading: QuestionFile) -> None:
        """Raise UserError where none of the questions can be audited."""
        kept = [q for q in reading if q.drop is None]
        if askable_questions(kept):
            return
        reasons = Counter(
            reading.unusable_reasons.get(q.question_id) or unusable_reason(q) for q in kept
        )
        listed = ", ".join(f"{reason} ({n})" for reason, n in reasons.most_common())
        hint = ""
        if reading.layout == "table" and self.table is None:
            hint = f"; another column may hold the answers: {table.named_in(self.questions)}"
        raise UserError(
            f"{self.questions!r}: none of {len(kept)} questions can be audited: "
            f"{listed or 'there are no questions'}{hint}"
        )

    def puts(self, reading: QuestionFile) -> tuple[ConditionAnswerer, ...]:
        """The conditions to answer under. Raises UserError for an answerer without a model."""
        if not isinstance(self.answer, AnswerLlm):
            raise UserError(
                "answer= must call a model: the audit has its own guessers; use answer=blind or "
                "answer=openai with llm="
            )
        listens = self.videos is not None or any(v.lines for v in reading.videos)
        looks = self.videos is not None
        answer = replace(self.answer, rotations=self.turns)
        models = every_model(self.answer.llm, self.also)
        for model in models if self.open_ended else ():
            self.grade.check_grader_differs(model, rubrics=False, judged=True)
        return puts(
            answer,
            models,
            few=self.few,
            looks=looks,
            listens=listens,
            none_option=self.none_option,
            open_ended=self.open_ended,
        )

    def audit_table(
        self,
        tables: Tables,
        inputs: AuditInputs,
        battery: Battery,
        others: Mapping[str, QuestionFile],
        embed: repeats.Embed | None,
    ) -> Audit:
        questions, videos = list(tables.questions()), list(tables.videos())
        kept = [q for q in questions if q.drop is None]
        return audit(
            questions,
            videos,
            [put.condition_run for put in battery.puts],
            self.find_repeats(kept, videos, others, embed),
            broken=inputs.reading.unusable_reasons,
            drops=self.drops,
            predictions={each.model: each.votes for each in inputs.predicted},
            confirmed=inputs.errata.confirmed_by_people if inputs.errata else (),
            doubt=self.doubt,
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
        """The videos that a benchmark also has, by id, and by content and looks if it has files."""
        folders = dict(zip(self.benchmarks, self.benchmark_videos, strict=False))
        mine = {v.uri: seen for v in videos if folders and v.uri
                if (seen := fingerprint(v.uri)) is not None}  # fmt: skip
        shared: list[repeats.SharedVideo] = []
        for name, reading in others.items():
            benchmark = list(reading.videos)
            theirs = dict[str, NDArray[np.float32]]()
            if name in folders:
                files = read_videos(folders[name]).select(["video_id", "uri"]).to_pylist()
                benchmark += [Video(**row, digest=content_digest(row["uri"])) for row in files]
                theirs = {
                    r["uri"]: seen for r in files if (seen := fingerprint(r["uri"])) is not None
                }
            shared += repeats.shared_videos(videos, benchmark, name, {**theirs, **mine})
        return shared

    def report(
        self,
        folder: Path,
        result: Audit,
        tables: Tables,
        inputs: AuditInputs,
        earlier: Sequence[versions.AuditVersion],
    ) -> list[RenderableType]:
        """Write the results and return the last lines of the summary."""
        reading = inputs.reading
        compared = [versions.compare(result, tables, old) for old in earlier]
        description = {
            "dataset": self.questions,
            "layout": reading.layout,
            "seed": self.seed,
            "findings": [f.plain() for f in reading.findings],
            "against": [asdict(c) for c in compared],
            "errata": inputs.errata.outcome.plain() if inputs.errata else None,
            "key_lines": inputs.lines(),
        }
        show.write(folder, result, description, self.seed)
        lines = [*inputs.lines(), *propose(folder, result, reading)]
        write_clean(
            folder / "clean", inputs.with_own_keys(), result, Path(self.questions),
            columns_from(self.table),
        )  # fmt: skip
        return [
            *([Text("\n".join(lines))] if lines else []),
            *([show.findings_table(reading.findings)] if reading.findings else []),
            Text(show.count_sentence(result)),
            show.battery_table(result.battery),
            Text(show.describe_rules(result), style="bold"),
            *(
                Text(printable(line), style="bold red")
                for line in show.unmeasured_sentences(result)
            ),
            show.figures_table(result),
            show.drop_reasons_table(result),
            *map(versions.table, compared),
        ]


def propose(folder: Path, result: Audit, reading: QuestionFile) -> list[str]:
    """Write the doubtful keys as proposals, and return a line on them; none without votes."""
    if not result.keys_tested:
        return []
    entries = proposals(reading.questions, result.suspects)
    write_errata(entries, folder / "errata.jsonl")
    return [f"errata.jsonl: {len(entries)} keys in doubt, proposals for rate form=errata"]


if __name__ == "__main__":
    launch("audit")
