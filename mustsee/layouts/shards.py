"""WebDataset shards: `data/<split>-000000.tar`, the videos or clips with their questions.

    webdataset.WebDataset("O/data/test-000000.tar")    {"__key__", "mp4", "json"}

One sample for each row of `videos.parquet` that has kept questions: its file, and in the JSON
beside it the questions and what is known of the video. A clip is copied out of its video without
coding it anew, from the keyframe before it (`shown` says from where to where); a whole video is
taken as it is.
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

from mustsee import schemas
from mustsee.errors import UserError
from mustsee.layouts import hugging_face
from mustsee.layouts.reading import Notes, QuestionFile, Questions, by_id, kept_questions
from mustsee.records import Question, Span, Video
from mustsee.store import resolve
from mustsee.tables import one_line_error, parse_json

NAMES = ("*.tar", "data/*.tar")


def write(
    questions: Questions,
    path: str | Path,
    videos: Iterable[Video] = (),
    *,
    shard_mb: float = 500,
) -> None:
    """The kept questions with their videos into the folder `path`, a shard of each split at least;
    a new one is begun where `shard_mb` is passed. Raises UserError where a video is not there, or a
    clip cannot be copied.
    """
    folder, videos_by_id = Path(path) / "data", by_id(videos)
    folder.mkdir(parents=True, exist_ok=True)
    chosen, split = kept_questions(questions), hugging_face.splits(questions)
    with ExitStack() as opened:
        shards: dict[str, _Shards] = {}
        for (name, video_id), some in _by_video(chosen, lambda q: (split(q), q.video_id)):
            if name not in shards:
                shards[name] = _Shards(folder, name, shard_mb * 1e6)
                opened.callback(shards[name].close)
            shards[name].add(videos_by_id.get(video_id) or Video(video_id=video_id, uri=""), some)


def _by_video(
    questions: Questions, key: Callable[[Question], tuple[str, str]]
) -> Iterator[tuple[tuple[str, str], list[Question]]]:
    """Those of one key together, in the order of their firsts. Those of a video mostly stand
    together, so few wait.
    """
    left, waiting = Counter(map(key, questions)), dict[tuple[str, str], list[Question]]()
    for question in questions:
        found = key(question)
        waiting.setdefault(found, []).append(question)
        left[found] -= 1
        while waiting and not left[next(iter(waiting))]:
            yield (done := next(iter(waiting))), waiting.pop(done)


class _Shards:
    """The shards of one split, written one after the other."""

    def __init__(self, folder: Path, name: str, most: float) -> None:
        self._folder, self._name, self._most = folder, name, most
        self._made = self._videos = 0
        self._tar: tarfile.TarFile | None = None

    def add(self, video: Video, questions: Sequence[Question]) -> None:
        key = f"{self._videos:06d}"
        self._videos += 1
        ending, shown, size, source = _video(video)
        told = {
            **{n: getattr(video, n) for n in hugging_face.VIDEO},
            "uri": PurePosixPath(video.uri).name,
            "shown": [shown.start, shown.end] if shown else None,
            "questions": [schemas.dump(q) for q in questions],
        }
        text = json.dumps(told, ensure_ascii=False).encode()
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
    """Without time and owner: the same input, the same bytes."""
    info = tarfile.TarInfo(name)
    info.size = size
    tar.addfile(info, file)


def _video(video: Video) -> tuple[str, Span | None, int, IO[bytes]]:
    """A row's video: its ending, the stretch that it shows of what it was cut from, size, bytes."""
    filesystem, place = resolve(video.uri or "nothing")
    info = filesystem.get_file_info(place)
    if not video.uri or not info.is_file:
        raise UserError(
            f"no video for {video.video_id!r} at {video.uri!r}: shards hold the videos; name them "
            "in the uri of videos.parquet, or export with layout=hf, which needs none"
        )
    if video.start is None or video.end is None:
        ending = PurePosixPath(place).suffix.lstrip(".").lower() or "mp4"
        return ending, None, info.size, filesystem.open_input_file(place)
    from mustsee.media.clips import copy_span

    span = Span(video.start, video.end)
    cut = copy_span(video.uri, span, sound=True, max_bytes=sys.maxsize, lead=math.inf)
    if cut is None:
        raise UserError(
            f"the clip {video.video_id!r} of {video.uri!r} cannot be copied: only H.264 and H.265 "
            "with AAC or MP3 can, as they are; code the video as one of these first"
        )
    return "mp4", cut.span, len(cut.mp4), io.BytesIO(cut.mp4)


def there(folder: Path) -> list[Path]:
    """The shards in a folder."""
    return sorted(p for name in NAMES for p in folder.glob(name))


def read(path: Path) -> QuestionFile:
    """The questions of a shard, or of all shards in a folder. Videos stay in their shards."""
    found: dict[str, Question] = {}
    videos: list[Video] = []
    files = [path] if path.is_file() else there(path)
    for told in _told(files):
        asked = [schemas.load(Question, q) for q in told["questions"]]
        found |= {q.question_id: q for q in asked}
        videos.append(schemas.load(Video, {**told, "uri": ""}))
    return QuestionFile(
        layout="webdataset",
        questions=Notes(path).unique(list(found.values())),
        videos=tuple(videos),
    )


def _told(files: Iterable[Path]) -> Iterator[Mapping[str, Any]]:
    for file in files:
        try:
            with tarfile.open(file) as tar:
                for member in tar:
                    held = tar.extractfile(member) if member.name.endswith(".json") else None
                    if held is not None:
                        yield parse_json(held.read().decode())
        except (tarfile.TarError, ValueError, OSError) as error:
            raise UserError(
                f"cannot read the shard {str(file)!r}: {one_line_error(error)}"
            ) from error
