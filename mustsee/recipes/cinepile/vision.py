"""Vision reliance (CinePile, 2.4): 0 if a model answers from the dialogue alone, else 1."""

from __future__ import annotations

from dataclasses import replace

from mustsee.calls.llm import Asker
from mustsee.recipes.cinepile.choosing import DIALOGUE, choose, verdict
from mustsee.records import Question


async def vision(question: Question, asker: Asker, dialogue: str, *, seed: int = 0) -> Question:
    """Return the question with its verdict and `metrics["vision_reliance"]`; there is no metric if
    the call failed. No question is dropped.
    """
    choice = await choose(
        asker, question.question, question.options, context=dialogue or "(nothing is said)",
        about=DIALOGUE, seed=seed,
    )  # fmt: skip
    result = verdict("vision", asker, question, choice, seed=seed, detail="dialogue alone")
    metrics = dict(question.metrics)
    if result.correct is not None:
        metrics["vision_reliance"] = float(not result.correct)
    return replace(question, verdicts=(*question.verdicts, result), metrics=metrics)
