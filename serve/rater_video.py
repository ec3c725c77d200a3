"""Videos for a browser: the file itself if browsers play it, otherwise clips of ten seconds.

Clips are encoded on request and kept. Videos are named by a hash of their id, so no path comes from
or goes to a browser. Files are served whole or by byte ranges.
"""

from __future__ import annotations

import hashlib
import os
import re
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import FileResponse, Response

from mustsee.calls.llm import VideoInput
from mustsee.errors import BadRow, MustseeError
from mustsee.files.folders import write_whole
from mustsee.files.store import resolve
from mustsee.media.clips import encode_span
from mustsee.media.files import find_video_stream, open_container
from mustsee.media.video import facts
from mustsee.records import Span, Video
from serve.guard import plain, whole_number

VIDEO_CODECS = ("h264", "vp8", "vp9", "av1")  # codecs that browsers play
AUDIO_CODECS = ("aac", "mp3", "opus", "vorbis")  # codecs that browsers play
PLAYABLE_SUFFIXES = (".mp4", ".m4v", ".mov", ".webm")
STEP_S = 5.0  # clip k begins at k * STEP_S seconds
CLIP_S = 10.0  # seconds of a clip; a longer one would make a jump slow
MAX_SIDE = 960  # pixels of a clip's longer side
MAX_FPS = 25.0  # frames per second of a clip
MAX_CLIP_BYTES = 200_000_000  # bytes of a clip


@dataclass(frozen=True, kw_only=True)
class ServedVideo:
    """A video as a browser gets it. `whole`: browsers play the file; otherwise it comes in clips.

    `problem`: the reason why it cannot be read; its `duration` is then 0.
    """

    key: str
    uri: str
    whole: bool = False
    duration: float = 0.0
    fps: float = 25.0
    problem: str = ""


class ServedVideos:
    """The videos that are served. Clips are kept in `folder`. A file is probed on first use."""

    def __init__(self, videos: Iterable[Video], folder: Path) -> None:
        self._uris = {key_of(v.video_id): v.uri for v in videos if v.uri}
        self._folder = folder
        self._probed: dict[str, ServedVideo] = {}
        self._encoding = threading.Lock()  # Encoding uses a core, so only one runs at a time.

    def find_video(self, video_id: str) -> ServedVideo | None:
        """The facts of a video; None if it has no file."""
        return self._video(key_of(video_id))

    def file(self, key: str) -> str | None:
        """The path of a video that browsers play; None for any other."""
        video = self._video(key)
        return resolve(video.uri)[1] if video is not None and video.whole else None

    def clip(self, key: str, number: int, fps: float | None = None) -> Path | None:
        """The file of clip `number`, encoded now if it is not there yet.

        `fps`: frames per second, if fewer than usual. Returns None beyond the video's end, and for
        a video that browsers play whole. Raises BadRow and Transient.
        """
        video = self._video(key)
        if video is None or video.problem or (video.whole and fps is None):
            return None
        begin = number * STEP_S
        if not 0 <= begin < video.duration:
            return None
        clip_fps = min(video.fps, fps or MAX_FPS, MAX_FPS)
        path = self._folder / f"{key}-{begin:g}-{begin + CLIP_S:g}-{clip_fps:g}.mp4"
        with self._encoding:
            if not path.exists():
                self._folder.mkdir(parents=True, exist_ok=True)
                span = Span(begin, min(begin + CLIP_S, video.duration))
                form = VideoInput(fps=clip_fps, longest=MAX_SIDE)
                clip = encode_span(video.uri, span, form, sound=True, max_bytes=MAX_CLIP_BYTES)
                if clip is None:
                    raise BadRow(f"a clip of {video.uri!r} takes more than {MAX_CLIP_BYTES} bytes")
                write_whole(path, clip.mp4)
        return path

    def _video(self, key: str) -> ServedVideo | None:
        if key not in self._uris:
            return None
        if key not in self._probed:
            self._probed[key] = _probe(key, self._uris[key])
        return self._probed[key]


def visible_span(video: Video | None, served: ServedVideo | None) -> Span | None:
    """The span of the file that a row covers: a clip covers a part of it. None without a readable
    file.
    """
    if video is None or served is None or served.problem:
        return None
    begin = video.start or 0.0
    end = served.duration if video.end is None else min(video.end, served.duration)
    return Span(begin, max(begin, end))


def key_of(video_id: str) -> str:
    """The name of a video in addresses."""
    return hashlib.sha256(video_id.encode()).hexdigest()[:20]


def _probe(key: str, uri: str) -> ServedVideo:
    try:
        with open_container(uri) as container:
            stream: Any = find_video_stream(container)
            names = [s.codec_context.codec.canonical_name for s in container.streams.audio]
            is_playable = stream and stream.codec_context.codec.canonical_name in VIDEO_CODECS
        about = facts(uri)
    except MustseeError as error:
        return ServedVideo(
            key=key, uri=uri, problem=f"the video cannot be read ({type(error).__name__})"
        )
    is_local = "://" not in uri and uri.lower().endswith(PLAYABLE_SUFFIXES)
    whole = is_local and bool(is_playable) and all(name in AUDIO_CODECS for name in names)
    if not about.has_video:
        return ServedVideo(key=key, uri=uri, problem="the file has no video stream")
    return ServedVideo(
        key=key, uri=uri, whole=whole, duration=about.duration, fps=about.fps or MAX_FPS
    )  # fmt: skip


MAX_RANGES = 8  # byte ranges in one request; players ask for one
_LIST = re.compile(r"\s*bytes\s*=(.*)", re.IGNORECASE | re.DOTALL)
_RANGE = re.compile(r"\s*(\d{0,18})-(\d{0,18})\s*", re.ASCII)


def clip_reply(
    request: Request, served: ServedVideos, key: str, fps: float | None = None
) -> Response:
    """The clip of a video whose `number` the address has. `fps`: as of `ServedVideos.clip`."""
    number = whole_number(request.path_params["number"])
    try:
        path = None if number is None else served.clip(key, number, fps)
    except MustseeError as error:
        return plain(f"this clip cannot be shown: {type(error).__name__}", 422)
    return media(request, path, "clip")


def media(request: Request, path: str | os.PathLike[str] | None, what: str = "video") -> Response:
    """The file, or the byte ranges that the request lists; several come as multipart/byteranges.
    None: there is no such video or clip.

    Malformed ranges are refused with 416. So are overlapping ranges and more than `MAX_RANGES`,
    which would make the server send the same bytes many times.
    """
    if path is None:
        return plain(f"there is no such {what}", 404)
    wanted = _LIST.fullmatch(request.headers.get("range", ""))
    size = os.stat(path).st_size
    if wanted is not None and not _servable(wanted[1], size):
        return Response(status_code=416, headers={"Content-Range": f"bytes */{size}"})
    return FileResponse(path)


def _servable(listed: str, size: int) -> bool:
    ranges: list[tuple[int, int]] = []
    for text in listed.split(","):
        match = _RANGE.fullmatch(text)
        if match is None or not (match[1] or match[2]):
            return False
        first, last = match.groups()
        begin = int(first) if first else max(size - int(last), 0)
        end = min(int(last) + 1, size) if first and last else size
        ranges.append((begin, end))
    ranges.sort()
    are_disjoint = all(before[1] <= after[0] for before, after in pairwise(ranges))
    return len(ranges) <= MAX_RANGES and are_disjoint and all(0 <= a < b <= size for a, b in ranges)
