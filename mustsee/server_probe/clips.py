"""Clips of cards, with or without sound, as MP4 files (H.264, AAC)."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from mustsee.calls.llm import VideoClip
from mustsee.records import Span
from mustsee.server_probe.cards import draw_card
from mustsee.server_probe.sound import RATE, Samples
from mustsee.store import digest

FPS = 4  # frames per second of the file; each card is shown for several equal frames
CRF = 23
AUDIO_BITS = 64_000  # bits per second
AUDIO_FRAME = 1024  # samples that the AAC encoder takes at once


@dataclass(frozen=True, kw_only=True)
class NumeralClip:
    """Numerals, and the seconds for which each is shown. `sound`: from the beginning; None: the
    file has no sound.
    """

    numerals: tuple[int, ...]
    seconds: tuple[float, ...]
    sound: Samples | None = None

    @classmethod
    def steady(
        cls, numerals: Sequence[int], each: float, sound: Samples | None = None
    ) -> NumeralClip:
        """Return a clip that shows each numeral for `each` seconds."""
        return cls(numerals=tuple(numerals), seconds=(each,) * len(numerals), sound=sound)

    @property
    def length(self) -> float:
        """Seconds of the clip."""
        return sum(self.seconds)

    @property
    def starts(self) -> tuple[float, ...]:
        """The second at which each numeral is shown first."""
        return tuple(sum(self.seconds[:n]) for n in range(len(self.seconds)))

    def for_model(self, address: str = "") -> VideoClip:
        """Return the clip as a message has it. `address`: where the server finds the file; "": it
        is sent.
        """
        sound = None if self.sound is None else digest(self.sound.tobytes().hex())
        key = digest(["numerals", self.numerals, self.seconds, sound])
        mp4 = b"" if address else encode_clip(self)
        return VideoClip(span=Span(0.0, self.length), digest=key, mp4=mp4, address=address)


def encode_clip(clip: NumeralClip) -> bytes:
    """Return the MP4 file of a clip."""
    import av

    file = io.BytesIO()
    with av.open(file, "w", format="mp4") as out:
        options = {"preset": "veryfast", "crf": str(CRF), "bf": "0", "g": str(2 * FPS)}
        video: Any = out.add_stream("libx264", rate=FPS, options=options)
        first = _picture(clip.numerals[0])
        video.width, video.height, video.pix_fmt = first.width, first.height, "yuv420p"
        video.codec_context.time_base, video.codec_context.thread_count = Fraction(1, FPS), 1
        sound = _sound_stream(out) if clip.sound is not None else None
        number = 0
        for numeral, seconds in zip(clip.numerals, clip.seconds, strict=True):
            frame: Any = av.VideoFrame.from_image(_picture(numeral))
            for _ in range(round(seconds * FPS)):
                frame.pts, frame.time_base = number, Fraction(1, FPS)
                out.mux(video.encode(frame))
                number += 1
        out.mux(video.encode(None))
        if sound is not None and clip.sound is not None:
            _encode_sound(out, sound, clip.sound, clip.length)
    return file.getvalue()


def _picture(numeral: int) -> Any:
    from PIL import Image

    return Image.open(io.BytesIO(draw_card(numeral))).convert("RGB")


def _sound_stream(out: Any) -> Any:
    stream = out.add_stream("aac", rate=RATE)
    stream.bit_rate, stream.layout = AUDIO_BITS, "mono"
    return stream


def _encode_sound(out: Any, stream: Any, sound: Samples, seconds: float) -> None:
    """Encode the sound, with silence after it up to the end of the clip."""
    import av

    samples = np.zeros(round(seconds * RATE), np.float32)
    samples[: len(sound)] = sound[: len(samples)]
    for start in range(0, len(samples), AUDIO_FRAME):
        part = samples[start : start + AUDIO_FRAME]
        frame = av.AudioFrame.from_ndarray(part[None], format="fltp", layout="mono")
        frame.sample_rate, frame.time_base, frame.pts = RATE, Fraction(1, RATE), start
        out.mux(stream.encode(frame))
    out.mux(stream.encode(None))
