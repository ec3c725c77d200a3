"""Degeneracy (CinePile, 2.4): a question that every one of three models answers from its words and
options alone. It is dropped from the test split and kept in train.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace

from mustsee.calls.llm import Asker
from mustsee.recipes.cinepile.choosing import choose, rotate_options, verdict
from mustsee.records import Question, Verdict
from mustsee.verify.vetting import mark_unverified


async def degenerate(question: Question, askers: Mapping[str, Asker], *, seed: int = 0) -> Question:
    """The question with each role's verdict, `metrics["degenerate"]` (0 or 1), and a drop where it
    is degenerate and in the subset "test"; unverified where none of the answers is wrong, but not
    all could be read.

    Each role has a seed and an order of the options of its own: three roles of one model are three
    guesses, not one.
    """
    count = len(question.options)

    async def guess(turn: int, role: str) -> Verdict:
        shown, own = rotate_options(question.options, turn), seed + turn
        choice = await choose(askers[role], question.question, shown, seed=own)
        if choice is not None:
            choice = replace(choice, place=(choice.place - turn) % count)
        return verdict("degenerate", askers[role], question, choice, seed=own, detail=role)

    found = await asyncio.gather(*(guess(turn, role) for turn, role in enumerate(askers)))
    every = bool(found) and all(v.correct for v in found)
    if not every and all(v.correct is not False for v in found):  # one that was read may be wrong
        return mark_unverified(
            replace(question, verdicts=(*question.verdicts, *found)), "degenerate"
        )
    drop = question.drop
    if every and "test" in question.subsets:
        drop = drop or f"degenerate: right in {len(found)} of {len(found)} models without the scene"
    return replace(
        question,
        verdicts=(*question.verdicts, *(replace(v, passed=not every) for v in found)),
        metrics={**question.metrics, "degenerate": float(every)},
        drop=drop,
    )
