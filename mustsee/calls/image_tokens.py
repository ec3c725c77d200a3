"""Tokens that models count for a frame, sent as an image or as a second of video.

Each family counts in its own way, by its own documents (read on 2026-11-28):

- OpenAI: patches of 32 pixels times a factor, or tiles of 512 pixels
  (https://developers.openai.com/api/docs/guides/images-vision, "Model sizing behavior" and
  "Calculating costs").
- Gemini 3 and 4: a number for each resolution (https://ai.google.dev/gemini-api/docs/media-resolution,
  "Token counts"); before, tiles of 768 pixels (https://ai.google.dev/gemini-api/docs/tokens).
- Claude: patches of 28 pixels (https://platform.claude.com/docs/en/build-with-claude/vision).
- Qwen: patches of 16 pixels (before Qwen3-VL 14) merged two by two, two frames of a video in one
  (preprocessor_config.json and video_preprocessor_config.json of the models on the Hub).
- Gemma 4: a budget of tokens, filled with pools of 48 pixels
  (https://ai.google.dev/gemma/docs/capabilities/vision, "Variable resolution").

A server may scale otherwise than its model's document says; the gateway corrects its estimates by
the usage in the first replies.
"""

from __future__ import annotations

import functools
import math
import re
from dataclasses import dataclass
from typing import Literal, Protocol

Detail = Literal["auto", "low", "medium", "high"]


class ImageRule(Protocol):
    """How a family counts images and video. `fps`: frames that it takes of a second of video.
    `sound`: tokens of a second of sound.
    """

    @property
    def fps(self) -> float: ...
    @property
    def sound(self) -> float: ...

    def image(self, width: int, height: int, detail: Detail) -> float:
        """Return the tokens of an image of so many pixels."""
        ...

    def frame(self, width: int, height: int, detail: Detail) -> float | None:
        """Return the tokens of one frame of a video; None: the family takes no video."""
        ...


@dataclass(frozen=True, kw_only=True)
class Patches:
    """Squares of `side` pixels that cover an image, each `factor` tokens. An image of a longer side
    than `longest` pixels, or of more patches than `most`, is scaled down first; `low`, `high`: both
    limits at that detail; None: as at others.
    """

    side: int = 32
    factor: float = 1.0
    longest: float = math.inf
    most: float = math.inf
    low: tuple[float, float] | None = None
    high: tuple[float, float] | None = None
    fps: float = 1.0
    sound: float = 0.0

    def image(self, width: int, height: int, detail: Detail) -> float:
        other = self.low if detail == "low" else self.high if detail == "high" else None
        longest, most = other or (self.longest, self.most)
        scale = min(1.0, longest / max(width, height))
        across, down = width * scale, height * scale
        patches = math.ceil(across / self.side) * math.ceil(down / self.side)
        if patches > most:
            shrink = math.sqrt(self.side**2 * most / (across * down))
            columns, rows = across * shrink / self.side, down * shrink / self.side
            fit = min(math.floor(columns) / columns, math.floor(rows) / rows)
            patches = math.ceil(columns * fit - 1e-9) * math.ceil(rows * fit - 1e-9)
        return math.ceil(self.factor * patches - 1e-9)

    def frame(self, width: int, height: int, detail: Detail) -> float | None:
        return None


@dataclass(frozen=True, kw_only=True)
class Tiles:
    """`base` tokens for an image and `tile` for each square of `side` pixels of it, once it is
    scaled down to `longest` and `shortest`. `video`: tokens of a frame of a video.
    """

    base: float = 85
    tile: float = 170
    side: int = 512
    longest: int = 2048
    shortest: int = 768
    video: float | None = None
    fps: float = 1.0
    sound: float = 32.0

    def image(self, width: int, height: int, detail: Detail) -> float:
        if detail == "low" and self.base:
            return self.base
        longer, shorter = max(width, height), min(width, height)
        scale = min(1.0, self.longest / longer, self.shortest / shorter)
        across, down = math.ceil(width * scale / self.side), math.ceil(height * scale / self.side)
        return self.base + self.tile * across * down

    def frame(self, width: int, height: int, detail: Detail) -> float | None:
        return self.video


@dataclass(frozen=True, kw_only=True)
class Levels:
    """A number of tokens for each level of detail, whatever the image."""

    low: float
    medium: float
    high: float
    auto: float
    video: float
    video_high: float
    fps: float = 1.0
    sound: float = 32.0

    def image(self, width: int, height: int, detail: Detail) -> float:
        return float(getattr(self, detail))

    def frame(self, width: int, height: int, detail: Detail) -> float | None:
        return self.video_high if detail == "high" else self.video


