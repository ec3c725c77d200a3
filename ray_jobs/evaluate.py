"""Evaluate: scores a model on questions in any layout, with intervals.

    python -m ray_jobs.evaluate questions=Q out=O [videos=V answer=openai llm=openai judge=mini]

It writes results.json, replies.parquet, pictures/ and every_eval_ever/ (and inspect/, if Inspect is
installed) beside the files of every job. See docs/evaluate.md.
"""

from __future__ import annotations

import functools
import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from rich.console import RenderableType
from rich.text import Text

import mustsee
from actors.answer.llm import AnswerLlm
from actors.answer.no_model import Predictions, TextGuesser
from actors.calls.gateway import HasSubstitutes, MeteredModel
from actors.llm.openai import OpenAI
from actors.part import Answerer, LlmConfig, NamedAnswerer, Part, prompts_in
from actors.stages.grade import GradeReplies
from mustsee.errors import UserError
from mustsee.evaluate import score, score_show, shared_results
from mustsee.evaluate.answers import answers
from mustsee.evaluate.compare import BLIND, FRAMES, GUESS, WORDS
from mustsee.evaluate.drawing import save_chart
from mustsee.evaluate.open_metrics import OpenMetric, resolve_metrics
from mustsee.evaluate.open_scores import SCALES
from mustsee.evaluate.thresholds import accuracy_by_threshold, draw_thresholds
from mustsee.files import schemas
from mustsee.files.folders import write_json
from mustsee.files.store import Store
from mustsee.judge.points import counted_points
from mustsee.layouts import QuestionFile, read
from mustsee.layouts.columns import columns_from
from mustsee.layouts.errata import AppliedErrata, correct_keys
from mustsee.layouts.reading import first
from mustsee.media.pixels import are_measured
from mustsee.records import Question
from mustsee.run.tables import Tables
from mustsee.server_probe.record import FILE, SentMaterial, find_in_store, read_probe, warn
from mustsee.text import printable
from ray_jobs.cli.launch import launch
from ray_jobs.runtime.question_rows import HearMissing, rows_of
from ray_jobs.runtime.run import JobSettings


