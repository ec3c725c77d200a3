"""CinePile's measures as question filters: refinement, degeneracy, vision reliance, hardness."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from mustsee.filters.vetting import Vetting
from mustsee.recipes.cinepile.degenerate import degenerate
from mustsee.recipes.cinepile.hardness import hardness
from mustsee.recipes.cinepile.refine import Refinement, refine
from mustsee.recipes.cinepile.scene import Told, told, written
from mustsee.recipes.cinepile.vision import vision
from mustsee.records import Question, Video

GUESSERS = ("guesser", "guesser_2", "guesser_3")


def _told(video: Video, threshold: float) -> tuple[Told, ...]:
    return told(video.scene, threshold=threshold) if video.scene else ()


@dataclass(frozen=True, kw_only=True)
class Refine:
    """Rewrites what `guesser` guesses blind (`mustsee.recipes.cinepile.refine`): `repairer`
    rewrites, `reader` must find the answer in the scene. A weak question of the test split that
    was not fixed is dropped. `threshold`: probability from which a line is the narrator's.
    """

    name: ClassVar[str] = "refine"
    roles: ClassVar[tuple[str, ...]] = ("guesser", "repairer", "reader")
    prompts: ClassVar[tuple[str, ...]] = ("cinepile/choose", "cinepile/rewrite")
    reads: ClassVar[tuple[str, ...]] = ("scene",)

    settings: Refinement
    threshold: float = 0.5

    async def __call__(self, question: Question, video: Video, vetting: Vetting) -> Question:
        askers = vetting.askers
        found = await refine(
            question, written(_told(video, self.threshold)), blind=askers["guesser"],
            writer=askers["repairer"], judge=askers["reader"], settings=self.settings,
            seed=vetting.seed,
        )  # fmt: skip
        question = found.question
        if question.metrics.get("weak"):
            vetting.count("weak questions", 1)
        if question.metrics.get("fixed"):
            vetting.count("weak questions fixed", 1)
        if found.status == "unfixed" and "test" in question.subsets:
            times = f"{found.rewrites} rewrites"
            question = replace(question, drop=f"refine: guessed without the scene after {times}")
        return question


@dataclass(frozen=True, kw_only=True)
class Degenerate:
    """Drops from the test split what three guessers all answer without the scene."""

    name: ClassVar[str] = "degenerate"
    roles: ClassVar[tuple[str, ...]] = GUESSERS
    prompts: ClassVar[tuple[str, ...]] = ("cinepile/choose",)
    reads: ClassVar[tuple[str, ...]] = ()

    async def __call__(self, question: Question, video: Video, vetting: Vetting) -> Question:
        guessers = {role: vetting.askers[role] for role in GUESSERS}
        return await degenerate(question, guessers, seed=vetting.seed)


@dataclass(frozen=True, kw_only=True)
class Vision:
    """Measures whether `reader` needs more than the dialogue."""

    name: ClassVar[str] = "vision"
    roles: ClassVar[tuple[str, ...]] = ("reader",)
    prompts: ClassVar[tuple[str, ...]] = ("cinepile/choose",)
    reads: ClassVar[tuple[str, ...]] = ("scene",)

    threshold: float = 0.5

    async def __call__(self, question: Question, video: Video, vetting: Vetting) -> Question:
        lines = _told(video, self.threshold)
        dialogue = "\n".join(f"{x.start:.1f} {x.end:.1f} {x.text}" for x in lines if not x.visual)
        return await vision(question, vetting.askers["reader"], dialogue, seed=vetting.seed)


@dataclass(frozen=True, kw_only=True)
class Hardness:
    """Measures whether `reader` errs with the whole scene before it."""

    name: ClassVar[str] = "hardness"
    roles: ClassVar[tuple[str, ...]] = ("reader",)
    prompts: ClassVar[tuple[str, ...]] = ("cinepile/choose",)
    reads: ClassVar[tuple[str, ...]] = ("scene",)

    threshold: float = 0.5

    async def __call__(self, question: Question, video: Video, vetting: Vetting) -> Question:
        scene = written(_told(video, self.threshold))
        return await hardness(question, vetting.askers["reader"], scene, seed=vetting.seed)
