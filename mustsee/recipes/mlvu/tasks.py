"""The sources of MLVU's tasks: each class reads its tables and returns the rows of a run.

`conf/task/*.yaml` names these classes. A row holds a video, the plan of its synthesis where one is
made, and the questions that are known before a model is asked.

The Time-Ladder asks the same questions on videos of 180, 360 and 600 s (MLVU, D). Synthetic tasks
are planned for each length (`SynthesisSettings.total_seconds`). For other tasks a window is cut
around the evidence, so that it contains the answer. A reference for a whole video, such as a
summary, is right at its own length only: the annotators wrote one for each length.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from mustsee.errors import BadRow, UserError
from mustsee.files import schemas
from mustsee.files.store import digest, resolve
from mustsee.files.tables import read_table
from mustsee.layouts.detect import read as read_questions
from mustsee.media.shots import shots_of
from mustsee.media.video import facts
from mustsee.recipes.mlvu.annotated import ego_forms, from_table, queries, questions_of
from mustsee.recipes.mlvu.ask import Anomaly
from mustsee.records import Question, Span, Video, group_pairs
from mustsee.run.inputs import read_videos
from mustsee.synth.insertions import Background, InsertedClip, SynthesisSettings, with_captions
from mustsee.synth.plan import InsertionPlan
from mustsee.text import printable

LENGTHS = (180.0, 360.0, 600.0)
SAME_LENGTH_S = 1.0  # seconds by which a reference's length may differ from a rung's
OTHER_LENGTH = "their reference was written for another length"
UNKNOWN_PLACE = "their evidence is unknown"
NO_ROOM = "their evidence does not fit, or the video is shorter"


def window(evidence: Sequence[Span], duration: float, length: float, seed: str) -> Span | None:
    """Draw a window of `length` seconds that contains all evidence, uniformly; None if the evidence
    is too wide or the video too short.
    """
    if length > duration:
        return None
    first, last = min(s.start for s in evidence), max(s.end for s in evidence)
    low, high = max(0.0, last - length), min(first, duration - length)
    if low > high:
        return None
    start = low + random.Random(seed).random() * (high - low)
    return Span(start, start + length)


def described_length(question: Question, duration: float) -> float | None:
    """Return the length in seconds, from the beginning, that a reference answer describes as a
    whole: the evidence of a summary or the whole video; the whole video for another open answer
    without evidence. None if the answer is in the evidence, and so is right in every window around
    it.
    """
    if question.question_type == "summary":
        return max((s.end for s in question.evidence), default=duration)
    return None if question.evidence or question.options else duration


def rungs(
    video: Video, lengths: Sequence[float] = LENGTHS, seed: int = 0
) -> tuple[list[Video], Counter[str]]:
    """Return a row with the plan of its cut for each question and length, and the numbers of
    missing rows by reason. Windows of one question contain each other.
    """
    rows, missing = list[Video](), Counter[str]()
    for question in video.questions or ():
        described = described_length(question, video.duration or 0.0)
        if described is not None:
            fits = described <= (video.duration or 0.0) + SAME_LENGTH_S
            same_lengths = [
                n for n in sorted(lengths) if fits and abs(n - described) <= SAME_LENGTH_S
            ]
            cuts, reason = [(n, Span(0.0, described)) for n in same_lengths], OTHER_LENGTH
        elif not question.evidence:
            cuts, reason = [], UNKNOWN_PLACE
        else:
            cuts, reason = _around(video, question, lengths, seed), NO_ROOM
        missing[reason] += len(lengths) - len(cuts)
        rows += [_rung(video, question, length, cut) for length, cut in cuts]
    return rows, +missing


def _around(
    video: Video, question: Question, lengths: Sequence[float], seed: int
) -> list[tuple[float, Span]]:
    """Return the windows around a question's evidence, the shortest first."""
    outer = Span(0.0, video.duration or 0.0)
    cuts: list[tuple[float, Span]] = []
    for length in sorted(lengths, reverse=True):
        inside = [Span(e.start - outer.start, e.end - outer.start) for e in question.evidence]
        cut = window(inside, outer.seconds, length, f"{seed}/{question.question_id}/{length:g}")
        if cut is not None:
            outer = Span(outer.start + cut.start, outer.start + cut.end)
            cuts.append((length, outer))
    return cuts[::-1]


