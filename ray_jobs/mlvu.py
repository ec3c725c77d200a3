"""MLVU (arXiv 2406.04264): long videos synthesised, cut or labelled, with questions about them.

    python -m ray_jobs.mlvu task=needle|order|events|count backgrounds=B clips=C out=O
    python -m ray_jobs.mlvu task=anomaly|annotated|ego|ladder ... out=O

A task plans its videos and, where the plan knows the answer, their questions; files are made;
needles are asked about; questions that would give their answers away are dropped. See docs/mlvu.md.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from actors.part import Part, Skippable
from mustsee import schemas
from mustsee.decision import Decision
from mustsee.errors import BadRow, UserError
from mustsee.layouts.detect import read as read_questions
from mustsee.layouts.reading import Questions, Rereadable
from mustsee.media.shots import shots_of
from mustsee.media.video import facts
from mustsee.questions import balance
from mustsee.recipes.mlvu import ladder, layout
from mustsee.recipes.mlvu.annotated import from_table, questions_of
from mustsee.recipes.mlvu.tables import Anomaly, ego_forms, queries
from mustsee.records import Question, Video
from mustsee.run.inputs import read_videos
from mustsee.run.tables import Tables
from mustsee.store import resolve
from mustsee.synth.insertions import Background, InsertedClip, SynthesisSettings, with_captions
from mustsee.tables import read_table
from mustsee.text import printable
from ray_jobs.cli.launch import launch
from ray_jobs.runtime.run import JobSettings, standing_questions


class MlvuTask(Protocol):
    """What `conf/task/*.yaml` names: the rows of a run."""

    def rows(self) -> list[Video]: ...


class Planner(Protocol):
    @property
    def making(self) -> SynthesisSettings: ...

    def rows(
        self, backgrounds: Sequence[Background], clips: Sequence[InsertedClip]
    ) -> list[Video]: ...


@dataclass(frozen=True, kw_only=True)
class Synthetic:
    """A task of `mustsee.recipes.mlvu.ask` over a folder or table of backgrounds and a table of
    clips (uri, and as needed start, end, label, caption, source, event). The `videos.parquet` of an
    earlier run gives the backgrounds' captions, and their shots where these are needed; without it
    shots are found here. `lengths`: make all of it once for each length of a time ladder.
    """

    plan: Planner
    backgrounds: str | None
    clips: str | None
    lengths: Sequence[float] = ()

    def rows(self) -> list[Video]:
        near = self.plan.making.spread.near_cut is not None
        places = [
            Background(
                uri=v.uri,
                duration=v.duration or 0.0,
                shots=(v.shots or shots_of(v.uri)) if near else (),
                captions=v.captions or (),
            )
            for v in probe_videos(_needed("backgrounds", self.backgrounds))
        ]
        pool = [_clip(n, row) for n, row in enumerate(_table("clips", self.clips), 1)]
        return [with_captions(row, places) for row in self._planned(places, pool)]

    def _planned(self, places: Sequence[Background], pool: Sequence[InsertedClip]) -> list[Video]:
        if not self.lengths:
            return self.plan.rows(places, pool)
        done: list[Video] = []
        for length in self.lengths:
            making = replace(self.plan.making, total_seconds=length)
            for row in replace(self.plan, making=making).rows(places, pool):  # type: ignore[type-var]
                name = f"ladder_{length:g}"
                asked = row.questions and tuple(
                    replace(q, subsets=(*q.subsets, name)) for q in row.questions
                )
                # needles are asked about later: their questions take the name from the tags
                done.append(replace(row, questions=asked, tags=(name,)))
        return done


@dataclass(frozen=True, kw_only=True)
class LabelledVideos:
    """Anomaly recognition: `videos` is a table with uri and label."""

    anomaly: Anomaly
    videos: str | None

    def rows(self) -> list[Video]:
        table = read_videos(_needed("videos", self.videos))
        if "label" not in table.column_names:
            raise UserError(f"videos={self.videos!r}: a table with a 'label' column is needed")
        labels = dict(zip(table["video_id"].to_pylist(), table["label"].to_pylist(), strict=True))
        rows = probe_videos(_needed("videos", self.videos))
        return self.anomaly.rows([(row, str(labels[row.video_id])) for row in rows])


@dataclass(frozen=True, kw_only=True)
class AnnotatedForms:
    """TR, VS, PQA, SSC and ER from a table of filled-in forms. Summaries of a video's beginning are
    for the ladder.
    """

    annotations: str | None
    videos: str | None
    options: int = 4
    seed: int = 0

    def rows(self) -> list[Video]:
        filled = from_table(_table("annotations", self.annotations))
        whole = [f for f in filled if f.kind != "summary" or not f.evidence]
        if len(whole) < len(filled):
            print(f"left out: {len(filled) - len(whole)} summaries of a part (task=ladder)")
        made = questions_of(whole, options=self.options, seed=self.seed)
        return join_questions(probe_videos(_needed("videos", self.videos)), made)


@dataclass(frozen=True, kw_only=True)
class EgoQueries:
    """ER from Ego4D's `nlq_*.json` and a table of answers (query_id, answer)."""

    queries: str | None
    annotations: str | None
    videos: str | None
    options: int = 4
    seed: int = 0

    def rows(self) -> list[Video]:
        filesystem, path = resolve(_needed("queries", self.queries))
        try:
            asked = queries(json.loads(filesystem.open_input_file(path).read()))
        except (OSError, ValueError) as error:
            raise UserError(f"cannot read queries={self.queries!r}: {error}") from error
        table = _table("annotations", self.annotations)
        answers = {str(r["query_id"]): str(r["answer"]) for r in table if r.get("answer")}
        filled = ego_forms(asked, answers, options=self.options, seed=self.seed)
        made = questions_of(filled, options=self.options, seed=self.seed)
        return join_questions(probe_videos(_needed("videos", self.videos)), made)


