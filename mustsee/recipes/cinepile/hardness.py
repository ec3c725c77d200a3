"""Hardness (CinePile, 2.4): 1 if a model that sees the whole scene text errs, else 0."""

from __future__ import annotations

from dataclasses import replace

from mustsee.calls.llm import Asker
from mustsee.recipes.cinepile.choosing import SCENE, choose, verdict
from mustsee.records import Question


async def hardness(question: Question, asker: Asker, scene: str, *, seed: int = 0) -> Question:
    """Return the question with its verdict and `metrics["hardness"]`; at 1 it is in the subset
    "hard". There is no metric if the call failed.
    """
    choice = await choose(
        asker, question.question, question.options, context=scene, about=SCENE, seed=seed
    )
    result = verdict("hardness", asker, question, choice, seed=seed, detail="whole scene")
    metrics, subsets = dict(question.metrics), question.subsets
    if result.correct is not None:
        metrics["hardness"] = float(not result.correct)
        if not result.correct:
            subsets = (*subsets, "hard")
    return replace(
        question, verdicts=(*question.verdicts, result), metrics=metrics, subsets=subsets
    )
