"""What is sent to a server: cards, sound, and clips of both as MP4 files (H.264, AAC).

A card is a large numeral on a coloured ground within a coloured border. The border repeats the
numeral in colours, one for each of its digits, so that the tests' servers can read a card from its
pixels without recognising text. Sound is spoken digits (assets/digits.ogg, which
`deploy/make_digits.py` makes) and tones. Samples are float32, -1 to 1, mono, at `RATE`.
"""

from __future__ import annotations

import functools
import io
import random
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from mustsee.calls.llm import VideoClip
from mustsee.files.store import digest
from mustsee.records import Span

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


SIZE = (320, 240)  # pixels
BORDER = 24  # pixels
NUMERAL_PIXELS = 130  # height of the numeral
QUALITY = 90  # quality of the JPEG
TWO_DIGITS = range(10, 100)
THREE_DIGITS = range(100, 1000)
MOST_OF_TWO = 64  # numerals of two digits in one request; of more, each has three
Colour = tuple[int, int, int]
# Border colours of the digits 0 to 9.
DIGIT_COLOURS: tuple[Colour, ...] = (
    (0, 0, 0), (255, 255, 255), (220, 30, 30), (30, 160, 50), (40, 70, 220),
    (250, 220, 40), (40, 210, 220), (210, 50, 210), (250, 140, 20), (128, 128, 128),
)  # fmt: skip
GROUNDS: tuple[Colour, ...] = (
    (255, 245, 200), (205, 235, 255), (220, 255, 215), (255, 220, 225), (235, 225, 255),
)  # fmt: skip
INK: Colour = (20, 20, 30)


def draw_numerals(count: int, rng: random.Random) -> tuple[int, ...]:
    """Return `count` different random numbers, of two digits, or of three if there are many. A
    sequence such as 1 to `count` could be told without seeing it.
    """
    return tuple(rng.sample(TWO_DIGITS if count <= MOST_OF_TWO else THREE_DIGITS, count))


@functools.lru_cache(maxsize=2048)
def draw_card(numeral: int) -> bytes:
    """Return the card of a numeral of at most three digits as JPEG."""
    width, height = SIZE
    hundreds, tens, units = (DIGIT_COLOURS[numeral // scale % 10] for scale in (100, 10, 1))
    card = Image.new("RGB", SIZE, hundreds)  # the left border
    draw = ImageDraw.Draw(card)
    draw.rectangle((BORDER, 0, width, height), fill=tens)  # the upper and the lower border
    draw.rectangle((width - BORDER, 0, width, height), fill=units)  # the right border
    inner = (BORDER, BORDER, width - BORDER - 1, height - BORDER - 1)
    draw.rectangle(inner, fill=GROUNDS[numeral % len(GROUNDS)])
    font = ImageFont.load_default(NUMERAL_PIXELS)
    draw.text((width / 2, height / 2), str(numeral), font=font, fill=INK, anchor="mm")
    file = io.BytesIO()
    card.save(file, "JPEG", quality=QUALITY, subsampling=0)
    return file.getvalue()


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
        sound: Any = out.add_stream("aac", rate=RATE) if clip.sound is not None else None
        if sound is not None:
            sound.bit_rate, sound.layout = AUDIO_BITS, "mono"
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
    return Image.open(io.BytesIO(draw_card(numeral))).convert("RGB")


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
