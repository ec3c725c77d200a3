"""Questions on one part of a script: first with their answers, then with decoys.

All prompts here begin with the same contact sheets and script, so that an endpoint caches it after the first call.
"""

from __future__ import annotations

import math
from asyncio import gather
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mustsee.calls.llm import Asker, Message
from mustsee.errors import BadRow
from mustsee.questions.drafts import Draft, clip_spans, reach
from mustsee.questions.replies import decoys, questions
from mustsee.recipes.neptune.replies import expected_answers
from mustsee.recipes.neptune.script import ScriptPart, windows
from mustsee.recipes.neptune.settings import NeptuneSettings
from mustsee.records import Span

MIN_GAP_S = 10.0  # spans nearer to each other count as one


async def examine(part: ScriptPart, asker: Asker, settings: NeptuneSettings) -> tuple[Draft, ...]:
    """Return questions with answers and decoys on one part; none if the model finds too little to
    ask about. A question whose decoys cannot be parsed has none.
    """
    drafts = await _drafts(part, asker, settings)
    groups = windows(drafts, lambda draft: 1, settings.questions)
    done = await gather(*(_with_decoys(group, part, asker, settings) for group in groups))
    return tuple(draft for group in done for draft in group)


async def _drafts(part: ScriptPart, asker: Asker, settings: NeptuneSettings) -> tuple[Draft, ...]:
    """Return the questions with their evidence. If too few of them join distant spans, more of that
    kind take the place of the last others.
    """
    target = max(settings.questions, part.words // settings.words_each)
    min_gap = min(settings.apart_seconds, settings.apart_of_part * part.span.seconds)
    reaches = len(part.scenes) > 1 and min_gap >= MIN_GAP_S
    joined = math.ceil(settings.apart_share * target) if reaches else 0
    variables: dict[str, Any] = {"part": part, "target": target, "joined": joined, "apart": min_gap}
    reply, drafts = await asker.ask(
        "neptune/questions",
        questions(target, evidence=True).with_reply(),
        seed=settings.seed,
        images=images_of(part),
        **variables,
    )
    drafts = _with_evidence(drafts, part)
    near = [d for d in drafts if not joins(d.evidence, part, min_gap)]
    enough = len(drafts) - len(near) >= settings.apart_share * len(drafts)
    if not joined or enough:
        return drafts
    lacking = joined - (len(drafts) - len(near))
    more = _with_evidence(await _further(reply, lacking, variables, asker, settings.seed), part)
    more = tuple(d for d in more if joins(d.evidence, part, min_gap))
    surplus = max(0, len(drafts) + len(more) - target)
    left_out = near[len(near) - surplus :]
    return (*(d for d in drafts if d not in left_out), *more)


async def _further(
    reply: str, lacking: int, variables: Mapping[str, Any], asker: Asker, seed: int
) -> tuple[Draft, ...]:
    """Return questions that join distant spans, requested in the chat of the first reply; none if
    the reply cannot be parsed.
    """
    opening = asker.prompts.render("neptune/questions", **variables)
    history = (
        Message("system", opening.system),
        Message("user", opening.user, images_of(variables["part"]), lines=opening.lines),
        Message("assistant", reply),
    )
    try:
        return await asker.ask(
            "neptune/further",
            questions(lacking, evidence=True),
            seed=seed,
            history=history,
            lacking=lacking,
            **variables,
        )
    except BadRow:
        return ()


async def _with_decoys(
    drafts: Sequence[Draft], part: ScriptPart, asker: Asker, settings: NeptuneSettings
) -> tuple[Draft, ...]:
    """Return the questions with their decoys. Missing decoys are requested again, once."""
    tempting = dict(zip(drafts, await _expected(drafts, asker, settings), strict=True))

    async def ask(chosen: Sequence[Draft]) -> tuple[Draft, ...]:
        return await asker.ask(
            "neptune/decoys",
            decoys(chosen, settings.decoys),
            seed=settings.seed,
            images=images_of(part),
            part=part,
            drafts=chosen,
            expected=[tempting[draft] for draft in chosen],
            count=settings.decoys,
        )

    complete = await ask(drafts)
    without_decoys = [draft for draft in complete if not draft.decoys]
    if not without_decoys:
        return complete
    try:
        repaired = dict(zip(without_decoys, await ask(without_decoys), strict=True))
    except BadRow:
        return complete
    return tuple(repaired.get(draft, draft) for draft in complete)


async def _expected(
    drafts: Sequence[Draft], asker: Asker, settings: NeptuneSettings
) -> tuple[tuple[str, ...], ...]:
    """Return answers to the questions that a model gives without the video: tempting decoys."""
    none: tuple[tuple[str, ...], ...] = ((),) * len(drafts)
    if not settings.expected or not drafts:
        return none
    try:
        return await asker.ask(
            "neptune/expected",
            expected_answers(len(drafts), settings.expected),
            seed=settings.seed,
            drafts=drafts,
            count=settings.expected,
        )
    except BadRow:
        return none


def joins(evidence: Sequence[Span], part: ScriptPart, min_gap: float) -> bool:
    """Whether the evidence joins spans of different scenes with `min_gap` seconds between them."""
    if reach(evidence) < min_gap:
        return False
    first, last = min(s.end for s in evidence), max(s.start for s in evidence)
    return part.scene_at(first) != part.scene_at(last)


def images_of(part: ScriptPart) -> tuple[bytes, ...]:
    """Return the part's contact sheets, which come before the text of its prompts."""
    return tuple(sheet.jpeg for sheet in part.sheets)


def _with_evidence(drafts: Sequence[Draft], part: ScriptPart) -> tuple[Draft, ...]:
    """Return the drafts with their evidence clipped to the part; the whole part without any."""
    span_of_part = part.span
    return tuple(
        replace(
            d,
            evidence=clip_spans(d.evidence, span_of_part.start, span_of_part.end)
            or (span_of_part,),
        )
        for d in drafts
    )
