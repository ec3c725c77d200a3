"""Refinement (CinePile 2.0): a question that is guessed blind is weak, and is repaired.

A question is tested on all cyclic rotations of its options, so that its answer is once at each
place. It is weak if more than `most` of these guesses are right (3 of 5). The run's repair
(`mustsee.verify.repair`) rewrites it with the blind model's reasons, up to a number of times (the
authors: 5), and it is tested after each rewrite.

The released code and the paper's text disagree on these:

- Weakness is measured on all rotations each time, so that one lucky miss does not make a question
  strong.
- A call whose reply cannot be parsed is retried. If a rotation still has no answer, the question is
  unverified: not weak, and as a rewrite it replaces nothing. If the endpoint is down (Transient),
  the clip is left to the next run.
- A rewrite must be well-formed, and a model that reads the scene must choose its answer; else the
  earlier wording is kept.
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
from mustsee.verify.outcome import DISPUTED, GUESSED, FilterOutcome, add_outcome, mark_unverified
from mustsee.verify.vetting import VettingContext


@dataclass(frozen=True, kw_only=True)
class Refine:
    """Marks questions that the role `guesser` guesses blind, and drops them from the test split.
    The role `reader` must answer a rewrite from the scene. Metrics: `weak`, of the original
    wording; `fixed`, of weak questions.
    """

    name: ClassVar[str] = "refine"
    roles: ClassVar[tuple[str, ...]] = ("guesser", "reader")
    prompts: ClassVar[tuple[str, ...]] = ("cinepile/choose",)
    reads: ClassVar[tuple[str, ...]] = ("scene",)

    most: int = 2
    """Rotations of five that may be guessed right."""
    again: int = 2
    """Repetitions of a failed call."""
    threshold: float = 0.5
    """Least probability at which a line counts as the narrator's."""

    async def __call__(self, question: Question, video: Video, vetting: VettingContext) -> Question:
        if question.answer_index is None or len(question.options) < 2:
            return question
        verdicts = await self._test(question, vetting)
        right = sum(v.correct is True for v in verdicts)
        strong, misled = right <= self.most, False
        reworded = any(r.kind == "wording" for r in question.repairs)
        complete = all(v.correct is not None for v in verdicts)
        if complete and strong and reworded:
            verdicts = (*verdicts, await self._read(question, video, vetting))
            complete = verdicts[-1].correct is not None
            misled = not verdicts[-1].correct
        question = replace(question, verdicts=(*question.verdicts, *verdicts))
        if not complete:
            return mark_unverified(question, self.name)
        passed = strong and not misled
        weak = any(r.filter == self.name for r in question.repairs) or not strong
        guessed = f"guessed without the scene in {right} of {len(verdicts)} rotations"
        outcome = FilterOutcome(
            filter=self.name, passed=passed, fault=DISPUTED if misled else GUESSED,
            reason="the scene gives another answer" if misled else guessed,
            drops=misled or "test" in question.subsets,
            metrics={"weak": float(weak), **({"fixed": float(passed)} if weak else {})},
        )  # fmt: skip
        return add_outcome(replace(question, drop=None), outcome)

    async def _test(self, question: Question, vetting: VettingContext) -> tuple[Verdict, ...]:
        """Return the blind model's verdict on each rotation."""
        asker, options = vetting.askers["guesser"], question.options

        async def test_rotation(by: int) -> Verdict:
            seed = vetting.seed + by
            choice = await self._choose(asker, question, rotate_options(options, by), None, seed)
            if choice is not None:
                choice = replace(choice, place=(choice.place - by) % len(options))
            return verdict("refine", asker, question, choice, seed=seed, detail=f"rotation {by}")

        return tuple(await asyncio.gather(*map(test_rotation, range(len(options)))))

    async def _read(self, question: Question, video: Video, vetting: VettingContext) -> Verdict:
        """Return the verdict of a model that reads the scene."""
        asker, seed = vetting.askers["reader"], vetting.seed
        scene = (
            format_lines(scene_lines(video.scene, threshold=self.threshold)) if video.scene else ""
        )
        choice = await self._choose(asker, question, question.options, scene, seed)
        return verdict("refine", asker, question, choice, seed=seed, detail="whole scene")

    async def _choose(
        self, asker: Asker, question: Question, options: Sequence[str], scene: str | None, seed: int
    ) -> OptionChoice | None:
        """Return a choice, after at most `again` retries."""
        for attempt in range(self.again + 1):
            choice = await choose(
                asker, question.question, options, context=scene,
                about="" if scene is None else SCENE, seed=seed + 1000 * attempt,
            )  # fmt: skip
            if choice is not None:
                return choice
        return None
