"""Turns questions in any layout into rows, one for each video."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import pyarrow as pa

from mustsee import schemas
from mustsee.errors import UserError
from mustsee.evaluate.answers import FILTER, GRADE
from mustsee.layouts import QuestionFile
from mustsee.layouts.reading import Rereadable, answer_of
from mustsee.media import transcript
from mustsee.records import Question, Video
from mustsee.run.inputs import read_videos


def rows_of(
    reading: QuestionFile, videos: str | None, *, limit: int | None = None, seed: int = 0
) -> pa.Table:
    """One row per video with its questions.

    `videos`: as `source` of `locate_videos`. `limit`: number of questions to sample, at most; those
    of a group are taken together. Raises UserError where no video matches a question.
    """
    questions = list(reading.questions)
    kept = [i for i, q in enumerate(questions) if q.drop is None]
    if limit is not None and limit < 1:
        raise UserError(f"limit={limit!r}: must be at least 1, or null for all questions")
    if limit is not None and limit < len(kept):
        chosen = _sample(questions, kept, limit, random.Random(f"{seed}/limit"))
        questions = [q for i, q in enumerate(questions) if i in chosen]
    if not kept:
        raise UserError("there are no questions to answer")
    by_video: dict[str, list[Question]] = {}
    for question in questions:
        by_video.setdefault(question.video_id, []).append(
            dataclasses.replace(without_replies(question), answer=answer_of(question))
        )
    located = {v.video_id: v for v in locate_videos(reading.videos, videos, by_video)}
    rows = [
        dataclasses.replace(located[name], questions=tuple(own), drop=None, problem=None)
        for name, own in by_video.items()
    ]
    return schemas.table(rows, Video)


def locate_videos(
    listed: Iterable[Video], source: str | None, wanted: Collection[str]
) -> Rereadable[Video]:
    """Return the videos `listed`, then those of the ids `wanted` that are not, with the addresses
    that `source` (as `videos=`; None: none) has for them.

    A video is matched by its id or by its file's name without ending. `listed` is read anew by each
    iteration. Raises UserError where `source` has no video that is wanted.
    """
    sources = {} if source is None else _sources(source, listed, set(wanted))

    def locate_each() -> Iterator[Video]:
        missing = dict.fromkeys(wanted)
        for video in listed:
            missing.pop(video.video_id, None)
            yield whole(_matched(video, sources))
        for name in missing:
            yield whole(_matched(Video(video_id=name, uri=""), sources))

    return Rereadable(locate_each)


def _sample(
    questions: Sequence[Question], kept: Sequence[int], limit: int, rng: random.Random
) -> set[int]:
    """Return the numbers of at most `limit` of the `kept` questions, of a group all or none; if no
    group is that small, `limit` questions of any.
    """
    groups: dict[str | int, list[int]] = {}
    for i in kept:
        group = questions[i].group
        groups.setdefault(i if group is None else group, []).append(i)
    chosen = set[int]()
    if len(groups) < len(kept):
        for members in rng.sample(list(groups.values()), len(groups)):
            if len(chosen) + len(members) <= limit:
                chosen.update(members)
    return chosen or set(rng.sample(kept, limit))


def without_replies(question: Question) -> Question:
    """The question without replies of earlier evaluations."""
    kept = tuple(v for v in question.verdicts if v.filter not in (FILTER, GRADE))
    return dataclasses.replace(question, verdicts=kept)


def _sources(source: str, listed: Iterable[Video], wanted: set[str]) -> dict[str, Video]:
    """The videos of `source` by id and by file name. Raises UserError if none is wanted."""
    names = schemas.schema(Video).names
    table = read_videos(source)
    rows = table.select([c for c in table.column_names if c in names]).to_pylist()
    videos = [schemas.load(Video, row) for row in rows]
    by_name = {v.video_id: v for v in videos}
    by_name |= {v.uri.rsplit("/", 1)[-1].rsplit(".", 1)[0]: v for v in videos}
    if not wanted & (set(by_name) | {v.video_id for v in listed if v.source in by_name}):
        examples = ", ".join(sorted(wanted)[:3])
        raise UserError(
            f"videos={source!r} has no video for any question: expected ids such as {examples}"
        )
    return by_name


def _matched(video: Video, sources: Mapping[str, Video]) -> Video:
    """The row with the address of its own video, or of the video that the clip was cut from."""
    match = sources.get(video.video_id)
    if match is not None:
        return dataclasses.replace(
            video, uri=match.uri, size=match.size, modified=match.modified,
            subtitles=match.subtitles or video.subtitles,
        )  # fmt: skip
    is_clip = video.source is not None and video.plan is None  # A plan makes a file of its own.
    if is_clip and (match := sources.get(video.source or "")) is not None:
        return dataclasses.replace(video, uri=match.uri, size=match.size, modified=match.modified)
    return video


def whole(video: Video) -> Video:
    """The row of a clip that has its own file (EgoSchema's), in the time of that file.

    Its times were those of the video that it was cut from.
    """
    has_own_file = video.uri.rsplit("/", 1)[-1].rsplit(".", 1)[0] == video.video_id
    if has_own_file and video.source not in (None, video.video_id):
        lines = video.lines and transcript.shift_to_zero(video.lines, video.start or 0.0)
        return dataclasses.replace(video, start=None, end=None, lines=lines)
    return video
