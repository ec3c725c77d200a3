"""Neptune's method on one video (arXiv 2412.09582, C.2). Frame captions and the transcript become a
script, the script is divided by topic, each topic may get a dense caption (off by default), and a
model writes questions and answers about these. A further call writes the decoys.

    video = await neptune(video, asker, NeptuneSettings())

Three things go beyond the paper. The writer sees contact sheets of the keyframes. The topics come
with a cast, so that recurring people and things have one name throughout. At least half of the
questions of a long video join distant spans.
Settings hold what the appendix leaves open (numbers of questions, windows of a script); see
docs/neptune.md.
"""

from __future__ import annotations

import math
import re
from asyncio import gather, to_thread
from collections.abc import Mapping, Sequence
from dataclasses import replace

from mustsee.calls.llm import Asker
from mustsee.media.contact_sheet import SheetRules, contact_sheets
from mustsee.questions.checks import normal
from mustsee.questions.drafts import Draft, finish_question
from mustsee.questions.orders import build_options
from mustsee.recipes.neptune.examine import examine
from mustsee.recipes.neptune.replies import PROSE, Run, close_gaps, holes, shots, topics
from mustsee.recipes.neptune.script import (
    Member,
    Scene,
    ScriptPart,
    Unit,
    shorten_text,
    units,
    windows,
)
from mustsee.recipes.neptune.settings import NeptuneSettings, NeptuneWriter, WholeSettings
from mustsee.records import Provenance, Question, Segment, Video
from mustsee.text import length

# The release's twelve question types, spelled as there, and a pattern of models' names for each.
TYPES: Mapping[str, str] = {
    "Temporal Ordering": r"tempor|timeline|order|sequence|chronolog",
    "Summarization": r"summar|compress|main (?:idea|point)",
    "Visual Narrative": r"visual|mood|narrative",
    "Cause And Effect": r"caus|effect|reason why",
    "State Changes": r"state|change|transform",
    "Comparison": r"compar|contrast|differ",
    "Counting": r"count|number|quantit",
    "Identification": r"identi|recogni",
    "Predictive": r"predict|next",
    "Creator Intent": r"creator|intent|message",
    "Goal Reasoning": r"goal|purpose|motiv|aim",
    "Other": r"other",
}

MISSING_SENTENCES = "sentences missing in a first reply"  # `what` of the requests
MISSING_TOPICS = "topics missing in a first reply"
STORY_SHARE = 0.5  # words of a scene's dense caption, as a share of its script's
LEAST_STORY = 80  # words that a dense caption may have at least, however short the script
OVERVIEW_WORDS = 12  # words of a scene in an overview besides its story: times, topic, labels


async def neptune(video: Video, asker: Asker, settings: NeptuneSettings) -> Video:
    """Return the video with its segments and questions. A faulty question is kept, with the reason
    in `drop`. A video without captions, on-screen text and transcript gets no questions.

    Raises BadRow when nothing of a reply can be parsed after the asker's tries.
    """
    writer = NeptuneWriter(asker=asker, settings=settings)
    script = await describe_shots(units(video, settings.unit_seconds), writer)
    scenes, cast, kind = await divide(script, writer)
    scenes = await gather(*(retell(scene, cast, writer) for scene in scenes))
    script_parts = [
        replace(part, cast=cast, kind=kind)
        for part in parts(scenes, settings)
        if not (part.overview and kind == "compilation")
    ]
    script_parts = await to_thread(with_sheets, script_parts, video, settings.sheets)
    drafts_of_parts = await gather(*(examine(part, writer) for part in script_parts))
    segments = tuple(
        Segment(
            start=scene.start,
            end=scene.end,
            topic=scene.topic,
            dense_caption=scene.story or scene.sentences,
            words_cut=scene.words_cut,
            visual_support=scene.support,
        )
        for scene in scenes
    )
    origin = Provenance(llm=asker.llm.identity, prompts=asker.prompts.digest(settings.area))
    drafts = [draft for part_drafts in drafts_of_parts for draft in part_drafts]
    questions = tuple(record(draft, video.video_id, settings, origin) for draft in drafts)
    questions, counts = drop_repeated(questions), writer.requests.counts
    return replace(video, segments=segments, questions=questions, requests=counts)


