"""A video's facts, one decoding pass over its frames, single frames by seeking.

Times are seconds from the start of the video stream: the stream's start time is subtracted.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from typing import Any

from mustsee.errors import BadRow
from mustsee.media.files import content_digest as content_digest
from mustsee.media.files import find_video_stream, open_container, packets
from mustsee.media.frame_times import FrameTimes, frame_times, is_mpeg_stream, seek_to_byte
from mustsee.media.frames import TimedFrame, shown_size
from mustsee.media.shown import mirror, orientation
from mustsee.media.sound import audio_chunks as audio_chunks

SAME_TIME_S = 1e-4  # seconds by which two times of the same frame may differ
TAIL_S = 2.0  # seconds at a video's end that are searched for the last packet
HELD_S = 0.5  # seconds after the last frame from which on it is held, to the end of the sound
MAX_START_S = 0.5  # seconds after the container's zero at which a video stream may begin
MAX_VIDEO_S = 48 * 3600.0  # seconds of video; a later time is damaged
# pixels of a frame, a little above 8K, because a header may claim any number
MAX_FRAME_PIXELS = 8192 * 4352
# seconds before a time that are tried for seeking, because some demuxers land later
SEEK_BACK_S = (1, 20, 300)
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

    It is less than `duration` where the file was cut off but its header describes the whole. An
    MPEG stream has no such header. Raises BadRow and Transient.
    """
    with open_container(uri) as container:
        if is_mpeg_stream(container):
            return duration
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
    with ExitStack() as files:
        yield VideoStream(uri, files, threads, deblocked)


