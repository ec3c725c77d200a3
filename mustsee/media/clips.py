"""Clips: stretches of a video as files of their own, for models that watch.

    copied("video.mp4", Span(60.0, 90.0), sound=True, most=14_000_000)
    coded("video.mp4", Span(60.0, 90.0), VideoInput(), sound=True, most=14_000_000)

A stretch is copied from the keyframe before it, at the price of reading it. It is coded anew, small
and with few pictures a second, where that keyframe lies too far off, where the codec is one that
not every server decodes, where the copy is too large, and where nothing from outside of the stretch
may be seen: an edit list could hide the pictures before it, but what decodes clips for models need
not heed one.
"""

from __future__ import annotations

import heapq
import io
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from typing import TYPE_CHECKING, Any

from mustsee.calls.llm import VideoInput
from mustsee.errors import BadRow
from mustsee.media.files import packets
from mustsee.media.pictures import Image, TimedFrame
from mustsee.media.sound import Sound, audio_chunks
from mustsee.media.video import SAME_TIME_S, VideoStream, frames_at, open_video
from mustsee.records import Span

if TYPE_CHECKING:
    from av.container import OutputContainer

MAX_LEAD_S = 0.5  # seconds by which a copy may begin too early
COPIED_CODECS = ("h264", "hevc")  # what servers decode in hardware and in software (vLLM, Gemini)
COPIED_SOUND = ("aac", "mp3")
RATE, SOUND_BITS = 16_000, 32_000  # of sound coded anew: Hz, bits a second
CRF = 26
BASE = Fraction(1, 90_000)


@dataclass(frozen=True, kw_only=True)
class ClipFile:
    """An MP4 file, and the stretch of the video that it shows. `copied`: not coded anew."""

    mp4: bytes
    span: Span
    copied: bool


