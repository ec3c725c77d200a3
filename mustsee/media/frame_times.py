"""The times of a video's frames by its packets, and, in MPEG streams, where those lie.

An MPEG stream (`.ts`, `.m2ts`, `.vob`, `.mpg`) has no table of contents. FFmpeg seeks in it by
times and lands late, after the whole first group, or in another part where streams were joined, as
`cat` does, because the times of each part begin anew. Such a stream is therefore read once; its
frames are reached by the positions of their packets, and its times go on over each join.
"""

from __future__ import annotations

import os
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mustsee.errors import BadRow
from mustsee.media.files import find_video_stream, open_container, packets

if TYPE_CHECKING:
    from av.container import InputContainer

MPEG_STREAMS = ("mpegts", "mpeg")  # FFmpeg's names of the formats; their clock has 90,000 ticks/s
TICKS = 90_000  # a second, in MPEG streams
MAX_BACK_S = 0.25  # seconds by which a stream's times may go back; more is a join
MAX_GAP_S = 10.0  # seconds that may be missing in a stream, as by FFmpeg; more is a join
MAX_CACHED_VIDEOS = 8  # videos whose times are kept: at most 16 bytes per frame


@dataclass(frozen=True)
class Joins:
    """The parts of a joined stream: their `starts` in bytes, and the `shifts` in ticks that make
    their times go on.
    """

    starts: Sequence[int] = (0,)
    shifts: Sequence[int] = (0,)

    def shift(self, position: int) -> int:
        """Return the shift of a packet at a position."""
        return self.shifts[max(0, bisect_right(self.starts, position) - 1)]

    def read(self, container: InputContainer, stream: Any) -> Iterator[Any]:
        """Yield the packets of a stream as `packets` does, with times that go on."""
        if len(self.starts) == 1:
            yield from packets(container, stream)
            return
        shift = self.shifts[0]
        for packet in packets(container, stream):
            # Only the first of the frames in a packet of the stream has a position.
            shift = shift if packet.pos is None else self.shift(packet.pos)
            if (shown := _shown(packet)) is not None:
                packet.pts = shown + shift
            if packet.dts is not None:
                packet.dts += shift
            yield packet


@dataclass(frozen=True)
class FrameTimes:
    """Timestamps in presentation order, of all frames and of the keyframes.

    Of MPEG streams also `positions`, the bytes at which the keyframes lie, the `joins`, and `end`,
    the timestamp at which the last frame ends.
    """

    stamps: Sequence[int]
    keys: Sequence[int]
    positions: Sequence[int] = ()
    joins: Joins = Joins()
    end: int | None = None

    def target(self, stamp: int, slack: int) -> int:
        """Return the frame shown at a timestamp, or the nearest keyframe if it is within
        `slack`.
        """
        after = bisect_right(self.keys, stamp)
        key = min(self.keys[max(0, after - 1) : after + 1], key=lambda key: abs(key - stamp))
        if abs(key - stamp) <= slack:
            return key
        return self.stamps[max(0, bisect_right(self.stamps, stamp) - 1)]

    def seek_before(self, container: InputContainer, stamp: int) -> None:
        """Seek in an MPEG stream to the last keyframe at or before a timestamp, if there is one."""
        group = bisect_right(self.keys, stamp) - 1
        if group >= 0:
            seek_to_byte(container, self.positions[group])


def is_mpeg_stream(container: InputContainer) -> bool:
    """Whether a file is an MPEG stream."""
    return container.format.name in MPEG_STREAMS


def seek_to_byte(container: InputContainer, position: int) -> None:
    """Seek in an MPEG stream to the packet at a position."""
    container.seek(position, unsupported_byte_offset=True)


def frame_times(uri: str) -> FrameTimes:
    """Return the times of a video's frames, from the whole file, but without decoding it.

    Empty where packets have no times. They are kept until the file changes. Raises BadRow and
    Transient.
    """
    return _read(uri, _version(uri))


