"""Videos to synthesise, planned: a pool of clips, a pool of backgrounds, and rows that carry a
plan, the probes in it, and questions whose answers the plan knows.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

from mustsee import schemas
from mustsee.errors import BadRow, UserError
from mustsee.questions.drafts import Draft, question_id
from mustsee.records import Caption, Question, Segment, Span, Video
from mustsee.store import digest
from mustsee.synth.absence import shows
from mustsee.synth.plan import InsertedProbe, InsertionPlan, PositionRule, plan

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class InsertedClip:
    """A clip to insert: `label` names its action, `caption` says what is seen; `event` is its place
    among the events of one source ("" where it has none), for ordering captions.
    """

    uri: str
    end: float
    start: float = 0.0
    label: str = ""
    caption: str = ""
    source: str = ""
    event: int = 0


@dataclass(frozen=True, kw_only=True)
class Background:
    """A long video to insert into. `shots` are needed only to keep away from their middles;
    `captions` only to tell that what a needle shows is not there.
    """

    uri: str
    duration: float
    shots: tuple[Span, ...] = ()
    captions: tuple[Caption, ...] = ()

    def mentions_action(self, labels: Collection[str]) -> bool:
        """Whether a caption has the words of one of these actions."""
        for label in labels:
            if label not in self._told:
                self._told[label] = any(shows(label, c.text) for c in self.captions)
        return any(self._told[label] for label in labels)

    @cached_property
    def _told(self) -> dict[str, bool]:
        """What was found so far: a plan asks again for each of its videos."""
        return {}


@dataclass(frozen=True, kw_only=True)
class SynthesisSettings:
    """What all synthetic tasks share. `items`: videos to make. `options`: 4 as in the dev set, 6 as
    in the test set. `background_seconds`: how much of a background is taken (the released files:
    450), null for all of it; `total_seconds`: the length of the whole instead, for a time ladder.
    `probe_seconds`: the most that is shown of a clip (the released files: 10).
    """

    items: int = 20
    options: int = 4
    background_seconds: float | None = 450.0
    total_seconds: float | None = None
    probe_seconds: float = 10.0
    spread: PositionRule = field(default_factory=PositionRule)
    seed: int = 0

    def probe(self, clip: InsertedClip, seed: str) -> InsertedProbe:
        """At most `probe_seconds` of a clip, from a seeded moment on."""
        length = min(clip.end - clip.start, self.probe_seconds)
        slack = clip.end - clip.start - length
        start = clip.start + random.Random(f"{seed}/{clip.uri}/start").random() * slack
        return InsertedProbe(uri=clip.uri, start=start, end=start + length, label=clip.label)

    def plan(
        self, backgrounds: Sequence[Background], clips: Sequence[InsertedClip], seed: str
    ) -> InsertionPlan:
        """The clips, in the order given, in a seeded stretch of a seeded background that is long
        enough, one whose captions tell of none of the clips' actions where there is one. Raises
        UserError where none is long enough.
        """
        probes = [self.probe(clip, seed) for clip in clips]
        shown = sum(p.end - p.start for p in probes)
        wanted = self.background_seconds
        if self.total_seconds is not None:
            wanted = self.total_seconds - shown
        least = wanted or 2 * self.spread.margin + self.spread.gap * max(0, len(probes) - 1)
        enough = [b for b in backgrounds if b.duration >= least]
        if not enough or (wanted is not None and wanted <= 0):
            way = "lower gap= and margin=" if wanted is None else "set background_seconds=null"
            raise UserError(
                f"no background of {least:.0f} s or more (the longest has "
                f"{max((b.duration for b in backgrounds), default=0):.0f} s): give longer ones, or "
                + ("lower the lengths in ladder=" if self.total_seconds is not None else way)
            )
        draw = random.Random(f"{seed}/background")
        labels = {clip.label for clip in clips} - {""}
        chosen = draw.choice([b for b in enough if not b.mentions_action(labels)] or enough)
        length = chosen.duration if wanted is None else wanted
        start = draw.random() * (chosen.duration - length)
        try:
            return plan(
                chosen.uri,
                start,
                start + length,
                probes,
                spread=self.spread,
                seed=seed,
                shots=chosen.shots,
            )
        except ValueError as error:
            raise UserError(str(error)) from error


def cycle_choices(count: int, choices: Sequence[T], seed: str) -> list[T]:
    """`count` draws that use each choice equally often, to one: shuffled rounds of all choices."""
    rng = random.Random(seed)
    drawn: list[T] = []
    while len(drawn) < count:
        turn = list(choices)
        rng.shuffle(turn)
        drawn += turn
    return drawn[:count]


def place_answer(draft: Draft, slot: int) -> tuple[str, ...]:
    """The options with the answer in place `slot`, the decoys around it in their order."""
    return (*draft.decoys[:slot], draft.answer, *draft.decoys[slot:])


def row(task: str, made: InsertionPlan, captions: Sequence[str] = ()) -> Video:
    """The row of a planned video: its id is the hash of the plan."""
    text = json.dumps(schemas.dump(made), sort_keys=True)
    said = [*captions, *[""] * (len(made.insertions) - len(captions))]
    segments = tuple(
        Segment(start=span.start, end=span.end, topic=i.probe.label, dense_caption=caption)
        for span, i, caption in zip(made.placements(), made.insertions, said, strict=True)
    )
    return Video(
        video_id=f"{task}_{digest(schemas.dump(made))[:12]}",
        uri=made.background,
        plan=text,
        duration=made.seconds,
        segments=segments,
    )


def with_question(
    video: Video, kind: str, draft: Draft, slot: int, evidence: Sequence[Span] | None = None
) -> Video:
    """The row with a question whose answer lies in place `slot`. `evidence`: all probes if null."""
    spans = [Span(s.start, s.end) for s in video.segments or ()] if evidence is None else evidence
    asked = Question(
        question_id=question_id(video.video_id, "mlvu", draft),
        video_id=video.video_id,
        recipe="mlvu",
        question=draft.question,
        question_type=kind,
        options=place_answer(draft, slot),
        answer_index=slot,
        answer=draft.answer,
        evidence=tuple(spans),
    )
    return replace(video, questions=(*(video.questions or ()), asked))


def clips_by_label(clips: Sequence[InsertedClip], least: int) -> Mapping[str, list[InsertedClip]]:
    """Clips by their label, of labels with at least `least` clips; equal clips count once."""
    found: dict[str, list[InsertedClip]] = defaultdict(list)
    for clip in clips:
        if clip.label and clip not in found[clip.label]:
            found[clip.label].append(clip)
    return {name: some for name, some in found.items() if len(some) >= least}


def with_captions(video: Video, backgrounds: Sequence[Background]) -> Video:
    """The row with what is said of the stretch of the background that its plan takes."""
    made = plan_of(video)
    behind = {b.uri: b.captions for b in backgrounds}.get(made.background, ())
    inside = tuple(c for c in behind if made.start <= c.time < made.end)
    return replace(video, captions=inside or None)


def with_placement(video: Video, made: InsertionPlan, spans: Sequence[Span]) -> Video:
    """The row with its probes where they really are: segments, and the evidence of questions; the
    captions of the background, and those of the probes, on the whole video's clock.
    """
    planned = [Span(s.start, s.end) for s in video.segments or ()]
    moved = dict(zip(planned, spans, strict=True))
    segments = tuple(
        replace(s, start=span.start, end=span.end)
        for s, span in zip(video.segments or (), spans, strict=True)
    )
    questions = None
    if video.questions is not None:
        questions = tuple(
            replace(q, evidence=tuple(moved.get(e, e) for e in q.evidence)) for q in video.questions
        )
    captions = video.captions
    if captions is not None and made.insertions:
        shift = {i.at: span.end for i, span in zip(made.insertions, spans, strict=True)}
        moments = [Caption(s.start, s.dense_caption) for s in segments if s.dense_caption]
        for caption in captions:
            before = [at for at in shift if at <= caption.time]
            begin, zero = (max(before), shift[max(before)]) if before else (made.start, 0.0)
            moments.append(replace(caption, time=zero + caption.time - begin))
        captions = tuple(sorted(moments, key=lambda c: c.time))
    return replace(video, segments=segments, questions=questions, captions=captions)


def plan_of(video: Video) -> InsertionPlan:
    """The plan that a row carries. Raises BadRow where it has none, or none that can be read."""
    try:
        data: Any = json.loads(video.plan or "")
        return schemas.load(InsertionPlan, data)
    except (ValueError, TypeError) as error:
        raise BadRow(f"video {video.video_id!r} has no usable plan: {error}") from error