def _rung(video: Video, question: Question, length: float, cut: Span) -> Video:
    plan = InsertionPlan(background=video.uri, start=cut.start, end=cut.end)
    name = f"{video.video_id}_{digest([question.question_id, cut])[:8]}_{length:g}"
    is_whole = described_length(question, video.duration or 0.0) is not None
    cut_evidence = () if is_whole else question.evidence
    evidence = tuple(Span(e.start - cut.start, e.end - cut.start) for e in cut_evidence)
    question_there = replace(
        question,
        question_id=f"{question.question_id}_{length:g}",
        video_id=name,
        evidence=evidence,
        subsets=(*question.subsets, f"ladder_{length:g}"),
    )
    return Video(
        video_id=name,
        uri=video.uri,
        source=video.video_id,
        start=cut.start,
        end=cut.end,
        duration=cut.seconds,
        plan=json.dumps(schemas.dump(plan), sort_keys=True),
        questions=(question_there,),
    )


class Planner(Protocol):
    """A task of `mustsee.recipes.mlvu.ask`: plans one video for each item."""

    @property
    def making(self) -> SynthesisSettings: ...

    def rows(
        self, backgrounds: Sequence[Background], clips: Sequence[InsertedClip]
    ) -> list[Video]: ...


@dataclass(frozen=True, kw_only=True)
class Synthetic:
    """Videos planned from backgrounds and clips.

    `backgrounds` is a folder or table. The `videos.parquet` of an earlier run gives captions and
    shots; otherwise shots are detected where the plan needs them.
    `clips` is a table with `uri` and, as needed, `start`, `end`, `label`, `caption`, `source` and
    `event`.
    `lengths` (seconds): the whole set is planned once for each length of a time ladder.
    """

    plan: Planner
    backgrounds: str | None
    clips: str | None
    lengths: Sequence[float] = ()

    def rows(self) -> list[Video]:
        needs_shots = self.plan.making.spread.near_cut is not None
        backgrounds = [
            Background(
                uri=video.uri,
                duration=video.duration or 0.0,
                shots=(video.shots or shots_of(video.uri)) if needs_shots else (),
                captions=video.captions or (),
            )
            for video in probe_videos(require_setting("backgrounds", self.backgrounds))
        ]
        clips = [parse_clip(n, row) for n, row in enumerate(_table("clips", self.clips), 1)]
        return [with_captions(row, backgrounds) for row in self._planned(backgrounds, clips)]

    def _planned(
        self, backgrounds: Sequence[Background], clips: Sequence[InsertedClip]
    ) -> list[Video]:
        if not self.lengths:
            return self.plan.rows(backgrounds, clips)
        rows: list[Video] = []
        for length in self.lengths:
            making = replace(self.plan.making, total_seconds=length)
            plan = replace(self.plan, making=making)  # type: ignore[type-var]
            subset = f"ladder_{length:g}"
            for row in plan.rows(backgrounds, clips):
                questions = row.questions and tuple(
                    replace(q, subsets=(*q.subsets, subset)) for q in row.questions
                )
                # A needle's questions are generated later and take their subsets from the tags.
                rows.append(replace(row, questions=questions, tags=(subset,)))
        return rows


@dataclass(frozen=True, kw_only=True)
class LabelledVideos:
    """Anomaly recognition. `videos` is a table with the columns `uri` and `label`."""

    anomaly: Anomaly
    videos: str | None

    def rows(self) -> list[Video]:
        source = require_setting("videos", self.videos)
        table = read_videos(source)
        if "label" not in table.column_names:
            raise UserError(
                f"videos={source!r}: no column 'label': this task needs a table that has one"
            )
        labels = dict(zip(table["video_id"].to_pylist(), table["label"].to_pylist(), strict=True))
        videos = probe_videos(source)
        return self.anomaly.rows([(video, str(labels[video.video_id])) for video in videos])


@dataclass(frozen=True, kw_only=True)
class AnnotatedForms:
    """Topics, summaries, plot questions, sub-scenes and ego questions from filled-in forms.

    A summary of a video's first minutes is left out: it belongs to `task=ladder`.
    """

    annotations: str | None
    videos: str | None
    options: int = 4
    seed: int = 0

    def rows(self) -> list[Video]:
        forms = from_table(_table("annotations", self.annotations))
        usable = [f for f in forms if f.kind != "summary" or not f.evidence]
        if len(usable) < len(forms):
            print(
                f"left out: {len(forms) - len(usable)} summaries of a part of their video; "
                "task=ladder uses them"
            )
        questions = questions_of(usable, options=self.options, seed=self.seed)
        return join_questions(probe_videos(require_setting("videos", self.videos)), questions)