@dataclass(frozen=True, kw_only=True)
class Evaluate:
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
    server_probe: str | None
    metrics: Sequence[str]
    choice_metrics: Sequence[str]
    grade: GradeReplies

    def __call__(self) -> int:
        open_metrics = resolve_metrics(self.metrics)
        choice_metrics = resolve_metrics(self.choice_metrics)
        given = read(self.questions, self.format, columns_from(self.table))
        reading, errata = correct_keys(given, self.errata)
        if isinstance(self.answer, AnswerLlm):
            kinds = {q.question_type in SCALES for q in reading if _is_graded(q)}
            judged = self.answer.open_ended or False in kinds
            by_points = self.grade.judge.points and any(counted_points(q) for q in reading)
            self.grade.check_grader_differs(
                self.answer.llm, rubrics=True in kinds or by_points, judged=judged
            )
        if isinstance(self.answer, Predictions):
            _say_unknown(self.answer, [q.question_id for q in reading])
        reads_captions = isinstance(self.answer, AnswerLlm) and self.answer.see.captions > 0
        rows = rows_of(
            reading, self.videos, limit=self.limit, seed=self.seed, captions=reads_captions
        )
        measured = describe_measured(rows) if reads_captions else ""
        if measured:
            print(f"mustsee: {measured}", file=sys.stderr, flush=True)
        probes = evaluated_probes(self.answer, self.server_probe, self.run.store)
        answerer = self.answer if isinstance(self.answer, Answerer) else None
        graded = (answerer and answerer.open_ended) or _has_open_questions(reading)
        with self.run.open("evaluate", light=self.videos is None and not graded) as run:
            run.read(rows)
            if self.videos is not None and answerer and (answerer.looks or answerer.listens):
                run.stage("probe", self.probe)
                if answerer.listens:
                    run.stage("hear", HearMissing(hear=self.hear))
            run.stage("answer", self.answer)
            if graded:
                run.stage("grade", self.grade)
            for probe in probes:
                probe.show_warnings()
            scores: dict[str, Any] = {}
            report = functools.partial(
                self.report, reading=reading, errata=errata, measured=measured, probes=probes,
                open_metrics=open_metrics, choice_metrics=choice_metrics, scores=scores,
            )  # fmt: skip
            return run.publish(files=report, extra=lambda _: {"scores": scores}, measures=True)

    def report(
        self,
        folder: Path,
        tables: Tables,
        *,
        reading: QuestionFile,
        errata: AppliedErrata | None,
        measured: str,
        probes: Sequence[EvaluatedProbe],
        open_metrics: Mapping[str, OpenMetric],
        choice_metrics: Mapping[str, OpenMetric],
        scores: dict[str, Any],
    ) -> list[RenderableType]:
        """Score the replies and write the results, and set the `scores` of the page; returns the
        last lines of the summary. `errata`: those applied. `measured`: as in `describe_measured`.
        """
        videos = list(tables.videos())
        mine = list(tables.questions())
        name = self.answer.name if isinstance(self.answer, NamedAnswerer) else ""
        results = score.score(
            mine,
            videos,
            models=[name] if name else [],
            seed=self.seed,
            open_metrics=open_metrics,
            choice_metrics=choice_metrics,
        )
        models = list(dict.fromkeys(a.model for q in mine for a in answers(q)))
        thresholds = accuracy_by_threshold(mine, models, score.clusters_of(videos))
        scores |= score_show.for_page(results)
        if errata is not None:
            scores["errata"] = errata.outcome.lines()
        description = {
            "questions": self.questions,
            "layout": reading.layout,
            "answer": name,
            "frames": self.answer.frames if isinstance(self.answer, Answerer) else None,
            "shown": describe_shown(self.answer),
            "captions": measured,
            "findings": [f.plain() for f in reading.findings],
            "thresholds": [schemas.dump(row) for row in thresholds],
            "server_probes": [probe.write(folder) for probe in probes],
            "errata": errata and errata.outcome.plain(),
        }
        score_show.write(folder, results, mine, about=description)
        self.write_prompts(folder, mine)
        self.share(folder, results, list(first(mine)))
        failed = score_show.draw(folder, results)
        if thresholds:
            chart = folder / "pictures" / "thresholds.png"
            failed += filter(None, [save_chart(chart, lambda: draw_thresholds(thresholds))])
        lines: list[RenderableType] = [score_show.describe_folder(folder), *failed]
        lines += [Text(line, style="bold red") for probe in probes for line in probe.lines]
        if measured:
            lines.append(Text(measured, style="bold red"))
        if reading.findings:
            lines.append(f"{len(reading.findings)} problems in the questions: see results.json")
        heads = score_show.labels(results)
        if errata is not None:
            lines.append(Text("\n".join(errata.outcome.lines())))
        headline = score_show.headline(results)
        if isinstance(self.answer, Predictions):
            asked = [q.question_id for q in mine if q.drop is None]
            headline = [*filter(None, [self.answer.describe_missing(asked)]), *headline]
        table = score_show.table(results, heads)
        return [*lines, table, *score_show.legend(heads), Text("\n".join(headline))]

    def write_prompts(self, folder: Path, questions: Sequence[Question]) -> None:
        """Write each template that replies were asked for with into `prompts.json`, once, by its
        name and hash; null for one that is not there any more.
        """
        if not isinstance(self.answer, AnswerLlm):
            return
        prompts = prompts_in(self.answer.prompts, self.answer.language)
        used = dict.fromkeys(a.prompt for q in questions for a in answers(q) if "@" in a.prompt)
        sources: dict[str, dict[str, str] | None] = {}
        for key in used:
            name, _, digest = key.rpartition("@")
            same = prompts.has(name) and prompts.digest(name) == digest
            sources[key] = prompts.sources(name) if same else None
        write_json(folder / "prompts.json", sources)

    def share(
        self,
        folder: Path,
        results: Sequence[score.EvaluationResults],
        questions: Sequence[Question],
    ) -> None:
        """Write the results in the formats of Every Eval Ever and Inspect."""
        answerer = self.answer if isinstance(self.answer, Answerer) else None
        info = shared_results.RecordInfo(
            dataset="-".join(Path(self.questions).parts[-2:]).strip("/-"),
            when=time.time(),
            version=mustsee.__version__,
            asked_with={
                "seed": self.seed,
                "limit": self.limit,
                "frames": answerer.frames if answerer else None,
            },
        )
        shared_results.write_every_eval_ever(folder, results, questions, info)
        if shared_results.has_inspect():
            shared_results.write_inspect_log(folder, results, questions, info)


def describe_shown(answer: Part) -> str:
    """Return what an answerer is shown of the video: `FRAMES`, `WORDS` (transcript or captions),
    `BLIND` (nothing), `GUESS` (a rule that reads the options), or "" where it is not known, as for
    replies from a file.
    """
    if isinstance(answer, TextGuesser):
        return GUESS
    if not isinstance(answer, Answerer):
        return ""
    captions = isinstance(answer, AnswerLlm) and answer.see.captions > 0
    return FRAMES if answer.looks else WORDS if answer.listens or captions else BLIND


