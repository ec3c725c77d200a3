"""Neptune's questions from the film itself: one long-context call writes questions, answers, wrong
answers and evidence.

    video = await whole(video, asker, WholeSettings())

The model watches the film, or sees pictures of it with their times where it takes no films or not
as much of one; what is said and read stands beside it either way, with exact times. That is the
"script with Gemini" that most datasets of 2025 came from, and the cheapest way to write: what makes
it a dataset are the filters behind it, which are those of `ask`.
"""

from __future__ import annotations

import math
from asyncio import to_thread
from dataclasses import replace

from mustsee.conditions.film import Film
from mustsee.conditions.seen import plan, stretch
from mustsee.conditions.watch import watched
from mustsee.errors import BadRow, Unparsed
from mustsee.llm import Asker
from mustsee.questions.drafts import Draft, Field, blocks, drafted, is_none, stretches, told
from mustsee.recipes.neptune.ask import once, record
from mustsee.recipes.neptune.script import Scene, ScriptPart, units
from mustsee.recipes.neptune.settings import WholeSettings
from mustsee.records import Provenance, Question, Span, Video

LEAST_APART = 10.0  # seconds; moments nearer to each other than this are hardly two
Written = tuple[Draft, str | None]  # and what is malformed about it


async def whole(video: Video, asker: Asker, settings: WholeSettings) -> Video:
    """The video with its questions; one that is malformed, or at fault, is kept with the reason in
    `drop`.

    Raises BadRow for a film that cannot be decoded, and when no question of a reply can be used
    after the asker's tries.
    """
    film = stretch(video)
    script = units(video, settings.unit_seconds)
    if (found := sum(unit.words for unit in script)) > settings.max_words:
        raise BadRow(
            f"{found} words are said and read: raise ask.settings.max_words, or ask=neptune"
        )
    planned = plan(settings.see, film, ())
    assert planned is not None  # a whole film is never nothing
    planned, clips = await to_thread(watched, asker.watch, video, planned, settings.see)
    images = await Film(video).pictures(planned.times, settings.see)
    target = min(settings.most, max(settings.questions, int(film.seconds // settings.seconds_each)))
    apart = min(settings.apart_seconds, settings.apart_of_part * film.seconds)
    part = ScriptPart(scenes=(Scene(topic="", units=script),)) if script else None
    found = await asker.ask(
        "neptune/whole",
        lambda reply: parse_whole(reply, target, film),
        seed=settings.seed,
        images=images,
        clips=clips,
        film=film,
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

    def question(written: Written) -> Question:
        draft, fault = written
        made = record(draft, video.video_id, settings, made_by)
        return replace(made, drop=f"check: {fault}", subsets=()) if fault else made

    return replace(video, segments=(), questions=once(tuple(map(question, found))))


def parse_whole(reply: str, most: int, film: Span) -> tuple[Written, ...]:
    """The questions of a reply, at most `most`, each with what is malformed about it; none when it
    is the word NONE. Raises Unparsed when none can be used.
    """
    if is_none(reply):
        return ()
    found = [_written(block, film) for block in blocks(reply)][:most]
    if all(fault for _, fault in found):
        faults = [fault for _, fault in found if fault]
        raise Unparsed([*faults, "it holds no line of the form 'QUESTION 1: (kind) ...'"][0])
    return tuple(found)


def _written(block: list[Field], film: Span) -> Written:
    draft = drafted(block)
    if not draft.question or not draft.answer:
        return draft, f"QUESTION {block[0].number} has no {'answer' if draft.question else 'text'}"
    try:
        return replace(draft, evidence=stretches(told(block, "evidence"), film)), None
    except Unparsed as error:
        return replace(draft, evidence=()), str(error)
