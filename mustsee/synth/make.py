"""Synthesised long videos: probe clips inserted into a background at known times (MLVU, F.4-F.9).

    made = synthesise(plan, "needle.mp4", Settings())

Only what must be is re-encoded. Where the background is 8-bit H.264 with closed groups of pictures,
and keeps its size and rate, its groups are copied, but for those that a cut goes through; the
probes are brought to its size, rate and pixel format. Else all of it is encoded. Sound is encoded
throughout (AAC), since its packets overlap. Everything streams: what grows with the length is one
number per picture.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

from mustsee.errors import BadRow, MustseeError
from mustsee.media.files import open_container, picture_stream
from mustsee.media.video import facts, open_video
from mustsee.records import Span
from mustsee.schemas import dump
from mustsee.synth import copy as copying
from mustsee.synth import h264, pictures, sound
from mustsee.synth.copy import PacketIndex
from mustsee.synth.pictures import CodedShape
from mustsee.synth.plan import InsertionPlan
from mustsee.synth.timeline import TimelineSpan, pieces

SOUND_RATES = (44_100, 48_000)  # with others an AAC frame lasts longer than a picture


@dataclass(frozen=True, kw_only=True)
class CodingSettings:
    """How a video is coded. `copy`: copy what no cut goes through, where that is safe. `height`,
    `fps`: null for the background's. `preset` and `quality` are x264's: "ultrafast" to "veryslow",
    and the constant rate factor (lower is better). `sound_bitrate` in bits a second. `fade`:
    seconds in which sound goes over from one piece to the next.
    """

    copy: bool = True
    height: int | None = None
    fps: float | None = None
    preset: str = "veryfast"
    quality: int = 21
    sound_bitrate: int = 128_000
    fade: float = 0.03
    threads: int = 0


@dataclass(frozen=True, kw_only=True)
class PlacedProbe:
    """Where a probe really is, to the frame, and where the background was cut for it."""

    start: float
    end: float
    cut: float
    label: str
    uri: str
    from_start: float


@dataclass(frozen=True, kw_only=True)
class SynthesizedVideo:
    """A synthesised video. `mode` is "copy" or "code"; `why`: what stood against copying."""

    path: str
    duration: float
    fps: float
    width: int
    height: int
    has_sound: bool
    mode: str
    why: str
    copied: int
    coded: int
    placed: tuple[PlacedProbe, ...]

    def spans(self) -> list[Span]:
        return [Span(p.start, p.end) for p in self.placed]


def synthesise(
    plan: InsertionPlan, path: str, settings: CodingSettings | None = None
) -> SynthesizedVideo:
    """Make the video that a plan describes at the local `path` (.mp4), and `path`.json beside it
    with the plan and what became of it.

    Cuts are put on the first picture of the background that is shown at the planned time or later,
    half a picture's length counting as the same. Raises BadRow where a file cannot be used.
    """
    settings = settings or CodingSettings()
    _within(plan)
    why = _against(settings)
    found: PacketIndex | None = None
    if not why:
        try:
            found = copying.index(plan.background)
            shape = CodedShape(**found.shape, sps=_free(found), **_coding(settings))
            parameters = pictures.H264Encoder(shape).parameters()
            h264.merge_parameters(found.parameters, parameters)
        except ValueError as error:
            why, found = str(error), None
    made = None
    if found is not None:
        made = _make(plan, path, settings, _copy_shape(found, settings), found, "")
        why = _unsound(made, path)
    if made is None or why:
        made = _make(plan, path, settings, _code_shape(plan, settings), None, why)
        wrong = _unsound(made, path)
        if wrong:
            raise MustseeError(f"{path!r} came out wrong: {wrong}")
    with open(f"{path}.json", "w") as file:
        json.dump(
            {"plan": dump(plan), "made": dump(replace(made, path=os.path.basename(path)))}, file
        )
    return made


def _within(plan: InsertionPlan) -> None:
    """Raises BadRow where the plan wants more of a file than there is."""
    wanted = [(plan.background, plan.end)]
    wanted += [(i.probe.uri, i.probe.end) for i in plan.insertions]
    for uri, end in dict(sorted(wanted)).items():
        there = facts(uri)
        if not there.has_video or end > there.duration + 2 / (there.fps or 25.0):
            raise BadRow(
                f"{uri!r} has {there.duration:.2f} s of pictures, the plan wants it up to {end:.2f}"
            )


def _against(settings: CodingSettings) -> str:
    if not settings.copy:
        return "copy=false"
    return "another size or rate was asked for" if settings.height or settings.fps else ""


def _coding(settings: CodingSettings) -> dict[str, Any]:
    return {
        "preset": settings.preset,
        "quality": settings.quality,
        "threads": settings.threads,
    }


def _free(found: PacketIndex) -> int:
    return next(n for n in range(1, 33) if n not in found.parameters.ids())


def _copy_shape(found: PacketIndex, settings: CodingSettings) -> CodedShape:
    return CodedShape(**found.shape, sps=_free(found), **_coding(settings))


def _code_shape(plan: InsertionPlan, settings: CodingSettings) -> CodedShape:
    about = facts(plan.background)
    height = settings.height or about.height
    width = about.width * height / about.height
    rate = Fraction(settings.fps or about.fps or 25.0).limit_denominator(1001)
    return CodedShape(
        width=max(2, round(width / 2) * 2),
        height=max(2, round(height / 2) * 2),
        rate=rate,
        tick=1 / rate,
        **_coding(settings),
    )


def _make(
    plan: InsertionPlan,
    path: str,
    settings: CodingSettings,
    shape: CodedShape,
    found: PacketIndex | None,
    why: str,
) -> SynthesizedVideo:
    line = pieces(plan, shape, found)
    temporary = f"{path}.{os.getpid()}.part"
    try:
        counts, has_sound = _write(line, temporary, settings, shape, found)
        os.replace(temporary, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
    placed = [
        PlacedProbe(
            start=float(piece.begin * shape.tick),
            end=float(piece.end * shape.tick),
            cut=float(piece.cut),
            label=plan.insertions[piece.probe].probe.label,
            uri=piece.uri,
            from_start=plan.insertions[piece.probe].probe.start,
        )
        for piece in line
        if piece.probe is not None
    ]
    return SynthesizedVideo(
        path=path,
        duration=float(line[-1].end * shape.tick),
        fps=float(shape.rate),
        width=shape.width,
        height=shape.height,
        has_sound=has_sound,
        mode="code" if found is None else "copy",
        why=why,
        copied=counts[0],
        coded=counts[1],
        placed=tuple(placed),
    )


def _packets(
    line: Sequence[TimelineSpan], shape: CodedShape, found: PacketIndex | None, threads: int
) -> Iterator[Any]:
    """The coded pictures of all pieces, in decoding order."""
    for piece in line:
        if piece.probe is None and found is not None:
            shift = piece.begin - found.stamp(piece.first)
            yield from copying.copy_packets(
                piece.uri, found, piece.first, piece.after, shift, shape
            )
        else:
            shown = pictures.steady_frames(
                piece.uri, piece.start, len(piece.ticks), shape.rate, threads
            )
            yield from pictures.encode_frames(zip(piece.ticks, shown, strict=True), shape)


def _write(
    line: Sequence[TimelineSpan],
    path: str,
    settings: CodingSettings,
    shape: CodedShape,
    found: PacketIndex | None,
) -> tuple[tuple[int, int], bool]:
    """Write the file; returns how many pictures were copied and coded, and whether it has sound."""
    import av

    parameters = pictures.H264Encoder(shape).parameters()
    if found is not None:
        parameters = h264.merge_parameters(found.parameters, parameters)
    uris = list(dict.fromkeys(piece.uri for piece in line))
    with_sound = any(sound.has_sound(uri) for uri in uris)
    rate = _sound_rate(line[0].uri if line[0].probe is None else line[-1].uri)
    with av.open(path, "w", format="mp4") as out:
        target: Any = pictures.track(out, shape, parameters)
        track = _SoundTrack(out, line, shape, rate, settings) if with_sound else None
        counts = [0, 0]
        shown = [tick for piece in line for tick in piece.ticks]
        delay = found.delay if found else 0
        step = max(1, round(1 / shape.rate / shape.tick))
        for number, packet in enumerate(_packets(line, shape, found, settings.threads)):
            counts[packet.stream is None] += 1
            at = number - delay
            packet.dts = shown[at] if at >= 0 else shown[0] + at * step
            packet.stream = target
            if track is not None:
                track.write_until(float(packet.dts * shape.tick))
            out.mux(packet)
        if track is not None:
            track.write_until(None)
    if sum(counts) != len(shown):
        raise BadRow(f"{line[0].uri!r}: {sum(counts)} of {len(shown)} pictures could be read")
    return (counts[0], counts[1]), with_sound


def _sound_rate(uri: str) -> int:
    with open_container(uri) as container:
        found = [stream.rate for stream in container.streams.audio[:1]]
    return found[0] if found and found[0] in SOUND_RATES else max(SOUND_RATES)


class _SoundTrack:
    """The sound of the whole, written along with the pictures."""

    def __init__(
        self,
        out: Any,
        line: Sequence[TimelineSpan],
        shape: CodedShape,
        rate: int,
        settings: CodingSettings,
    ) -> None:
        self._out, self._rate, self._sent = out, rate, 0
        self._stream = out.add_stream("aac", rate=rate, layout="stereo")
        self._stream.bit_rate = settings.sound_bitrate
        self._stream.time_base = Fraction(1, rate)
        stretches = [
            sound.SoundSpan(
                uri=piece.uri,
                start=piece.start,
                first=round(piece.begin * shape.tick * rate),
                after=round(piece.end * shape.tick * rate),
            )
            for piece in line
        ]
        self._samples = sound.samples(stretches, rate, round(settings.fade * rate))

    def write_until(self, time: float | None) -> None:
        """Write what sounds before `time`; None: the rest."""
        import av

        while time is None or self._sent < time * self._rate:
            block = next(self._samples, None)
            if block is None:
                break
            frame = av.AudioFrame.from_ndarray(block.T.copy(), format="fltp", layout="stereo")
            frame.sample_rate, frame.pts = self._rate, self._sent
            frame.time_base = Fraction(1, self._rate)
            self._sent += len(block)
            self._out.mux(self._stream.encode(frame))
        if time is None:
            self._out.mux(self._stream.encode(None))


def _unsound(made: SynthesizedVideo, path: str) -> str:
    """What is wrong around the cuts of a finished file, by decoding it there; "" when nothing is.

    This is the guard of copying: a decoder that stumbles over the change of parameters loses or
    reorders pictures.
    """
    step = 1 / made.fps
    for at in sorted({t for p in made.placed for t in (p.start, p.end)}):
        low, high = max(0.0, at - 4 * step), min(made.duration, at + 8 * step)
        with open_video(path) as watched:
            times = [p.time for p in watched.pictures(low, high)]
        expected = (high - low) / step
        if abs(len(times) - expected) > 0.1 * expected + 1.5:
            return f"{len(times)} instead of {expected:.0f} pictures around {at:.2f} s"
        if any(b - a > 2.5 * step for a, b in pairwise(times)):
            return f"a hole in the pictures around {at:.2f} s"
    with open_container(path) as container:
        ends = {
            s.type: float(s.duration * s.time_base)
            for s in container.streams
            if s.duration and s.time_base
        }
        stream = picture_stream(container)
    if stream is None or abs(ends.get("video", 0.0) - made.duration) > 1.5 * step:
        return f"the pictures last {ends.get('video')!r} s, planned were {made.duration!r}"
    if made.has_sound and abs(ends["audio"] - ends["video"]) > max(step, 1024 / 44_100):
        return f"pictures last {ends['video']!r} s, sound {ends['audio']!r} s"
    return ""