@lru_cache(maxsize=MAX_CACHED_VIDEOS)
def _read(uri: str, version: tuple[int, int] | None) -> FrameTimes:
    with open_container(uri) as container:
        stream = find_video_stream(container)
        if stream is None:
            raise BadRow(f"no video stream in {uri!r}")
        if is_mpeg_stream(container):
            return _read_mpeg_stream(container, stream)
        return _read_packets(container, stream)


def _version(uri: str) -> tuple[int, int] | None:
    """Size and modification time of a local file, which identify its content; None for any
    other.
    """
    try:
        status = os.stat(uri)
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns


def _read_packets(container: InputContainer, stream: Any) -> FrameTimes:
    """The times by the packets' presentation times: a table in the container counts in decoding
    time.
    """
    stamps, keys = array("q"), array("q")
    for packet in packets(container, stream):
        if packet.size and packet.pts is None:
            return FrameTimes((), ())
        if packet.size and not packet.is_discard:
            stamps.append(packet.pts)
            if packet.is_keyframe:
                keys.append(packet.pts)
    return FrameTimes(array("q", sorted(stamps)), array("q", sorted(keys)))


def _read_mpeg_stream(container: InputContainer, stream: Any) -> FrameTimes:
    read, position = array("q"), dict[int, int]()
    for packet in packets(container, [*container.streams.video, *container.streams.audio]):
        number, shown = packet.stream_index, _shown(packet)
        position[number] = position.get(number, 0) if packet.pos is None else packet.pos
        if packet.size and not packet.is_discard and shown is not None:
            decoded = shown if packet.dts is None else packet.dts
            end = shown + (packet.duration or 0)
            read.extend((position[number], number, shown, end, decoded, packet.is_keyframe))
    rows = np.array(read, np.int64).reshape(-1, 6)
    # The demuxer gives the last sound before a join after the first frame behind it.
    rows = rows[np.argsort(rows[:, 0], kind="stable")]
    joins = _find_joins(rows)
    frames = rows[rows[:, 1] == stream.index]
    part = np.searchsorted(joins.starts, frames[:, 0], side="right") - 1
    frames[:, 2:4] += np.array(joins.shifts)[part, None]
    frames = frames[np.argsort(frames[:, 2], kind="stable")]
    keys = frames[frames[:, 5] == 1]
    return FrameTimes(
        stamps=array("q", frames[:, 2]),
        keys=array("q", keys[:, 2]),
        positions=array("q", keys[:, 0]),
        joins=joins,
        end=max(frames[:, 3].tolist(), default=None),
    )


def _shown(packet: Any) -> int | None:
    """When a packet is shown. The last one before a join may have the time of the first behind."""
    if packet.pts is None or packet.dts is None:
        return packet.dts if packet.pts is None else packet.pts
    late = packet.pts - packet.dts
    return packet.pts if 0 <= late <= MAX_GAP_S * TICKS else packet.dts + (packet.duration or 0)


def _find_joins(rows: NDArray[np.int64]) -> Joins:
    """The joins of packets, (n, 6), in order of position."""
    edges = [0]
    while (edge := edges[-1] + _part_length(rows[edges[-1] :])) < len(rows):
        edges.append(edge)
    parts = [rows[a:b] for a, b in pairwise([*edges, len(rows)])]
    steps = [int(a[:, 3].max() - b[:, 2].min()) for a, b in pairwise(parts)]
    starts = [0, *(int(part[0, 0]) for part in parts[1:])]
    return Joins(starts, [*accumulate(steps, initial=0)])


def _part_length(rows: NDArray[np.int64]) -> int:
    """The number of packets until the times of a stream go back, or all go far on."""
    latest = np.maximum.accumulate(rows[:, 4])
    edges = [np.flatnonzero(rows[1:, 4] > latest[:-1] + MAX_GAP_S * TICKS) + 1]
    for number in np.unique(rows[:, 1]):
        own = np.flatnonzero(rows[:, 1] == number)
        edges.append(own[1:][np.diff(rows[own, 4]) < -MAX_BACK_S * TICKS])
    return min((int(found[0]) for found in edges if len(found)), default=len(rows))
