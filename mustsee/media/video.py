"""A video's facts, one decoding pass over its frames, single frames by seeking.

Times are seconds from the start of the video stream: the stream's start time is subtracted.
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
from mustsee.media.files import find_video_stream, open_container, packets
from mustsee.media.frames import TimedFrame, shown_size
from mustsee.media.sound import audio_chunks as audio_chunks

if TYPE_CHECKING:
    from av.container import InputContainer

SAME_TIME_S = 1e-4  # seconds by which two times of the same frame may differ
TAIL_S = 2.0  # seconds at a video's end that are searched for the last packet
MAX_START_S = 0.5  # seconds after the container's zero at which a video stream may begin
MAX_VIDEO_S = 48 * 3600.0  # seconds of video; a later time is damaged
# pixels of a frame, a little above 8K, because a header may claim any number
MAX_FRAME_PIXELS = 8192 * 4352
# seconds before a time that are tried for seeking, because some demuxers land later
SEEK_BACK_S = (1, 20, 300)
MAX_CACHED_INDEXES = 8  # videos whose index is kept: at most 16 bytes per frame
# frames to the next group that are rather decoded than skipped by seeking
MAX_DECODED_GAP_FRAMES = 8


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What a container's header states.

    `width` and `height` are those of the frame as shown: upright, with square pixels. `duration` in
    seconds is 0 when there is no duration.
    """

    duration: float
    fps: float | None
    width: int
    height: int
    has_audio: bool
    has_video: bool


def facts(uri: str) -> Facts:
    """Return the facts of a file. Raises BadRow and Transient.

    Packets are counted where the header gives no duration, and one frame is decoded for its
    rotation.
    """
    with open_video(uri) as video:
        return video.facts()


def last_packet_time(uri: str, duration: float) -> float:
    """Return the time in seconds at which the last packet of a file, of any stream, ends.

    It is less than `duration` where the file was cut off but its header describes the whole. Raises
    BadRow and Transient.
    """
    return _last_packet_after(uri, max(0.0, duration - TAIL_S)) or _last_packet_after(uri, 0.0)


def _last_packet_after(uri: str, start: float) -> float:
    """The end of the last packet after `start`."""
    from av.error import FFmpegError

    with open_container(uri) as container:
        with suppress(FFmpegError):  # A file without seeking is read from its start.
            container.seek(int(start * 1e6), backward=True)
        zero = (container.start_time or 0) / 1e6
        ends = (
            float((p.pts + (p.duration or 0)) * p.time_base) - zero
            for p in packets(container, None)
            if p.pts is not None
        )
        return max(ends, default=0.0)


@contextmanager
def open_video(uri: str, threads: int = 1, *, deblocked: bool = True) -> Generator[VideoStream]:
    """Open a file for decoding. `deblocked`: the edges of blocks are smoothed even in frames that
    no other frame refers to. Raises BadRow and Transient.
    """
    with open_container(uri) as container:
        yield VideoStream(uri, container, threads, deblocked)