@dataclass(frozen=True, kw_only=True)
class Ladder:
    """A time ladder of questions that there are already, with their evidence, in any layout, or of
    filled-in forms, where a summary of the first minutes has them marked.
    """

    questions: str | None
    videos: str | None
    annotations: str | None = None
    lengths: Sequence[float] = ladder.LENGTHS
    options: int = 4
    seed: int = 0

    def rows(self) -> list[Video]:
        made: dict[str, list[Question]] = {}
        for question in self._given():
            if question.drop is None:
                made.setdefault(question.video_id, []).append(question)
        found, left = list[Video](), Counter[str]()
        for row in join_questions(probe_videos(_needed("videos", self.videos)), made):
            rungs, missing = ladder.rungs(row, self.lengths, self.seed)
            found += rungs
            left += missing
        for why, n in left.most_common():
            print(f"left out: {n} rung{'s' if n > 1 else ''} of the ladder: {why}")
        if not found:
            raise UserError(
                f"no question of {self.questions or self.annotations!r} can be cut around: they "
                f"need evidence that fits into {min(self.lengths):g} s, and videos that long; a "
                "summary must be of that length"
            )
        return found

    def _given(self) -> Iterable[Question]:
        if self.annotations is not None:
            filled = from_table(_table("annotations", self.annotations))
            made = questions_of(filled, options=self.options, seed=self.seed)
            yield from (question for asked in made.values() for question in asked)
        if self.questions is not None or self.annotations is None:
            yield from read_questions(_needed("questions", self.questions))


def probe_videos(source: str) -> list[Video]:
    """The videos of a folder, list or table with their lengths; what cannot be read is left out and
    said.
    """
    done: list[Video] = []
    names = set(schemas.schema(Video).names)
    table = read_videos(source, keep=("shots", "captions"))
    for row in table.select([c for c in table.column_names if c in names]).to_pylist():
        video = schemas.load(Video, row)
        try:
            about = facts(video.uri)
        except BadRow as error:
            print(printable(f"left out: {error}"))
            continue
        done.append(replace(video, duration=about.duration))
    return done


def join_questions(videos: Sequence[Video], made: Mapping[str, Sequence[Question]]) -> list[Video]:
    """The videos that are asked about, with their questions. UserError where one is missing."""
    known = {v.video_id: v for v in videos}
    lost = sorted(set(made) - set(known))
    if lost:
        raise UserError(
            f"questions about {len(lost)} videos that videos= does not hold, {lost[0]!r} among them"
        )
    return [replace(known[name], questions=tuple(made[name])) for name in sorted(made)]


