"""Videos for a browser: the file itself where browsers play it, else stretches of ten seconds,
coded anew when they are asked for and kept.

Videos are named by a key that is a hash of their id: no path comes from or goes to a browser.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mustsee.calls.llm import VideoInput
from mustsee.errors import BadRow, MustseeError
from mustsee.media.clips import encode_span
from mustsee.media.files import open_container, picture_stream
from mustsee.media.video import facts
from mustsee.records import Span, Video
from mustsee.store import resolve

PICTURES, SOUNDS = ("h264", "vp8", "vp9", "av1"), ("aac", "mp3", "opus", "vorbis")
PLAYABLE_SUFFIXES = (".mp4", ".m4v", ".mov", ".webm")
STEP, LENGTH = 5.0, 10.0  # stretch k begins at k * STEP; a longer one keeps who jumps waiting
LONGEST, FPS, MOST = 960, 25.0, 200_000_000


@dataclass(frozen=True, kw_only=True)
class ServedVideo:
    """`whole`: a browser plays the file; else it comes in stretches. Without a `duration` it cannot
    be read, and `problem` says why.
    """

    key: str
    uri: str
    whole: bool = False
    duration: float = 0.0
    fps: float = 25.0
    problem: str = ""


class ServedVideos:
    """The videos of `videos`; stretches are kept in `folder`. A video is looked into when it is
    first asked for.
    """

    def __init__(self, videos: Iterable[Video], folder: Path) -> None:
        self._uris = {key_of(v.video_id): v.uri for v in videos if v.uri}
        self._folder = folder
        self._known: dict[str, ServedVideo] = {}
        self._one = threading.Lock()  # coding takes a core: one after the other

    def find_video(self, video_id: str) -> ServedVideo | None:
        """Facts of a video; None where it has no file."""
        return self._video(key_of(video_id))

    def file(self, key: str) -> str | None:
        """The path of a video that browsers play."""
        video = self._video(key)
        return resolve(video.uri)[1] if video is not None and video.whole else None

    def stretch(self, key: str, number: int, fps: float | None = None) -> Path | None:
        """A stretch as a file, in `fps` pictures a second where fewer are wanted; None beyond the
        video's end, and of a video that comes whole. Raises BadRow and Transient.
        """
        video = self._video(key)
        if video is None or video.problem or (video.whole and fps is None):
            return None
        if not 0 <= number * STEP < video.duration:
            return None
        shown = min(video.fps, fps or FPS, FPS)
        begin = number * STEP
        path = self._folder / f"{key}-{begin:g}-{begin + LENGTH:g}-{shown:g}.mp4"
        with self._one:
            if not path.exists():
                self._folder.mkdir(parents=True, exist_ok=True)
                span = Span(begin, min(begin + LENGTH, video.duration))
                cut = encode_span(
                    video.uri,
                    span,
                    VideoInput(fps=shown, longest=LONGEST),
                    sound=True,
                    max_bytes=MOST,
                )
                if cut is None:
                    raise BadRow(f"a stretch of {video.uri!r} takes more than {MOST} bytes")
                handle, fresh = tempfile.mkstemp(dir=self._folder)
                with os.fdopen(handle, "wb") as file:
                    file.write(cut.mp4)
                os.replace(fresh, path)
        return path

    def _video(self, key: str) -> ServedVideo | None:
        if key not in self._uris:
            return None
        if key not in self._known:
            self._known[key] = _looked(key, self._uris[key])
        return self._known[key]


def part_of(video: Video | None, served: ServedVideo | None) -> Span | None:
    """From where to where a video's video goes: a clip is a part of one. None where there is none
    to be seen.
    """
    if video is None or served is None or served.problem:
        return None
    begin = video.start or 0.0
    end = served.duration if video.end is None else min(video.end, served.duration)
    return Span(begin, max(begin, end))


def key_of(video_id: str) -> str:
    """A video's name in addresses."""
    return hashlib.sha256(video_id.encode()).hexdigest()[:20]


def _looked(key: str, uri: str) -> ServedVideo:
    try:
        with open_container(uri) as container:
            picture: Any = picture_stream(container)
            names = [s.codec_context.codec.canonical_name for s in container.streams.audio]
            shown = picture and picture.codec_context.codec.canonical_name in PICTURES
        found = facts(uri)
    except MustseeError as error:
        return ServedVideo(
            key=key, uri=uri, problem=f"the video cannot be read ({type(error).__name__})"
        )
    local = "://" not in uri and uri.lower().endswith(PLAYABLE_SUFFIXES)
    whole = local and bool(shown) and all(name in SOUNDS for name in names)
    if not found.has_video:
        return ServedVideo(key=key, uri=uri, problem="the video has no pictures")
    return ServedVideo(
        key=key, uri=uri, whole=whole, duration=found.duration, fps=found.fps or FPS
    )  # fmt: skip
