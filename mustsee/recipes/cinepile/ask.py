"""CinePile (arXiv 2405.08813): questions on a scene from its description and dialogue (2.3).

A model shortlists the templates that fit the scene, a few are drawn, and a model writes questions
of these kinds. Further questions are of hand-written perceptual and temporal kinds; the perceptual
ones have a model of their own.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from mustsee.align.place import Alignment
from mustsee.calls.llm import Asker
from mustsee.errors import BadRow, Unparsed
from mustsee.questions.checks import normal
from mustsee.questions.drafts import clip_spans, finish_question
from mustsee.recipes.cinepile.mcq import Mcq, kind_of, mcqs
from mustsee.recipes.cinepile.templates import Template
from mustsee.records import Line, Provenance, Question, SceneText, Span, Video
from mustsee.replies.forms import Form, form, list_of, object_with, whole

SHORTLIST, QUESTIONS = "cinepile/shortlist", "cinepile/questions"  # prompts
TAGS = (
    "Each line has a tag, its start and end in seconds, and a text: <subtitle> is what somebody "
    "says, <visual descriptions> is what a narrator says of the picture."
)


@dataclass(frozen=True, kw_only=True)
class CinePileSettings:
    """How questions are asked by templates."""

    version: ClassVar[str] = "3"
    reads: ClassVar[tuple[str, ...]] = ("video_id", "scene", "duration")
    area: ClassVar[str] = "cinepile"

    templates: tuple[Template, ...] = ()
    shortlist: int = 20
    """Templates that fit a scene best (the paper: 20)."""
    pick: tuple[int, int] = (5, 6)
    """Fewest and most templates drawn from the shortlist (the paper: 5 or 6)."""
    perceptual: int = 3
    """Hand-written perceptual kinds drawn."""
    temporal: int = 2
    """Hand-written temporal kinds drawn."""
    each: int = 3
    """Questions of one kind; about 32 a clip in all."""
    threshold: float = 0.5
    """Least probability at which a line counts as the narrator's."""
    seed: int = 0

    def of(self, kind: str) -> list[Template]:
        return [t for t in self.templates if t.kind == kind]


async def ask(video: Video, askers: Mapping[str, Asker], settings: CinePileSettings) -> Video:
    """Return the clip with its questions in the order of their ids. `askers`: by role,
    "shortlister", "reasoning" and "perceptual" (2.3: Gemini, GPT-4, Gemini).

    Raises BadRow for a clip without a scene, and if a model's replies cannot be parsed.
    """
    if video.scene is None or not video.scene.lines:
        raise BadRow(f"clip {video.video_id!r} has no scene text: it was not aligned")
    scene = format_lines(scene_lines(video.scene, threshold=settings.threshold))
    rng = random.Random(f"{settings.seed}/{video.video_id}/templates")
    groups: list[tuple[str, str, list[Template]]] = []
    reasoning = await _shortlisted(scene, settings, askers["shortlister"], rng.randrange(2**31))
    least, most = settings.pick
    groups.append(("reasoning", "reasoning", _drawn(reasoning, rng.randint(least, most), rng)))
    groups.append(
        ("perceptual", "perceptual", _drawn(settings.of("perceptual"), settings.perceptual, rng))
    )
    groups.append(
        ("temporal", "reasoning", _drawn(settings.of("temporal"), settings.temporal, rng))
    )
    calls = [
        _questions(video, scene, kind, askers[role], templates, settings, rng.randrange(2**31))
        for kind, role, templates in groups
        if templates
    ]
    questions = [question for group in await asyncio.gather(*calls) for question in group]
    # Of equal questions the last one is kept, which is a sound one if there is any.
    order = sorted(questions, key=lambda q: (q.drop is None, q.question_id))
    unique = {normal(q.question): q for q in order}
    return replace(video, questions=tuple(sorted(unique.values(), key=lambda q: q.question_id)))


def _drawn(templates: Sequence[Template], count: int, rng: random.Random) -> list[Template]:
    return rng.sample(list(templates), min(count, len(templates)))


async def _shortlisted(
    scene: str, settings: CinePileSettings, asker: Asker, seed: int
) -> list[Template]:
    """Return the templates that the model chooses, or all if there are too few to choose from."""
    templates = settings.of("reasoning")
    if len(templates) <= settings.pick[0]:
        return templates
    count = min(settings.shortlist, len(templates))
    indices = await asker.ask(
        SHORTLIST,
        shortlist(len(templates), count),
        seed=seed,
        scene=scene,
        tags=TAGS,
        templates=[{"name": t.name, "prototype": t.prototype} for t in templates],
        count=count,
    )
    return [templates[index] for index in indices]


