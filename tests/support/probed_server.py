"""A server that decodes what a probe sends it: images and videos by the colours of their borders,
speech by correlation, tones by their pitch. It is honest, or has the faults of `ServerFaults`.
"""

from __future__ import annotations

import io
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import av
import numpy as np
from PIL import Image

from loopback.endpoint import Loopback
from loopback.replies import Payload, decode_data_url, video_urls
from mustsee.server_probe.stimuli import (
    BORDER,
    DIGIT_COLOURS,
    RATE,
    SIZE,
    TONE_HZ,
    Colour,
    spoken_digits,
)

MIDDLE = BORDER // 2
EDGES = ((MIDDLE, SIZE[1] // 2), (SIZE[0] // 2, MIDDLE), (SIZE[0] - MIDDLE, SIZE[1] // 2))
SAMPLE_FPS = 2.0  # frames a second that an honest server takes of a video


class CachingLoopback(Loopback):
    """A loopback server that reports the tokens of the longest prefix of an earlier prompt."""

    def _metered(self, answer: dict[str, Any]) -> dict[str, Any]:
        metered = super()._metered(answer)
        prompt = metered["usage"]["prompt_tokens"]
        texts = [str(p["messages"][-1]["content"]) for p in self.payloads or []]
        shared = max((shared_length(texts[-1], text) for text in texts[:-1]), default=0)
        cached = min(prompt, shared // 4) if shared > 1000 else 0
        usage = {**metered["usage"], "prompt_tokens_details": {"cached_tokens": cached}}
        return {**metered, "usage": usage}


@dataclass(frozen=True, kw_only=True)
class DecodedVideo:
    """Numerals with their times in seconds, and the sound at `RATE`; None without any."""

    numerals: tuple[tuple[float, int], ...]
    sound: np.ndarray | None


def shared_length(one: str, other: str) -> int:
    """Return the number of letters with which both texts begin."""
    pairs = zip(one, other, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def read_card(image: Image.Image) -> int:
    """Return the numeral of a card of any size."""
    small = image.convert("RGB").resize(SIZE)
    digits = [nearest_digit(small.getpixel(place)) for place in EDGES]  # type: ignore[arg-type]
    return int("".join(map(str, digits)))


def nearest_digit(pixel: Colour) -> int:
    """Return the digit whose colour in a border is nearest to that of a pixel."""
    distances = [
        sum((a - b) ** 2 for a, b in zip(pixel, colour, strict=True)) for colour in DIGIT_COLOURS
    ]
    return distances.index(min(distances))


def decode_video(content: bytes, fps: float) -> DecodedVideo:
    """Take `fps` frames of each second of a video, and all of its sound."""
    frames: list[tuple[float, int]] = []
    with av.open(io.BytesIO(content)) as file:
        for frame in file.decode(video=0):
            if float(frame.time) >= len(frames) / fps - 1e-6:
                frames.append((float(frame.time), read_card(frame.to_image())))
    with av.open(io.BytesIO(content)) as file:
        if not file.streams.audio:
            return DecodedVideo(numerals=tuple(frames), sound=None)
        resampler = av.AudioResampler("fltp", "mono", RATE)
        parts = [out.to_ndarray()[0] for f in (*file.decode(audio=0), None)
                 for out in resampler.resample(f)]  # fmt: skip
    return DecodedVideo(numerals=tuple(frames), sound=np.concatenate(parts))


def loud_spans(sound: np.ndarray) -> list[np.ndarray]:
    """Return the parts of a sound between silences of a third of a second."""
    step = RATE // 50
    level = np.abs(sound[: len(sound) // step * step].reshape(-1, step)).max(axis=1)
    loud = np.flatnonzero(level > 0.05)
    if not len(loud):
        return []
    groups = np.split(loud, np.flatnonzero(np.diff(loud) > 16) + 1)
    return [sound[g[0] * step : (g[-1] + 1) * step] for g in groups]


def read_digit(part: np.ndarray) -> int:
    """Return the spoken digit that a part of the sound resembles most."""

    def likeness(voice: np.ndarray) -> float:
        size = 1 << (len(part) + len(voice)).bit_length()
        product = np.fft.rfft(part, size) * np.conj(np.fft.rfft(voice, size))
        return float(np.abs(np.fft.irfft(product)).max() / np.linalg.norm(voice))

    return max(range(10), key=lambda digit: likeness(spoken_digits()[digit]))


def read_tone(part: np.ndarray) -> str:
    """Return the name of a tone by its pitch."""
    hertz = np.fft.rfftfreq(len(part), 1 / RATE)[np.abs(np.fft.rfft(part)).argmax()]
    return min(TONE_HZ, key=lambda name: abs(TONE_HZ[name] - hertz))


@dataclass(frozen=True, kw_only=True)
class ServerFaults:
    """What a server does to what it gets, without a word. `keeps`: one frame in so many is kept.
    `cap`: most frames; more are thinned evenly. `shuffles`, `deaf`, `blind`, `misreads` (one image
    in so many is read wrongly). `video_part`: the only name of a video that it knows; others are
    dropped. `fps`: frames that it takes of a second of video. `clock`: factor on the times told.
    """

    keeps: int = 1
    cap: int | None = None
    shuffles: bool = False
    deaf: bool = False
    blind: bool = False
    misreads: int = 0
    video_part: str | None = None
    fps: float = SAMPLE_FPS
    clock: float = 1.0

    def pick(self, items: Sequence[Any]) -> list[Any]:
        """Return the frames that are left."""
        kept = [] if self.blind else list(items)[:: self.keeps]
        if self.cap is not None and len(kept) > self.cap:
            kept = [kept[n * len(kept) // self.cap] for n in range(self.cap)]
        if self.shuffles:
            random.Random(len(kept)).shuffle(kept)
        return kept


@dataclass(kw_only=True)
class ProbedServer:
    """The replies of such a server; `reply` is that of `Loopback`. `words`: replies in place of
    the right ones, by a word of the prompt. `in_json`: keeps to schemas. `caches`: reports tokens
    from a cache of prompts.
    """

    faults: ServerFaults = ServerFaults()
    words: Mapping[str, str] = field(default_factory=dict[str, str])
    in_json: bool = False
    caches: bool = False

    def loopback(self, **more: Any) -> Loopback:
        schemas = "honoured" if self.in_json else "ignored"
        kind = CachingLoopback if self.caches else Loopback
        return kind(reply=self.reply, **{"schemas": schemas, "payloads": [], **more})

    def reply(self, payload: Payload) -> str:
        content = payload["messages"][-1]["content"]
        text = content if isinstance(content, str) else "".join(
            p["text"] for p in content if p["type"] == "text")  # fmt: skip
        for word, said in self.words.items():
            if word in text:
                return said
        if "Write the word" in text:
            return re.findall(r"Write the word (\w+)", text)[-1]
        if "green apples" in text:
            return "* COLOUR: green\n* COUNT: 7\n* SIZES: small, large"
        clips = self._clips(content)
        if "Each picture" in text:
            return _list("NUMERALS", self._images(content))
        if "At which second" in text:
            return self._times(text, clips)
        if "shows one large numeral" in text:
            seen = [n for clip in clips for _, n in self.faults.pick(clip.numerals)]
            return _list("NUMERALS", list(dict.fromkeys(seen)))
        sounds = [part for clip in clips if clip.sound is not None and not self.faults.deaf
                  for part in loud_spans(clip.sound)]  # fmt: skip
        if "Which digits" in text:
            return _list("DIGITS", [read_digit(part) for part in sounds])
        return _list("TONES", [read_tone(part) for part in sounds])

    def _images(self, content: Any) -> list[int]:
        urls = [p["image_url"]["url"] for p in content if p["type"] == "image_url"] if (
            not isinstance(content, str)) else []  # fmt: skip
        cards = [read_card(Image.open(io.BytesIO(decode_data_url(url)))) for url in urls]
        wrong = self.faults.misreads
        read = [(n + 1) % 100 if wrong and k % wrong == 0 else n for k, n in enumerate(cards)]
        return self.faults.pick(read)

    def _clips(self, content: Any) -> list[DecodedVideo]:
        if isinstance(content, str):
            return []
        known = [p for p in content if self.faults.video_part in (None, p["type"])]
        return [decode_video(read_url(url), self.faults.fps) for url in video_urls(known)]

    def _times(self, text: str, clips: Sequence[DecodedVideo]) -> str:
        listed = re.findall(r"shown first: ([\d, ]+)\?", text)[0]
        asked = [int(n) for n in listed.split(", ")]
        shown = [pair for clip in clips for pair in self.faults.pick(clip.numerals)]
        first = {n: t for t, n in reversed(shown)}
        lines = [f"* NUMERAL {n}: {self.faults.clock * first[n] if n in first else -1:g}"
                 for n in asked]  # fmt: skip
        return "\n".join(lines)


def read_url(url: str) -> bytes:
    """Return the content of a data URL or of a file on this machine."""
    if url.startswith("file://"):
        with open(url.removeprefix("file://"), "rb") as file:
            return file.read()
    return decode_data_url(url)


def _list(label: str, items: Sequence[object]) -> str:
    return f"* {label}: {', '.join(map(str, items)) or 'NONE'}"
