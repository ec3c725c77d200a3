"""Sound cut where it is quiet: for recognisers that take files of a limited size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from mustsee.media.sound import MAX_DRIFT_S, Sound

LOUDNESS_WINDOW_S = 0.2  # seconds over which loudness is measured
SEARCHED_SHARE = 1 / 3  # the last part of a chunk, in which the quietest place is looked for


def quiet_cuts(stretches: Iterable[Sound], rate: int, longest: float) -> Iterator[Sound]:
    """The same sound in chunks of at most `longest` seconds, cut at the quietest place of their
    last third; a gap in the times is a cut, too. Holds one chunk and one stretch.
    """
    most = max(1, round(longest * rate))
    held, begun = np.zeros(0, np.float32), 0.0
    for stretch in stretches:
        if len(held) and stretch.start - (begun + len(held) / rate) > MAX_DRIFT_S:
            yield Sound(begun, held)
            held = held[:0]
        begun = begun if len(held) else stretch.start
        held = np.concatenate([held, stretch.samples])
        while len(held) > most:
            at = quietest(held[:most], rate)
            yield Sound(begun, held[:at])
            held, begun = held[at:], begun + at / rate
    if len(held):
        yield Sound(begun, held)


def quietest(samples: NDArray[np.float32], rate: int) -> int:
    """The sample in the middle of the quietest `LOUDNESS_WINDOW_S` of the last third."""
    first = len(samples) - int(len(samples) * SEARCHED_SHARE)
    width = max(1, min(round(LOUDNESS_WINDOW_S * rate), len(samples) - first))
    power = np.concatenate([[0.0], np.cumsum(np.square(samples[first:], dtype=np.float64))])
    sums = power[width:] - power[:-width]
    return max(1, first + int(sums.argmin()) + width // 2)
