"""Questions in any layout become one row per video."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Mapping, Sequence

import pyarrow as pa

from mustsee import schemas
from mustsee.errors import UserError
from mustsee.evaluate.answers import FILTER, GRADE
from mustsee.layouts import QuestionFile
from mustsee.layouts.reading import answer_of
from mustsee.media import transcript
from mustsee.records import Question, Video
from mustsee.run.inputs import read_videos


def rows_of(
    reading: QuestionFile, videos: str | None, *, limit: int | None = None, seed: int = 0
) -> pa.Table:
    """One row per video with its questions. Videos are found by id: their file's name without its
    ending. Raises UserError where no video belongs to any question.
    """
    questions = list(reading.questions)
    asked = [i for i, q in enumerate(questions) if q.drop is None]
    if limit is not None and limit < 1:
        raise UserError(f"limit={limit!r}: at least 1, or null for all questions")
    if limit is not None and limit < len(asked):
        chosen = set(random.Random(f"{seed}/limit").sample(asked, limit))
        questions = [q for i, q in enumerate(questions) if i in chosen]
    if not asked:
        raise UserError("there are no questions to answer")
    nested: dict[str, list[Question]] = {}
    for question in questions:
        nested.setdefault(question.video_id, []).append(bare(question))
    known = {v.video_id: v for v in reading.videos}
    sources = _sources(videos, list(known.values()), set(nested)) if videos is not None else {}
    rows = [
        dataclasses.replace(
            whole(_matched(known.get(name) or Video(video_id=name, uri=""), sources)),
            questions=tuple(asked), drop=None, problem=None,
        )
        for name, asked in nested.items()
    ]  # fmt: skip
    return schemas.table(rows, Video)


def bare(question: Question) -> Question:
    """Without the replies of earlier evaluations; with its answer as text."""
    kept = tuple(v for v in question.verdicts if v.filter not in (FILTER, GRADE))
    return dataclasses.replace(question, verdicts=kept, answer=answer_of(question))


def _sources(source: str, known: Sequence[Video], wanted: set[str]) -> dict[str, Video]:
    names = schemas.schema(Video).names
    table = read_videos(source)
    found = [schemas.load(Video, row) for row in table.select(
        [c for c in table.column_names if c in names]).to_pylist()]  # fmt: skip
    by_name = {v.video_id: v for v in found}
    by_name |= {v.uri.rsplit("/", 1)[-1].rsplit(".", 1)[0]: v for v in found}
    if not wanted & (set(by_name) | {v.video_id for v in known if v.source in by_name}):
        some = ", ".join(sorted(wanted)[:3])
        raise UserError(f"videos={source!r} has no video for any question: wanted are {some}, ...")
    return by_name


def _matched(video: Video, sources: Mapping[str, Video]) -> Video:
    """The row with the address of its video: its own, or the one that the clip was cut from."""
    found = sources.get(video.video_id)
    if found is not None:
        return dataclasses.replace(
            video, uri=found.uri, size=found.size, modified=found.modified,
            subtitles=found.subtitles or video.subtitles,
        )  # fmt: skip
    if video.source is not None and (found := sources.get(video.source)) is not None:
        return dataclasses.replace(video, uri=found.uri, size=found.size, modified=found.modified)
    return video


def whole(video: Video) -> Video:
    """A clip that is a file of its own (EgoSchema's), in the time of its file: the row's times are
    those in the video that it was cut from.
    """
    own = video.uri.rsplit("/", 1)[-1].rsplit(".", 1)[0] == video.video_id
    if own and video.source not in (None, video.video_id):
        lines = video.lines and transcript.shift_to_zero(video.lines, video.start or 0.0)
        return dataclasses.replace(video, start=None, end=None, lines=lines)
    return video
