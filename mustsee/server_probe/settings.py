"""How much a probe sends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mustsee.errors import UserError

MOST_NUMERALS = 900  # numerals of three digits that there are


@dataclass(frozen=True, kw_only=True)
class ProbeSettings:
    """`images`: numbers of images in one request, rising. `first_seconds`: length of the shortest
    video; it is doubled up to `longest_seconds`. `digits`: spoken digits, and tones, of the clips
    with sound. `file_urls`: whether a video is also sent by its file URL. `prefix_words`: words of
    the text that several requests share. `parameters`: sent once besides those of every request.
    `in_flight`: calls at once in the ramp, which doubles from one; 0: no ramp. `max_tokens`: of one
    reply, and more where it lists many numerals. `failures`: failures of one call before it is
    given up. `patience`: seconds, as of any endpoint.
    """

    images: Sequence[int] = (8, 48)
    first_seconds: int = 8
    longest_seconds: int = 128
    digits: int = 6
    file_urls: bool = False
    prefix_words: int = 2400
    parameters: Mapping[str, Any] = field(default_factory=dict[str, Any])
    in_flight: int = 16
    max_tokens: int = 1500
    failures: int = 2
    patience: float = 90.0

    def __post_init__(self) -> None:
        if list(self.images) != sorted(set(self.images)) or not all(
            1 <= n <= MOST_NUMERALS for n in self.images
        ):
            raise UserError(
                f"images={list(self.images)!r}: rising numbers from 1 to {MOST_NUMERALS}, or []"
            )
        if not 4 <= self.first_seconds <= self.longest_seconds <= MOST_NUMERALS:
            raise UserError(
                f"first_seconds={self.first_seconds!r}, longest_seconds={self.longest_seconds!r}: "
                f"4 <= first_seconds <= longest_seconds <= {MOST_NUMERALS}"
            )
        if not 4 <= self.digits <= 20:
            raise UserError(f"digits={self.digits!r}: from 4 to 20")
        if self.in_flight < 0 or self.prefix_words < 200 or self.max_tokens < 64:
            raise UserError(
                f"in_flight={self.in_flight!r}, prefix_words={self.prefix_words!r}, "
                f"max_tokens={self.max_tokens!r}: at least 0, 200 and 64"
            )

    @property
    def lengths(self) -> tuple[int, ...]:
        """Lengths of the videos, in seconds."""
        lengths = [self.first_seconds]
        while lengths[-1] < self.longest_seconds:
            lengths.append(min(2 * lengths[-1], self.longest_seconds))
        return tuple(lengths)

    @property
    def levels(self) -> tuple[int, ...]:
        """Calls at once in each step of the ramp."""
        levels = [1] if self.in_flight else []
        while levels and levels[-1] < self.in_flight:
            levels.append(min(2 * levels[-1], self.in_flight))
        return tuple(levels)
