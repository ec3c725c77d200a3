"""Adversarial refinement (CinePile 2.0): questions that are guessed blind are rewritten.

A question is tested on the cyclic rotations of its options, so that its answer stands once in each
place. Weak: right in `most` + 1 of them or more (3 of 5). A weak question is rewritten by a model
that sees the scene, the question, and why the blind model chose the answer; then it is tested anew.

Decided where the released code and its text disagree:

- Weakness is always measured on all rotations, the first time too; one lucky miss fixes nothing.
- A call without a readable answer is asked again; a rotation that stays without one leaves the
  question "untested", which is never "strong" or "fixed". An endpoint that is down (Transient) ends
  the clip's work instead, for the next run to take up: it must not make questions "unfixed".
- At most `rewrites` rewrites, as the text says; failed tests do not use them up, failed, malformed
  and unanswerable rewrites do.
- The rationale handed on is one of a rotation that was right, from the test of this wording.
- After each rewrite the question must be well-formed, and a model that reads the scene must choose
  its answer; else the wording before it stays.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from mustsee.errors import BadRow
from mustsee.llm import Asker
from mustsee.questions.checks import fault
from mustsee.recipes.cinepile.ask import TAGS
from mustsee.recipes.cinepile.choosing import SCENE, choose, rotated, verdict
from mustsee.recipes.cinepile.mcq import Choice, Mcq, parse_mcq
from mustsee.records import Question, Verdict
from mustsee.text import LETTERS

Status = Literal["strong", "fixed", "unfixed", "untested"]


@dataclass(frozen=True, kw_only=True)
class Refinement:
    """`most`: rotations that may be right for a question to stand; `rewrites`: how often it may be
    rewritten; `again`: how often a call without an answer is repeated, with another seed.
    """

    most: int = 2
    rewrites: int = 5
    again: int = 2


@dataclass(frozen=True, kw_only=True)
class Tested:
    """A wording's test: the choice made on each rotation (null: no answer), and whether right."""

    choices: tuple[Choice | None, ...]
    right: tuple[bool | None, ...]

    @property
    def complete(self) -> bool:
        return all(r is not None for r in self.right)

    @property
    def hits(self) -> int:
        return sum(r is True for r in self.right)

    @property
    def rationale(self) -> str:
        """Why the answer was guessed: of the first rotation that was right."""
        both = zip(self.choices, self.right, strict=True)
        return next((c.rationale for c, right in both if c and right and c.rationale), "")


@dataclass(frozen=True, kw_only=True)
class Refined:
    """The question as it now stands, how that came, and how many rewrites were asked for."""

    question: Question
    status: Status
    rewrites: int = 0


async def tested(
    question: str,
    options: Sequence[str],
    answer: int,
    asker: Asker,
    settings: Refinement,
    seed: int,
) -> Tested:
    """The blind model's choices on all rotations. A failed call is repeated `again` times."""

    async def one(by: int) -> Choice | None:
        for attempt in range(settings.again + 1):
            found = await choose(
                asker, question, rotated(options, by), seed=seed + by + 1000 * attempt
            )
            if found is not None:
                return found
        return None

    choices = tuple(await asyncio.gather(*(one(by) for by in range(len(options)))))
    right = tuple(
        None if c is None else c.place == (answer + by) % len(options)
        for by, c in enumerate(choices)
    )
    return Tested(choices=choices, right=right)


