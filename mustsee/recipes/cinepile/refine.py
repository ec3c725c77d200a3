"""Refinement (CinePile 2.0): what is guessed blind is weak, and is mended.

A question is tested on the cyclic rotations of its options, so that its answer stands once in each
place. Weak: right in `most` + 1 of them or more (3 of 5). The run's repair
(`mustsee.verify.repair`) rewrites it with the blind model's reasons, at most so often as it says
(the authors: 5); then it is tested anew.

Decided where the released code and its text disagree:

- Weakness is always measured on all rotations, the first time too; one lucky miss fixes nothing.
- A call without a readable answer is asked again; a rotation that stays without one leaves the
  question unverified: not weak as it was asked, and as a rewrite it takes no question's place. An
  endpoint that is down (Transient) ends the clip's work instead, for the next run to take up.
- After each rewrite the question must be well-formed, and a model that reads the scene must choose
  its answer; else the wording before it stays.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from mustsee.calls.llm import Asker
from mustsee.recipes.cinepile.choosing import SCENE, choose, rotate_options, verdict
from mustsee.recipes.cinepile.mcq import OptionChoice
from mustsee.recipes.cinepile.scene import format_lines, scene_lines
from mustsee.records import Question, Verdict, Video
from mustsee.verify.vetting import VettingContext, mark_unverified


@dataclass(frozen=True, kw_only=True)
class Refine:
    """Marks what `guesser` guesses blind, and drops it from the test split. A rewrite must be
    answered by `reader` from the scene as well.

    `most`: rotations that may be right for a question to stand; `again`: how often a call without
    an answer is repeated, with another seed; `threshold`: probability from which a line is the
    narrator's. Metrics: `weak`, as it was asked; `fixed`, where it was weak.
    """

    name: ClassVar[str] = "refine"
    roles: ClassVar[tuple[str, ...]] = ("guesser", "reader")
    prompts: ClassVar[tuple[str, ...]] = ("cinepile/choose",)
    reads: ClassVar[tuple[str, ...]] = ("scene",)

    most: int = 2
    again: int = 2
    threshold: float = 0.5

    async def __call__(self, question: Question, video: Video, vetting: VettingContext) -> Question:
        if question.answer_index is None or len(question.options) < 2:
            return question
        given = await self._tested(question, vetting)
        hits = sum(v.correct is True for v in given)
        strong, drop = hits <= self.most, None
        reworded = any(r.kind == "wording" for r in question.repairs)
        complete = all(v.correct is not None for v in given)
        if complete and strong and reworded:
            given = (*given, await self._read(question, video, vetting))
            complete = given[-1].correct is not None
            if not given[-1].correct:
                drop = "refine: the scene gives another answer"
        elif not strong and "test" in question.subsets:
            drop = f"refine: guessed without the scene in {hits} of {len(given)} rotations"
        question = replace(question, verdicts=(*question.verdicts, *given))
        if not complete:
            return mark_unverified(question, self.name)
        passed = strong and drop is None
        was_weak = any(r.reason.startswith("refine:") for r in question.repairs)
        weak = float(was_weak or not strong)
        metrics = {**question.metrics, "refine_passed": float(passed), "weak": weak}
        if weak:
            metrics["fixed"] = float(passed)
        return replace(question, metrics=metrics, drop=drop)

    async def _tested(self, question: Question, vetting: VettingContext) -> tuple[Verdict, ...]:
        """The blind model's choice on each rotation."""
        asker, options = vetting.askers["guesser"], question.options

        async def test_rotation(by: int) -> Verdict:
            seed = vetting.seed + by
            found = await self._chosen(asker, question, rotate_options(options, by), None, seed)
            if found is not None:
                found = replace(found, place=(found.place - by) % len(options))
            return verdict("refine", asker, question, found, seed=seed, detail=f"rotation {by}")

        return tuple(await asyncio.gather(*map(test_rotation, range(len(options)))))

    async def _read(self, question: Question, video: Video, vetting: VettingContext) -> Verdict:
        """What a model chooses that reads the scene."""
        asker, seed = vetting.askers["reader"], vetting.seed
        scene = (
            format_lines(scene_lines(video.scene, threshold=self.threshold)) if video.scene else ""
        )
        found = await self._chosen(asker, question, question.options, scene, seed)
        return verdict("refine", asker, question, found, seed=seed, detail="whole scene")

    async def _chosen(
        self, asker: Asker, question: Question, shown: Sequence[str], scene: str | None, seed: int
    ) -> OptionChoice | None:
        """A choice; a call without an answer is repeated `again` times."""
        for attempt in range(self.again + 1):
            found = await choose(
                asker, question.question, shown, context=scene,
                about="" if scene is None else SCENE, seed=seed + 1000 * attempt,
            )  # fmt: skip
            if found is not None:
                return found
        return None
