"""Log mel features of speech as Kaldi computes them, for networks that were trained on these.

Of 25 ms every 10 ms at 16 kHz, without dither (Kaldi's `compute-fbank-feats`).
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
SAMPLE_RATE = 16_000
BINS = 80
FRAME_SAMPLES = 400
STEP_SAMPLES = 160
FFT_SAMPLES = 512
LOWEST_HZ = 20.0
PREEMPHASIS = 0.97


def log_mel(samples: Floats, *, scale: float = 1.0) -> Floats:
    """Return the features (frames, 80) of mono sound at 16 kHz; no frames for less than 25 ms.

    `scale`: factor on the samples, which are in -1 to 1; 32768 for networks that were trained on
    16-bit samples.
    """
    if len(samples) < FRAME_SAMPLES:
        return np.zeros((0, BINS), np.float32)
    frames = np.lib.stride_tricks.sliding_window_view(samples, FRAME_SAMPLES)[::STEP_SAMPLES]
    frames = (frames * np.float32(scale)).astype(np.float32)
    frames -= frames.mean(axis=1, keepdims=True)
    before = np.concatenate([frames[:, :1], frames[:, :-1]], axis=1)
    window = (np.hanning(FRAME_SAMPLES) ** 0.85).astype(np.float32)  # Povey's window
    spectrum = np.fft.rfft((frames - PREEMPHASIS * before) * window, FFT_SAMPLES)
    power = (np.abs(spectrum[:, : FFT_SAMPLES // 2]) ** 2).astype(np.float32)
    return np.log(np.maximum(power @ _mel_triangles().T, np.finfo(np.float32).eps))


@cache
def _mel_triangles() -> Floats:
    """The weights (80, 256) of the spectrum in each mel bin."""
    low, high = _mel(np.array([LOWEST_HZ, SAMPLE_RATE / 2]))
    width = (high - low) / (BINS + 1)
    left = low + width * np.arange(BINS)[:, None]
    mels = _mel(np.arange(FFT_SAMPLES // 2) * SAMPLE_RATE / FFT_SAMPLES)[None]
    rising, falling = (mels - left) / width, (left + 2 * width - mels) / width
    return np.maximum(0, np.minimum(rising, falling)).astype(np.float32)


def _mel(hertz: NDArray[np.float64]) -> NDArray[np.float64]:
    return 1127 * np.log1p(hertz / 700)
