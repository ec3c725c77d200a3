"""One part of a script under examination: questions with their answers, then wrong answers.

All prompts here begin with the same script, so that an endpoint's prompt cache serves those after
the first.
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

LEAST_APART = 10.0  # seconds; moments nearer to each other than this are hardly two


async def examine(part: ScriptPart, asker: Asker, settings: NeptuneSettings) -> tuple[Draft, ...]:
    """Questions with answers on one part, then wrong answers for them; none where the model finds
    too little to ask about. A question whose wrong answers cannot be had stays without.
    """
    drafts = await _asked(part, asker, settings)
    groups = windows(drafts, lambda draft: 1, settings.questions)
    done = await gather(*(_with_decoys(group, part, asker, settings) for group in groups))
    return tuple(draft for group in done for draft in group)


async def _asked(part: ScriptPart, asker: Asker, settings: NeptuneSettings) -> tuple[Draft, ...]:
    """The questions with their evidence; if too few of them join moments that lie apart, the last
    of the others make room for more of that kind.
    """
    target = max(settings.questions, part.words // settings.words_each)
    apart = min(settings.apart_seconds, settings.apart_of_part * part.span.seconds)
    reaches = len(part.scenes) > 1 and apart >= LEAST_APART
    joined = math.ceil(settings.apart_share * target) if reaches else 0
    variables: dict[str, Any] = {"part": part, "target": target, "joined": joined, "apart": apart}
    reply, drafts = await asker.ask(
        "neptune/questions",
        questions(target, evidence=True).with_reply(),
        seed=settings.seed,
        **variables,
    )
    drafts = _placed(drafts, part)
    near = [d for d in drafts if not joins(d.evidence, part, apart)]
    enough = len(drafts) - len(near) >= settings.apart_share * len(drafts)
    if not joined or enough:
        return drafts
    lacking = joined - (len(drafts) - len(near))
    more = _placed(await _further(reply, lacking, variables, asker, settings.seed), part)
    more = tuple(d for d in more if joins(d.evidence, part, apart))
    room = max(0, len(drafts) + len(more) - target)
    left_out = near[len(near) - room :]
    return (*(d for d in drafts if d not in left_out), *more)


async def _further(
    reply: str, lacking: int, variables: Mapping[str, Any], asker: Asker, seed: int
) -> tuple[Draft, ...]:
    """Questions that join moments, asked for in the chat of the first reply; none where none can be
    read.
    """
    opening = asker.prompts.render("neptune/questions", **variables)
    history = (
        Message("system", opening.system),
        Message("user", opening.user),
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
    """The questions with their wrong answers; those that the reply lacks are asked for alone,
    once.
    """

    tempting = dict(zip(drafts, await _expected(drafts, asker, settings), strict=True))

    async def ask(some: Sequence[Draft]) -> tuple[Draft, ...]:
        return await asker.ask(
            "neptune/decoys",
            decoys(some, settings.decoys),
            seed=settings.seed,
            part=part,
            drafts=some,
            expected=[tempting[draft] for draft in some],
            count=settings.decoys,
        )

    done = await ask(drafts)
    bare = [draft for draft in done if not draft.decoys]
    if not bare:
        return done
    try:
        mended = dict(zip(bare, await ask(bare), strict=True))
    except BadRow:
        return done
    return tuple(mended.get(draft, draft) for draft in done)


async def _expected(
    drafts: Sequence[Draft], asker: Asker, settings: NeptuneSettings
) -> tuple[tuple[str, ...], ...]:
    """What is answered to the questions alone, without the video: wrong answers that tempt."""
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


def joins(evidence: Sequence[Span], part: ScriptPart, apart: float) -> bool:
    """Whether the evidence lies in different scenes, moments of it at least `apart` seconds from
    each other.
    """
    if reach(evidence) < apart:
        return False
    first, last = min(s.end for s in evidence), max(s.start for s in evidence)
    return part.scene_at(first) != part.scene_at(last)


def _placed(drafts: Sequence[Draft], part: ScriptPart) -> tuple[Draft, ...]:
    """The drafts with the spans that the model named, as far as they lie in the part; with the
    whole part where it named none.
    """
    whole = part.span
    return tuple(
        replace(d, evidence=clip_spans(d.evidence, whole.start, whole.end) or (whole,))
        for d in drafts
    )
