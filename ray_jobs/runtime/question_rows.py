"""Turns questions in any layout into rows, one for each video."""

from __future__ import annotations

import dataclasses
import functools
import random
import sys
from collections.abc import Awaitable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from actors.hear.auto import Auto
from actors.part import Opened, Part, RunContext
from mustsee.errors import UserError
from mustsee.evaluate.answers import FILTER, GRADE
from mustsee.files import schemas
from mustsee.layouts import QuestionFile
from mustsee.layouts.reading import Rereadable, answer_of
from mustsee.media import transcript
from mustsee.media.video_names import VideoNames, describe_unmatched
from mustsee.records import Question, Video
from mustsee.run.inputs import read_names


def rows_of(
    reading: QuestionFile,
    videos: str | None,
    *,
    limit: int | None = None,
    seed: int = 0,
    captions: bool = False,
) -> pa.Table:
    """One row per video with its questions.

    `videos`: the files, as in `videos=`; None: none. What has no file is named on stderr. `limit`:
    number of questions to sample, at most; those of a group are taken together. `captions`: take
    those of the run in `videos`, where a video has none. Raises UserError where no video matches a
    question.
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
    rows_located, lost = locate_videos(
        reading.videos, videos, by_video, reading.video_paths, captions=captions
    )
    located = {v.video_id: v for v in rows_located}
    counts = {name: len(own) for name, own in by_video.items()}
    for line in describe_unmatched(str(videos), lost, counts):
        print(f"mustsee: {line}", file=sys.stderr, flush=True)
    rows = [
        dataclasses.replace(located[name], questions=tuple(own), drop=None, problem=None)
        for name, own in by_video.items()
    ]
    return schemas.table(rows, Video)


def locate_videos(
    listed: Iterable[Video],
    source: str | None,
    wanted: Collection[str],
    written: Mapping[str, str],
    *,
    captions: bool = False,
) -> tuple[Rereadable[Video], dict[str, tuple[str, str]]]:
    """Return the videos `listed`, then those of the ids `wanted` that are not, with the addresses
    that `source` (as `videos=`; None: none) has for them; and what is wanted and has no address:
    id -> what a table calls it, and why `source` has none.

    `written`: id -> what a table calls the video. `captions`: as in `rows_of`. `listed` is read
    anew by each iteration. Raises UserError where `source` has no video that is wanted.
    """
    kept = ("captions",) if captions else ()
    names = None if source is None else read_names(source, keep=kept)

    def locate_each() -> Iterator[Video]:
        missing = dict.fromkeys(wanted)
        for video in listed:
            missing.pop(video.video_id, None)
            yield whole(_located(video, names, written) or video)
        for name in missing:
            video = Video(video_id=name, uri="")
            yield whole(_located(video, names, written) or video)

    if names is None:
        return Rereadable(locate_each), {}
    lost, are_any = dict[str, tuple[str, str]](), False
    known = dict.fromkeys(wanted, False)
    for video in listed:
        if video.video_id in known:
            is_located = _located(video, names, written) is not None
            known[video.video_id], are_any = bool(video.uri) or is_located, are_any or is_located
    for name in (name for name, has_file in known.items() if not has_file):
        if _located(Video(video_id=name, uri=""), names, written) is None:
            called = written.get(name, name)
            lost[name] = (called, names.reason(name, called))
        else:
            are_any = True
    if not are_any:
        raise UserError(
            f"videos={source!r} has no video for any question: expected names such as "
            f"{', '.join(sorted(written.get(name, name) for name in wanted)[:3])}; it has "
            f"{', '.join(names.examples())}"
        )
    return Rereadable(locate_each), lost


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


def _located(video: Video, names: VideoNames | None, written: Mapping[str, str]) -> Video | None:
    """The row with the address of its own video, or of the video that the clip was cut from; None
    if `names` has neither.
    """
    if names is None:
        return None
    match = names.find(video.video_id, written.get(video.video_id, ""))
    if match is not None:
        return dataclasses.replace(
            video, uri=match.uri, size=match.size, modified=match.modified,
            subtitles=match.subtitles or video.subtitles,
            captions=video.captions or match.captions,
        )  # fmt: skip
    is_clip = video.source is not None and video.plan is None  # A plan makes a file of its own.
    if is_clip and (match := names.find(video.source or "")) is not None:
        return dataclasses.replace(video, uri=match.uri, size=match.size, modified=match.modified)
    return None


def whole(video: Video) -> Video:
    """The row of a clip that has its own file (EgoSchema's), in the time of that file.

    Its times were those of the video that it was cut from.
    """
    has_own_file = video.uri.rsplit("/", 1)[-1].rsplit(".", 1)[0] == video.video_id
    if has_own_file and video.source not in (None, video.video_id):
        lines = video.lines and transcript.shift_to_zero(video.lines, video.start or 0.0)
        return dataclasses.replace(video, start=None, end=None, lines=lines)
    return video


@dataclass(frozen=True, kw_only=True)
class HearMissing:
    """Transcribes by `hear` a video whose `lines` are null. A transcript that came with the
    questions stays, such as CinePile's dialogue, also one without any line.
    """

    version: ClassVar[str] = "1"
    reads: ClassVar[tuple[str, ...]] = (*Auto.reads, "lines", "has_audio")
    needs: ClassVar[tuple[str, ...]] = Auto.needs
    writes: ClassVar[tuple[str, ...]] = Auto.writes

    hear: Part

    def open(self, run: RunContext) -> Opened:
        transcribe = functools.cache(lambda: self.hear.open(run))

        def hear(video: Video) -> Video | Awaitable[Video]:
            return transcribe()(video) if video.lines is None else video

        return hear
