"""Watching a film: its facts, one decoding pass over its frames, single frames by seeking.

Times are seconds from the start of the picture: the stream's start time is taken off.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from longshot.errors import BadRow
from longshot.media import content_digest as content_digest
from longshot.media import opened, packets, picture_stream, start_time
from longshot.pictures import Picture, shown_size
from longshot.sound import audio_chunks as audio_chunks

if TYPE_CHECKING:
    from av.container import InputContainer

SAME = 1e-4  # seconds by which two times may differ and mean the same frame
NEAR = 8  # frames to the next group that are sooner decoded than jumped over


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
    with film(uri) as watched:
        return watched.facts()


@contextmanager
def film(uri: str, threads: int = 1) -> Generator[Film]:
    """A file opened for watching. Raises BadRow and Transient."""
    with opened(uri) as container:
        yield Film(uri, container, threads)


class Film:
    """An open container and its picture stream. `broken` counts the packets left out so far because
    they could not be decoded.
    """

    def __init__(self, uri: str, container: InputContainer, threads: int = 1) -> None:
        self.uri, self.container, self.broken = uri, container, 0
        self.stream: Any = picture_stream(container)
        if self.stream is not None:
            self.stream.thread_type = "AUTO" if threads != 1 else "NONE"
            self.stream.codec_context.thread_count = threads
            self.fps = float(self.stream.average_rate or self.stream.guessed_rate or 0) or None
            self.aspect = float(self.stream.sample_aspect_ratio or 1) or 1.0
            self._zero = None if self.stream.start_time is None else start_time(self.stream)

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
        return Facts(
            duration=self._duration(),
            fps=self.fps,
            width=size[0],
            height=size[1],
            has_audio=has_audio,
            has_video=True,
        )

    def _duration(self) -> float:
        """By the stream's header, else the container's, else by the packets."""
        stream = self.stream
        if stream.duration is not None and stream.time_base is not None:
            return float(stream.duration * stream.time_base)
        if self.container.duration is not None:
            return max(0.0, self.container.duration / 1e6 - max(0.0, self._zero or 0.0))
        return self._scanned()

    def _scanned(self) -> float:
        frame, last, count = 1 / (self.fps or 25.0), 0.0, 0
        with film(self.uri) as again:
            for packet in packets(again.container, again.stream):
                count += packet.size > 0
                if packet.pts is not None:
                    length = float((packet.duration or 0) * packet.time_base) or frame
                    last = max(last, float(packet.pts * packet.time_base) + length)
        return max(0.0, last - (self._zero or 0.0)) or count * frame

    def pictures(self, start: float = 0.0, end: float | None = None) -> Iterator[Picture]:
        """Every frame with `start <= time < end`, decoded once, in order. What cannot be decoded is
        left out and counted in `broken`. Frames without a timestamp follow the one before by one
        frame's length.
        """
        if start > 1:  # a second early, since some demuxers seek by decoding time
            self._seek(start - 1)
        for picture in self.decode():
            if end is not None and picture.time >= end:
                return
            if picture.time >= start:
                yield picture

    def _seek(self, time: float) -> None:
        offset = int((time + (self._zero or 0.0)) / self.stream.time_base)
        self.container.seek(offset, stream=self.stream, backward=True)

    def decode(self) -> Iterator[Picture]:
        """Frames from the file's position on, with their times (see `pictures`)."""
        from av.error import FFmpegError

        decode = self.stream.codec_context.decode
        base, step = float(self.stream.time_base), 1 / (self.fps or 25.0)
        aspect, time = self.aspect, None
        for packet in packets(self.container, self.stream):
            try:
                frames = decode(packet)
            except FFmpegError:
                self.broken += 1
                continue
            for frame in frames:
                stamp = frame.pts if frame.pts is not None else frame.dts
                if stamp is not None:
                    if self._zero is None:
                        self._zero = stamp * base
                    now = stamp * base - self._zero
                    # what comes late or twice is moved behind the frame before
                    time = now if time is None or now > time else time + step / 1000
                else:
                    time = 0.0 if time is None else time + step
                yield Picture(max(time, 0.0), frame, frame.rotation % 360, aspect)

    def keyframes(self) -> list[tuple[float, int]]:
        """(time, timestamp) of every keyframe by the packets' presentation times, in order; empty
        when the file has none to seek by. Reads the file to its end without decoding it.
        """
        found: list[tuple[float, int]] = []
        for packet in packets(self.container, self.stream):
            if packet.is_keyframe and packet.size:
                if packet.pts is None or self._zero is None:
                    return []
                found.append((float(packet.pts * packet.time_base) - self._zero, packet.pts))
        return sorted(found)

    def from_keyframe(self, keys: list[tuple[float, int]], number: int) -> Iterator[Picture]:
        """The frames from `keys[number]` on. Where the demuxer seeks by decoding time it may land
        after it; then the seek is tried further back.
        """
        begin = keys[number][0] - SAME
        for _, stamp in reversed(keys[: number + 1]):
            self.container.seek(stamp, stream=self.stream, backward=True)
            frames = self.decode()
            first = next(frames, None)
            if first is not None and first.time <= begin + 2 * SAME:
                return (picture for picture in chain([first], frames) if picture.time >= begin)
        self.container.seek(keys[0][1], stream=self.stream, backward=True)
        return self.decode()


def frames_at(uri: str, times: Iterable[float], *, threads: int = 1) -> Iterator[Picture]:
    """The frames shown at `times`, in ascending order of time, one for each (the last frame for
    times beyond the end).

    Where a time lies in a later group of pictures than the last one, the groups between are skipped
    by seeking; else decoding goes on. So samples sparser than keyframes cost a group each, denser
    ones one sequential pass. Raises BadRow and Transient.
    """
    with film(uri) as listed:
        if listed.stream is None:
            raise BadRow(f"no video stream in {uri!r}")
        keys = listed.keyframes()
    starts = [time for time, _ in keys]
    with film(uri, threads) as watched:
        near = NEAR / (watched.fps or 25.0)
        frames: Iterator[Picture] | None = None
        shown: Picture | None = None
        ahead: Picture | None = None
        for time in sorted(times):
            group = bisect_right(starts, time + SAME) - 1
            latest = ahead or shown
            if frames is None or (group > 0 and latest and starts[group] > latest.time + near):
                frames = watched.from_keyframe(keys, group) if group > 0 else watched.decode()
                ahead = next(frames, None)
            while ahead is not None and ahead.time <= time + SAME:
                shown, ahead = ahead, next(frames, None)
            shown = shown or ahead
            if shown is None:
                raise BadRow(f"no frame of {uri!r} can be decoded")
            yield shown
