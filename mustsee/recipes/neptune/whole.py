"""Neptune's questions from the video itself: one long-context call writes questions, answers, wrong
answers and evidence.

    video = await whole(video, asker, WholeSettings())

The model watches the video, or sees pictures of it with their times where it takes no videos or not
as much of one; what is said and read stands beside it either way, with exact times. That is the
"script with Gemini" that most datasets of 2025 came from, and the cheapest way to write: what makes
it a dataset are the filters behind it, which are those of `ask`.
"""

from __future__ import annotations

import math
from asyncio import to_thread
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from mustsee.calls.llm import Asker
from mustsee.errors import BadRow, Unparsed
from mustsee.questions.drafts import Draft, LabelledField, check_spans, exact_spans
from mustsee.questions.replies import (
    NumberedDraft,
    blocks,
    draft_from_fields,
    is_none,
    question,
    question_list,
)
from mustsee.recipes.neptune.ask import drop_repeated, record
from mustsee.recipes.neptune.script import Scene, ScriptPart, units
from mustsee.recipes.neptune.settings import WholeSettings
from mustsee.records import Provenance, Question, Span, Video
from mustsee.replies.forms import Form, form
from mustsee.verify.conditions.seen import plan, stretch
from mustsee.verify.conditions.video_frames import VideoFrames
from mustsee.verify.conditions.watch import plan_for_model

LEAST_APART = 10.0  # seconds; moments nearer to each other than this are hardly two
Written = tuple[Draft, str | None]  # and what is malformed about it


async def whole(video: Video, asker: Asker, settings: WholeSettings) -> Video:
    """The video with its questions; one that is malformed, or at fault, is kept with the reason in
    `drop`.

    Raises BadRow for a video that cannot be decoded, and when no question of a reply can be used
    after the asker's tries.
    """
    extent = stretch(video)
    script = units(video, settings.unit_seconds)
    if (found := sum(unit.words for unit in script)) > settings.max_words:
        raise BadRow(
            f"{found} words are said and read: raise ask.settings.max_words, or ask=neptune"
        )
    planned = plan(settings.see, extent, ())
    assert planned is not None  # a whole video is never nothing
    planned, clips = await to_thread(plan_for_model, asker.watch, video, planned, settings.see)
    images = await VideoFrames(video).pictures(planned.times, settings.see)
    target = min(
        settings.most, max(settings.questions, int(extent.seconds // settings.seconds_each))
    )
    apart = min(settings.apart_seconds, settings.apart_of_part * extent.seconds)
    part = ScriptPart(scenes=(Scene(topic="", units=script),)) if script else None
    found = await asker.ask(
        "neptune/whole",
        questions_form(extent, target, settings.decoys),
        seed=settings.seed,
        images=images,
        clips=clips,
        video=extent,
        frames=planned.times,
        watched=planned.clips,
        script=script,
        part=part,
        target=target,
        joined=math.ceil(settings.apart_share * target) if apart >= LEAST_APART else 0,
        apart=apart,
        count=settings.decoys,
    )
    made_by = Provenance(llm=asker.llm.identity, prompts=asker.prompts.digest(settings.area))

    def make_question(written: Written) -> Question:
        draft, fault = written
        asked = record(draft, video.video_id, settings, made_by)
        return replace(asked, drop=f"check: {fault}", subsets=()) if fault else asked

    return replace(video, segments=(), questions=drop_repeated(tuple(map(make_question, found))))


def questions_form(extent: Span, most: int, wrong: int) -> Form[tuple[Written, ...]]:
    """The questions of a reply, at most `most`, each with what is malformed about it; none when it
    is the word NONE. Unparsed when none can be used.
    """

    def usable(found: tuple[Written, ...]) -> tuple[Written, ...]:
        if found and all(fault for _, fault in found):
            raise Unparsed(found[0][1] or "")
        return found[:most]

    def in_text(reply: str) -> tuple[Written, ...]:
        found = tuple(_in_text(block, extent) for block in blocks(reply))
        if not found and not is_none(reply):
            raise Unparsed("it holds no line of the form 'QUESTION 1: (kind) ...'")
        return found

    def check_questions(asked: tuple[NumberedDraft, ...]) -> tuple[Written, ...]:
        return tuple(
            _checked(one, partial(check_spans, one.draft.evidence, extent)) for one in asked
        )

    shape = question_list(question(kind="the kind", evidence=True, wrong=wrong)).map(
        check_questions
    )
    return form(text=in_text, shape=shape).map(usable)


def _in_text(block: list[LabelledField], extent: Span) -> Written:
    evidence = " ".join(field.text for field in block if field.label == "evidence")
    return _checked(draft_from_fields(block), partial(exact_spans, evidence, extent))


def _checked(one: NumberedDraft, spans: Callable[[], tuple[Span, ...]]) -> Written:
    """`spans`: reads the evidence, strictly."""
    draft = one.draft
    if not draft.question or not draft.answer:
        return draft, f"QUESTION {one.number} has no {'answer' if draft.question else 'text'}"
    try:
        return replace(draft, evidence=spans()), None
    except Unparsed as error:
        return replace(draft, evidence=()), str(error)