class _Room(io.BytesIO):
    """A file of at most `most` bytes; what comes beyond is lost, and it is `full`."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most, self.full = most, False

    def write(self, content: Any, /) -> int:
        self.full = self.full or self.tell() + len(content) > self._most
        return len(content) if self.full else super().write(content)


def copy_span(
    uri: str, span: Span, *, sound: bool, most: int, lead: float = MAX_LEAD_S
) -> ClipFile | None:
    """The stretch as it is coded, from the last keyframe before it, `lead` seconds before at most.

    None where there is no such keyframe, the codecs are others than `COPIED_CODECS`, or it takes
    more than `most` bytes. It may end some frames late, by those that its last pictures refer to.
    Raises BadRow and Transient.
    """
    with open_video(uri) as watched:
        if watched.stream is None:
            raise BadRow(f"no video stream in {uri!r}")
        first = _keyframe(watched, span.start)
        if first is None or span.start - watched.seconds(first) > lead + SAME_TIME_S:
            return None
    with open_video(uri) as watched:
        heard = _heard(watched) if sound else None
        names = [s.codec_context.name for s in (watched.stream, heard) if s is not None]
        if names[0] not in COPIED_CODECS or any(name not in COPIED_SOUND for name in names[1:]):
            return None
        with _Room(most) as file:
            shown = Span(watched.seconds(first), _copy(watched, heard, first, span.end, file))
            return None if file.full else ClipFile(mp4=file.getvalue(), span=shown, copied=True)


def encode_span(
    uri: str, span: Span, take: VideoInput, *, sound: bool, most: int
) -> ClipFile | None:
    """The stretch and nothing else, coded anew at `take.fps` pictures a second; None where that
    takes more than `most` bytes. Holds a frame and the file. Raises BadRow and Transient.
    """
    import av

    with _Room(most) as file:
        with av.open(file, "w", format="mp4") as out:
            streams = [_pictures(out, uri, span, take, most)]
            if sound:
                streams.append(_sounds(out, uri, span))
            for packet in heapq.merge(*streams, key=_time):
                out.mux(packet)
                if file.full:
                    return None
        return None if file.full else ClipFile(mp4=file.getvalue(), span=span, copied=False)


def _keyframe(watched: VideoStream, start: float) -> int | None:
    """The timestamp of the last keyframe that is shown at `start` or before. A demuxer that seeks
    by decoding time may land after it; then the seek is tried further back.
    """
    wanted = watched.stamp(start)
    for back in (0.0, 2.0, 20.0, start + 1):
        offset = max(watched.zero or 0, watched.stamp(start - back))
        watched.container.seek(offset, stream=watched.stream, backward=True)
        found = None
        for packet in packets(watched.container, watched.stream):
            if packet.dts is not None and packet.dts > wanted:
                break
            if packet.is_keyframe and packet.pts is not None and packet.pts <= wanted:
                found = packet.pts
        if found is not None:
            return found
    return None


def _heard(watched: VideoStream) -> Any:
    """The stream of sound that goes with the pictures; None without one."""
    return watched.container.streams.best("audio")


def _copy(watched: VideoStream, heard: Any, first: int, end: float, file: _Room) -> float:
    """Writes the packets from keyframe `first` on; returns when the last picture ends."""
    import av

    begin = Fraction(first) * watched.stream.time_base
    over = begin + Fraction(end - watched.seconds(first) - 2 * SAME_TIME_S)
    until = begin
    with av.open(file, "w", format="mp4") as out:
        made = {
            stream.index: out.add_stream_from_template(stream)
            for stream in (watched.stream, heard)
            if stream is not None
        }
        watched.container.seek(first, stream=watched.stream, backward=True)
        for packet in _between(watched, heard, begin, over):
            base = packet.stream.time_base
            if packet.stream is watched.stream:
                until = max(until, (packet.pts + (packet.duration or 0)) * base)
            offset = round(begin / base)
            packet.pts, packet.dts = packet.pts - offset, packet.dts - offset
            packet.stream = made[packet.stream.index]
            out.mux(packet)
            if file.full:
                break
    return watched.seconds(first) + float(until - begin)


def _between(watched: VideoStream, heard: Any, begin: Fraction, over: Fraction) -> Iterator[Any]:
    """Packets to decode what is shown and heard from `begin` on, until all are decoded that begin
    before `over`. What is shown before `begin` belongs to a group that is not there.
    """
    streams = [stream for stream in (watched.stream, heard) if stream is not None]
    going = {stream.index for stream in streams}
    for packet in _dated(packets(watched.container, streams)):
        if packet.stream.index not in going:
            continue
        base = packet.stream.time_base
        if packet.dts * base >= over:
            going.remove(packet.stream.index)
            if not going:
                return
        elif packet.pts * base >= begin:
            yield packet


def _dated(found: Iterator[Any]) -> Iterator[Any]:
    """The packets that have times. Matroska gives no decoding times to the first ones after a seek:
    they are put right before the first that is known.
    """
    waiting: list[Any] = []
    for packet in found:
        if packet.pts is None:
            continue
        if packet.dts is None:
            waiting.append(packet)
            continue
        if waiting and packet.stream is waiting[0].stream:
            for ticks, early in enumerate(reversed(waiting), 1):
                early.dts = packet.dts - ticks
            yield from waiting
            waiting = []
        yield packet


def _pictures(
    out: OutputContainer, uri: str, span: Span, take: VideoInput, most: int
) -> Iterator[Any]:
    """The stretch's pictures at even distances, coded."""

    fps = Fraction(take.fps).limit_denominator(1000)
    count = max(1, math.ceil(span.seconds * fps - SAME_TIME_S))
    shown = frames_at(uri, [span.start + float(i / fps) for i in range(count)])
    first = next(shown).image(take.longest)
    height, width = (max(2, side - side % 2) for side in first.shape[:2])
    stream: Any = out.add_stream("libx264", rate=fps, options={"preset": "veryfast", "bf": "0"})
    stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
    stream.codec_context.time_base, stream.codec_context.thread_count = BASE, 1
    rate = max(20_000, round(0.8 * (8 * most / max(1.0, span.seconds) - SOUND_BITS)))
    rate = min(rate, 1_000_000_000)  # twice of it still fits the coder's 32 bits
    stream.options |= {"crf": str(CRF), "maxrate": str(rate), "bufsize": str(2 * rate)}
    return _coding(stream, first, shown, width, height, round(1 / (fps * BASE)))


def _coding(
    stream: Any, first: Image, shown: Iterator[TimedFrame], width: int, height: int, step: int
) -> Iterator[Any]:
    import av

    longest = max(width, height) + 1
    images = chain([first], (picture.image(longest) for picture in shown))
    for number, image in enumerate(images):
        frame = av.VideoFrame.from_ndarray(image, format="bgr24")
        frame = frame.reformat(width=width, height=height, format="yuv420p")
        frame.pts, frame.time_base, frame.duration = number * step, BASE, step
        yield from stream.encode(frame)
    yield from stream.encode(None)


def _sounds(out: OutputContainer, uri: str, span: Span) -> Iterator[Any]:
    """The stretch's sound, coded; nothing where there is none."""
    chunks = audio_chunks(uri, RATE, 10.0, start=span.start, end=span.end)
    first = next(chunks, None)
    if first is None:
        return iter(())
    stream: Any = out.add_stream("aac", rate=RATE, layout="mono")
    stream.bit_rate = SOUND_BITS
    return _sounding(stream, chain([first], chunks), span.start)


def _sounding(stream: Any, chunks: Iterator[Sound], start: float) -> Iterator[Any]:
    import av

    for chunk in chunks:
        frame = av.AudioFrame.from_ndarray(chunk.samples[None], "fltp", "mono")
        frame.sample_rate, frame.time_base = RATE, Fraction(1, RATE)
        frame.pts = round((chunk.start - start) * RATE)
        yield from stream.encode(frame)
    yield from stream.encode(None)


def _time(packet: Any) -> float:
    return float((packet.dts or 0) * packet.time_base)