async def describe_shots(script: Sequence[Unit], writer: NeptuneWriter) -> tuple[Unit, ...]:
    """Return the units with a sentence each: the caption of their frame, or one sentence made of
    several frames' captions. Sentences missing from a reply are requested again, once.
    """

    async def describe(window: Sequence[Unit], is_retry: bool = False) -> dict[Unit, str]:
        reply = await writer.ask("neptune/shots", shots(len(window)), units=window)
        sentences = {unit: reply[n] for n, unit in enumerate(window) if n in reply}
        missing = [unit for unit in window if unit not in sentences]
        if not missing or is_retry:
            return sentences
        again = describe(missing, is_retry=True)
        return sentences | (await writer.requests.try_call(MISSING_SENTENCES, again) or {})

    multi_frame = [unit for unit in script if len({c.text for c in unit.captions}) > 1]
    groups = windows(multi_frame, _words, writer.settings.max_words)
    replies = await gather(*map(describe, groups))
    sentences = {unit: text for window in replies for unit, text in window.items()}
    first_captions = {unit: unit.captions[0].text if unit.captions else "" for unit in script}
    return tuple(
        replace(unit, caption=sentences.get(unit, first_captions[unit])) for unit in script
    )


async def divide(
    script: Sequence[Unit], writer: NeptuneWriter
) -> tuple[tuple[Scene, ...], tuple[Member, ...], str]:
    """Divide the script by topic, list the cast (recurring people and things, each with one name),
    and return the video's kind: a story, unless all windows say that it is another. A topic never
    crosses the border of a prompt's window; names given in one window are passed to the next.

    Units missing from a reply are requested again, once. Units that are still missing, and single
    ones, join the topic before them.
    """
    scenes: list[Scene] = []
    cast: dict[str, Member] = {}
    kinds: set[str] = set()
    for window in windows(script, _words, writer.settings.max_words):
        runs, names, kind = await _topics(window, len(window) == len(script), cast, writer)
        kinds.add(kind)
        for first, end in list(holes(runs, len(window))):
            if end - first > 1:
                again = _topics(window[first:end], False, cast, writer)
                if (found := await writer.requests.try_call(MISSING_TOPICS, again)) is None:
                    continue
                gap_runs, gap_names, _ = found
                runs += [(first + a, first + b, topic) for a, b, topic in gap_runs]
                names[first:end] = [
                    tuple(dict.fromkeys((*one, *other)))
                    for one, other in zip(names[first:end], gap_names, strict=True)
                ]
        named = [replace(unit, cast=who) for unit, who in zip(window, names, strict=True)]
        cuts = close_gaps(runs, len(window))
        scenes += [Scene(topic=t, units=tuple(named[first:end])) for first, end, t in cuts]
    return tuple(scenes), tuple(cast.values()), kinds.pop() if len(kinds) == 1 else "story"


async def _topics(
    window: Sequence[Unit], is_whole: bool, cast: dict[str, Member], writer: NeptuneWriter
) -> tuple[list[Run], list[tuple[str, ...]], str]:
    """Return runs of the units, for each unit the names of the members seen in it, and the video's
    kind. New members are added to `cast`.
    """
    runs, members, kind = await writer.ask(
        "neptune/topics", topics(len(window)), units=window, whole=is_whole,
        cast=tuple(cast.values()), tweaks=writer.settings.tweaks,
    )  # fmt: skip
    named = [(cast.setdefault(normal(m.name), m).name, places) for m, places in members]
    names = [tuple(name for name, places in named if n in places) for n in range(len(window))]
    return list(runs), names, kind


