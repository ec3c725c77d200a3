"""Copies the background of a synthesised video without decoding it: whole groups of pictures are
taken over as they are, and only those that a cut goes through are re-encoded.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from mustsee.errors import BadRow
from mustsee.media.files import open_container, packets, picture_stream
from mustsee.media.pictures import TimedFrame
from mustsee.media.video import open_video
from mustsee.synth import h264
from mustsee.synth.pictures import FORMATS, CodedShape, encode_frames

if TYPE_CHECKING:
    from av import VideoFrame


@dataclass(frozen=True, kw_only=True)
class PacketIndex:
    """The pictures of an H.264 file, found without decoding.

    `shown`: times in ticks, as shown; `groups`: number (as shown) of the first picture of each
    group that begins with an IDR picture; `stamps`: its decoding time. `end`: when the last ends.
    `delay`: by how many pictures one may be decoded later than it is shown.
    """

    shown: Sequence[int]
    groups: Sequence[int]
    stamps: Sequence[int]
    end: int
    delay: int
    parameters: h264.Parameters
    tick: Fraction
    shape: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def zero(self) -> int:
        return self.shown[0]

    def number(self, time: Fraction) -> int:
        """The number of the first picture shown at `time` (seconds from the first one) or later;
        half a picture's length counts as the same time.
        """
        near = Fraction(self.end - self.zero, 2 * len(self.shown)) * self.tick
        return bisect_left(self.shown, self.zero + (time - near) / self.tick)

    def stamp(self, number: int) -> int:
        """When picture `number` is shown, in ticks; the end for the one after the last."""
        return self.shown[number] if number < len(self.shown) else self.end


def index(uri: str) -> PacketIndex:
    """The pictures of a file whose packets may be copied. Raises ValueError saying why they may
    not, BadRow and Transient as `opened`.
    """
    frame = _first_frame(uri)
    with open_container(uri) as container:
        stream: Any = picture_stream(container)
        context = stream.codec_context
        if context.name != "h264":
            raise ValueError(f"the background is {context.name}, not H.264")
        if stream.profile not in ("Baseline", "Constrained Baseline", "Main", "High"):
            raise ValueError(f"the background's H.264 profile is {stream.profile}")
        parameters = h264.parse(bytes(context.extradata or b""))
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
        walk = _walk(container, stream)
    shown, delay = _order(walk)
    return PacketIndex(
        shown=shown,
        groups=walk.groups,
        stamps=walk.stamps,
        end=max(walk.ends),
        delay=delay,
        parameters=parameters,
        tick=tick,
        shape=shape,
    )


def _first_frame(uri: str) -> VideoFrame:
    with open_video(uri) as watched:
        if watched.stream is None:
            raise BadRow(f"no picture in {uri!r}")
        first = next(watched.pictures(), None)
        if first is None:
            raise BadRow(f"no frame of {uri!r} can be decoded")
        if first.turn or first.decoded.format.name not in FORMATS or first.decoded.interlaced_frame:
            raise ValueError("the background is turned, interlaced, or not 8-bit 4:2:0")
        return first.decoded


@dataclass(frozen=True)
class _Walk:
    """Packets in decoding order: when they are shown and end; the numbers and decoding times of
    those that begin a group.
    """

    times: list[int]
    ends: list[int]
    groups: list[int]
    stamps: list[int]


def _order(walk: _Walk) -> tuple[list[int], int]:
    """The times as shown, and by how many pictures the decoding order lags. Raises ValueError where
    a group is not closed: shown together, apart from the others.
    """
    times = walk.times
    order = sorted(range(len(times)), key=times.__getitem__)
    place = [0] * len(times)
    for rank, number in enumerate(order):
        place[number] = rank
    shown = [times[n] for n in order]
    if any(a == b for a, b in pairwise(shown)):
        raise ValueError("two of the background's pictures have one time")
    if not walk.groups or walk.groups[0] != 0:
        raise ValueError("the background does not begin with an IDR picture")
    for first, after in pairwise([*walk.groups, len(times)]):
        if place[first] != first or min(place[first:after]) < first:
            raise ValueError("the background's groups of pictures are not closed")
    return shown, max(n - p for n, p in enumerate(place))


def _walk(container: Any, stream: Any) -> _Walk:
    walk = _Walk([], [], [], [])
    for packet in packets(container, stream):
        if not packet.size:
            continue
        if packet.pts is None or packet.dts is None or packet.is_discard or packet.is_corrupt:
            raise ValueError("the background has packets without a time, damaged or to be left out")
        if packet.is_keyframe and h264.is_idr(bytes(packet)):
            walk.groups.append(len(walk.times))
            walk.stamps.append(packet.dts)
        walk.times.append(packet.pts)
        walk.ends.append(packet.pts + (packet.duration or 0))
    if not walk.times:
        raise ValueError("the background has no pictures")
    return walk


def copy_packets(
    uri: str, found: PacketIndex, first: int, after: int, shift: int, shape: CodedShape
) -> Iterator[Any]:
    """Pictures number `first` to before `after` of an indexed file, as packets moved by `shift`
    ticks: whole groups as they are, what a cut leaves of a group coded anew.
    """
    begin = bisect_left(found.groups, first)  # the first group that begins within
    ends = [*found.groups[1:], len(found.shown)]
    stop = bisect_left([*found.groups, len(found.shown)], after)
    while stop > begin and ends[stop - 1] > after:
        stop -= 1
    if begin >= stop:
        yield from _again(uri, found, first, after, shift, shape)
        return
    if first < found.groups[begin]:
        yield from _again(uri, found, first, found.groups[begin], shift, shape)
    yield from _copied(uri, found, begin, stop, shift)
    if ends[stop - 1] < after:
        yield from _again(uri, found, ends[stop - 1], after, shift, shape)


def _copied(uri: str, found: PacketIndex, begin: int, stop: int, shift: int) -> Iterator[Any]:
    """The packets of groups `begin` to before `stop`."""
    left = [*found.groups, len(found.shown)][stop] - found.groups[begin]
    for packet in _from_group(uri, found, begin):
        if not packet.size:
            break
        packet.pts += shift
        yield packet
        left -= 1
        if not left:
            return
    raise BadRow(f"{uri!r} changed while it was read: {left} packets are missing")


def _from_group(uri: str, found: PacketIndex, group: int) -> Iterator[Any]:
    """The packets from a group's IDR picture on; the file is open while they are taken."""
    with open_container(uri) as container:
        stream: Any = picture_stream(container)
        goal = found.shown[found.groups[group]]
        container.seek(found.stamps[group], stream=stream, backward=True)
        ahead = False
        for packet in packets(container, stream):
            ahead = ahead or packet.pts == goal
            if ahead:
                yield packet


def _again(
    uri: str, found: PacketIndex, first: int, after: int, shift: int, shape: CodedShape
) -> Iterator[Any]:
    """Pictures of one or more groups, decoded from their IDR picture on and coded anew."""
    if first >= after:
        return
    group = bisect_left(found.groups, first + 1) - 1

    def pictures() -> Iterator[tuple[int, TimedFrame]]:
        low, high = found.stamp(first), found.stamp(after)
        for packet in _from_group(uri, found, group):
            for frame in packet.decode():
                if frame.pts >= high:
                    return
                if frame.pts >= low:
                    yield frame.pts + shift, TimedFrame(0.0, frame, 0, float(shape.pixel))

    yield from encode_frames(pictures(), shape)