def _needed(key: str, value: str | None) -> str:
    if value is None:
        raise UserError(f"{key}= is not set, and this task needs it")
    return value


def _table(key: str, value: str | None) -> list[dict[str, Any]]:
    return read_table(_needed(key, value))


def _clip(number: int, row: Mapping[str, Any]) -> InsertedClip:
    if not row.get("uri"):
        raise UserError(f"clips, row {number}: no 'uri'; the columns are {sorted(row)}")
    end = row.get("end")
    try:
        return InsertedClip(
            uri=str(row["uri"]),
            start=float(row.get("start") or 0.0),
            end=float(end) if end is not None else facts(str(row["uri"])).duration,
            label=str(row.get("label") or ""),
            caption=str(row.get("caption") or ""),
            source=str(row.get("source") or ""),
            event=int(float(row.get("event") or 0)),
        )
    except (TypeError, ValueError) as error:
        raise UserError(
            f"clips, row {number}: start and end are seconds, event a number: {error}"
        ) from error


@dataclass(frozen=True, kw_only=True)
class GuesserBalance:
    """Drops what lets guessers beat chance. `least`: the share of a task that stays in any case."""

    fair: bool = True
    least: float = 0.5
    seed: int = 0

    @property
    def columns(self) -> tuple[str, ...]:
        return ("questions",)

    def __call__(self, rows: pa.Table) -> Decision:
        if not self.fair:
            return Decision()
        asked = standing_questions(rows)
        done = balance.balance_questions(asked, self.seed, self.least)
        fell = {
            a.question_id: a.drop
            for a, b in zip(done, asked, strict=True)
            if a.drop is not None and a.drop != b.drop
        }
        return Decision(questions=fell)


@dataclass(frozen=True, kw_only=True)
class Mlvu:
    run: JobSettings
    task: MlvuTask
    absent: Part
    make: Part
    ask: Part
    vet: Part
    enrich: Skippable
    balance: GuesserBalance
    options: int = 4

    def __call__(self) -> int:
        rows = schemas.table(self.task.rows(), Video)
        with self.run.open("mlvu") as run:
            run.read(rows)
            run.stage("absent", self.absent)
            run.stage("synth", self.make)
            run.stage("ask", self.ask)
            run.stage("vet", self.vet)
            run.together(self.balance)
            if self.enrich.is_on:
                run.stage("enrich", self.enrich)
            return run.publish(layouts={"mlvu": self.write}, extra=notes)

    def write(self, kept: Questions, folder: Path, videos: Rereadable[Video]) -> None:
        """The dev lists, and with six options the test file as well."""
        layout.write(kept, folder, videos)
        if self.options == 6:
            layout.write_test(kept, folder, videos)


def notes(tables: Tables) -> Mapping[str, object]:
    """Balance before and after resampling, and the nearest moment of each background by its probes,
    for a person to look at.
    """
    asked = list(tables.questions("options", "answer_index", "drop"))
    before = [replace(q, drop=None) if (q.drop or "").startswith("balance:") else q for q in asked]

    def find_notes(some: Sequence[Question]) -> list[dict[str, Any]]:
        return [{**schemas.dump(f), "fair": f.fair} for f in balance.report(some)]

    nearest = [
        {
            "video_id": row.video_id,
            "probe": s.topic or s.dense_caption,
            "at": s.start,
            "seen": s.visual_support,
            "drop": row.drop,
        }
        for row in tables.videos("segments", "drop")
        for s in row.segments or ()
        if s.visual_support
    ]
    reports = {"before": find_notes(before), "after": find_notes(asked)}
    off = {when: sum(not f["fair"] for f in some) for when, some in reports.items()}
    fell = sum((q.drop or "").startswith("balance:") for q in asked)
    told = (
        f"balance: {off['before']} of {len(reports['before'])} guessers off chance, "
        f"{off['after']} after {fell} questions were dropped"
    )
    return {"balance": reports, "review": nearest, "notes": [told]}


if __name__ == "__main__":
    launch("mlvu")
