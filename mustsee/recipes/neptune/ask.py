"""Neptune's method on one video (arXiv 2412.09582, C.2): captions of frames and what was said
become a script, the script falls into topics, each topic gets a dense caption and its visual
support, and from these come questions, answers and, in a call of their own, wrong answers.

    video = await neptune(video, asker, NeptuneSettings())

What the appendix leaves open (numbers of questions, how a script is windowed) is a setting. See
docs/neptune.md.
"""

from __future__ import annotations

import re
from asyncio import gather
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from mustsee.errors import Unparsed, UserError
from mustsee.llm import Asker
from mustsee.questions.checks import normal
from mustsee.questions.drafts import (
    Draft,
    clipped,
    fields,
    finished,
    parse_decoys,
    parse_questions,
    plain,
)
from mustsee.recipes.neptune.script import Unit, shortened, units, windows
from mustsee.records import Provenance, Question, Segment, Span, Video

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


OVERVIEW_WORDS = 12  # of a scene in an overview, besides its story: times, topic, labels


@dataclass(frozen=True, kw_only=True)
class NeptuneSettings:
    """`questions`: asked for in each part of the script. `max_words`: of the video's content in one
    prompt; a longer video is worked on in parts. `overview`: of a video in several parts, also ask
    for questions on the whole. `unit_seconds`: longer shots are cut into pieces. `dense_words` and
    `support_words`: longest dense caption and visual support (C.2.2: 200).
    """

    version: ClassVar[str] = "1"
    reads: ClassVar[tuple[str, ...]] = (
        "video_id",
        "duration",
        "shots",
        "texts",
        "lines",
        "captions",
    )
    area: ClassVar[str] = "neptune"  # the folder of its prompts

    questions: int = 12
    decoys: int = 4
    max_words: int = 6000
    overview: bool = True
    unit_seconds: float = 30.0
    dense_words: int = 300
    support_words: int = 200
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("questions", "decoys", "dense_words", "support_words"):
            if getattr(self, name) < 1:
                raise UserError(f"ask.settings.{name}={getattr(self, name)!r}: at least 1")
        if self.max_words < 500:
            raise UserError(f"ask.settings.max_words={self.max_words!r}: at least 500")
        if self.unit_seconds <= 0:
            raise UserError(f"ask.settings.unit_seconds={self.unit_seconds!r}: more than 0 seconds")


@dataclass(frozen=True, kw_only=True)
class Scene:
    """One topic at work: its units, and what was written of them so far."""

    topic: str
    units: tuple[Unit, ...]
    story: str = ""
    support: str = ""

    @property
    def start(self) -> float:
        return self.units[0].start

    @property
    def end(self) -> float:
        return self.units[-1].end

    @property
    def words(self) -> int:
        written = len(self.topic.split()) + len(self.story.split()) + len(self.support.split())
        return written + sum(unit.words for unit in self.units)


@dataclass(frozen=True, kw_only=True)
class ScriptPart:
    """As much of a video as one prompt holds: part `number` of `of`. An overview has all scenes,
    without their units.
    """

    scenes: tuple[Scene, ...]
    number: int = 1
    of: int = 1
    overview: bool = False

    @property
    def span(self) -> Span:
        return Span(self.scenes[0].start, self.scenes[-1].end)


async def neptune(video: Video, asker: Asker, settings: NeptuneSettings) -> Video:
    """The video with its segments and questions; a question at fault is kept, with the reason in
    `drop`. A video of which nothing was seen or heard has none.

    Raises BadRow when a reply cannot be parsed after the asker's tries.
    """
    script = await describe_shots(units(video, settings.unit_seconds), asker, settings)
    scenes = await divide(script, asker, settings)
    scenes = await gather(*(retell(scene, asker, settings) for scene in scenes))
    asked = await gather(*(examine(part, asker, settings) for part in parts(scenes, settings)))
    segments = tuple(
        Segment(
            start=scene.start,
            end=scene.end,
            topic=scene.topic,
            dense_caption=scene.story,
            visual_support=scene.support,
        )
        for scene in scenes
    )
    made_by = Provenance(llm=asker.llm.identity, prompts=asker.prompts.digest(settings.area))
    drafts = [draft for found in asked for draft in found]
    questions = tuple(record(draft, video.video_id, settings, made_by) for draft in drafts)
    return replace(video, segments=segments, questions=once(questions))


async def describe_shots(
    script: Sequence[Unit], asker: Asker, settings: NeptuneSettings
) -> tuple[Unit, ...]:
    """The units with one sentence each, made of their frames' captions."""

    async def describe(some: Sequence[Unit]) -> list[Unit]:
        sentences = await asker.ask(
            "neptune/shots",
            lambda reply: parse_shots(reply, len(some)),
            seed=settings.seed,
            units=some,
        )
        return [replace(u, caption=text) for u, text in zip(some, sentences, strict=True)]

    done = await gather(*(describe(w) for w in windows(script, _words, settings.max_words)))
    return tuple(unit for some in done for unit in some)


async def divide(
    script: Sequence[Unit], asker: Asker, settings: NeptuneSettings
) -> tuple[Scene, ...]:
    """The script by topic. A topic never crosses the border of a prompt's window."""
    found = windows(script, _words, settings.max_words)

    async def divide_one(some: Sequence[Unit]) -> list[Scene]:
        cuts = await asker.ask(
            "neptune/topics",
            lambda reply: parse_topics(reply, len(some)),
            seed=settings.seed,
            units=some,
            whole=len(found) == 1,
        )
        return [Scene(topic=t, units=tuple(some[first:last])) for first, last, t in cuts]

    scenes = await gather(*(divide_one(window) for window in found))
    return tuple(scene for some in scenes for scene in some)


