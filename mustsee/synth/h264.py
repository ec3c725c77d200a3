"""The parts of H.264 needed to join streams without encoding them again: parameter sets, and the
frames at which decoding can start.

A track holds the parameter sets of the copied stream and of the encoded stream under different ids
(ISO/IEC 14496-15, 5.3.3.1); each slice names the set that it was encoded with.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

IDR, SPS = 5, 7  # types of network abstraction layer units
HIGH_PROFILES = (100, 110, 122, 144)  # profiles whose `avcC` box has four more bytes


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """The content of an `avcC` box."""

    profile: int
    compatibility: int
    level: int
    sps: tuple[bytes, ...]
    pps: tuple[bytes, ...]
    high: bytes = b""

    def ids(self) -> set[int]:
        """Return the ids of the sequence and picture parameter sets."""
        return {_number(s[4:], 0) for s in self.sps} | {_number(p[1:], 0) for p in self.pps}

    def box(self) -> bytes:
        """Return the `avcC` box."""
        head = bytes([1, self.profile, self.compatibility, self.level, 0xFF, 0xE0 | len(self.sps)])
        sets = b"".join(len(s).to_bytes(2, "big") + s for s in self.sps)
        more = b"".join(len(p).to_bytes(2, "big") + p for p in self.pps)
        return head + sets + bytes([len(self.pps)]) + more + self.high


def parse(box: bytes) -> Parameters:
    """Return the parameters of an `avcC` box.

    Raises ValueError for any other box, or where units have lengths of other than four bytes.
    """
    if len(box) < 7 or box[0] != 1:
        raise ValueError("the stream has no avcC parameter sets")
    if box[4] & 3 != 3:
        raise ValueError("the stream's units do not have lengths of four bytes")
    try:
        sps, at = _sets(box, 6, box[5] & 31)
        pps, at = _sets(box, at + 1, box[at])
    except IndexError as error:
        raise ValueError("the stream's avcC parameter sets are cut off") from error
    if not sps or not pps:
        raise ValueError("the stream has its parameter sets elsewhere")
    high = box[at : at + 4] if box[1] in HIGH_PROFILES else b""
    return Parameters(
        profile=box[1], compatibility=box[2], level=box[3], sps=sps, pps=pps, high=high
    )


def _sets(box: bytes, at: int, count: int) -> tuple[tuple[bytes, ...], int]:
    sets: list[bytes] = []
    for _ in range(count):
        size = box[at] << 8 | box[at + 1]
        sets.append(box[at + 2 : at + 2 + size])
        at += 2 + size
    return tuple(sets), at


def _number(data: bytes, skip: int) -> int:
    """The first Exp-Golomb number after `skip` bits."""
    bits = "".join(f"{byte:08b}" for byte in data[:9])[skip:]
    zeros = len(bits) - len(bits.lstrip("0"))
    return int(bits[zeros : 2 * zeros + 1], 2) - 1


def merge_parameters(copied: Parameters, coded: Parameters) -> Parameters:
    """Return the parameters of a track that holds both streams. Raises ValueError when an id is
    used twice.
    """
    if copied.ids() & coded.ids():
        raise ValueError("both streams use the same parameter set id")
    main = max(copied, coded, key=lambda p: (p.profile in HIGH_PROFILES, p.profile))
    return Parameters(
        profile=main.profile,
        compatibility=copied.compatibility & coded.compatibility,
        level=max(copied.level, coded.level),
        sps=copied.sps + coded.sps,
        pps=copied.pps + coded.pps,
        high=main.high,
    )


def units(packet: bytes) -> Iterator[bytes]:
    """Yield the units of a packet, each without its length."""
    at = 0
    while at + 4 < len(packet):
        size = int.from_bytes(packet[at : at + 4], "big")
        yield packet[at + 4 : at + 4 + size]
        at += 4 + size


def is_idr(packet: bytes) -> bool:
    """Whether a packet is an IDR frame: no frame after it refers to one before."""
    at = 0
    while at + 4 < len(packet):
        kind = packet[at + 4] & 31
        if 1 <= kind <= 5:
            return kind == IDR
        at += 4 + int.from_bytes(packet[at : at + 4], "big")
    return False
