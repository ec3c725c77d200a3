"""Neptune's method on one video (arXiv 2412.09582, C.2): captions of frames and what was said
become a script, the script falls into topics, each topic gets a dense caption, and from these come
questions, answers and, in a call of their own, wrong answers.

    video = await neptune(video, asker, NeptuneSettings())

Beyond the paper: the topics come with a cast, so that who and what recurs has one name throughout;
and at least half of the questions of a long video join moments that lie apart. What the appendix
leaves open (numbers of questions, how a script is windowed) is a setting. See docs/neptune.md.
"""

from __future__ import annotations

import math
import re
from asyncio import gather
from collections.abc import Mapping, Sequence
from dataclasses import replace

from mustsee.calls.llm import Asker
from mustsee.errors import BadRow
from mustsee.questions.checks import normal
from mustsee.questions.drafts import Draft, finish_question
from mustsee.recipes.neptune.examine import examine
from mustsee.recipes.neptune.replies import (
    PROSE,
    Run,
    close_gaps,
    holes,
    shots,
    topics,
)
from mustsee.recipes.neptune.script import (
    Member,
    Scene,
    ScriptPart,
    Unit,
    shorten_text,
    units,
    windows,
)
from mustsee.recipes.neptune.settings import NeptuneSettings, WholeSettings
from mustsee.records import Provenance, Question, Segment, Video
from mustsee.text import length

# The release's twelve question types, exactly as written there, and what models call them.
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


STORY_SHARE = 0.5  # a scene's dense caption to its script, in words
LEAST_STORY = 80  # words that a dense caption may have, however little there is to retell
OVERVIEW_WORDS = 12  # of a scene in an overview, besides its story: times, topic, labels


async def neptune(video: Video, asker: Asker, settings: NeptuneSettings) -> Video:
    """The video with its segments and questions; a question at fault is kept, with the reason in
    `drop`. A video of which nothing was seen or heard has none.

    Raises BadRow when nothing of a reply can be parsed after the asker's tries.
    """
    script = await describe_shots(units(video, settings.unit_seconds), asker, settings)
    scenes, cast = await divide(script, asker, settings)
    scenes = await gather(*(retell(scene, cast, asker, settings) for scene in scenes))
    made = [replace(part, cast=cast) for part in parts(scenes, settings)]
    asked = await gather(*(examine(part, asker, settings) for part in made))
    segments = tuple(
        Segment(
            start=scene.start,
            end=scene.end,
            topic=scene.topic,
            dense_caption=scene.story,
            words_cut=scene.words_cut,
            visual_support=scene.support,
        )
        for scene in scenes
    )
    made_by = Provenance(llm=asker.llm.identity, prompts=asker.prompts.digest(settings.area))
    drafts = [draft for found in asked for draft in found]
    questions = tuple(record(draft, video.video_id, settings, made_by) for draft in drafts)
    return replace(video, segments=segments, questions=drop_repeated(questions))


async def describe_shots(
    script: Sequence[Unit], asker: Asker, settings: NeptuneSettings
) -> tuple[Unit, ...]:
    """The units with a sentence each: the caption of their frame, or one sentence made of several
    frames' captions. Sentences that a reply lacks are asked for alone, once.
    """

    async def describe(some: Sequence[Unit], again: bool = False) -> dict[Unit, str]:
        found = await asker.ask(
            "neptune/shots",
            shots(len(some)),
            seed=settings.seed,
            units=some,
        )
        told = {unit: found[n] for n, unit in enumerate(some) if n in found}
        left = [unit for unit in some if unit not in told]
        if not left or again:
            return told
        try:
            return told | await describe(left, again=True)
        except BadRow:
            return told

    several = [unit for unit in script if len({c.text for c in unit.captions}) > 1]
    done = await gather(*(describe(w) for w in windows(several, _words, settings.max_words)))
    told = {unit: text for some in done for unit, text in some.items()}
    first = {unit: unit.captions[0].text if unit.captions else "" for unit in script}
    return tuple(replace(unit, caption=told.get(unit, first[unit])) for unit in script)


async def divide(
    script: Sequence[Unit], asker: Asker, settings: NeptuneSettings
) -> tuple[tuple[Scene, ...], tuple[Member, ...]]:
    """The script by topic, and the cast: who and what recurs, each with its one name. A topic never
    crosses the border of a prompt's window; names that one window gave hold in the next.

    Stretches that a reply lacks are asked for alone, once; what is still missing, or a single shot,
    belongs to the topic before it.
    """
    scenes: list[Scene] = []
    cast: dict[str, Member] = {}
    for some in windows(script, _words, settings.max_words):
        runs, seen = await _topics(some, len(some) == len(script), cast, asker, settings)
        for first, end in list(holes(runs, len(some))):
            if end - first > 1:
                try:
                    more, also = await _topics(some[first:end], False, cast, asker, settings)
                except BadRow:
                    continue
                runs += [(first + a, first + b, topic) for a, b, topic in more]
                seen[first:end] = also
        named = [replace(unit, cast=who) for unit, who in zip(some, seen, strict=True)]
        cuts = close_gaps(runs, len(some))
        scenes += [Scene(topic=t, units=tuple(named[first:end])) for first, end, t in cuts]
    return tuple(scenes), tuple(cast.values())


