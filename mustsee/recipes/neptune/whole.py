"""Neptune's questions from the video itself: one long-context call writes questions, answers,
decoys and evidence.

    video = await whole(video, asker, WholeSettings())

The model watches the video, or sees frames with their times if it takes no videos, or not such long
ones. The transcript and the on-screen text are in the prompt either way, with exact times. Most
datasets of 2025 were written like this ("script with Gemini"). It is the cheapest way to write, and
the filters are the same as for `ask=neptune`.
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
from mustsee.recipes.neptune.examine import MIN_GAP_S
from mustsee.recipes.neptune.script import units
from mustsee.recipes.neptune.settings import WholeSettings
from mustsee.records import Provenance, Question, Span, Video
from mustsee.replies.forms import Form, form
from mustsee.verify.conditions.seen import plan, video_span
from mustsee.verify.conditions.video_frames import VideoFrames, plan_for_model

Written = tuple[Draft, str | None]  # a draft, and its fault of form or null


async def whole(video: Video, asker: Asker, settings: WholeSettings) -> Video:
    """Return the video with its questions. A malformed or faulty one is kept, with the reason in
    `drop`.

    Raises BadRow for a video that cannot be decoded or has too many words, and if no question of a
    reply can be used after the asker's tries.
    """
    extent = video_span(video)
    script = units(video, settings.unit_seconds)
    if (words := sum(unit.words for unit in script)) > settings.max_words:
        raise BadRow(
            f"{words} words of transcript and on-screen text, at most {settings.max_words} fit the "
            "prompt: raise ask.settings.max_words, or use ask=neptune"
        )
    planned = plan(settings.see, extent, ())
    assert planned is not None  # a whole video always has something to show
    planned, clips = await to_thread(plan_for_model, asker.watch, video, planned, settings.see)
    images = await VideoFrames(video).jpegs(planned.times, settings.see)
    wanted = min(
        settings.most, max(settings.questions, int(extent.seconds // settings.seconds_each))
    )
    target = math.ceil(settings.spare * wanted)
    min_gap = min(settings.apart_seconds, settings.apart_of_part * extent.seconds)
    drafts = await asker.ask(
        settings.prompt,
        questions_form(extent, target, settings.decoys),
        seed=settings.seed,
        images=images,
        clips=clips,
        video=extent,
        frames=planned.times,
        watched=planned.clips,
        script=script,
        target=target,
        joined=math.ceil(settings.apart_share * target) if min_gap >= MIN_GAP_S else 0,
        apart=min_gap,
        count=settings.decoys,
        wish=settings.wish,
    )
    origin = Provenance(llm=asker.llm.identity, prompts=asker.prompts.digest(settings.area))

    def make_question(written: Written) -> Question:
        draft, fault = written
        question = record(draft, video.video_id, settings, origin)
        return replace(question, drop=f"check: {fault}", subsets=()) if fault else question

    return replace(video, segments=(), questions=drop_repeated(tuple(map(make_question, drafts))))


def questions_form(extent: Span, most: int, wrong: int) -> Form[tuple[Written, ...]]:
    """Parse the questions of a reply, at most `most`, each with its fault of form; none if the
    reply is NONE. Raises Unparsed if no question can be used.
    """

    def usable(written: tuple[Written, ...]) -> tuple[Written, ...]:
        if written and all(fault for _, fault in written):
            raise Unparsed(written[0][1] or "")
        return written[:most]

    def in_text(reply: str) -> tuple[Written, ...]:
        written = tuple(_in_text(block, extent) for block in blocks(reply))
        if not written and not is_none(reply):
            raise Unparsed("it holds no line of the form 'QUESTION 1: (kind) ...'")
        return written

    def check_questions(drafts: tuple[NumberedDraft, ...]) -> tuple[Written, ...]:
        return tuple(
            _checked(draft, partial(check_spans, draft.draft.evidence, extent)) for draft in drafts
        )

    shape = question_list(question(kind="its kind", evidence=True, wrong=wrong)).map(
        check_questions
    )
    return form(text=in_text, shape=shape).map(usable)


def _in_text(block: list[LabelledField], extent: Span) -> Written:
    evidence = " ".join(field.text for field in block if field.label == "evidence")
    return _checked(draft_from_fields(block), partial(exact_spans, evidence, extent))


def _checked(numbered: NumberedDraft, parse_evidence: Callable[[], tuple[Span, ...]]) -> Written:
    """Return the draft with the evidence that `parse_evidence` gives, and its fault or null."""
    draft = numbered.draft
    if not draft.question or not draft.answer:
        return draft, f"QUESTION {numbered.number} has no {'answer' if draft.question else 'text'}"
    try:
        return replace(draft, evidence=parse_evidence()), None
    except Unparsed as error:
        return replace(draft, evidence=()), str(error)