@dataclass(frozen=True, kw_only=True)
class Merged:
    """Squares of `side` pixels, to a multiple of which an image is rounded; at least `fewest` of
    them. A frame of a video counts half, because two share their tokens.
    """

    side: int
    fewest: int = 4
    most: int = 16384
    fps: float = 2.0
    sound: float = 0.0

    def image(self, width: int, height: int, detail: Detail) -> float:
        return self._squares(width, height, self.fewest)

    def frame(self, width: int, height: int, detail: Detail) -> float | None:
        return self._squares(width, height, 4) / 2

    def _squares(self, width: int, height: int, fewest: int) -> float:
        squares = round(width / self.side) * round(height / self.side)
        return float(min(max(squares, fewest), self.most))


@dataclass(frozen=True, kw_only=True)
class Pools:
    """A budget of tokens for an image, and one for a frame of a video, of `side` pixels each. The
    image is scaled, up or down, to fill it.
    """

    budget: int = 280
    video: int = 70
    side: int = 48
    fps: float = 1.0
    sound: float = 0.0

    def image(self, width: int, height: int, detail: Detail) -> float:
        return self._filled(width, height, self.budget)

    def frame(self, width: int, height: int, detail: Detail) -> float | None:
        return self._filled(width, height, self.video)

    def _filled(self, width: int, height: int, budget: int) -> float:
        scale = math.sqrt(budget / (width * height))
        return float(max(1, math.floor(width * scale)) * max(1, math.floor(height * scale)))


UNKNOWN = Patches(side=28)  # about what open models count: a square of 28 pixels
# Beginnings of model names, without their maker, and their rules; the first that fits holds.
FAMILIES: tuple[tuple[str, ImageRule], ...] = (
    (r"gpt-(6|5\.[5-9])", Patches(factor=1.2, low=(512, math.inf), high=(2048, 2500))),
    (r"gpt-5\.4", Patches(factor=1.2, longest=2048, most=2500)),
    (r"gpt-5\.2|gpt-5-mini", Patches(factor=1.2, longest=2048, most=6144)),
    (r"gpt-5-nano", Patches(factor=1.5, longest=2048, most=6144)),
    (r"gpt-4\.1-mini", Patches(factor=1.62, longest=2048, most=6144)),
    (r"gpt-4\.1-nano", Patches(factor=2.46, longest=2048, most=6144)),
    (r"o4-mini", Patches(factor=1.72, longest=2048, most=6144)),
    (r"gpt-5", Tiles(base=70, tile=140)),
    (r"gpt-4o-mini", Tiles(base=2833, tile=5667)),
    (r"gpt-4|o1|o3", Tiles()),
    (r"gemini-([1-2][.-]|.*robotics)", Tiles(base=0, tile=258, side=768, video=258)),
    (r"gemini-", Levels(low=280, medium=560, high=1120, auto=1120, video=70, video_high=280)),
    (r"claude-(opus-4-[7-9]|(opus|sonnet|haiku|fable|mythos)-[5-9])",
     Patches(side=28, longest=2576, most=4784)),
    (r"claude-", Patches(side=28, longest=1568, most=1568)),
    (r"qwen-?2", Merged(side=28)),
    (r"qwen", Merged(side=32, fewest=64)),
    (r"gemma-?4", Pools()),
    (r"gemma-?3", Levels(low=256, medium=256, high=256, auto=256, video=256, video_high=256)),
)  # fmt: skip


@functools.lru_cache(maxsize=256)
def image_rule(model: str) -> ImageRule:
    """Return the rule of a model's family, by its name with or without its maker
    (`google/gemma-4-31b-it`, `qwen3.5:9b`).
    """
    name = model.rpartition("/")[2].lower()
    return next((rule for begin, rule in FAMILIES if re.match(begin, name)), UNKNOWN)


def video_second(model: str, longest: int, detail: Detail) -> float | None:
    """Return the tokens of a second of video with sound, whose frames have a longer side of
    `longest` pixels (and 9 to 16 sides); None where the model's family takes no video.
    """
    rule = image_rule(model)
    frame = rule.frame(longest, round(longest * 9 / 16), detail)
    return None if frame is None else rule.fps * frame + rule.sound
