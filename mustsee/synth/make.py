"""Synthetic long videos: probe clips inserted into a background at known times (MLVU, F.4-F.9).

    video = synthesise(plan, "needle.mp4", CodingSettings())

As little as possible is encoded again. Where the background is 8-bit H.264 with closed groups of
pictures, and keeps its size and rate, its groups are copied, except those that a cut goes through;
the probes are converted to its size, rate and pixel format. Otherwise the whole video is encoded.
Sound is always encoded (AAC), because its packets overlap. Everything streams: memory grows by one
number per frame.
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
from mustsee.files.schemas import dump
from mustsee.media.files import find_video_stream, open_container
from mustsee.media.sound import has_sound
from mustsee.media.video import facts, open_video
from mustsee.records import Span
from mustsee.synth import copy as copying
from mustsee.synth import encoding, sound
from mustsee.synth.copy import PacketIndex
from mustsee.synth.encoding import CodedShape
from mustsee.synth.plan import InsertionPlan, TimelineSpan, timeline_spans

# samples per second; at other rates an AAC frame lasts longer than a video frame
SOUND_RATES = (44_100, 48_000)


@dataclass(frozen=True, kw_only=True)
class CodingSettings:
    """How a video is encoded.

    `preset` and `quality` are x264's: "ultrafast" to "veryslow", and the constant rate factor
    (lower is better).
    """

    copy: bool = True
    """Copy the uncut stretches of the background; false: encode all of it again."""
    height: int | None = None
    """Height of the video, pixels; null: the background's."""
    fps: float | None = None
    """Frames per second; null: the background's."""
    preset: str = "veryfast"
    """X264 preset: ultrafast ... veryslow."""
    quality: int = 21
    """X264 constant rate factor; lower is better."""
    sound_bitrate: int = 128_000
    """Bit rate of the sound, bits per second."""
    fade: float = 0.03
    """Crossfade of the sound between two spans, seconds."""
    threads: int = 0
    """Threads of encoding and decoding in one worker; 0: all cores."""


@dataclass(frozen=True, kw_only=True)
class PlacedProbe:
    """Where a probe is in the video, to the frame, and where (`cut`) in the background."""

    start: float
    end: float
    cut: float
    label: str
    uri: str
    from_start: float


@dataclass(frozen=True, kw_only=True)
class SynthesizedVideo:
    """A synthetic video. `mode` is "copy" or "code"; `why`: the reason against copying; `copied`,
    `coded`: numbers of frames.
    """

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
        """Return the spans of the probes."""
        return [Span(p.start, p.end) for p in self.placed]


def synthesise(
    plan: InsertionPlan, path: str, settings: CodingSettings | None = None
) -> SynthesizedVideo:
    """Make the video of a plan at the local `path` (.mp4), and `path`.json with the plan and the
    result.

    A cut is put on the first frame of the background at the planned time or later; a difference of
    half a frame counts as the same time. Raises BadRow where a file cannot be used.
    """
    settings = settings or CodingSettings()
    _check_lengths(plan)
    reason = _reason_against_copying(settings)
    index: PacketIndex | None = None
    if not reason:
        try:
            index = copying.index(plan.background)
            parameters = encoding.H264Encoder(_copy_shape(index, settings)).parameters()
            encoding.merge_parameters(index.parameters, parameters)
        except ValueError as error:
            reason, index = str(error), None
    video = None
    if index is not None:
        video = _make(plan, path, settings, _copy_shape(index, settings), index, "")
        reason = _fault_at_cuts(video, path)
    if video is None or reason:
        video = _make(plan, path, settings, _code_shape(plan, settings), None, reason)
        fault = _fault_at_cuts(video, path)
        if fault:
            raise MustseeError(f"the synthetic video {path!r} is faulty: {fault}")
    with open(f"{path}.json", "w") as file:
        json.dump(
            {"plan": dump(plan), "made": dump(replace(video, path=os.path.basename(path)))}, file
        )
    return video


