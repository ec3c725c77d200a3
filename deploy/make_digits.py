"""Makes mustsee/assets/digits.ogg, the ten spoken digits that `mustsee probe` sends.

    python deploy/make_digits.py        needs flite (apt install flite)

Each digit lies in a slot of its own of equal length, from zero to nine, so that the file needs no
index (`mustsee.server_probe.stimuli`).
"""

from __future__ import annotations

import subprocess
import tempfile
from fractions import Fraction
from pathlib import Path

import av
import numpy as np

from mustsee.server_probe.stimuli import DIGITS_FILE, RATE, SLOT_S

WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
VOICE = "slt"  # a voice of flite (CMU), free for any use
BITS_PER_SECOND = 32_000
PEAK = 0.8  # loudest sample, as a share of full scale


def speak(word: str) -> np.ndarray:
    """Return a word as samples at `RATE`, -1 to 1, without the silence around it."""
    with tempfile.NamedTemporaryFile(suffix=".wav") as file:
        subprocess.run(["flite", "-voice", VOICE, "-t", word, "-o", file.name], check=True)
        with av.open(file.name) as wav:
            resampler = av.AudioResampler("s16", "mono", RATE)
            frames = [*wav.decode(audio=0), None]
            parts = [out.to_ndarray()[0] for f in frames for out in resampler.resample(f)]
    samples = np.concatenate(parts) / 32768
    loud = np.flatnonzero(np.abs(samples) > 0.02 * np.abs(samples).max())
    samples = samples[loud[0] : loud[-1] + 1]
    return PEAK * samples / np.abs(samples).max()


def main() -> None:
    slot = round(SLOT_S * RATE)
    track = np.zeros(len(WORDS) * slot)
    for number, word in enumerate(WORDS):
        samples = speak(word)
        assert len(samples) < slot, f"{word!r} is longer than its slot"
        track[number * slot : number * slot + len(samples)] = samples
    with av.open(str(DIGITS_FILE), "w", format="ogg") as out:
        stream = out.add_stream("libopus", rate=RATE)
        stream.bit_rate, stream.layout = BITS_PER_SECOND, "mono"
        pcm = np.round(32767 * track).astype(np.int16)[None]
        frame = av.AudioFrame.from_ndarray(pcm, format="s16", layout="mono")
        frame.sample_rate, frame.time_base, frame.pts = RATE, Fraction(1, RATE), 0
        for packet in (*stream.encode(frame), *stream.encode(None)):
            out.mux(packet)
    print(DIGITS_FILE, Path(DIGITS_FILE).stat().st_size, "bytes")


if __name__ == "__main__":
    main()
