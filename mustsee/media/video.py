"""Watching a video: its facts, one decoding pass over its frames, single frames by seeking.

Times are seconds from the start of the picture: the stream's start time is taken off.
"""

from __future__ import annotations

import math
import os
from array import array
from bisect import bisect_right
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any

from mustsee.errors import BadRow
from mustsee.media.files import content_digest as content_digest
from mustsee.media.files import open_container, packets, picture_stream
from mustsee.media.pictures import TimedFrame, shown_size
from mustsee.media.sound import audio_chunks as audio_chunks

if TYPE_CHECKING:
    from av.container import InputContainer

SAME_TIME_S = 1e-4  # seconds by which two times may differ and mean the same frame
TAIL_S = 2.0  # seconds of a video's end that are looked for
MAX_START_S = 0.5  # seconds after the container's zero
MAX_VIDEO_S = 48 * 3600.0  # seconds of video; a time behind that is a damaged one
# pixels of a frame, a little above 8K: a header may claim any number
MAX_FRAME_PIXELS = 8192 * 4352
SEEK_BACK_S = (1, 20, 300)  # seconds before a time that are jumped to: some demuxers land later
MAX_CACHED_INDEXES = 8  # videos whose index is kept: 16 bytes a frame at most
MAX_DECODED_GAP_FRAMES = 8  # frames to the next group that are sooner decoded than jumped over


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What a container says of itself. `width` and `height` are those of the picture as shown:
    upright, with square pixels. `duration` in seconds is 0 when nothing lasts.
    """

    duration: float
    fps: float | None
    width: int
    height: int
    has_audio: bool
    has_video: bool


def facts(uri: str) -> Facts:
    """Facts of a file; packets are counted where the header gives no duration, and one frame is
    decoded for its rotation. Raises BadRow and Transient.
    """
    with open_video(uri) as watched:
        return watched.facts()


def last_packet_time(uri: str, duration: float) -> float:
    """Up to which second a file has packets, of any stream: below its `duration` where it was cut
    off behind a header that tells of the whole. Raises BadRow and Transient.
    """
    return _last(uri, max(0.0, duration - TAIL_S)) or _last(uri, 0.0)


def _last(uri: str, start: float) -> float:
    """Where the last packet of those behind `start` ends."""
    from av.error import FFmpegError

    with open_container(uri) as container:
        with suppress(FFmpegError):  # a file that cannot be jumped in is read from its start
            container.seek(int(start * 1e6), backward=True)
        zero = (container.start_time or 0) / 1e6
        ends = (
            float((p.pts + (p.duration or 0)) * p.time_base) - zero
            for p in packets(container, None)
            if p.pts is not None
        )
        return max(ends, default=0.0)


@contextmanager
def open_video(uri: str, threads: int = 1) -> Generator[VideoStream]:
    """A file opened for watching. Raises BadRow and Transient."""
    with open_container(uri) as container:
        yield VideoStream(uri, container, threads)


class VideoStream:
    """An open container and its picture stream. `broken` counts the packets and frames left out so
    far because they could not be decoded or have an impossible time. Raises BadRow for a picture of
    more than `MAX_FRAME_PIXELS` pixels.
    """

    def __init__(self, uri: str, container: InputContainer, threads: int = 1) -> None:
        self.uri, self.container, self.broken = uri, container, 0
        self.stream: Any = picture_stream(container)
        if self.stream is not None:
            self.stream.thread_type = "AUTO" if threads != 1 else "NONE"
            self.stream.codec_context.thread_count = threads
            self.stream.codec_context.options = {"max_pixels": str(MAX_FRAME_PIXELS)}
            size = self.stream.width, self.stream.height
            if size[0] * size[1] > MAX_FRAME_PIXELS:
                raise BadRow(
                    f"{uri!r} says that its picture has {size[0]} x {size[1]} pixels; at most "
                    f"{MAX_FRAME_PIXELS:,} are looked at"
                )
            self.fps = float(self.stream.average_rate or self.stream.guessed_rate or 0) or None
            self.aspect = float(self.stream.sample_aspect_ratio or 1) or 1.0
            self.zero: int | None = self.stream.start_time  # in the stream's time base
            self.needless: int | None = None  # see `decode`
            self.base = float(self.stream.time_base)

    def facts(self) -> Facts:
        """See `Facts`; reads from the file's position, so call it first or not at all."""
        has_audio = bool(self.container.streams.audio)
        if self.stream is None:
            return Facts(
                duration=0.0, fps=None, width=0, height=0, has_audio=has_audio, has_video=False
            )
        first = next(self.pictures(), None)
        if first is None:
            raise BadRow(f"no frame of {self.uri!r} can be decoded")
        size = shown_size(first.frame.width, first.frame.height, self.aspect, first.turn)
        duration = self._duration()
        if duration > MAX_VIDEO_S:
            raise BadRow(
                f"{self.uri!r} says that it lasts {duration:.0f} s; at most {MAX_VIDEO_S:.0f} s "
                "are looked at"
            )
        return Facts(
            duration=duration,
            fps=self.fps,
            width=size[0],
            height=size[1],
            has_audio=has_audio,
            has_video=True,
        )

    def _duration(self) -> float:
        """By the stream's header, else the container's; by the packets where neither says, or where
        the video begins late (containers differ in whether the wait before it counts).
        """
        if (self.zero or 0) * self.base > MAX_START_S:
            return self._scanned()
        if self.stream.duration is not None:
            return self.stream.duration * self.base
        if self.container.duration is not None:
            return self.container.duration / 1e6
        return self._scanned()

    def _scanned(self) -> float:
        frame, last, count = 1 / (self.fps or 25.0), 0.0, 0
        with open_video(self.uri) as again:
            for packet in packets(again.container, again.stream):
                count += packet.size > 0
                if packet.pts is not None:
                    length = (packet.duration or 0) * self.base or frame
                    last = max(last, (packet.pts - (self.zero or 0)) * self.base + length)
        return last or count * frame

    def seconds(self, stamp: int) -> float:
        """A timestamp as a time."""
        return (stamp - (self.zero or 0)) * self.base

    def stamp(self, time: float) -> int:
        """The last timestamp that still counts as `time`."""
        return math.floor((time + SAME_TIME_S) / self.base) + (self.zero or 0)

    def pictures(self, start: float = 0.0, end: float | None = None) -> Iterator[TimedFrame]:
        """Every frame with `start <= time < end`, decoded once, in order. What cannot be decoded is
        left out and counted in `broken`. Frames without a timestamp follow the one before by one
        frame's length.
        """
        for picture in self._before(start):
            if end is not None and picture.time >= end:
                return
            if picture.time >= start:
                yield picture

    def _before(self, start: float) -> Iterator[TimedFrame]:
        """Frames from one on that is not after `start`, unless the video begins later."""
        from av.error import FFmpegError

        zero = self.zero
        if zero is None or start <= SEEK_BACK_S[0]:
            return self.decode()
        for early in (*SEEK_BACK_S, start):
            offset = zero + int(max(0.0, start - early) / self.base)
            try:
                self.container.seek(offset, stream=self.stream, backward=True)
            except FFmpegError:  # a file that cannot be jumped in is read from its start
                break
            frames = self.decode()
            first = next(frames, None)
            if first is not None and (first.time <= start or early >= start):
                return chain([first], frames)
        return self.decode()

    def decode(self) -> Iterator[TimedFrame]:
        """Frames from the file's position on, with their times (see `pictures`). Frames before the
        timestamp `needless` that no other frame refers to are skipped.
        """
        from av.error import FFmpegError

        decode = self.stream.codec_context.decode
        base, step = self.base, 1 / (self.fps or 25.0)
        aspect, time = self.aspect, None
        for packet in packets(self.container, self.stream):
            if self.needless is not None:
                skip = packet.pts is not None and packet.pts < self.needless
                self.stream.codec_context.skip_frame = "NONREF" if skip else "DEFAULT"
            try:
                frames = decode(packet)
            except FFmpegError:
                self.broken += 1
                continue
            for frame in frames:
                stamp = frame.pts if frame.pts is not None else frame.dts
                if stamp is not None:
                    if self.zero is None:
                        self.zero = stamp
                    now = (stamp - self.zero) * base
                    if now > MAX_VIDEO_S:
                        self.broken += 1
                        continue
                    # what comes late or twice is moved behind the frame before
                    time = now if time is None or now > time else time + step / 1000
                else:
                    time = 0.0 if time is None else time + step
                yield TimedFrame(max(time, 0.0), frame, frame.rotation % 360, aspect)

    def index(self) -> FrameTimes:
        """When every frame is shown and where the keyframes are, by the packets' presentation times
        (an index of the container counts in decoding time). Reads the file to its end without
        decoding it; empty when packets have no times.
        """
        stamps, keys = array("q"), array("q")
        for packet in packets(self.container, self.stream):
            if packet.size and packet.pts is None:
                return FrameTimes(array("q"), array("q"))
            if packet.size and not packet.is_discard:
                stamps.append(packet.pts)
                if packet.is_keyframe:
                    keys.append(packet.pts)
        return FrameTimes(array("q", sorted(stamps)), array("q", sorted(keys)))

    def from_keyframe(self, keys: Sequence[int], number: int) -> Iterator[TimedFrame]:
        """The frames from keyframe `number` on. Where the demuxer seeks by decoding time it may
        land after it; then the seek is tried further back.
        """
        begin = self.seconds(keys[number])
        for stamp in reversed(keys[: number + 1]):
            self.container.seek(stamp, stream=self.stream, backward=True)
            frames = self.decode()
            first = next(frames, None)
            if first is not None and first.time <= begin + SAME_TIME_S:
                whole = chain([first], frames)
                return (picture for picture in whole if picture.time >= begin - SAME_TIME_S)
        self.container.seek(keys[0], stream=self.stream, backward=True)
        return self.decode()