def _check_lengths(plan: InsertionPlan) -> None:
    """Raise BadRow where the plan needs more of a file than there is."""
    needed = [(plan.background, plan.end)]
    needed += [(insertion.probe.uri, insertion.probe.end) for insertion in plan.insertions]
    for uri, end in dict(sorted(needed)).items():
        file_facts = facts(uri)
        if not file_facts.has_video or end > file_facts.duration + 2 / (file_facts.fps or 25.0):
            raise BadRow(
                f"{uri!r} has {file_facts.duration:.2f} s of video, the plan needs {end:.2f} s"
            )


def _reason_against_copying(settings: CodingSettings) -> str:
    if not settings.copy:
        return "copy=false"
    return "another size or rate is set" if settings.height or settings.fps else ""


def _encoder_settings(settings: CodingSettings) -> dict[str, Any]:
    return {k: getattr(settings, k) for k in ("preset", "quality", "threads")}


def _copy_shape(index: PacketIndex, settings: CodingSettings) -> CodedShape:
    free_id = next(n for n in range(1, 33) if n not in index.parameters.ids())
    return CodedShape(**index.shape, sps=free_id, **_encoder_settings(settings))


def _code_shape(plan: InsertionPlan, settings: CodingSettings) -> CodedShape:
    background = facts(plan.background)
    height = settings.height or background.height
    width = background.width * height / background.height
    rate = Fraction(settings.fps or background.fps or 25.0).limit_denominator(1001)
    return CodedShape(
        width=max(2, round(width / 2) * 2),
        height=max(2, round(height / 2) * 2),
        rate=rate,
        tick=1 / rate,
        **_encoder_settings(settings),
    )


