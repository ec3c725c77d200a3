"""Degeneracy (CinePile, 2.4): each of three models answers the question without the scene. Such a
question is dropped from the test split and kept in train.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace

from mustsee.calls.llm import Asker
from mustsee.recipes.cinepile.choosing import choose, rotate_options, verdict
from mustsee.records import Question, Verdict
from mustsee.verify.outcome import mark_unverified


async def degenerate(question: Question, askers: Mapping[str, Asker], *, seed: int = 0) -> Question:
    """Return the question with each role's verdict and `metrics["degenerate"]` (0 or 1). It is
    dropped if it is degenerate and in the subset "test", and unverified if no parsed answer is
    wrong but some are unparseable.

    Each role has its own seed and order of the options, so three roles of one model give three
    guesses.
    """
    count = len(question.options)

    async def guess(turn: int, role: str) -> Verdict:
        options, own_seed = rotate_options(question.options, turn), seed + turn
        choice = await choose(askers[role], question.question, options, seed=own_seed)
        if choice is not None:
            choice = replace(choice, place=(choice.place - turn) % count)
        return verdict("degenerate", askers[role], question, choice, seed=own_seed, detail=role)

    verdicts = await asyncio.gather(*(guess(turn, role) for turn, role in enumerate(askers)))
    is_degenerate = bool(verdicts) and all(v.correct for v in verdicts)
    # An unparseable answer may be wrong.
    if not is_degenerate and all(v.correct is not False for v in verdicts):
        return mark_unverified(
            replace(question, verdicts=(*question.verdicts, *verdicts)), "degenerate"
        )
    drop = question.drop
    if is_degenerate and "test" in question.subsets:
        count = len(verdicts)
        drop = drop or f"degenerate: right in {count} of {count} models without the scene"
    return replace(
        question,
        verdicts=(*question.verdicts, *(replace(v, passed=not is_degenerate) for v in verdicts)),
        metrics={**question.metrics, "degenerate": float(is_degenerate)},
        drop=drop,
    )
