"""Copies the background of a synthetic video without decoding it.

Whole groups of pictures are copied; only the groups that a cut goes through are encoded again.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from mustsee.errors import BadRow
from mustsee.media.files import find_video_stream, open_container, packets
from mustsee.media.frames import TimedFrame
from mustsee.media.video import open_video
from mustsee.synth import encoding
from mustsee.synth.encoding import FORMATS, CodedShape, encode_frames

if TYPE_CHECKING:
    from av import VideoFrame


@dataclass(frozen=True, kw_only=True)
class PacketIndex:
    """The frames of an H.264 file, listed without decoding.

    `times`: in ticks, in display order. `groups`: display number of the first frame of each
    group that begins with an IDR frame. `stamps`: decoding times of these. `end`: when the last
    frame ends. `delay`: frames by which decoding may lag behind display.
    """

    times: Sequence[int]
    groups: Sequence[int]
    stamps: Sequence[int]
    end: int
    delay: int
    parameters: encoding.Parameters
    tick: Fraction
    shape: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def zero(self) -> int:
        return self.times[0]

    def number(self, time: Fraction) -> int:
        """Return the number of the first frame shown at `time` (seconds from the first frame) or
        later; a difference of half a frame counts as the same time.
        """
        near = Fraction(self.end - self.zero, 2 * len(self.times)) * self.tick
        return bisect_left(self.times, self.zero + (time - near) / self.tick)

    def stamp(self, number: int) -> int:
        """Return when frame `number` is shown, in ticks; the end for the one after the last."""
        return self.times[number] if number < len(self.times) else self.end


def index(uri: str) -> PacketIndex:
    """Return the frames of a file whose packets may be copied.

    Raises ValueError with the reason where they may not; BadRow and Transient as `open_container`.
    """
    frame = _first_frame(uri)
    with open_container(uri) as container:
        stream: Any = find_video_stream(container)
        context = stream.codec_context
        if context.name != "h264":
            raise ValueError(f"the background is {context.name}, not H.264")
        if stream.profile not in ("Baseline", "Constrained Baseline", "Main", "High"):
            raise ValueError(f"the background's H.264 profile is {stream.profile}")
        parameters = encoding.parse(bytes(context.extradata or b""))
        tick = Fraction(stream.time_base)
        shape = {
            "width": frame.width,
            "height": frame.height,
            "rate": Fraction(stream.average_rate),
            "tick": tick,
            "pixel": Fraction(stream.sample_aspect_ratio or 1),
            "format": frame.format.name,
            "colours": (
                context.color_primaries,
                context.color_trc,
                context.colorspace,
                context.color_range,
            ),
            "profile": "baseline" if "Baseline" in stream.profile else stream.profile.lower(),
        }
        walk = _read_packets(container, stream)
    times, delay = _order(walk)
    return PacketIndex(
        times=times,
        groups=walk.groups,
        stamps=walk.stamps,
        end=max(walk.ends),
        delay=delay,
        parameters=parameters,
        tick=tick,
        shape=shape,
    )


def _first_frame(uri: str) -> VideoFrame:
    with open_video(uri) as video:
        if video.stream is None:
            raise BadRow(f"no video stream in {uri!r}")
        first = next(video.frames(), None)
        if first is None:
            raise BadRow(f"no frame of {uri!r} can be decoded")
        frame, is_moved = first.decoded, first.turn or first.mirrored
        if is_moved or frame.format.name not in FORMATS or frame.interlaced_frame:
            raise ValueError("the background is rotated, interlaced, or not 8-bit 4:2:0")
        return frame


@dataclass(frozen=True)
class _PacketTimes:
    """Packets in decoding order.

    `times`, `ends`: when each is shown and ends; `groups`, `stamps`: numbers and decoding times of
    those that begin a group.
    """

    times: list[int]
    ends: list[int]
    groups: list[int]
    stamps: list[int]


def _order(walk: _PacketTimes) -> tuple[list[int], int]:
    """The times in display order, and by how many frames decoding lags behind.

    Raises ValueError where a group is not closed, that is, where its frames are not shown together.
    """
    times = walk.times
    order = sorted(range(len(times)), key=times.__getitem__)
    ranks = [0] * len(times)
    for rank, number in enumerate(order):
        ranks[number] = rank
    times_in_order = [times[n] for n in order]
    if any(a == b for a, b in pairwise(times_in_order)):
        raise ValueError("two of the background's frames have the same time")
    if not walk.groups or walk.groups[0] != 0:
        raise ValueError("the background does not begin with an IDR frame")
    for first, stop in pairwise([*walk.groups, len(times)]):
        if ranks[first] != first or min(ranks[first:stop]) < first:
            raise ValueError("the background's groups of pictures are not closed")
    return times_in_order, max(n - p for n, p in enumerate(ranks))


def _read_packets(container: Any, stream: Any) -> _PacketTimes:
    walk = _PacketTimes([], [], [], [])
    for packet in packets(container, stream):
        if not packet.size:
            continue
        if packet.pts is None or packet.dts is None or packet.is_discard or packet.is_corrupt:
            raise ValueError(
                "the background has packets without a time, damaged ones, or ones to discard"
            )
        if packet.is_keyframe and encoding.is_idr(bytes(packet)):
            walk.groups.append(len(walk.times))
            walk.stamps.append(packet.dts)
        walk.times.append(packet.pts)
        walk.ends.append(packet.pts + (packet.duration or 0))
    if not walk.times:
        raise ValueError("the background has no frames")
    return walk


def copy_packets(
    uri: str, index: PacketIndex, first: int, stop: int, shift: int, shape: CodedShape
) -> Iterator[Any]:
    """Yield frames `first` to before `after` of an indexed file as packets, moved by `shift` ticks.

    Whole groups are copied; what a cut leaves of a group is encoded again.
    """
    first_group = bisect_left(index.groups, first)  # the first group that begins inside
    group_ends = [*index.groups[1:], len(index.times)]
    stop_group = bisect_left([*index.groups, len(index.times)], stop)
    while stop_group > first_group and group_ends[stop_group - 1] > stop:
        stop_group -= 1
    if first_group >= stop_group:
        yield from _encode_again(uri, index, first, stop, shift, shape)
        return
    if first < index.groups[first_group]:
        yield from _encode_again(uri, index, first, index.groups[first_group], shift, shape)
    yield from _copy_groups(uri, index, first_group, stop_group, shift)
    if group_ends[stop_group - 1] < stop:
        yield from _encode_again(uri, index, group_ends[stop_group - 1], stop, shift, shape)


def _copy_groups(uri: str, index: PacketIndex, begin: int, stop: int, shift: int) -> Iterator[Any]:
    """The packets of groups `begin` to before `stop`."""
    missing = [*index.groups, len(index.times)][stop] - index.groups[begin]
    for packet in _from_group(uri, index, begin):
        if not packet.size:
            break
        packet.pts += shift
        yield packet
        missing -= 1
        if not missing:
            return
    raise BadRow(f"{uri!r} changed while it was read: {missing} packets are missing")


def _from_group(uri: str, index: PacketIndex, group: int) -> Iterator[Any]:
    """The packets from a group's IDR frame on; the file stays open while they are read."""
    with open_container(uri) as container:
        stream: Any = find_video_stream(container)
        keyframe_time = index.times[index.groups[group]]
        container.seek(index.stamps[group], stream=stream, backward=True)
        is_reached = False
        for packet in packets(container, stream):
            is_reached = is_reached or packet.pts == keyframe_time
            if is_reached:
                yield packet


def _encode_again(
    uri: str, index: PacketIndex, first: int, stop: int, shift: int, shape: CodedShape
) -> Iterator[Any]:
    """Frames of one or more groups, decoded from their IDR frame on and encoded again."""
    if first >= stop:
        return
    group = bisect_left(index.groups, first + 1) - 1

    def frames() -> Iterator[tuple[int, TimedFrame]]:
        low, high = index.stamp(first), index.stamp(stop)
        for packet in _from_group(uri, index, group):
            for frame in packet.decode():
                if frame.pts >= high:
                    return
                if frame.pts >= low:
                    yield frame.pts + shift, TimedFrame(0.0, frame, 0, float(shape.pixel))

    yield from encode_frames(frames(), shape)
