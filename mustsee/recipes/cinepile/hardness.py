"""Hardness (CinePile, 2.4): 1 if a model errs with the whole scene text before it, else 0."""

from __future__ import annotations

from dataclasses import replace

from mustsee.calls.llm import Asker
from mustsee.recipes.cinepile.choosing import SCENE, choose, verdict
from mustsee.records import Question


async def hardness(question: Question, asker: Asker, scene: str, *, seed: int = 0) -> Question:
    """The question with its verdict and `metrics["hardness"]`, and in the subset "hard" where that
    is 1; without the metric where the call failed.
    """
    choice = await choose(
        asker, question.question, question.options, context=scene, about=SCENE, seed=seed
    )
    found = verdict("hardness", asker, question, choice, seed=seed, detail="whole scene")
    metrics, subsets = dict(question.metrics), question.subsets
    if found.correct is not None:
        metrics["hardness"] = float(not found.correct)
        if not found.correct:
            subsets = (*subsets, "hard")
    return replace(question, verdicts=(*question.verdicts, found), metrics=metrics, subsets=subsets)
