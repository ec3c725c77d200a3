"""Settings of Neptune's recipe, and what its steps share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

from mustsee.calls.llm import Asker
from mustsee.calls.usage import RequestTally
from mustsee.errors import UserError
from mustsee.media.contact_sheet import SheetRules
from mustsee.replies.forms import Form
from mustsee.verify.conditions.seen import Condition

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class NeptuneSettings:
    """How a script and its questions are written.

    Their gap is at least `apart_seconds`, or `apart_of_part` of the part's length if that is
    less. If there are too few, the model is asked once for more.
    """

    version: ClassVar[str] = "7"
    reads: ClassVar[tuple[str, ...]] = (
        "video_id", "duration", "shots", "texts", "lines", "captions",
    )  # fmt: skip
    area: ClassVar[str] = "neptune"  # folder of the prompts

    questions: int = 12
    """Questions asked for in each part of a video's script."""
    spare: float = 2.5
    """Times as many are asked of a model, so that those guessed from their words can be left
    out; 1: none."""
    decoys: int = 4
    """Decoys of each question; 3 to 5 where code makes orders or combinations."""
    words_each: int = 500
    """Words per question in a part of many words."""
    max_words: int = 40_000
    """Words of the video's content in one prompt; longer videos are processed in parts. A model of
    32,768 tokens takes about 12,000."""
    overview: bool = True
    """Ask about the whole, too, of a video in several parts."""
    unit_seconds: float = 30
    """Longest unit of a shot, seconds; longer shots are split."""
    apart_seconds: float = 60
    """Least distance of these moments, seconds; where too few questions have it, more are asked
    for once."""
    apart_of_part: float = 0.25
    """Least distance in a short video, as a share of its length, in place of apart_seconds."""
    apart_share: float = 0.5
    """Share of a part's questions that must join moments of different scenes."""
    dense_words: int | None = 0
    """Words of the longest dense caption, one call per scene, at most half as many as its script
    has; null: no other limit. 0: none, the sentences on its shots stand for it."""
    support_words: int = 0
    """Words of the longest visual support of a dense caption (the paper: 200), one call per
    scene; 0: none."""
    sheets: SheetRules = field(default_factory=SheetRules)
    """Contact sheets: grids of keyframes with their times, for a writer that takes images."""
    tweaks: bool = False
    """Write as in the paper: questions also on mood, message and what matters most, decoys that
    change a detail, mislead or reorder; code makes no orders or combinations."""
    seed: int = 0

    def __post_init__(self) -> None:
        least = {"questions": 1, "spare": 1, "words_each": 1, "decoys": 1, "support_words": 0}
        if self.dense_words is not None:
            least["dense_words"] = 0
        for name, number in least.items():
            if getattr(self, name) < number:
                raise UserError(f"ask.settings.{name}={getattr(self, name)!r}: at least {number}")
        if self.support_words and self.dense_words == 0:
            raise UserError(
                f"ask.settings.support_words={self.support_words!r}: dense captions are what it "
                "supports; set ask.settings.dense_words= too"
            )
        _check_shares(self)
        if self.max_words < 500:
            raise UserError(f"ask.settings.max_words={self.max_words!r}: at least 500")
        if self.unit_seconds <= 0:
            raise UserError(f"ask.settings.unit_seconds={self.unit_seconds!r}: more than 0 seconds")


@dataclass(frozen=True, kw_only=True)
class NeptuneWriter:
    """What writes a video's questions. `requests`: counts those of which no reply could be read."""

    asker: Asker
    settings: NeptuneSettings
    requests: RequestTally = field(default_factory=RequestTally)

    async def ask(self, prompt: str, form: Form[T], **variables: Any) -> T:
        return await self.asker.ask(prompt, form, seed=self.settings.seed, **variables)


@dataclass(frozen=True, kw_only=True)
class WholeSettings:
    """Settings of the writer that sees the video itself (`mustsee.recipes.neptune.whole`)."""

    version: ClassVar[str] = "2"
    reads: ClassVar[tuple[str, ...]] = (*NeptuneSettings.reads, "digest", "start", "end")
    area: ClassVar[str] = "neptune"

    prompt: str = "neptune/whole"
    """What the model is asked: neptune/whole, or neptune/script (a short script's words,
    ask=script)."""
    questions: int = 12
    """Questions asked for in a video."""
    spare: float = 2.5
    """Times as many are asked of a model, so that those guessed from their words can be left
    out; 1: none."""
    seconds_each: float = 60
    """Seconds per question in a longer video."""
    most: int = 40
    """Questions of one video, at most."""
    decoys: int = 4
    """Decoys of each question; 3 to 5 where code makes orders or combinations."""
    see: Condition = field(default_factory=lambda: Condition(fps=0.5, most=128, transcript=True))
    """Content shown where the model takes no videos, or less than this one."""
    max_words: int = 100_000
    """Words of transcript and on-screen text, at most; a video with more is for ask=neptune."""
    unit_seconds: float = 30
    """Length of the spans in which these are listed, seconds."""
    apart_seconds: float = 60
    """Least distance of these moments, seconds."""
    apart_of_part: float = 0.25
    """Least distance in a short video, as a share of its length, in place of apart_seconds."""
    apart_share: float = 0.5
    """Share of the questions that must join moments."""
    wish: str | None = None
    """What to ask, in your words; null: what the paper asks for."""
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("questions", "most", "decoys", "max_words", "seconds_each", "unit_seconds"):
            if getattr(self, name) <= 0:
                raise UserError(f"ask.settings.{name}={getattr(self, name)!r}: more than 0")
        _check_shares(self)


def _check_shares(settings: NeptuneSettings | WholeSettings) -> None:
    for name in ("apart_share", "apart_of_part"):
        if not 0 <= getattr(settings, name) <= 1:
            raise UserError(f"ask.settings.{name}={getattr(settings, name)!r}: from 0 to 1")