async def refine(
    question: Question,
    scene: str,
    *,
    blind: Asker,
    writer: Asker,
    judge: Asker,
    settings: Refinement,
    seed: int = 0,
) -> Refined:
    """The question, rewritten if it was weak.

    Its metrics say what happened: `weak` (0 or 1, where the test was complete), `rewrites`, and
    `fixed` for a weak question. Options of a rewritten question keep the answer in its place.
    """
    answer = question.answer_index
    if answer is None or len(question.options) < 2:
        return Refined(question=question, status="untested")
    first = await tested(question.question, question.options, answer, blind, settings, seed)
    trail = [_verdict(question, first, blind, settings, seed, "as written")]
    if not first.complete:
        return Refined(question=_marked(question, trail, {}), status="untested")
    if first.hits <= settings.most:
        return Refined(question=_marked(question, trail, {"weak": 0.0}), status="strong")
    now, test, used = question, first, 0
    metrics = {"weak": 1.0, "fixed": 0.0}
    for used in range(1, settings.rewrites + 1):
        new = await _rewritten(now, test, scene, writer, seed + 10_000 * used)
        reason = "no readable rewrite" if new is None else _unsound(new)
        if new is not None and reason is None:
            reason = await _unanswerable(new, scene, judge, settings, seed + used)
        if new is None or reason is not None:
            trail.append(_note(trail[0], f"rewrite {used} refused: {reason}"))
            continue
        assert new.answer_index is not None
        again = await tested(
            new.question, new.options, new.answer_index, blind, settings, seed + 100 * used
        )
        trail.append(_verdict(new, again, blind, settings, seed, f"rewrite {used}"))
        if not again.complete:
            continue  # the wording before it stays: this one was not tested
        now, test = new, again
        if again.hits <= settings.most:
            done = {**metrics, "fixed": 1.0, "rewrites": float(used)}
            return Refined(question=_marked(now, trail, done), status="fixed", rewrites=used)
    unfixed = _marked(question, trail, {**metrics, "rewrites": float(used)})
    return Refined(question=unfixed, status="unfixed", rewrites=used)


async def _rewritten(
    question: Question, test: Tested, scene: str, writer: Asker, seed: int
) -> Question | None:
    """A rewrite, its answer in the place where the old one was; None where none could be read."""
    answer = question.answer_index
    assert answer is not None
    try:
        mcq: Mcq = await writer.ask(
            "cinepile/rewrite",
            lambda text: parse_mcq(text, options=len(question.options)),
            seed=seed,
            scene=scene,
            tags=TAGS,
            question=question.question,
            options=question.options,
            letter=LETTERS[answer],
            rationale=test.rationale,
        )
    except BadRow:
        return None
    options = list(mcq.draft().decoys)
    options.insert(answer, mcq.options[mcq.answer])
    return replace(
        question,
        question=mcq.question,
        options=tuple(options),
        answer=mcq.options[mcq.answer],
        rationale=mcq.rationale or question.rationale,
    )


def _unsound(question: Question) -> str | None:
    decoys = [o for i, o in enumerate(question.options) if i != question.answer_index]
    reason = fault(question.question, question.answer, decoys, count=len(decoys))
    return None if reason is None else f"not well-formed ({reason})"


async def _unanswerable(
    question: Question, scene: str, judge: Asker, settings: Refinement, seed: int
) -> str | None:
    """Whether a model that reads the scene fails to choose the answer; no reply is a failure."""
    for attempt in range(settings.again + 1):
        found = await choose(
            judge, question.question, question.options, context=scene, about=SCENE,
            seed=seed + 1000 * attempt,
        )  # fmt: skip
        if found is not None:
            return (
                None if found.place == question.answer_index else "the scene gives another answer"
            )
    return "it could not be checked against the scene"


def _verdict(
    question: Question, test: Tested, blind: Asker, settings: Refinement, seed: int, what: str
) -> Verdict:
    shown = next((c for c in test.choices if c is not None), None)
    base = verdict("refine", blind, question, None, seed=seed)
    return replace(
        base,
        reply=shown.reply if shown else "",
        correct=test.hits > settings.most if test.complete else None,
        passed=test.hits <= settings.most if test.complete else None,
        detail=f"{what}: right in {test.hits} of {len(test.right)} rotations"
        + ("" if test.complete else f", {test.right.count(None)} without an answer"),
    )


def _note(base: Verdict, detail: str) -> Verdict:
    return replace(base, reply="", correct=None, passed=None, detail=detail)


def _marked(question: Question, trail: Sequence[Verdict], metrics: dict[str, float]) -> Question:
    return replace(
        question,
        verdicts=(*question.verdicts, *trail),
        metrics={**question.metrics, **metrics},
    )