@dataclass(frozen=True)
class FrameTimes:
    """Timestamps in presentation order, of all frames and of the keyframes."""

    stamps: Sequence[int]
    keys: Sequence[int]

    def target(self, stamp: int, slack: int) -> int:
        """The frame shown at a timestamp, or the nearest keyframe if it is within `slack`."""
        after = bisect_right(self.keys, stamp)
        key = min(self.keys[max(0, after - 1) : after + 1], key=lambda key: abs(key - stamp))
        if abs(key - stamp) <= slack:
            return key
        return self.stamps[max(0, bisect_right(self.stamps, stamp) - 1)]


@lru_cache(maxsize=MAX_CACHED_INDEXES)
def _index(uri: str, version: tuple[int, int] | None) -> FrameTimes:
    """That of a video, kept while it is looked at: all of the file is read for it."""
    with open_video(uri) as listed:
        if listed.stream is None:
            raise BadRow(f"no video stream in {uri!r}")
        return listed.index()


def _version(uri: str) -> tuple[int, int] | None:
    """Tells a local file from what lay there before; None of any other."""
    try:
        told = os.stat(uri)
    except OSError:
        return None
    return told.st_size, told.st_mtime_ns


def frames_at(
    uri: str, times: Iterable[float], *, slack: float = 0.0, threads: int = 1
) -> Iterator[TimedFrame]:
    """The frames shown at `times`, in ascending order of time, one for each (the last frame for
    times beyond the end); or the nearest keyframe where one is within `slack` seconds.

    Where a time lies in a later group of pictures than the last one, the groups between are skipped
    by seeking; else decoding goes on. So samples sparser than keyframes cost a part of a group
    each, denser ones one sequential pass. Frames on the way that no other frame refers to are not
    decoded. Raises BadRow and Transient.
    """
    index = _index(uri, _version(uri))
    with open_video(uri, threads) as watched:
        if not index.keys:
            yield from _walk(watched, sorted(times))
            return
        if watched.zero is None:
            watched.zero = index.stamps[0]
        near = MAX_DECODED_GAP_FRAMES / (watched.fps or 25.0)
        frames: Iterator[TimedFrame] | None = None
        shown: TimedFrame | None = None
        for time in sorted(times):
            target = index.target(watched.stamp(time), round(slack / watched.base))
            due, group = watched.seconds(target), bisect_right(index.keys, target) - 1
            if shown is None or shown.time < due - SAME_TIME_S:
                watched.needless = target
                at = watched.seconds(index.keys[max(group, 0)])
                if frames is None or (group > 0 and (shown is None or at > shown.time + near)):
                    frames = watched.from_keyframe(index.keys, max(group, 0))
                for shown in frames:
                    if shown.time >= due - SAME_TIME_S:
                        break
            if shown is None:
                raise BadRow(f"no frame of {uri!r} can be decoded")
            yield shown


def _walk(watched: VideoStream, times: Sequence[float]) -> Iterator[TimedFrame]:
    """The frames shown at ascending times, without knowing beforehand when they come."""
    frames = watched.decode()
    shown = ahead = next(frames, None)
    for time in times:
        while ahead is not None and ahead.time <= time + SAME_TIME_S:
            shown, ahead = ahead, next(frames, None)
        if shown is None:
            raise BadRow(f"no frame of {watched.uri!r} can be decoded")
        yield shown