def shortlist(total: int, count: int) -> Form[tuple[int, ...]]:
    """Parse the line `TEMPLATES: 3, 17, ...` into the indices of the chosen templates, from 0, each
    once. Raises Unparsed for a line without numbers, and for a number beyond the templates.
    """

    def check_numbers(numbers: Sequence[int]) -> tuple[int, ...]:
        wrong = [n for n in numbers if not 1 <= n <= total]
        if wrong:
            raise Unparsed(f"there is no template {wrong[0]}: they are numbered 1 to {total}")
        if not numbers:
            raise Unparsed("it holds no line of the form 'TEMPLATES: 1, 2, 3'")
        return tuple(n - 1 for n in list(dict.fromkeys(numbers))[:count])

    about = f"the kinds that fit, best first, at most {count}"
    shape = object_with("templates", list_of(whole("a number of the list"), about))
    return form(text=_numbers, shape=shape).map(check_numbers)


def _numbers(reply: str) -> tuple[int, ...]:
    """Return the numbers on the line of the label, or else the first numbers in the lines below it,
    behind the list's own numbering.
    """
    label = re.search(r"templates?\s*[:：]([^\n]*)((?:\n+.*)*)", reply.replace("*", ""), re.I)
    if not label:
        return ()
    if numbers := re.findall(r"\d{1,6}", label[1]):
        return tuple(map(int, numbers))
    lines = [line for line in label[2].splitlines() if line.strip()]
    listed = [re.match(r"\s*(?:\d+[.):]|-)\s+(\d{1,6})\b", line) for line in lines]
    plain = [re.match(r"\s*(\d{1,6})\b", line) for line in lines]
    matches = listed if lines and all(listed) else plain
    return tuple(int(m[1]) for m in matches if m)


async def _questions(
    video: Video,
    scene: str,
    kind: str,
    asker: Asker,
    templates: Sequence[Template],
    settings: CinePileSettings,
    seed: int,
) -> list[Question]:
    names = [t.name for t in templates]
    parsed = await asker.ask(
        QUESTIONS,
        mcqs(or_none=kind == "perceptual", kinds=names),
        seed=seed,
        scene=scene,
        tags=TAGS,
        kind=kind,
        templates=[{"name": t.name, "prototype": t.prototype} for t in templates],
        each=settings.each,
    )
    origin = Provenance(llm=asker.llm.identity, prompts=asker.prompts.digest("cinepile"))
    kinds = [templates[kind_of(mcq.template, names) or 0].category for mcq in parsed]
    questions = [
        record(video, mcq, category, settings.seed, origin)
        for mcq, category in zip(parsed, kinds, strict=True)
    ]
    return questions[: settings.each * len(templates)]


def record(
    video: Video, mcq: Mcq, question_type: str, seed: int, origin: Provenance | None
) -> Question:
    """Return the checked question, with shuffled options and its evidence clipped to the clip."""
    question = finish_question(
        mcq.draft(),
        video_id=video.video_id,
        recipe="cinepile",
        question_type=question_type,
        seed=seed,
        provenance=origin,
    )
    end = max((x.end for x in video.scene.lines), default=0.0) if video.scene else 0.0
    length = max(video.duration or 0.0, end)
    begin = video.start or 0.0
    evidence = clip_spans(mcq.evidence, 0.0, length)
    return replace(
        question,
        rationale=mcq.rationale or None,
        evidence=tuple(Span(begin + s.start, begin + s.end) for s in evidence),
    )


SUBTITLE, VISUAL = "<subtitle>", "<visual descriptions>"


@dataclass(frozen=True, kw_only=True)
class SceneLine:
    """A line of the scene: dialogue, or the narrator's description (`visual`); times in seconds."""

    start: float
    end: float
    text: str
    visual: bool


def scene_lines(scene: SceneText, *, threshold: float = 0.5) -> tuple[SceneLine, ...]:
    """Return the scene's lines; from a probability of `threshold` a line is the narrator's."""
    pairs = zip(scene.lines, scene.visual, strict=True)
    return tuple(
        SceneLine(start=x.start, end=x.end, text=" ".join(x.text.split()), visual=p >= threshold)
        for x, p in pairs
        if x.text.strip()
    )


def format_lines(lines: Sequence[SceneLine]) -> str:
    """Write one line of text for each: tag, start and end in seconds, text."""
    return "\n".join(
        f"{VISUAL if x.visual else SUBTITLE} {x.start:.1f} {x.end:.1f} {x.text}" for x in lines
    )


def scene_of(alignment: Alignment, lines: Sequence[Line], visual: Sequence[float]) -> SceneText:
    """Return the scene text of a placed clip, with the lines' times in the clip."""
    assert alignment.span is not None, "the clip was not placed"

    def shift_time(seconds: float) -> float:
        return max(0.0, (seconds - alignment.offset) / alignment.rate)

    return SceneText(
        lines=tuple(
            replace(x, start=shift_time(x.start), end=shift_time(x.end), words=()) for x in lines
        ),
        visual=tuple(visual),
        start=alignment.span.start,
        end=alignment.span.end,
        rate=alignment.rate,
        score=alignment.score,
        head=alignment.head,
        tail=alignment.tail,
    )
