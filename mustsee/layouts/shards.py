"""WebDataset shards: `data/<split>-000000.tar` with videos or clips and their questions.

    webdataset.WebDataset("O/data/test-000000.tar")    {"__key__", "mp4", "json"}

There is one sample per row of `videos.parquet` with kept questions: its video file, and a JSON with
the questions and the video's facts. A clip is copied from its video without re-encoding, from the
keyframe before its start (`shown` has the span in the video); a whole video is copied unchanged.
"""

from __future__ import annotations

import io
import json
import math
import sys
import tarfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path, PurePosixPath
from typing import IO, Any

from mustsee.errors import UserError
from mustsee.files import schemas
from mustsee.files.store import resolve, strip_options
from mustsee.files.tables import one_line_error, parse_json
from mustsee.layouts import hugging_face
from mustsee.layouts.reading import Notes, QuestionFile, Questions, by_id, kept_questions
from mustsee.records import Question, Span, Video

NAMES = ("*.tar", "data/*.tar")


def write(
    questions: Questions, path: str | Path, videos: Iterable[Video] = (), *, shard_mb: float = 500
) -> None:
    """Write the kept questions with their videos into the folder `path`.

    Each split has at least one shard; a new one starts when a shard exceeds `shard_mb`. Raises
    UserError if a video is missing or a clip cannot be copied.
    """
    folder, videos_by_id = Path(path) / "data", by_id(videos)
    folder.mkdir(parents=True, exist_ok=True)
    chosen, split = kept_questions(questions), hugging_face.splits(questions)
    with ExitStack() as stack:
        shards: dict[str, _Shards] = {}
        for (name, video_id), on_video in _by_video(chosen, lambda q: (split(q), q.video_id)):
            if name not in shards:
                shards[name] = _Shards(folder, name, shard_mb * 1e6)
                stack.callback(shards[name].close)
            shards[name].add(
                videos_by_id.get(video_id) or Video(video_id=video_id, uri=""), on_video
            )


def _by_video(
    questions: Questions, key: Callable[[Question], tuple[str, str]]
) -> Iterator[tuple[tuple[str, str], list[Question]]]:
    """Yield the questions grouped by key, in the order of the keys' first questions.

    Questions on a video are mostly adjacent, so few are held in memory.
    """
    left, waiting = Counter(map(key, questions)), dict[tuple[str, str], list[Question]]()
    for question in questions:
        question_key = key(question)
        waiting.setdefault(question_key, []).append(question)
        left[question_key] -= 1
        while waiting and not left[next(iter(waiting))]:
            yield (first_key := next(iter(waiting))), waiting.pop(first_key)


class _Shards:
    """Writer of one split's shards."""

    def __init__(self, folder: Path, name: str, max_bytes: float) -> None:
        self._folder, self._name, self._most = folder, name, max_bytes
        self._made = self._videos = 0
        self._tar: tarfile.TarFile | None = None

    def add(self, video: Video, questions: Sequence[Question]) -> None:
        key = f"{self._videos:06d}"
        self._videos += 1
        ending, shown_span, size, source = _video(video)
        sample = {
            **{n: getattr(video, n) for n in hugging_face.VIDEO},
            "uri": PurePosixPath(strip_options(video.uri)).name,
            "shown": [shown_span.start, shown_span.end] if shown_span else None,
            "questions": [schemas.dump(q) for q in questions],
        }
        text = json.dumps(sample, ensure_ascii=False).encode()
        with source as file:
            tar = self._open()
            _put(tar, f"{key}.{ending}", size, file)
            _put(tar, f"{key}.json", len(text), io.BytesIO(text))

    def _open(self) -> tarfile.TarFile:
        if self._tar is not None and self._tar.offset > self._most:
            self.close()
        if self._tar is None:
            path = self._folder / f"{self._name}-{self._made:06d}.tar"
            self._tar = tarfile.open(path, "w", format=tarfile.USTAR_FORMAT)  # noqa: SIM115
            self._made += 1
        return self._tar

    def close(self) -> None:
        if self._tar is not None:
            self._tar.close()
            self._tar = None


def _put(tar: tarfile.TarFile, name: str, size: int, file: IO[bytes]) -> None:
    """Add a file without time and owner, so that the same input gives the same bytes."""
    info = tarfile.TarInfo(name)
    info.size = size
    tar.addfile(info, file)


def _video(video: Video) -> tuple[str, Span | None, int, IO[bytes]]:
    """Return a video's extension, its span in the original video (clips only), size and bytes."""
    filesystem, place = resolve(video.uri or "nothing")
    info = filesystem.get_file_info(place)
    if not video.uri or not info.is_file:
        raise UserError(
            f"no video file for {video.video_id!r} at {video.uri!r}, and shards include the "
            "videos: correct uri in videos.parquet, or export with layout=hf, which needs no files"
        )
    if video.start is None or video.end is None:
        ending = PurePosixPath(place).suffix.lstrip(".").lower() or "mp4"
        return ending, None, info.size, filesystem.open_input_file(place)
    from mustsee.media.clips import copy_span

    span = Span(video.start, video.end)
    clip = copy_span(video.uri, span, sound=True, max_bytes=sys.maxsize, lead=math.inf)
    if clip is None:
        raise UserError(
            f"the clip {video.video_id!r} of {video.uri!r} cannot be copied without re-encoding: "
            "only H.264 and H.265 with AAC or MP3 can; re-encode the video as one of these first"
        )
    return "mp4", clip.span, len(clip.mp4), io.BytesIO(clip.mp4)


def shard_files(folder: Path) -> list[Path]:
    """Return the shards in a folder, sorted."""
    return sorted(p for name in NAMES for p in folder.glob(name))


def read(path: Path) -> QuestionFile:
    """Read the questions of a shard, or of all shards in a folder, but not the video files."""
    questions_by_id: dict[str, Question] = {}
    videos: list[Video] = []
    files = [path] if path.is_file() else shard_files(path)
    for sample in _samples(files):
        questions = [schemas.load(Question, q) for q in sample["questions"]]
        questions_by_id |= {q.question_id: q for q in questions}
        videos.append(schemas.load(Video, {**sample, "uri": ""}))
    return QuestionFile(
        layout="webdataset",
        questions=Notes(path).unique(list(questions_by_id.values())),
        videos=tuple(videos),
    )


def _samples(files: Iterable[Path]) -> Iterator[Mapping[str, Any]]:
    for file in files:
        try:
            with tarfile.open(file) as tar:
                for member in tar:
                    json_file = tar.extractfile(member) if member.name.endswith(".json") else None
                    if json_file is not None:
                        yield parse_json(json_file.read().decode())
        except (tarfile.TarError, ValueError, OSError) as error:
            raise UserError(
                f"cannot read the shard {str(file)!r}: {one_line_error(error)}"
            ) from error
