"""CinePile's measures as filters: degeneracy, fitting options, vision reliance, hardness."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mustsee.recipes.cinepile.degenerate import degenerate
from mustsee.recipes.cinepile.fits import PROMPT, fits
from mustsee.recipes.cinepile.hardness import hardness
from mustsee.recipes.cinepile.scene import SceneLine, format_lines, scene_lines
from mustsee.recipes.cinepile.vision import vision
from mustsee.records import Question, Video
from mustsee.verify.vetting import VettingContext

GUESSERS = ("guesser", "guesser_2", "guesser_3")


def _lines_of(video: Video, threshold: float) -> tuple[SceneLine, ...]:
    return scene_lines(video.scene, threshold=threshold) if video.scene else ()


@dataclass(frozen=True, kw_only=True)
class Degenerate:
    """Drops questions from the test split that three guessers all answer without the scene."""

    name: ClassVar[str] = "degenerate"
    roles: ClassVar[tuple[str, ...]] = GUESSERS
    prompts: ClassVar[tuple[str, ...]] = ("cinepile/choose",)
    reads: ClassVar[tuple[str, ...]] = ()

    async def __call__(self, question: Question, video: Video, vetting: VettingContext) -> Question:
        guessers = {role: vetting.askers[role] for role in GUESSERS}
        return await degenerate(question, guessers, seed=vetting.seed)


@dataclass(frozen=True, kw_only=True)
class Fits:
    """Drops questions by a reading of the whole scene: if they depend on a speaker whom the scene
    does not name, and from the test split (with `train`, from both) if two options fit.
    """

    name: ClassVar[str] = "fits"
    roles: ClassVar[tuple[str, ...]] = ("reader",)
    prompts: ClassVar[tuple[str, ...]] = (PROMPT,)
    reads: ClassVar[tuple[str, ...]] = ("scene",)

    threshold: float = 0.5
    train: bool = False
    """Drop questions with two fitting options from train, too."""

    async def __call__(self, question: Question, video: Video, vetting: VettingContext) -> Question:
        scene = format_lines(_lines_of(video, self.threshold))
        reader = vetting.askers["reader"]
        return await fits(question, reader, scene, seed=vetting.seed, train=self.train)


@dataclass(frozen=True, kw_only=True)
class Vision:
    """Measures whether the role `reader` needs more than the dialogue."""

    name: ClassVar[str] = "vision"
    roles: ClassVar[tuple[str, ...]] = ("reader",)
    prompts: ClassVar[tuple[str, ...]] = ("cinepile/choose",)
    reads: ClassVar[tuple[str, ...]] = ("scene",)

    threshold: float = 0.5

    async def __call__(self, question: Question, video: Video, vetting: VettingContext) -> Question:
        lines = _lines_of(video, self.threshold)
        dialogue = "\n".join(f"{x.start:.1f} {x.end:.1f} {x.text}" for x in lines if not x.visual)
        return await vision(question, vetting.askers["reader"], dialogue, seed=vetting.seed)


@dataclass(frozen=True, kw_only=True)
class Hardness:
    """Measures whether the role `reader` errs although it sees the whole scene."""

    name: ClassVar[str] = "hardness"
    roles: ClassVar[tuple[str, ...]] = ("reader",)
    prompts: ClassVar[tuple[str, ...]] = ("cinepile/choose",)
    reads: ClassVar[tuple[str, ...]] = ("scene",)

    threshold: float = 0.5

    async def __call__(self, question: Question, video: Video, vetting: VettingContext) -> Question:
        scene = format_lines(_lines_of(video, self.threshold))
        return await hardness(question, vetting.askers["reader"], scene, seed=vetting.seed)