class VideoStream:
    """An open container and its video stream.

    `broken` counts the packets and frames left out so far because they could not be decoded or have
    an impossible time. Raises BadRow for frames of more than `MAX_FRAME_PIXELS` pixels.
    """

    def __init__(self, uri: str, files: ExitStack, threads: int, deblocked: bool) -> None:
        self.uri, self.broken = uri, 0
        self._files, self._threads, self._deblocked = files, threads, deblocked
        self._open()
        if self.stream is not None:
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

    def _open(self) -> None:
        """Open the file, at its beginning, in place of the open one."""
        self._files.close()
        self.container = self._files.enter_context(open_container(self.uri))
        self.is_mpeg_stream = is_mpeg_stream(self.container)
        self.stream: Any = find_video_stream(self.container)
        if self.stream is not None:
            self.stream.thread_type = "AUTO" if self._threads != 1 else "NONE"
            self.stream.codec_context.thread_count = self._threads
            self.stream.codec_context.options = {
                "max_pixels": str(MAX_FRAME_PIXELS),
                "skip_loop_filter": "default" if self._deblocked else "noref",
            }

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
        """Return the duration in seconds, to the end of the sound where the last frame is held for
        it. Raises BadRow if it is more than `MAX_VIDEO_S`.
        """
        picture, sound = self._picture_duration(), self._sound_end()
        duration = sound if sound > picture + HELD_S else picture
        if duration > MAX_VIDEO_S:
            raise BadRow(
                f"{self.uri!r}: its header says {duration:.0f} s; at most {MAX_VIDEO_S:.0f} s "
                "are supported"
            )
        return duration

    def _picture_duration(self) -> float:
        """The duration by the stream's header, else by the container's.

        It comes from the packets where neither has one, in MPEG streams, and where the video begins
        late, because containers differ in whether the wait before it counts.
        """
        if self.is_mpeg_stream or (self.zero or 0) * self.base > MAX_START_S:
            return self._scan_duration()
        if self.stream.duration is not None:
            return self.stream.duration * self.base
        if self.container.duration is not None:
            return self.container.duration / 1e6
        return self._scan_duration()

    def _sound_end(self) -> float:
        """When the sound ends by its streams' headers; 0 without any, or in a joined stream."""
        if self.is_mpeg_stream and len(frame_times(self.uri).joins.starts) > 1:
            return 0.0
        ends = (
            float(((s.start_time or 0) + s.duration) * (s.time_base or 0))
            for s in self.container.streams.audio
            if s.duration is not None
        )
        return max(ends, default=0.0) - (self.zero or 0) * self.base

    def _scan_duration(self) -> float:
        frame, last, count = 1 / (self.fps or 25.0), 0.0, 0
        if self.is_mpeg_stream:
            index = frame_times(self.uri)
            if index.stamps:
                end = 0.0 if index.end is None else self.seconds(index.end)
                return max(end, self.seconds(index.stamps[-1]) + frame)
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
        if self.is_mpeg_stream:
            index = frame_times(self.uri)
            return self.from_keyframe(index, bisect_right(index.keys, self.stamp(start)) - 1)
        for early in SEEK_BACK_S:
            offset = zero + int(max(0.0, start - early) / self.base)
            try:
                self.container.seek(offset, stream=self.stream, backward=True)
            except FFmpegError:  # A file without seeking is read from its start.
                break
            frames = self.decode()
            first = next(frames, None)
            if first is not None and first.time <= start:
                return chain([first], frames)
            if early >= start:
                break
        self._open()
        return self.decode()

    def decode(self, keyframe: int | None = None) -> Iterator[TimedFrame]:
        """Yield the frames from the file's position on, with their times (see `frames`), or from
        the keyframe after it with the timestamp `keyframe`.

        Frames before the timestamp `skip_before` that no other frame refers to are skipped.
        """
        from av.error import FFmpegError

        decode = self.stream.codec_context.decode
        base, step = self.base, 1 / (self.fps or 25.0)
        aspect, time, turn, is_mirrored = self.aspect, None, None, False
        may_turn = self.is_mpeg_stream  # parts of a joined stream have matrices of their own
        read = self.packets(self.stream)
        if keyframe is not None:
            read = _from_keyframe(read, keyframe)
        for packet in read:
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
                # Side data keeps its frame in memory until the next collection of cycles, so it is
                # read again only where it may change.
                if turn is None or (frame.key_frame and (turn or is_mirrored or may_turn)):
                    turn, is_mirrored = orientation(frame)
                shown = mirror(frame) if is_mirrored else frame
                yield TimedFrame(max(time, 0.0), shown, turn, aspect, is_mirrored)

    def packets(self, streams: Any) -> Iterator[Any]:
        """Return the packets of one or more streams from the file's position on, as `packets`."""
        if self.is_mpeg_stream:
            return frame_times(self.uri).joins.read(self.container, streams)
        return packets(self.container, streams)

    def from_keyframe(self, index: FrameTimes, number: int) -> Iterator[TimedFrame]:
        """Return the frames from keyframe `number` on; from the beginning if it is less than 0.

        A demuxer that seeks by decoding time may land after it; the seek is then tried further
        back, and at last the file is read from its beginning.
        """
        for group in range(number, -1, -1):
            begin, stamp = self.seconds(index.keys[number]), index.keys[group]
            if index.positions:  # From a group before, so that all frames have their times.
                seek_to_byte(self.container, index.positions[group - 1] if group else 0)
                frames = self.decode(stamp)
            else:
                self.container.seek(stamp, stream=self.stream, backward=True)
                frames = self.decode()
            first = next(frames, None)
            if first is not None and first.time <= begin + SAME_TIME_S:
                whole = chain([first], frames)
                return (frame for frame in whole if frame.time >= begin - SAME_TIME_S)
        self._open()
        return self.decode()


def _from_keyframe(read: Iterator[Any], keyframe: int) -> Iterator[Any]:
    """The packets from a keyframe's on; none if it does not come."""
    for packet in read:
        if packet.pts == keyframe and packet.is_keyframe:
            yield packet
            yield from read
        elif packet.dts is not None and packet.dts > keyframe:
            return


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
    index = frame_times(uri)
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
                    frames = video.from_keyframe(index, max(group, 0))
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
