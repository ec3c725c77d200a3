"""Everything about Neptune's recipe that is a choice or a number."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from mustsee.errors import UserError
from mustsee.verify.conditions.seen import Condition


@dataclass(frozen=True, kw_only=True)
class NeptuneSettings:
    """`questions`: asked for in each part of the script; of a part of many words, one for every
    `words_each`. `max_words`: of the video's content in one prompt; a longer video is worked on in
    parts. `overview`: of a video in several parts, also ask for questions on the whole.
    `unit_seconds`: longer shots are cut into pieces. `apart_share`: of the questions on a part of
    several scenes, those that join moments of different ones, at least `apart_seconds` apart, or
    `apart_of_part` of its length where that is less; if there are fewer, the model is asked for
    more, once. `expected`: answers to each question that one would give without the video, asked
    for before the wrong answers are written; 0: none. `dense_words` and `support_words`: longest
    dense caption and visual support (C.2.2: 200), which no later prompt needs; 0: none is made.
    """

    version: ClassVar[str] = "4"
    reads: ClassVar[tuple[str, ...]] = (
        "video_id",
        "duration",
        "shots",
        "texts",
        "lines",
        "captions",
    )
    area: ClassVar[str] = "neptune"  # the folder of its prompts

    questions: int = 12
    decoys: int = 4
    words_each: int = 500
    max_words: int = 40_000
    overview: bool = True
    unit_seconds: float = 30.0
    apart_seconds: float = 60.0
    apart_of_part: float = 0.25
    apart_share: float = 0.5
    expected: int = 4
    dense_words: int = 300
    support_words: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        least = {"questions": 1, "words_each": 1, "decoys": 1, "dense_words": 1}
        least |= {"support_words": 0, "expected": 0}
        for name, number in least.items():
            if getattr(self, name) < number:
                raise UserError(f"ask.settings.{name}={getattr(self, name)!r}: at least {number}")
        for name in ("apart_share", "apart_of_part"):
            if not 0 <= getattr(self, name) <= 1:
                raise UserError(f"ask.settings.{name}={getattr(self, name)!r}: from 0 to 1")
        if self.max_words < 500:
            raise UserError(f"ask.settings.max_words={self.max_words!r}: at least 500")
        if self.unit_seconds <= 0:
            raise UserError(f"ask.settings.unit_seconds={self.unit_seconds!r}: more than 0 seconds")


@dataclass(frozen=True, kw_only=True)
class WholeSettings:
    """Of the writer that is shown the video itself (`mustsee.recipes.neptune.whole`).

    `questions`: asked for, or one for every `seconds_each` of a longer video, at most `most`.
    `see`: what is shown of the video: the video itself to a model that watches and takes as much of
    it, else pictures. `max_words`: of what is said and read; a video with more is for
    `ask=neptune`. `apart_share`, `apart_seconds`, `apart_of_part`: as in `NeptuneSettings`.
    `unit_seconds`: stretches in which what is said and read is listed.
    """

    version: ClassVar[str] = "1"
    reads: ClassVar[tuple[str, ...]] = (*NeptuneSettings.reads, "digest", "start", "end")
    area: ClassVar[str] = "neptune"

    questions: int = 12
    seconds_each: float = 60.0
    most: int = 40
    decoys: int = 4
    see: Condition = field(default_factory=lambda: Condition(fps=0.5, most=128, transcript=True))
    max_words: int = 100_000
    unit_seconds: float = 30.0
    apart_seconds: float = 60.0
    apart_of_part: float = 0.25
    apart_share: float = 0.5
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("questions", "most", "decoys", "max_words", "seconds_each", "unit_seconds"):
            if getattr(self, name) <= 0:
                raise UserError(f"ask.settings.{name}={getattr(self, name)!r}: more than 0")
        for name in ("apart_share", "apart_of_part"):
            if not 0 <= getattr(self, name) <= 1:
                raise UserError(f"ask.settings.{name}={getattr(self, name)!r}: from 0 to 1")
