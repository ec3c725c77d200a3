"""Why a video has no transcript lines: silence, music, sound, or speech that was doubtful."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from mustsee.media.sound import Sound

SILENT_PEAK = 0.001  # loudest sample, 0 to 1, up to which sound counts as silence: -60 dB
EVENT_PROBABILITY = 0.5  # probability from which a frame has an event
MUSIC_SHARE = 0.5  # share of frames with music from which sound without lines is music
VOICE_SHARE = 0.1  # share of frames with speech or singing from which it is not only music
SILENT = "no speech: silent"
MUSIC = "no speech: music"
SURE = (SILENT, MUSIC)
UNRECOGNISED = "sound without recognised speech (music or noise)"

Detect = Callable[[NDArray[np.float32]], NDArray[np.float32]]


def doubtful_reason(lines: int) -> str:
    """Return why no line is left where all `lines` were doubtful."""
    number = "1 line is" if lines == 1 else f"{lines} lines are"
    return f"speech was heard, but {number} doubtful and left out"


def unheard_reason(sounds: Iterable[Sound], detect: Detect | None) -> str | None:
    """Return why sound gave no lines: `SILENT`, `MUSIC` or `UNRECOGNISED`; null without sound.

    `detect`: returns the probabilities of speech, singing and music for each 10 ms
    (`mustsee.nn.sound_events`); null: music is not told from noise.
    """
    peaks, events = list[float](), list[NDArray[np.float32]]()
    for sound in sounds:
        peaks.append(float(np.abs(sound.samples).max()))
        if detect:
            events.append(detect(sound.samples))
    if not peaks:
        return None
    if max(peaks) <= SILENT_PEAK:
        return SILENT
    found = np.concatenate(events) if events else np.zeros((0, 3), np.float32)
    speech, singing, music = (found >= EVENT_PROBABILITY).sum(axis=0) / max(1, len(found))
    is_music = music >= MUSIC_SHARE and speech + singing < VOICE_SHARE
    return MUSIC if is_music else UNRECOGNISED