def _make(
    plan: InsertionPlan,
    path: str,
    settings: CodingSettings,
    shape: CodedShape,
    index: PacketIndex | None,
    why: str,
) -> SynthesizedVideo:
    timeline = timeline_spans(plan, shape, index)
    temporary = f"{path}.{os.getpid()}.part"
    try:
        counts, has_sound = _write(timeline, temporary, settings, shape, index)
        os.replace(temporary, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
    placed = [
        PlacedProbe(
            start=float(clip.begin * shape.tick),
            end=float(clip.end * shape.tick),
            cut=float(clip.cut),
            label=plan.insertions[clip.probe].probe.label,
            uri=clip.uri,
            from_start=plan.insertions[clip.probe].probe.start,
        )
        for clip in timeline
        if clip.probe is not None
    ]
    return SynthesizedVideo(
        path=path,
        duration=float(timeline[-1].end * shape.tick),
        fps=float(shape.rate),
        width=shape.width,
        height=shape.height,
        has_sound=has_sound,
        mode="code" if index is None else "copy",
        why=why,
        copied=counts[0],
        coded=counts[1],
        placed=tuple(placed),
    )


def _packets(
    timeline: Sequence[TimelineSpan], shape: CodedShape, index: PacketIndex | None, threads: int
) -> Iterator[Any]:
    """The encoded frames of all clips, in decoding order."""
    for clip in timeline:
        if clip.probe is None and index is not None:
            shift = clip.begin - index.stamp(clip.first)
            yield from copying.copy_packets(clip.uri, index, clip.first, clip.after, shift, shape)
        else:
            frames = encoding.steady_frames(
                clip.uri, clip.start, len(clip.ticks), shape.rate, threads
            )
            yield from encoding.encode_frames(zip(clip.ticks, frames, strict=True), shape)


def _write(
    timeline: Sequence[TimelineSpan],
    path: str,
    settings: CodingSettings,
    shape: CodedShape,
    index: PacketIndex | None,
) -> tuple[tuple[int, int], bool]:
    """Write the file; return how many frames were copied and encoded, and whether it has sound."""
    import av

    parameters = encoding.H264Encoder(shape).parameters()
    if index is not None:
        parameters = encoding.merge_parameters(index.parameters, parameters)
    uris = list(dict.fromkeys(clip.uri for clip in timeline))
    with_sound = any(map(has_sound, uris))
    rate = _sound_rate(timeline[0].uri if timeline[0].probe is None else timeline[-1].uri)
    with av.open(path, "w", format="mp4") as out:
        target: Any = encoding.track(out, shape, parameters)
        track = _SoundTrack(out, timeline, shape, rate, settings) if with_sound else None
        counts = [0, 0]
        ticks = [tick for clip in timeline for tick in clip.ticks]
        delay = index.delay if index else 0
        step = max(1, round(1 / shape.rate / shape.tick))
        for number, packet in enumerate(_packets(timeline, shape, index, settings.threads)):
            counts[packet.stream is None] += 1
            at = number - delay
            packet.dts = ticks[at] if at >= 0 else ticks[0] + at * step
            packet.stream = target
            if track is not None:
                track.write_until(float(packet.dts * shape.tick))
            out.mux(packet)
        if track is not None:
            track.write_until(None)
    if sum(counts) != len(ticks):
        raise BadRow(f"{timeline[0].uri!r}: {sum(counts)} of {len(ticks)} frames could be read")
    return (counts[0], counts[1]), with_sound


def _sound_rate(uri: str) -> int:
    with open_container(uri) as container:
        rates = [stream.rate for stream in container.streams.audio[:1]]
    return rates[0] if rates and rates[0] in SOUND_RATES else max(SOUND_RATES)


class _SoundTrack:
    """The sound of the whole video, written along with the frames."""

    def __init__(
        self,
        out: Any,
        timeline: Sequence[TimelineSpan],
        shape: CodedShape,
        rate: int,
        settings: CodingSettings,
    ) -> None:
        self._out, self._rate, self._sent = out, rate, 0
        self._stream = out.add_stream("aac", rate=rate, layout="stereo")
        self._stream.bit_rate = settings.sound_bitrate
        self._stream.time_base = Fraction(1, rate)
        spans = [
            sound.SoundSpan(
                uri=clip.uri,
                start=clip.start,
                first=round(clip.begin * shape.tick * rate),
                after=round(clip.end * shape.tick * rate),
            )
            for clip in timeline
        ]
        self._samples = sound.samples(spans, rate, round(settings.fade * rate))

    def write_until(self, time: float | None) -> None:
        """Write the sound before `time`; None: all of the rest."""
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


def _fault_at_cuts(video: SynthesizedVideo, path: str) -> str:
    """What is wrong around the cuts of a finished file, by decoding it there; "" when nothing is.

    This check makes copying safe: a decoder that fails at the change of parameters loses or
    reorders frames.
    """
    step = 1 / video.fps
    for cut in sorted({t for p in video.placed for t in (p.start, p.end)}):
        low, high = max(0.0, cut - 4 * step), min(video.duration, cut + 8 * step)
        with open_video(path) as opened:
            times = [p.time for p in opened.frames(low, high)]
        expected = (high - low) / step
        if abs(len(times) - expected) > 0.1 * expected + 1.5:
            return f"{len(times)} instead of {expected:.0f} frames around {cut:.2f} s"
        if any(b - a > 2.5 * step for a, b in pairwise(times)):
            return f"a gap between frames around {cut:.2f} s"
    with open_container(path) as container:
        ends = {
            s.type: float(s.duration * s.time_base)
            for s in container.streams
            if s.duration and s.time_base
        }
        stream = find_video_stream(container)
    if stream is None or abs(ends.get("video", 0.0) - video.duration) > 1.5 * step:
        return f"the frames last {ends.get('video')!r} s, planned are {video.duration!r} s"
    if video.has_sound and abs(ends["audio"] - ends["video"]) > max(step, 1024 / 44_100):
        return f"the frames last {ends['video']!r} s, the sound {ends['audio']!r} s"
    return ""