class VideoStream:
    """An open container and its video stream.

    `broken` counts the packets and frames left out so far because they could not be decoded or have
    an impossible time. Raises BadRow for frames of more than `MAX_FRAME_PIXELS` pixels.
    """

    def __init__(
        self, uri: str, container: InputContainer, threads: int = 1, deblocked: bool = True
    ) -> None:
        self.uri, self.container, self.broken = uri, container, 0
        self.stream: Any = find_video_stream(container)
        if self.stream is not None:
            self.stream.thread_type = "AUTO" if threads != 1 else "NONE"
            self.stream.codec_context.thread_count = threads
            self.stream.codec_context.options = {
                "max_pixels": str(MAX_FRAME_PIXELS),
                "skip_loop_filter": "default" if deblocked else "noref",
            }
            size = self.stream.width, self.stream.height
            if size[0] * size[1] > MAX_FRAME_PIXELS:
                raise BadRow(
                    f"{uri!r}: its header says {size[0]} x {size[1]} pixels; at most "
                    f"{MAX_FRAME_PIXELS:,} are supported"
                )
            self.fps = float(self.stream.average_rate or self.stream.guessed_rate or 0) or None
            self.aspect = float(self.stream.sample_aspect_ratio or 1) or 1.0
            self.zero: int | None = self.stream.start_time  # in the stream's time base
            self.skip_before: int | None = None  # see `decode`
            self.base = float(self.stream.time_base)

    def facts(self) -> Facts:
        """Return the facts. Reads from the file's position, so it must be the first read or the
        only one.
        """
        has_audio = bool(self.container.streams.audio)
        if self.stream is None:
            return Facts(
                duration=0.0, fps=None, width=0, height=0, has_audio=has_audio, has_video=False
            )
        first = next(self.frames(), None)
        if first is None:
            raise BadRow(f"no frame of {self.uri!r} can be decoded")
        size = shown_size(first.decoded.width, first.decoded.height, self.aspect, first.turn)
        return Facts(
            duration=self.duration(),
            fps=self.fps,
            width=size[0],
            height=size[1],
            has_audio=has_audio,
            has_video=True,
        )

    def duration(self) -> float:
        """Return the duration in seconds. Raises BadRow if it is more than `MAX_VIDEO_S`."""
        duration = self._header_duration()
        if duration > MAX_VIDEO_S:
            raise BadRow(
                f"{self.uri!r}: its header says {duration:.0f} s; at most {MAX_VIDEO_S:.0f} s "
                "are supported"
            )
        return duration

    def _header_duration(self) -> float:
        """The duration by the stream's header, else by the container's.

        It comes from the packets where neither has one, or where the video begins late, because
        containers differ in whether the wait before it counts.
        """
        if (self.zero or 0) * self.base > MAX_START_S:
            return self._scan_duration()
        if self.stream.duration is not None:
            return self.stream.duration * self.base
        if self.container.duration is not None:
            return self.container.duration / 1e6
        return self._scan_duration()

    def _scan_duration(self) -> float:
        frame, last, count = 1 / (self.fps or 25.0), 0.0, 0
        with open_video(self.uri) as video:
            for packet in packets(video.container, video.stream):
                count += packet.size > 0
                if packet.pts is not None:
                    length = (packet.duration or 0) * self.base or frame
                    last = max(last, (packet.pts - (self.zero or 0)) * self.base + length)
        return last or count * frame

    def seconds(self, stamp: int) -> float:
        """Return a timestamp as a time in seconds."""
        return (stamp - (self.zero or 0)) * self.base

    def stamp(self, time: float) -> int:
        """Return the last timestamp that still counts as `time`."""
        return math.floor((time + SAME_TIME_S) / self.base) + (self.zero or 0)

    def frames(self, start: float = 0.0, end: float | None = None) -> Iterator[TimedFrame]:
        """Yield every frame with `start <= time < end`, decoded once, in order.

        What cannot be decoded is left out and counted in `broken`. A frame without a timestamp
        comes one frame's duration after the one before.
        """
        for frame in self._before(start):
            if end is not None and frame.time >= end:
                return
            if frame.time >= start:
                yield frame

    def _before(self, start: float) -> Iterator[TimedFrame]:
        """The frames from one at or before `start`, unless the video begins later."""
        from av.error import FFmpegError

        zero = self.zero
        if zero is None or start <= SEEK_BACK_S[0]:
            return self.decode()
        for early in (*SEEK_BACK_S, start):
            offset = zero + int(max(0.0, start - early) / self.base)
            try:
                self.container.seek(offset, stream=self.stream, backward=True)
            except FFmpegError:  # A file without seeking is read from its start.
                break
            frames = self.decode()
            first = next(frames, None)
            if first is not None and (first.time <= start or early >= start):
                return chain([first], frames)
        return self.decode()

    def decode(self) -> Iterator[TimedFrame]:
        """Yield the frames from the file's position on, with their times (see `frames`).

        Frames before the timestamp `skip_before` that no other frame refers to are skipped.
        """
        from av.error import FFmpegError

        decode = self.stream.codec_context.decode
        base, step = self.base, 1 / (self.fps or 25.0)
        aspect, time = self.aspect, None
        for packet in packets(self.container, self.stream):
            if self.skip_before is not None:
                skip = packet.pts is not None and packet.pts < self.skip_before
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
                    stamp_time = (stamp - self.zero) * base
                    if stamp_time > MAX_VIDEO_S:
                        self.broken += 1
                        continue
                    # A frame with an earlier or equal time is moved after the frame before.
                    time = stamp_time if time is None or stamp_time > time else time + step / 1000
                else:
                    time = 0.0 if time is None else time + step
                yield TimedFrame(max(time, 0.0), frame, frame.rotation % 360, aspect)

    def index(self) -> FrameTimes:
        """Return the times of all frames and of the keyframes, by the packets' presentation times.

        (An index in the container counts in decoding time.) Reads the file to its end without
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
        """Return the frames from keyframe `number` on.

        A demuxer that seeks by decoding time may land after it; the seek is then tried further
        back.
        """
        begin = self.seconds(keys[number])
        for stamp in reversed(keys[: number + 1]):
            self.container.seek(stamp, stream=self.stream, backward=True)
            frames = self.decode()
            first = next(frames, None)
            if first is not None and first.time <= begin + SAME_TIME_S:
                whole = chain([first], frames)
                return (frame for frame in whole if frame.time >= begin - SAME_TIME_S)
        self.container.seek(keys[0], stream=self.stream, backward=True)
        return self.decode()


@dataclass(frozen=True)
class FrameTimes:
    """Timestamps in presentation order, of all frames and of the keyframes."""

    stamps: Sequence[int]
    keys: Sequence[int]

    def target(self, stamp: int, slack: int) -> int:
        """Return the frame shown at a timestamp, or the nearest keyframe if it is within
        `slack`.
        """
        after = bisect_right(self.keys, stamp)
        key = min(self.keys[max(0, after - 1) : after + 1], key=lambda key: abs(key - stamp))
        if abs(key - stamp) <= slack:
            return key
        return self.stamps[max(0, bisect_right(self.stamps, stamp) - 1)]


@lru_cache(maxsize=MAX_CACHED_INDEXES)
def _index(uri: str, version: tuple[int, int] | None) -> FrameTimes:
    """The index of a video, cached because it takes reading the whole file."""
    with open_video(uri) as video:
        if video.stream is None:
            raise BadRow(f"no video stream in {uri!r}")
        return video.index()


def _version(uri: str) -> tuple[int, int] | None:
    """Size and modification time of a local file, which identify its content; None for any
    other.
    """
    try:
        status = os.stat(uri)
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns


def frames_at(
    uri: str, times: Iterable[float], *, slack: float = 0.0, threads: int = 1
) -> Iterator[TimedFrame]:
    """Yield the frames shown at `times`, in ascending order of time, one for each.

    A time beyond the end gives the last frame. With `slack`, the nearest keyframe within that many
    seconds is given instead of the exact frame.

    Groups of pictures between two times are skipped by seeking; within a group, and over a short
    gap, decoding goes on. Samples sparser than keyframes therefore cost part of a group each,
    denser ones one sequential pass. Frames on the way that no other frame refers to are not
    decoded. Raises BadRow and Transient.
    """
    index = _index(uri, _version(uri))
    with open_video(uri, threads) as video:
        if not index.keys:
            yield from _walk(video, sorted(times))
            return
        if video.zero is None:
            video.zero = index.stamps[0]
        seek_gap = MAX_DECODED_GAP_FRAMES / (video.fps or 25.0)
        frames: Iterator[TimedFrame] | None = None
        current: TimedFrame | None = None
        for time in sorted(times):
            target = index.target(video.stamp(time), round(slack / video.base))
            frame_time, group = video.seconds(target), bisect_right(index.keys, target) - 1
            if current is None or current.time < frame_time - SAME_TIME_S:
                video.skip_before = target
                group_start = video.seconds(index.keys[max(group, 0)])
                if frames is None or (
                    group > 0 and (current is None or group_start > current.time + seek_gap)
                ):
                    frames = video.from_keyframe(index.keys, max(group, 0))
                for current in frames:
                    if current.time >= frame_time - SAME_TIME_S:
                        break
            if current is None:
                raise BadRow(f"no frame of {uri!r} can be decoded")
            yield current


def _walk(video: VideoStream, times: Sequence[float]) -> Iterator[TimedFrame]:
    """The frames shown at ascending times, without an index of the times."""
    frames = video.decode()
    current = ahead = next(frames, None)
    for time in times:
        while ahead is not None and ahead.time <= time + SAME_TIME_S:
            current, ahead = ahead, next(frames, None)
        if current is None:
            raise BadRow(f"no frame of {video.uri!r} can be decoded")
        yield current
