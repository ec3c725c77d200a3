"""The reason for a video without lines is in its sound."""

from collections.abc import Iterator

import numpy as np
import pytest

from mustsee.media.sound import Sound
from mustsee.media.transcript_quality import (
    MUSIC,
    SILENT,
    UNRECOGNISED,
    Detect,
    doubtful_reason,
    unheard_reason,
)

RATE = 16_000


def sounds(*chunks: np.ndarray) -> Iterator[Sound]:
    return (Sound(10.0 * i, x.astype(np.float32)) for i, x in enumerate(chunks))


def noise(level: float) -> np.ndarray:
    return np.random.default_rng(0).uniform(-level, level, 10 * RATE)


def events(speech: float, singing: float, music: float) -> Detect:
    """A detector that hears each event in that share of the frames."""

    def detect(samples: np.ndarray) -> np.ndarray:
        frames = len(samples) // 160
        shares = np.array([speech, singing, music])
        return (np.arange(frames)[:, None] < shares * frames).astype(np.float32)

    return detect


@pytest.mark.parametrize(
    ("level", "detect", "reason"),
    [
        (0.0, None, SILENT),
        (0.0009, events(0, 0, 1), SILENT),
        (0.1, None, UNRECOGNISED),
        (0.1, events(0, 0, 0.9), MUSIC),
        (0.1, events(0.05, 0.02, 0.9), MUSIC),
        (0.1, events(0.05, 0.08, 0.9), UNRECOGNISED),  # a song, or someone speaks
        (0.1, events(0, 0, 0.3), UNRECOGNISED),
    ],
)
def test_silence_music_and_other_sound_are_told_apart(
    level: float, detect: Detect | None, reason: str
) -> None:
    assert unheard_reason(sounds(noise(level), noise(level)), detect) == reason


def test_one_loud_chunk_is_not_silence_and_no_chunk_has_no_reason() -> None:
    assert unheard_reason(sounds(noise(0.0), noise(0.1), noise(0.0)), None) == UNRECOGNISED
    assert unheard_reason(sounds(), events(0, 0, 1)) is None


def test_doubtful_lines_are_counted() -> None:
    assert doubtful_reason(1) == "speech was heard, but 1 line is doubtful and left out"
    assert doubtful_reason(7) == "speech was heard, but 7 lines are doubtful and left out"