async def _topics(
    some: Sequence[Unit],
    whole: bool,
    cast: dict[str, Member],
    asker: Asker,
    settings: NeptuneSettings,
) -> tuple[list[Run], list[tuple[str, ...]]]:
    """Runs of the units, and for each unit the names of those seen in it; new members join
    `cast`.
    """
    runs, members = await asker.ask(
        "neptune/topics",
        topics(len(some)),
        seed=settings.seed,
        units=some,
        whole=whole,
        cast=tuple(cast.values()),
    )
    named = [(cast.setdefault(normal(m.name), m).name, places) for m, places in members]
    seen = [tuple(name for name, places in named if n in places) for n in range(len(some))]
    return list(runs), seen


async def retell(
    scene: Scene, cast: Sequence[Member], asker: Asker, settings: NeptuneSettings
) -> Scene:
    """The scene with its dense caption and, where it is wanted, what the pictures say in its
    support. The dense caption is shorter than what it retells: later prompts have both.
    """
    here = {name for unit in scene.units for name in unit.cast}
    share = max(LEAST_STORY, math.ceil(STORY_SHARE * scene.words))
    most = min(settings.dense_words, share)
    story = await asker.ask(
        "neptune/dense",
        PROSE,
        seed=settings.seed,
        scene=scene,
        cast=[member for member in cast if member.name in here],
        most=most,
    )
    kept = shorten_text(story, most)
    over = length(story) - length(kept.removesuffix(" ..."))
    cut = 0 if kept == story else over
    scene = replace(scene, story=kept, words_cut=cut)
    if not settings.support_words:
        return scene
    support = await asker.ask(
        "neptune/support",
        PROSE,
        seed=settings.seed,
        scene=scene,
        most=settings.support_words,
    )
    return replace(scene, support=shorten_text(support, settings.support_words))


def parts(scenes: Sequence[Scene], settings: NeptuneSettings) -> list[ScriptPart]:
    """The scenes in prompts' worth, and one overview if there are several."""
    if not scenes:
        return []
    groups = windows(scenes, lambda scene: scene.words, settings.max_words)
    found = [ScriptPart(scenes=g, number=i, of=len(groups)) for i, g in enumerate(groups, 1)]
    if settings.overview and len(groups) > 1:
        found.append(_overview(scenes, len(groups), settings.max_words))
    return found


def _overview(scenes: Sequence[Scene], of: int, most: int) -> ScriptPart:
    """All scenes with the beginnings of their stories, as far as they fit; of very many scenes,
    every second, third ... one.
    """
    some = scenes[:: max(1, -(-len(scenes) * 2 * OVERVIEW_WORDS // most))]
    room = most // len(some) - OVERVIEW_WORDS
    short = [
        replace(
            scene,
            story=shorten_text(scene.story, room),
            support="",
            units=(Unit(start=scene.start, end=scene.end),),
        )
        for scene in some
    ]
    return ScriptPart(scenes=tuple(short), of=of, overview=True)


def record(
    draft: Draft,
    video_id: str,
    settings: NeptuneSettings | WholeSettings,
    provenance: Provenance,
) -> Question:
    """The checked question; one without fault belongs to the subset `full`."""
    question = finish_question(
        draft,
        video_id=video_id,
        recipe="neptune",
        question_type=question_type(draft.tag),
        seed=settings.seed,
        decoys=settings.decoys,
        provenance=provenance,
    )
    return question if question.drop else replace(question, subsets=("full",))


def drop_repeated(questions: Sequence[Question]) -> tuple[Question, ...]:
    """The questions, those marked as dropped that ask what an earlier one asks; a question that is
    the same in all is left out.
    """
    seen: set[str] = set()
    ids: set[str] = set()
    found: list[Question] = []
    for question in questions:
        if question.question_id in ids:
            continue
        ids.add(question.question_id)
        text = normal(question.question)
        if text in seen and question.drop is None:
            question = replace(question, drop="check: asked before", subsets=())
        seen.add(text)
        found.append(question)
    return tuple(found)


def question_type(tag: str) -> str:
    """One of the twelve types for a capability tag such as "timeline event"."""
    for name, pattern in TYPES.items():
        if re.search(pattern, tag, re.IGNORECASE):
            return name
    return "Other"


def _words(unit: Unit) -> int:
    return unit.words
