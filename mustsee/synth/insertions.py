"""Plans of synthetic videos: a pool of clips, a pool of backgrounds, and rows that carry a plan,
its probes, and questions whose answers follow from the plan.
"""

from __future__ import annotations

import json
import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

from mustsee.errors import BadRow, UserError
from mustsee.files import schemas
from mustsee.files.store import digest
from mustsee.questions.drafts import Draft, question_id
from mustsee.records import Caption, Question, Segment, Span, Video, group_pairs
from mustsee.synth.absence import mentions_label
from mustsee.synth.plan import InsertedProbe, InsertionPlan, PositionRule, plan

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class InsertedClip:
    """A clip to insert.

    `label` names its action, `caption` describes what is seen; `event` is its place among the
    events of one source ("" where it has none), for questions about their order.
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
    """A long video to insert into.

    `shots` are needed only for positions near cuts, `captions` only to check that what a needle
    shows is absent.
    """

    uri: str
    duration: float
    shots: tuple[Span, ...] = ()
    captions: tuple[Caption, ...] = ()

    def mentions_action(self, labels: Collection[str]) -> bool:
        """Whether a caption has the words of one of these actions."""
        for label in labels:
            if label not in self._mentions:
                self._mentions[label] = any(mentions_label(label, c.text) for c in self.captions)
        return any(self._mentions[label] for label in labels)

    @cached_property
    def _mentions(self) -> dict[str, bool]:
        """Results by label, cached because a plan asks once for each of its videos."""
        return {}


@dataclass(frozen=True, kw_only=True)
class SynthesisSettings:
    """Settings of all synthetic tasks.

    `items`: videos to make. `options`: 4 as in the dev set, 6 as in the test set.
    `background_seconds`: seconds used of a background (the released files: 450), null for all of
    it. `total_seconds`: seconds of the whole video instead, for a time ladder. `probe_seconds`:
    seconds shown of a clip at most (the released files: 10).
    """

    items: int = 20
    options: int = 4
    background_seconds: float | None = 450.0
    total_seconds: float | None = None
    probe_seconds: float = 10.0
    spread: PositionRule = field(default_factory=PositionRule)
    seed: int = 0

    def probe(self, clip: InsertedClip, seed: str) -> InsertedProbe:
        """Return at most `probe_seconds` of a clip, from a seeded start."""
        length = min(clip.end - clip.start, self.probe_seconds)
        slack = clip.end - clip.start - length
        start = clip.start + random.Random(f"{seed}/{clip.uri}/start").random() * slack
        return InsertedProbe(uri=clip.uri, start=start, end=start + length, label=clip.label)

    def plan(
        self, backgrounds: Sequence[Background], clips: Sequence[InsertedClip], seed: str
    ) -> InsertionPlan:
        """Return a plan with the clips, in the order given, in a seeded span of a seeded
        background.

        The background is long enough, and if possible none of its captions mentions an action of
        the clips. Raises UserError where none is long enough.
        """
        probes = [self.probe(clip, seed) for clip in clips]
        probe_seconds = sum(p.end - p.start for p in probes)
        seconds = self.background_seconds
        if self.total_seconds is not None:
            seconds = self.total_seconds - probe_seconds
        min_seconds = seconds or 2 * self.spread.margin + self.spread.gap * max(0, len(probes) - 1)
        long_enough = [b for b in backgrounds if b.duration >= min_seconds]
        if not long_enough or (seconds is not None and seconds <= 0):
            advice = "lower gap= and margin=" if seconds is None else "set background_seconds=null"
            raise UserError(
                f"no background of {min_seconds:.0f} s or more (the longest has "
                f"{max((b.duration for b in backgrounds), default=0):.0f} s): give longer ones, or "
                + ("lower the lengths in ladder=" if self.total_seconds is not None else advice)
            )
        rng = random.Random(f"{seed}/background")
        labels = {clip.label for clip in clips} - {""}
        chosen = rng.choice(
            [b for b in long_enough if not b.mentions_action(labels)] or long_enough
        )
        length = chosen.duration if seconds is None else seconds
        start = rng.random() * (chosen.duration - length)
        try:
            return plan(chosen.uri, start, start + length, probes, spread=self.spread, seed=seed,
                        shots=chosen.shots)  # fmt: skip
        except ValueError as error:
            raise UserError(str(error)) from error


def cycle_choices(count: int, choices: Sequence[T], seed: str) -> list[T]:
    """Return `count` draws from shuffled rounds of all choices, so that uses differ by at
    most one.
    """
    rng = random.Random(seed)
    draws: list[T] = []
    while len(draws) < count:
        choice_round = list(choices)
        rng.shuffle(choice_round)
        draws += choice_round
    return draws[:count]


def row(task: str, plan: InsertionPlan, captions: Sequence[str] = ()) -> Video:
    """Return the row of a planned video. Its id contains the hash of the plan."""
    text = json.dumps(schemas.dump(plan), sort_keys=True)
    all_captions = [*captions, *[""] * (len(plan.insertions) - len(captions))]
    segments = tuple(
        Segment(start=span.start, end=span.end, topic=insertion.probe.label, dense_caption=caption)
        for span, insertion, caption in zip(
            plan.placements(), plan.insertions, all_captions, strict=True
        )
    )
    return Video(
        video_id=f"{task}_{digest(schemas.dump(plan))[:12]}",
        uri=plan.background,
        plan=text,
        duration=plan.seconds,
        segments=segments,
    )


def with_question(
    video: Video,
    question_type: str,
    draft: Draft,
    slot: int,
    evidence: Sequence[Span] | None = None,
) -> Video:
    """Return the row with a question whose answer has the place `slot`; `evidence` null: all
    probes.
    """
    spans = [Span(s.start, s.end) for s in video.segments or ()] if evidence is None else evidence
    question = Question(
        question_id=question_id(video.video_id, "mlvu", draft),
        video_id=video.video_id,
        recipe="mlvu",
        question=draft.question,
        question_type=question_type,
        options=(*draft.decoys[:slot], draft.answer, *draft.decoys[slot:]),
        answer_index=slot,
        answer=draft.answer,
        evidence=tuple(spans),
    )
    return replace(video, questions=(*(video.questions or ()), question))


def clips_by_label(clips: Sequence[InsertedClip]) -> Mapping[str, list[InsertedClip]]:
    """Return the clips by label, each once."""
    return group_pairs((clip.label, clip) for clip in dict.fromkeys(clips) if clip.label)


def with_captions(video: Video, backgrounds: Sequence[Background]) -> Video:
    """Return the row with the captions of the span of the background that its plan uses."""
    plan = plan_of(video)
    captions = {b.uri: b.captions for b in backgrounds}.get(plan.background, ())
    captions_of_span = tuple(c for c in captions if plan.start <= c.time < plan.end)
    return replace(video, captions=captions_of_span or None)


def with_placement(video: Video, plan: InsertionPlan, spans: Sequence[Span]) -> Video:
    """Return the row with the real times of its probes: in the segments, in the evidence of
    questions, and in the captions of background and probes, which are moved to the whole video's
    clock. A row without segments keeps its times.
    """
    if video.segments is None:
        return video
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
    if captions is not None and plan.insertions:
        ends_by_cut = {i.at: span.end for i, span in zip(plan.insertions, spans, strict=True)}
        moved_captions = [Caption(s.start, s.dense_caption) for s in segments if s.dense_caption]
        for caption in captions:
            before = [at for at in ends_by_cut if at <= caption.time]
            begin, zero = (max(before), ends_by_cut[max(before)]) if before else (plan.start, 0.0)
            moved_captions.append(replace(caption, time=zero + caption.time - begin))
        captions = tuple(sorted(moved_captions, key=lambda c: c.time))
    return replace(video, segments=segments, questions=questions, captions=captions)


def plan_of(video: Video) -> InsertionPlan:
    """Return the plan of a row. Raises BadRow where it has none, or an unreadable one."""
    try:
        data: Any = json.loads(video.plan or "")
        return schemas.load(InsertionPlan, data)
    except (ValueError, TypeError) as error:
        raise BadRow(f"video {video.video_id!r} has no usable plan: {error}") from error