@dataclass(frozen=True, kw_only=True)
class EgoQueries:
    """Ego questions from Ego4D's `nlq_*.json` and a table of answers (`query_id`, `answer`)."""

    queries: str | None
    annotations: str | None
    videos: str | None
    options: int = 4
    seed: int = 0

    def rows(self) -> list[Video]:
        filesystem, path = resolve(require_setting("queries", self.queries))
        try:
            parsed = queries(json.loads(filesystem.open_input_file(path).read()))
        except (OSError, ValueError) as error:
            raise UserError(f"cannot read queries={self.queries!r}: {error}") from error
        table = _table("annotations", self.annotations)
        answers = {str(r["query_id"]): str(r["answer"]) for r in table if r.get("answer")}
        forms = ego_forms(parsed, answers, options=self.options, seed=self.seed)
        questions = questions_of(forms, options=self.options, seed=self.seed)
        return join_questions(probe_videos(require_setting("videos", self.videos)), questions)


@dataclass(frozen=True, kw_only=True)
class Ladder:
    """A time ladder of existing questions, each on cuts of several lengths around its evidence.

    `questions` is a file in any layout. `annotations` is a table of filled-in forms, in which a
    summary of the first minutes has them marked as its evidence. `lengths` are seconds.
    """

    questions: str | None
    videos: str | None
    annotations: str | None = None
    """Filled-in forms; a summary marks the seconds that it covers (start, end)."""
    lengths: Sequence[float] = LENGTHS
    """Lengths of the cuts, seconds."""
    options: int = 4
    seed: int = 0

    def rows(self) -> list[Video]:
        by_video = group_pairs((q.video_id, q) for q in self._source_questions() if q.drop is None)
        rows, left_out = list[Video](), Counter[str]()
        for video in join_questions(probe_videos(require_setting("videos", self.videos)), by_video):
            cut, reasons = rungs(video, self.lengths, self.seed)
            rows += cut
            left_out += reasons
        for reason, n in left_out.most_common():
            print(f"left out: {n} rung{'s' if n > 1 else ''} of the ladder: {reason}")
        if not rows:
            raise UserError(
                f"no question of {self.questions or self.annotations!r} fits a rung of the ladder: "
                f"it needs evidence that fits into {min(self.lengths):g} s and a video that long; "
                "a summary must be of one of the lengths"
            )
        return rows

    def _source_questions(self) -> Iterable[Question]:
        if self.annotations is not None:
            forms = from_table(_table("annotations", self.annotations))
            by_video = questions_of(forms, options=self.options, seed=self.seed)
            yield from (question for questions in by_video.values() for question in questions)
        if self.questions is not None or self.annotations is None:
            yield from read_questions(require_setting("questions", self.questions))


def probe_videos(source: str) -> list[Video]:
    """The videos of a folder, list or table with their durations.

    A video that cannot be read is left out, and a line is printed with the reason.
    """
    videos: list[Video] = []
    names = set(schemas.schema(Video).names)
    table = read_videos(source, keep=("shots", "captions"))
    for row in table.select([c for c in table.column_names if c in names]).to_pylist():
        video = schemas.load(Video, row)
        try:
            duration = facts(video.uri).duration
        except BadRow as error:
            print(printable(f"left out: {error}"))
            continue
        videos.append(replace(video, duration=duration))
    return videos


def join_questions(
    videos: Sequence[Video], questions: Mapping[str, Sequence[Question]]
) -> list[Video]:
    """The videos that have questions, with these, ordered by id.

    `questions`: questions by video id. Raises UserError for the id of a missing video.
    """
    by_id = {video.video_id: video for video in videos}
    if missing := sorted(set(questions) - set(by_id)):
        raise UserError(
            f"videos= lacks {len(missing)} videos that have questions, such as {missing[0]!r}"
        )
    return [replace(by_id[name], questions=tuple(questions[name])) for name in sorted(questions)]


def require_setting(key: str, value: str | None) -> str:
    """`value`, or UserError where it is null."""
    if value is None:
        raise UserError(f"{key}= is not set: this task needs it")
    return value


def parse_clip(number: int, row: Mapping[str, Any]) -> InsertedClip:
    """The clip of row `number` (from 1). Raises UserError for a missing uri or a bad number."""
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
            f"clips, row {number}: start and end must be seconds and event a number: {error}"
        ) from error


def _table(key: str, value: str | None) -> list[dict[str, Any]]:
    return read_table(require_setting(key, value))
