"""Channels of sound that cancel each other: one that a wrongly wired microphone inverted."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from av import AudioFrame

MEMORY_S = 0.2  # seconds of sound after which a measurement counts less than half
MAX_OPPOSED = -0.5  # correlation below which a channel is inverted
MAX_CHANNELS = 7  # channels whose samples PyAV can read; a damaged file may claim more


class PhaseMender:
    """Inverts, while frames of sound go by, each channel that would cancel those before it in a mix
    to mono. Sound of other channels passes unchanged.
    """

    def __init__(self) -> None:
        self._products: NDArray[np.float64] | None = None  # of the channels, each with each

    def __call__(self, frame: AudioFrame) -> AudioFrame:
        """Return the frame, or one with some channels inverted, without a time."""
        count = len(frame.layout.channels)
        is_readable = not frame.format.name.startswith("s64")  # PyAV has no such samples
        if not (2 <= count <= MAX_CHANNELS and frame.samples and is_readable):
            return frame
        samples = frame.to_ndarray()
        channels = samples if frame.format.is_planar else samples.reshape(-1, count).T
        opposed = self._opposed(channels, math.exp(-frame.samples / frame.sample_rate / MEMORY_S))
        if not opposed:
            return frame
        for number in opposed:
            # -x - 1 cannot overflow, and is right for unsigned samples, too.
            whole = np.issubdtype(channels.dtype, np.integer)
            channels[number] = ~channels[number] if whole else -channels[number]
        from av import AudioFrame

        mended = AudioFrame.from_ndarray(samples, frame.format.name, frame.layout.name)
        mended.sample_rate = frame.sample_rate
        return mended

    def _opposed(self, channels: NDArray[np.generic], memory: float) -> list[int]:
        """The channels to invert."""
        centred = channels - channels.mean(axis=1, dtype=np.float64, keepdims=True)
        products = centred @ centred.T
        if self._products is not None and self._products.shape == products.shape:
            products += memory * self._products
        self._products = products
        signs = np.zeros(len(products))
        for number, row in enumerate(products):
            # the product of a channel with the sum of those before, and of that sum with itself
            with_sum, of_sum = row @ signs, signs @ products @ signs
            opposed = with_sum < MAX_OPPOSED * math.sqrt(of_sum * row[number])
            signs[number] = -1 if opposed else 1
        return [number for number, sign in enumerate(signs) if sign < 0]
