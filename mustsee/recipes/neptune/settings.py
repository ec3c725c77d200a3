"""Settings of Neptune's recipe."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from mustsee.errors import UserError
from mustsee.media.contact_sheet import SheetRules
from mustsee.verify.conditions.seen import Condition


@dataclass(frozen=True, kw_only=True)
class NeptuneSettings:
    """`questions`: number for each part of the script; a long part has one for every `words_each`
    words. `decoys`: wrong answers of a question; orders and
    combinations have as many as balance them. `max_words`: words of the video's content in one
    prompt; a longer video has several parts. `overview`: whether a video in several parts also gets
    questions on the whole. `unit_seconds`: longest unit; longer shots are divided.

    `apart_share`: share of the questions on a part of several scenes that must join spans in
    different scenes. Their gap is at least `apart_seconds`, or `apart_of_part` of the part's
    length if that is less. If there are too few, the model is asked once for more.

    `spare`: times as many questions are asked of a model, so that `vet` can leave out those that
    are guessed from their words.

    `dense_words`: words of the longest dense caption; 0: none is written, and the sentences on a
    segment's shots stand for it. `support_words`: words of the longest visual support of a dense
    caption (C.2.2: 200), which the prompts for questions and decoys show beside it; 0: none is
    written. `sheets`: contact sheets of a part's keyframes, for a writer that takes images.

    `tweaks`: ask for decoys that change a detail of the right answer, mislead or reorder (C.2.4),
    of orders and combinations, too; code makes none of them.
    """

    version: ClassVar[str] = "7"
    reads: ClassVar[tuple[str, ...]] = (
        "video_id",
        "duration",
        "shots",
        "texts",
        "lines",
        "captions",
    )
    area: ClassVar[str] = "neptune"  # folder of the prompts

    questions: int = 12
    spare: float = 2.5
    decoys: int = 4
    words_each: int = 500
    max_words: int = 40_000
    overview: bool = True
    unit_seconds: float = 30.0
    apart_seconds: float = 60.0
    apart_of_part: float = 0.25
    apart_share: float = 0.5
    dense_words: int = 0
    support_words: int = 0
    sheets: SheetRules = field(default_factory=SheetRules)
    tweaks: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        least: dict[str, float] = {
            "questions": 1,
            "spare": 1,
            "words_each": 1,
            "decoys": 1,
            "dense_words": 0,
        }
        least["support_words"] = 0
        for name, number in least.items():
            if getattr(self, name) < number:
                raise UserError(f"ask.settings.{name}={getattr(self, name)!r}: at least {number}")
        if self.support_words and not self.dense_words:
            raise UserError(
                f"ask.settings.support_words={self.support_words!r}: dense captions are what it "
                "supports; set ask.settings.dense_words= too"
            )
        for name in ("apart_share", "apart_of_part"):
            if not 0 <= getattr(self, name) <= 1:
                raise UserError(f"ask.settings.{name}={getattr(self, name)!r}: from 0 to 1")
        if self.max_words < 500:
            raise UserError(f"ask.settings.max_words={self.max_words!r}: at least 500")
        if self.unit_seconds <= 0:
            raise UserError(f"ask.settings.unit_seconds={self.unit_seconds!r}: more than 0 seconds")


@dataclass(frozen=True, kw_only=True)
class WholeSettings:
    """Settings of the writer that sees the video itself (`mustsee.recipes.neptune.whole`).

    `prompt`: name of the prompt; `neptune/script` is what a short script sends.
    `questions`: number for a video; a longer one has one for every `seconds_each`, at most `most`;
    `spare`: as in `NeptuneSettings`. `see`: frames that are shown to a model that does not take the
    video itself, or not all of it. `max_words`: words of transcript and on-screen text; a video
    with more needs `ask=neptune`.
    `apart_share`, `apart_seconds`, `apart_of_part`: as in `NeptuneSettings`. `wish`: what users
    want to be asked, in their words. `unit_seconds`: length of the spans in which transcript and
    on-screen text are listed.
    """

    version: ClassVar[str] = "2"
    reads: ClassVar[tuple[str, ...]] = (*NeptuneSettings.reads, "digest", "start", "end")
    area: ClassVar[str] = "neptune"

    prompt: str = "neptune/whole"
    questions: int = 12
    spare: float = 2.5
    seconds_each: float = 60.0
    most: int = 40
    decoys: int = 4
    see: Condition = field(default_factory=lambda: Condition(fps=0.5, most=128, transcript=True))
    max_words: int = 100_000
    unit_seconds: float = 30.0
    apart_seconds: float = 60.0
    apart_of_part: float = 0.25
    apart_share: float = 0.5
    wish: str | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("questions", "most", "decoys", "max_words", "seconds_each", "unit_seconds"):
            if getattr(self, name) <= 0:
                raise UserError(f"ask.settings.{name}={getattr(self, name)!r}: more than 0")
        for name in ("apart_share", "apart_of_part"):
            if not 0 <= getattr(self, name) <= 1:
                raise UserError(f"ask.settings.{name}={getattr(self, name)!r}: from 0 to 1")
