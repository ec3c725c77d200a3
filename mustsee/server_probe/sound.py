"""Sound that is sent to a server: spoken digits and tones.

The digits are assets/digits.ogg, which `deploy/make_digits.py` makes. Samples are float32, -1 to 1,
mono, at `RATE`.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Samples = NDArray[np.float32]
Tone = Literal["high", "low"]

RATE = 48_000  # samples per second
DIGITS_FILE = Path(__file__).parents[1] / "assets" / "digits.ogg"
SLOT_S = 0.8  # seconds of each digit in the file
TONE_HZ: dict[Tone, float] = {"high": 1760.0, "low": 220.0}
TONE_S = 0.6  # seconds of a tone
TONE_LEVEL = 0.5  # peak, 0 to 1
FADE_S = 0.02  # seconds in which a tone begins and ends


@functools.cache
def spoken_digits() -> tuple[Samples, ...]:
    """The ten digits, zero to nine, each `SLOT_S` seconds."""
    import av

    with av.open(str(DIGITS_FILE)) as file:
        resampler = av.AudioResampler("fltp", "mono", RATE)
        frames = [*file.decode(audio=0), None]
        parts = [out.to_ndarray()[0] for f in frames for out in resampler.resample(f)]
    track = np.concatenate(parts).astype(np.float32)
    slot = round(SLOT_S * RATE)
    track = np.pad(track, (0, max(0, 10 * slot - len(track))))
    return tuple(track[slot * n : slot * (n + 1)] for n in range(10))


def speak_digits(digits: Sequence[int], every: float) -> Samples:
    """Return the digits as speech, one each `every` seconds."""
    voices = spoken_digits()
    return _place([voices[digit] for digit in digits], every)


def play_tones(tones: Sequence[Tone], every: float) -> Samples:
    """Return the tones, one each `every` seconds."""
    times = np.arange(round(TONE_S * RATE)) / RATE
    edge = np.minimum(1.0, np.minimum(times, TONE_S - times) / FADE_S)
    waves = {
        name: (TONE_LEVEL * edge * np.sin(2 * np.pi * hertz * times)).astype(np.float32)
        for name, hertz in TONE_HZ.items()
    }
    return _place([waves[tone] for tone in tones], every)


def _place(sounds: Sequence[Samples], every: float) -> Samples:
    """Put one sound after the other, each in the middle of its `every` seconds."""
    slot = round(every * RATE)
    track = np.zeros(slot * len(sounds), np.float32)
    for number, sound in enumerate(sounds):
        start = number * slot + max(0, slot - len(sound)) // 2
        room = track[start : start + min(slot, len(sound))]
        room += sound[: len(room)]
    return track
