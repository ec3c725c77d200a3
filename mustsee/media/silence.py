"""Sound cut where it is quiet, for recognisers that accept files of a limited length."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from mustsee.media.sound import MAX_DRIFT_S, Sound

LOUDNESS_WINDOW_S = 0.2  # seconds over which loudness is measured
SEARCHED_SHARE = 1 / 3  # share of a chunk, at its end, that is searched for the quietest place


def quiet_cuts(sounds: Iterable[Sound], rate: int, longest: float) -> Iterator[Sound]:
    """Yield the same sound in chunks of at most `longest` seconds.

    A chunk is cut at the quietest place of its last third, and at a gap in the times. Holds one
    chunk and one element of `sounds` in memory.
    """
    max_samples = max(1, round(longest * rate))
    samples, start = np.zeros(0, np.float32), 0.0
    for sound in sounds:
        if len(samples) and sound.start - (start + len(samples) / rate) > MAX_DRIFT_S:
            yield Sound(start, samples)
            samples = samples[:0]
        start = start if len(samples) else sound.start
        samples = np.concatenate([samples, sound.samples])
        while len(samples) > max_samples:
            cut = quietest(samples[:max_samples], rate)
            yield Sound(start, samples[:cut])
            samples, start = samples[cut:], start + cut / rate
    if len(samples):
        yield Sound(start, samples)


def quietest(samples: NDArray[np.float32], rate: int) -> int:
    """Return the sample in the middle of the quietest `LOUDNESS_WINDOW_S` of the last third."""
    first = len(samples) - int(len(samples) * SEARCHED_SHARE)
    width = max(1, min(round(LOUDNESS_WINDOW_S * rate), len(samples) - first))
    power = np.concatenate([[0.0], np.cumsum(np.square(samples[first:], dtype=np.float64))])
    sums = power[width:] - power[:-width]
    return max(1, first + int(sums.argmin()) + width // 2)
