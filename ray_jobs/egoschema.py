"""EgoSchema (arXiv 2308.09126): narrated videos to questions about whole clips of them.

    python -m ray_jobs.egoschema narrations=N columns=ego4d out=O [videos=V cut=true]

Clips are chosen, and a chain of prompts writes questions about each. Questions that repeat words of
the prompts or other questions, or that are guessed without the video, are dropped. See
docs/egoschema.md.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
from rich.console import RenderableType

from actors.part import Part, Skippable
from mustsee.audit.repeats import near_duplicates
from mustsee.errors import UserError
from mustsee.evaluate.drawing import save_chart
from mustsee.files import schemas
from mustsee.files.folders import file_name
from mustsee.layouts.reading import Questions, Rereadable, by_id, first
from mustsee.layouts.video_files import place_file
from mustsee.questions.decision import Decision
from mustsee.recipes.egoschema import clips, layout, narrations
from mustsee.recipes.egoschema.clips import ClipGrid, HeatMap
from mustsee.recipes.egoschema.narrations import NarrationColumns
from mustsee.recipes.egoschema.no_question import baseline
from mustsee.records import UNSEEN, Question, Video
from mustsee.run.inputs import read_videos
from mustsee.run.tables import Tables, standing_questions
from mustsee.synth.plan import InsertionPlan
from ray_jobs.cli.launch import launch
from ray_jobs.runtime.run import JobSettings


@dataclass(frozen=True, kw_only=True)
class NarrationSource:
    """Narrations and the rule that chooses clips. `conf/egoschema.yaml` explains the fields."""

    narrations: str
    columns: NarrationColumns
    durations: str | None = None
    durations_video: str = "video_id"
    durations_seconds: str = "duration"
    videos: str | None = None
    seconds: Sequence[float] = (180.0,)
    density: float = 10.0
    grid: float = 30.0
    clips: int | None = None
    seed: int = 0

    def rows(self) -> tuple[list[Video], HeatMap]:
        """The clips, and the number of clips at other lengths and densities.

        Raises UserError where no clip is dense enough.
        """
        narrated = narrations.read(self.narrations, self.columns)
        lengths: Mapping[str, float] = narrated.durations
        if self.durations:
            lengths = narrations.durations(
                self.durations, video=self.durations_video, duration=self.durations_seconds
            )
        cuts = [
            ClipGrid(seconds=s, grid=self.grid, least=clips.per_minute(self.density, s))
            for s in self.seconds
        ]
        rows = clips.clips(narrated.lines, lengths, cuts, self._uris(narrated.lines))
        if not rows:
            raise UserError(
                f"{self.narrations!r}: none of {len(narrated.lines)} narrated videos has a clip of "
                f"{self.seconds!r} s with {self.density:g} narrations a minute: lower density="
            )
        if self.clips is not None and self.clips < len(rows):
            rows = random.Random(f"{self.seed}/clips").sample(rows, self.clips)
        return [plan_clip(row) for row in rows], clips.heat_map(
            narrated.lines, lengths, grid=self.grid
        )

    def _uris(self, narrated: Mapping[str, Any]) -> dict[str, str]:
        if self.videos is None:
            return {}
        table = read_videos(self.videos).select(["video_id", "uri"]).to_pylist()
        by_id = {row["video_id"]: row["uri"] for row in table}
        if not set(by_id) & set(narrated):
            raise UserError(
                f"videos={self.videos!r}: no file is named after a narrated video; expected names "
                f"like {min(narrated)!r}"
            )
        return by_id


def plan_clip(row: Video) -> Video:
    """The clip with the plan for cutting it; unchanged where there is no file to cut."""
    if row.uri.startswith(UNSEEN) or row.start is None or row.end is None:
        return row
    plan = InsertionPlan(background=row.uri, start=row.start, end=row.end)
    return replace(row, plan=json.dumps(schemas.dump(plan), sort_keys=True))


@dataclass(frozen=True, kw_only=True)
class DuplicateSettings:
    """Drops near-duplicate questions over all clips. `alike`: least cosine; None keeps all."""

    encoder: str
    alike: float | None = 0.95
    seed: int = 0

    @property
    def columns(self) -> tuple[str, ...]:
        return ("questions",)

    def __call__(self, rows: pa.Table) -> Decision:
        if self.alike is None:
            return Decision()
        from mustsee.nn.bert import Encoder

        questions = list(standing_questions(rows))
        encoder = Encoder.load(self.encoder)
        repeated = near_duplicates(
            questions, lambda texts: encoder.encode(list(texts)), alike=self.alike, seed=self.seed
        )
        return Decision(questions={one: f"repeats: {other}" for one, other in repeated.items()})


@dataclass(frozen=True, kw_only=True)
class EgoSchema:
    run: JobSettings
    source: NarrationSource
    ask: Part
    repeats: DuplicateSettings
    vet: Part
    enrich: Skippable
    analysis: Part
    make: Part
    no_question: bool = False
    cut: bool = False
    public: int | None = None
    seed: int = 0

    def __call__(self) -> int:
        if self.cut and self.source.videos is None:
            raise UserError("cut=true needs videos=, the files to cut the clips from")
        rows, heat = self.source.rows()
        with self.run.open("egoschema") as run:
            run.read(schemas.table(rows, Video))
            run.stage("ask", self.ask)
            run.together(self.repeats)
            run.stage("vet", self.vet)
            if self.no_question:
                run.stage("analyse", self.analysis)
            if self.enrich.is_on:
                run.stage("enrich", self.enrich)
            if self.cut:
                run.stage("synth", self.make)
            return run.publish(
                layouts={"egoschema": self.write},
                extra=lambda tables: self.notes(tables, heat),
                files=lambda folder, _: draw_heat_map(folder, heat),
            )

    def write(self, kept: Questions, folder: Path, videos: Iterable[Video]) -> None:
        """Write the released files, a submission with all answers right, and the cut clips."""
        rows, questions = by_id(videos), first(kept)
        ids = sorted(q.question_id for q in questions)
        size = len(ids) if self.public is None else min(self.public, len(ids))
        public_ids = set(random.Random(f"{self.seed}/public").sample(ids, size))

        def mark_questions() -> Iterator[Question]:
            for question in questions:
                public = (layout.PUBLIC,) if question.question_id in public_ids else ()
                yield replace(question, subsets=(*question.subsets, *public))

        layout.write(Rereadable(mark_questions), folder, rows.values())
        right = {q.question_id: q.answer_index for q in questions if q.answer_index is not None}
        layout.submission(right, folder / "submission.csv")
        if self.cut:
            files = {row.video_id: row.uri for row in rows.values()}
            (folder / "videos").mkdir()
            for question in questions:
                file = files[question.video_id]
                if not file.startswith(UNSEEN):
                    place_file(file, folder / "videos" / f"{file_name(question.question_id)}.mp4")

    def notes(self, tables: Tables, heat: HeatMap) -> Mapping[str, object]:
        """Counts of repaired replies, the heat map of viable clips (Fig. 8), and the no-question
        baseline.
        """
        replies = {"drifted": 0, "regenerated": 0}
        videos = [row.uri for row in tables.videos("uri")]
        count, unseen = len(videos), sum(uri.startswith(UNSEEN) for uri in videos)
        for _, questions in groupby(tables.questions("metrics"), lambda q: q.video_id):
            question = next(questions)  # Every question of a clip has the figures of its reply.
            for name in replies:
                replies[name] += int(question.metrics.get(name, 0))
        entries: dict[str, object] = {
            "clips": count, "replies": replies, "heat_map": schemas.dump(heat),
        }  # fmt: skip
        notes: list[str] = []
        if self.cut and unseen:
            notes.append(f"{unseen} of {count} clips were not cut: videos= lacks their videos")
        if (guesses := baseline(tables.questions("options", "verdicts"))) is not None:
            entries["no_question"] = schemas.dump(guesses)
            notes.append(
                f"without the question: {guesses.accuracy:.1%} of {guesses.questions} right "
                f"[{guesses.low:.1%}, {guesses.high:.1%}], chance {guesses.chance:.1%}"
            )
        return {**entries, "notes": notes}


def draw_heat_map(folder: Path, heat: HeatMap) -> list[RenderableType]:
    """Draw the heat map into `folder`/pictures; return a line if that fails."""
    failed = save_chart(folder / "pictures" / "heat_map.png", lambda: clips.draw(heat))
    return [failed] if failed else []


if __name__ == "__main__":
    launch("egoschema")