async def retell(scene: Scene, cast: Sequence[Member], writer: NeptuneWriter) -> Scene:
    """Return the scene with its dense caption and its visual support, if the settings ask for them.
    The dense caption is shorter than its script, because later prompts contain both.
    """
    settings = writer.settings
    if settings.dense_words == 0:
        return scene
    present = {name for unit in scene.units for name in unit.cast}
    share = max(LEAST_STORY, math.ceil(STORY_SHARE * scene.words))
    max_words = share if settings.dense_words is None else min(settings.dense_words, share)
    seen = [member for member in cast if member.name in present]
    story = await writer.ask("neptune/dense", PROSE, scene=scene, cast=seen, most=max_words)
    kept = shorten_text(story, max_words)
    words_over = length(story) - length(kept.removesuffix(" ..."))
    words_cut = 0 if kept == story else words_over
    scene = replace(scene, story=kept, words_cut=words_cut)
    if not settings.support_words:
        return scene
    most = settings.support_words
    support = await writer.ask("neptune/support", PROSE, scene=scene, most=most)
    return replace(scene, support=shorten_text(support, most))


def parts(scenes: Sequence[Scene], settings: NeptuneSettings) -> list[ScriptPart]:
    """Group the scenes into parts that fit a prompt, and add an overview if there are several."""
    if not scenes:
        return []
    groups = windows(scenes, lambda scene: scene.words, settings.max_words)
    script_parts = [ScriptPart(scenes=g, number=i, of=len(groups)) for i, g in enumerate(groups, 1)]
    if settings.overview and len(groups) > 1:
        script_parts.append(_overview(scenes, len(groups), settings.max_words))
    return script_parts


def _overview(scenes: Sequence[Scene], of: int, max_words: int) -> ScriptPart:
    """Return a part with the beginning of each scene's story, or of its shots' sentences. If there
    are too many scenes, it has every second, third ... one.
    """
    chosen = scenes[:: max(1, -(-len(scenes) * 2 * OVERVIEW_WORDS // max_words))]
    words_each = max_words // len(chosen) - OVERVIEW_WORDS
    shortened = [
        replace(
            scene,
            story=shorten_text(scene.story or scene.sentences, words_each),
            support="",
            units=(Unit(start=scene.start, end=scene.end),),
        )
        for scene in chosen
    ]
    return ScriptPart(scenes=tuple(shortened), of=of, overview=True)


def with_sheets(
    script_parts: Sequence[ScriptPart], video: Video, rules: SheetRules
) -> list[ScriptPart]:
    """Return the parts with contact sheets of the video's keyframes, if it has any."""
    keyframes = video.keyframes or ()
    return [
        replace(part, sheets=contact_sheets(keyframes, part.span, rules)) for part in script_parts
    ]


def record(
    draft: Draft, video_id: str, settings: NeptuneSettings | WholeSettings, provenance: Provenance
) -> Question:
    """Return the checked question; one without a fault is in the subset `full`. Orders and
    combinations have the options that code makes, as many as balance them, unless the model's
    `tweaks` are wanted.
    """
    written = isinstance(settings, NeptuneSettings) and settings.tweaks
    built = draft if written else build_options(draft)
    question = finish_question(
        built,
        video_id=video_id,
        recipe="neptune",
        question_type=question_type(draft.tag),
        seed=settings.seed,
        decoys=settings.decoys if built is draft else len(built.decoys),
        provenance=provenance,
    )
    return question if question.drop else replace(question, subsets=("full",))


def drop_repeated(questions: Sequence[Question]) -> tuple[Question, ...]:
    """Return the questions without identical ones. A question with the text of an earlier one is
    marked as dropped.
    """
    texts: set[str] = set()
    ids: set[str] = set()
    kept: list[Question] = []
    for question in questions:
        if question.question_id in ids:
            continue
        ids.add(question.question_id)
        text = normal(question.question)
        if text in texts and question.drop is None:
            question = replace(question, drop="check: asked before", subsets=())
        texts.add(text)
        kept.append(question)
    return tuple(kept)


def question_type(tag: str) -> str:
    """Return one of the twelve types for a capability tag such as "timeline event"."""
    for name, pattern in TYPES.items():
        if re.search(pattern, tag, re.IGNORECASE):
            return name
    return "Other"


def _words(unit: Unit) -> int:
    return unit.words
