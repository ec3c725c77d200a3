"""Questions on one part of a script: first with their answers, then with decoys.

All prompts here begin with the same contact sheets and script, so that an endpoint caches them
after the first call.
"""

from __future__ import annotations

import math
from asyncio import gather
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mustsee.calls.llm import Message
from mustsee.questions.drafts import Draft, clip_spans, reach
from mustsee.questions.orders import build_options
from mustsee.questions.replies import decoys, questions
from mustsee.recipes.neptune.script import ScriptPart, windows
from mustsee.recipes.neptune.settings import NeptuneWriter
from mustsee.records import Span

MIN_GAP_S = 10.0  # spans nearer to each other count as one
FURTHER = "further questions on distant spans"  # `what` of the requests
MISSING_DECOYS = "missing decoys"
MAX_TOGETHER = 30  # questions whose decoys are written in one request


async def examine(part: ScriptPart, writer: NeptuneWriter) -> tuple[Draft, ...]:
    """Return questions with answers and decoys on one part; none if the model finds too little to
    ask about. A question whose decoys cannot be parsed has none; orders need none where code makes
    them.
    """
    drafts, tweaks = await _drafts(part, writer), writer.settings.tweaks
    without_decoys = [n for n, d in enumerate(drafts) if tweaks or build_options(d) is d]
    groups = windows(without_decoys, lambda n: 1, MAX_TOGETHER)
    done = await gather(*(_with_decoys([drafts[n] for n in g], part, writer) for g in groups))
    written = (draft for group in done for draft in group)
    complete = dict(zip(without_decoys, written, strict=True))
    return tuple(complete.get(n, draft) for n, draft in enumerate(drafts))


async def _drafts(part: ScriptPart, writer: NeptuneWriter) -> tuple[Draft, ...]:
    """Return the questions with their evidence. If too few of them join distant spans, more of that
    kind take the place of the last others.
    """
    settings = writer.settings
    wanted = max(settings.questions, part.words // settings.words_each)
    target = math.ceil(settings.spare * wanted)
    min_gap = min(settings.apart_seconds, settings.apart_of_part * part.span.seconds)
    reaches = len(part.scenes) > 1 and min_gap >= MIN_GAP_S and part.kind == "story"
    joined = math.ceil(settings.apart_share * target) if reaches else 0
    variables: dict[str, Any] = {
        "part": part,
        "target": target,
        "joined": joined,
        "apart": min_gap,
        "tweaks": settings.tweaks,
    }
    form, images = questions(target, evidence=True).keep_reply(), images_of(part)
    reply, drafts = await writer.ask("neptune/questions", form, images=images, **variables)
    drafts = _with_evidence(drafts, part)
    reasons = [find_gap_fault(d.evidence, part, min_gap) for d in drafts]
    near = [draft for draft, reason in zip(drafts, reasons, strict=True) if reason]
    enough = len(drafts) - len(near) >= settings.apart_share * len(drafts)
    if not joined or enough:
        return drafts
    lacking = joined - (len(drafts) - len(near))
    failed = [(d.question, reason) for d, reason in zip(drafts, reasons, strict=True) if reason]
    # They are requested in the chat of the first reply, with the questions that do not and why.
    opening = writer.asker.messages("neptune/questions", images=images, **variables)
    further = await writer.requests.try_call(
        FURTHER,
        writer.ask(
            "neptune/further", questions(lacking, evidence=True), lacking=lacking, failed=failed,
            history=(*opening, Message("assistant", reply)), **variables,
        ),
    )  # fmt: skip
    more = _with_evidence(further or (), part)
    more = tuple(d for d in more if not find_gap_fault(d.evidence, part, min_gap))
    surplus = max(0, len(drafts) + len(more) - target)
    left_out = near[len(near) - surplus :]
    return (*(d for d in drafts if d not in left_out), *more)


async def _with_decoys(
    drafts: Sequence[Draft], part: ScriptPart, writer: NeptuneWriter
) -> tuple[Draft, ...]:
    """Return the questions with their decoys. Missing decoys are requested again, once."""
    count, tweaks = writer.settings.decoys, writer.settings.tweaks

    async def ask(chosen: Sequence[Draft]) -> tuple[Draft, ...]:
        return await writer.ask(
            "neptune/decoys", decoys(chosen, count), images=images_of(part), part=part,
            drafts=chosen, count=count, tweaks=tweaks,
        )  # fmt: skip

    complete = await ask(drafts)
    without_decoys = [draft for draft in complete if not draft.decoys]
    if not without_decoys:
        return complete
    repaired = await writer.requests.try_call(MISSING_DECOYS, ask(without_decoys))
    found = dict(zip(without_decoys, repaired or without_decoys, strict=True))
    return tuple(found.get(draft, draft) for draft in complete)


def find_gap_fault(evidence: Sequence[Span], part: ScriptPart, min_gap: float) -> str:
    """Return why the evidence does not join spans of different scenes with `min_gap` seconds
    between them; "" if it does.
    """
    if len(evidence) < 2:
        return "its evidence is one stretch"
    if (seconds := reach(evidence)) < min_gap:
        return f"the first and the last moment of its evidence lie {seconds:.0f} s apart"
    first, last = min(s.end for s in evidence), max(s.start for s in evidence)
    is_one = part.scene_at(first) == part.scene_at(last)
    return "all of its evidence is in one scene" if is_one else ""


def images_of(part: ScriptPart) -> tuple[bytes, ...]:
    """Return the part's contact sheets, which come before the text of its prompts."""
    return tuple(sheet.jpeg for sheet in part.sheets)


def _with_evidence(drafts: Sequence[Draft], part: ScriptPart) -> tuple[Draft, ...]:
    """Return the drafts with their evidence clipped to the part; the whole part without any."""
    span_of_part = part.span
    clipped = (clip_spans(d.evidence, span_of_part.start, span_of_part.end) for d in drafts)
    pairs = zip(drafts, clipped, strict=True)
    return tuple(replace(draft, evidence=spans or (span_of_part,)) for draft, spans in pairs)