async def retell(scene: Scene, asker: Asker, settings: NeptuneSettings) -> Scene:
    """The scene with its dense caption, and what the pictures say in its support."""
    story = await asker.ask(
        "neptune/dense",
        prose(settings.dense_words),
        seed=settings.seed,
        scene=scene,
        most=settings.dense_words,
    )
    scene = replace(scene, story=story)
    support = await asker.ask(
        "neptune/support",
        prose(settings.support_words),
        seed=settings.seed,
        scene=scene,
        most=settings.support_words,
    )
    return replace(scene, support=support)


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
            story=shortened(scene.story, room),
            support="",
            units=(Unit(start=scene.start, end=scene.end),),
        )
        for scene in some
    ]
    return ScriptPart(scenes=tuple(short), of=of, overview=True)


async def examine(part: ScriptPart, asker: Asker, settings: NeptuneSettings) -> tuple[Draft, ...]:
    """Questions with answers on one part, then wrong answers for all of them; none where the model
    finds too little to ask about.
    """
    drafts = await asker.ask(
        "neptune/questions",
        lambda reply: parse_questions(reply, settings.questions),
        seed=settings.seed,
        part=part,
        target=settings.questions,
    )
    if not drafts:
        return ()
    drafts = tuple(replace(draft, evidence=_evidence(draft, part)) for draft in drafts)
    return await asker.ask(
        "neptune/decoys",
        lambda reply: parse_decoys(reply, drafts, settings.decoys),
        seed=settings.seed,
        part=part,
        drafts=drafts,
        count=settings.decoys,
    )


def record(
    draft: Draft, video_id: str, settings: NeptuneSettings, provenance: Provenance
) -> Question:
    """The checked question; one without fault belongs to the subset `full`."""
    question = finished(
        draft,
        video_id=video_id,
        recipe="neptune",
        question_type=question_type(draft.tag),
        seed=settings.seed,
        decoys=settings.decoys,
        provenance=provenance,
    )
    return question if question.drop else replace(question, subsets=("full",))


def once(questions: Sequence[Question]) -> tuple[Question, ...]:
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


def parse_shots(reply: str, count: int) -> tuple[str, ...]:
    """`SHOT n: sentence` for each n from 1 to `count`. Raises Unparsed when one is missing."""
    found = {f.number: f.text for f in fields(reply, {"shot": r"shot"}) if f.text}
    missing = [str(n) for n in range(1, count + 1) if str(n) not in found]
    if missing:
        raise Unparsed(f"there is no line 'SHOT n: ...' for n = {', '.join(missing[:12])}")
    return tuple(found[str(n)] for n in range(1, count + 1))


_RUN = re.compile(
    r"^(?:shots?\s*)?(\d+)(?:\s*(?:-|–|—|to|through)\s*(?:shot\s*)?(\d+))?\s*[:|,.\-–—]*\s*(.*)$",
    re.IGNORECASE,
)


def parse_topics(reply: str, count: int) -> tuple[tuple[int, int, str], ...]:
    """`SEGMENT n: first-last: topic` as (first, end, topic), counted from 0, end excluded.

    Raises Unparsed when the runs do not cover 1 to `count` in order, each shot once.
    """
    found: list[tuple[int, int, str]] = []
    for field in fields(reply, {"segment": r"segment|scene"}):
        match = _RUN.match(f"{field.tag} {field.text}".strip())
        if not match or not match[3].strip():
            raise Unparsed(f"{field.text[:60]!r} is not of the form 'first-last: topic'")
        first, last = int(match[1]), int(match[2] or match[1])
        expected = found[-1][1] + 1 if found else 1
        if first != expected or not first <= last <= count:
            raise Unparsed(
                f"segment {len(found) + 1} has shots {first}-{last}, but it must begin at shot "
                f"{expected} and end at {count} or before"
            )
        found.append((first - 1, last, plain(match[3])))
    if not found or found[-1][1] != count:
        last = found[-1][1] if found else 0
        raise Unparsed(f"the segments end at shot {last}, not at shot {count}, the last one")
    return tuple(found)


def prose(most: int) -> Callable[[str], str]:
    """A parser of plain text, of at most `most` words: a heading or an introduction is left out."""

    def parse(reply: str) -> str:
        kept = [
            x
            for x in reply.strip().splitlines()
            if not re.match(r"\s*(?:#|```|\*\*[^*]+\*\*:?\s*$)", x)
        ]
        if len(kept) > 1 and re.match(
            r"(?i)\s*(?:sure|certainly|here(?:'s| is| are))\b.*:\s*$", kept[0]
        ):
            kept = kept[1:]
        text = plain(" ".join(kept))
        if not text:
            raise Unparsed("it is empty")
        if re.match(r"(?i)(?:i(?:'m| am) sorry|i (?:can(?:no|')t|am unable))\b", text):
            raise Unparsed(f"it is a refusal: {text[:80]!r}")
        return shortened(text, most)

    return parse


def _words(unit: Unit) -> int:
    return unit.words


def _evidence(draft: Draft, part: ScriptPart) -> tuple[Span, ...]:
    """The spans that the model named, within the part; the whole part where it named none."""
    return clipped(draft.evidence, part.span.start, part.span.end) or (part.span,)