def describe_measured(rows: pa.Table) -> str:
    """Return a sentence on the videos whose captions were measured by rules; empty if a model wrote
    all. `rows`: with the column `captions`.
    """
    shown = [captions for captions in rows["captions"].to_pylist() if captions]
    count = sum(are_measured(caption["text"] for caption in captions) for captions in shown)
    if not count:
        return ""
    return (
        f"the captions of {count} of {len(shown)} videos were measured by rules (caption=pixels: "
        "light, colours, text on the screen), not written by a model: the score is no baseline of "
        "captions. Make the run again with caption=openai and a key, and give its folder as videos="
    )


def _say_unknown(answer: Predictions, questions: Sequence[str]) -> None:
    """Say how many replies of a file are to other questions. Raises UserError if all are."""
    if unknown := answer.count_unknown(questions):
        print(
            f"mustsee: {answer.path}: {unknown} of its {len(answer.replies)} replies are to "
            "questions that are not here",
            file=sys.stderr,
        )


def _has_open_questions(reading: QuestionFile) -> bool:
    return any(map(_is_graded, reading))


def _is_graded(question: Question) -> bool:
    """Whether a grader or a judge reads its answers."""
    return not question.options and not question.asks_when


@dataclass(frozen=True, kw_only=True)
class EvaluatedProbe:
    """A probe of a server that an evaluation asks. `warnings`: its faults that concern what the
    evaluation sends. `name`: of its file in the output folder.
    """

    record: Mapping[str, Any]
    warnings: Sequence[str]
    name: str = FILE

    @property
    def lines(self) -> list[str]:
        """A line for each warning."""
        place = f"{self.record['model']} at {self.record['base_url']}"
        taken = self.record["taken"][:10]
        return [printable(f"probe of {place}, {taken}: {warning}") for warning in self.warnings]

    def show_warnings(self) -> None:
        """Print the warnings, before anything is paid for."""
        for line in self.lines:
            print(f"mustsee: warning: {line}", file=sys.stderr, flush=True)

    def write(self, folder: Path) -> dict[str, Any]:
        """Write the probe beside the results, and return what results.json says of it."""
        text = json.dumps(self.record, indent=2, ensure_ascii=False)
        (folder / self.name).write_text(text + "\n", encoding="utf-8")
        about = {key: self.record[key] for key in ("model", "base_url", "taken")}
        return {"file": self.name, **about, "warnings": list(self.warnings)}


def evaluated_probes(answer: Part, given: str | None, store: str) -> list[EvaluatedProbe]:
    """Return the probes of the model under test and of its fallbacks: that of the folder `given`
    for the first, those in the store for the others. Raises UserError for a probe of another model.
    """
    models = _models(answer)
    if given is not None and not models:
        raise UserError(f"server_probe={given!r}: answer= asks no endpoint here; leave it out")
    probes: list[EvaluatedProbe] = []
    for number, model in enumerate(models):
        endpoint = model.endpoint
        record = (
            read_probe(given, endpoint.model, endpoint.base_url)
            if given is not None and number == 0
            else find_in_store(Store(store), endpoint.model, endpoint.base_url)
        )
        if record is not None:
            name = f"probe_{len(probes) + 1}.json" if probes else FILE
            warnings = list(warn(record, sent_material(answer, model)))
            probes.append(EvaluatedProbe(record=record, warnings=warnings, name=name))
    return probes


def _models(answer: Part) -> list[Any]:
    """The endpoints that an answerer asks: its model and the fallbacks."""
    llm: LlmConfig | None = answer.llm if isinstance(answer, AnswerLlm) else None
    if not isinstance(llm, MeteredModel):
        return []
    return list(llm.ways) if isinstance(llm, HasSubstitutes) else [llm]


def sent_material(answer: Part, model: object) -> SentMaterial:
    """Return what an answerer sends to a model of each video."""
    if not isinstance(answer, AnswerLlm) or not answer.looks:
        return SentMaterial()
    see, rag = answer.see, answer.rag
    part = model.video.part if isinstance(model, OpenAI) else ""
    if answer.watches:
        return SentMaterial(video=True, sound=see.listens, part=part)
    if isinstance(model, OpenAI) and model.frames_as == "clip":
        return SentMaterial(video=True, part=part)
    if rag.on:
        return SentMaterial(images=rag.clips * rag.per_clip)
    if see.condition == "one_frame":
        return SentMaterial(images=1)
    return SentMaterial(images=see.frames or see.most)


if __name__ == "__main__":
    launch("evaluate")
