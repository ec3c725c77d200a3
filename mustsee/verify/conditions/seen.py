"""Conditions: which pictures, and which lines, an answerer is shown of a video for one question.

    plan(Seen(condition="evidence", fps=1.0), Span(0.0, 231.5), question.evidence, seed=0)

Pure and deterministic in the seed. The filters, `ray_jobs.evaluate` and the certificate all ask for
pictures by these plans.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from mustsee.errors import BadRow, UserError
from mustsee.records import Line, Span, Video

ConditionName = Literal[
    "blind",  # nothing
    "transcript",  # what is said, all of it
    "one_frame",  # the picture in the middle of the video
    "frames",  # pictures spread over the video, nothing said
    "shuffled",  # the same pictures out of order
    "evidence",  # the evidence spans, with what is said there
    "without_evidence",  # the video without them
    "control",  # the video without cuts of equal length elsewhere
    "whole",  # pictures spread over the video, with what is said
]
SPANS = ("evidence", "without_evidence", "control")
MIN_REST_S = 0.05  # seconds: a rest of video below this shows nothing
BORDER_TOLERANCE_S = 1.0  # seconds by which the ends of evidence may miss
MAX_CUT_SHARE = 0.4  # of a video: what is cut leaves room for a control elsewhere


@dataclass(frozen=True, kw_only=True)
class Condition:
    """What of a video an answerer gets.

    `frames` pictures, one from each of as many equal stretches of what the `condition` shows, or
    one every 1/`fps` seconds of it, at least `least` of each span and at most `most` in all, each
    `longest` pixels along its longer side. `at`: where in its stretch a picture is taken, from 0 to
    1; by default in the middle. `transcript`: what is said there, at most `words` words
    of it. With neither the answerer is blind.
    """

    condition: ConditionName = "whole"
    frames: int = 0
    fps: float | None = None
    least: int = 1
    most: int = 256
    at: float = 0.5
    longest: int = 512
    quality: int = 85
    transcript: bool = False
    words: int = 20_000

    def __post_init__(self) -> None:
        if self.frames < 0 or (self.fps is not None and self.fps <= 0):
            raise UserError(f"see: frames={self.frames!r}, fps={self.fps!r}: not below zero")
        if self.frames and self.fps is not None:
            raise UserError(f"see: frames={self.frames!r} and fps={self.fps!r}: set one of them")
        if not 0 <= self.at <= 1:
            raise UserError(f"see: at={self.at!r}: from 0 to 1")
        if self.most < 1 or self.longest < 1 or self.least < 1:
            raise UserError(
                f"see: most={self.most!r}, least={self.least!r}, longest={self.longest!r}: "
                "at least 1"
            )

    @property
    def looks(self) -> bool:
        """Whether pictures are shown."""
        asked = self.frames > 0 or self.fps is not None
        return asked and self.condition not in ("blind", "transcript")

    @property
    def listens(self) -> bool:
        """Whether what is said is shown."""
        silent = ("blind", "one_frame", "frames", "shuffled")
        return self.transcript and self.condition not in silent


@dataclass(frozen=True, kw_only=True)
class FramePlan:
    """`spans`: the stretches shown. `times`: of the pictures, in the order in which they are shown,
    seconds of the video. `cuts`: what is taken out of it, with every line that is spoken there in
    part. `clips`: the stretches that are watched, in place of pictures.
    """

    spans: tuple[Span, ...]
    times: tuple[float, ...] = ()
    cuts: tuple[Span, ...] = ()
    clips: tuple[Span, ...] = ()


def plan(
    see: Condition, video: Span, evidence: Sequence[Span], *, seed: int | str = 0
) -> FramePlan | None:
    """What is shown of `video`, a stretch of its file; None where the condition shows nothing of it
    (evidence that is the whole video leaves nothing without it, and no room for a control).

    `evidence`: spans in seconds of the file; without any the whole video is the evidence.
    """
    shown, cuts = _stretches(see.condition, video, evidence, seed)
    if not shown:
        return None
    if not see.looks:
        return FramePlan(spans=shown, cuts=cuts)
    if see.condition == "one_frame":
        return FramePlan(spans=shown, times=spread(shown, 1))
    if see.condition in ("without_evidence", "control"):
        return FramePlan(spans=shown, times=_beside(video, shown, see), cuts=cuts)
    times = _at_rate(shown, see) if see.fps is not None else spread(shown, see.frames, see.at)
    if len(times) > see.most:
        times = spread(shown, see.most, see.at)
    if see.condition == "shuffled":
        times = _out_of_order(times, seed)
    return FramePlan(spans=shown, times=times)


def stretch(video: Video) -> Span:
    """Where in its file a video or clip lies. Raises BadRow when its length is not known."""
    if video.until is None:
        raise BadRow(
            f"the length of {video.video_id!r} is unknown: give the folder of its video as videos="
        )
    return Span(video.start or 0.0, video.until)


def lines_within(
    lines: Sequence[Line], spans: Sequence[Span], cuts: Sequence[Span] = ()
) -> tuple[Line, ...]:
    """The lines that are spoken, in part at least, within one of the spans, and in no part within
    the cuts.
    """

    def overlaps_any(line: Line, where: Sequence[Span]) -> bool:
        return any(line.start < s.end and line.end > s.start for s in where)

    return tuple(x for x in lines if overlaps_any(x, spans) and not overlaps_any(x, cuts))


def whole_shots(evidence: Sequence[Span], shots: Sequence[Span], video: Span) -> tuple[Span, ...]:
    """What to cut so that nothing is left of the evidence: it, with `BORDER_TOLERANCE_S` on both
    sides, and all of every shot that it lies in, as a slide stays on the screen long after what was
    said of it. Where the shots would take most of the video (one that was never cut), the evidence
    alone.
    """
    near = tuple(Span(s.start - BORDER_TOLERANCE_S, s.end + BORDER_TOLERANCE_S) for s in evidence)
    within = tuple(shot for shot in shots if any(_lies_in(e, shot) for e in evidence))
    wide = merge_spans((*near, *within), video)
    most = sum(s.seconds for s in wide) > MAX_CUT_SHARE * video.seconds
    return merge_spans(near, video) if most else wide


def _lies_in(evidence: Span, shot: Span) -> bool:
    """In part at least; not where it merely laps over a border that was not drawn sharply."""
    shared = min(evidence.end, shot.end) - max(evidence.start, shot.start)
    return shared >= min(BORDER_TOLERANCE_S, evidence.seconds / 2, shot.seconds / 2)


def merge_spans(spans: Sequence[Span], video: Span) -> tuple[Span, ...]:
    """The spans cut to the video, in order, those that touch as one; none from outside of it."""
    found: list[Span] = []
    for span in sorted(spans, key=lambda s: (s.start, s.end)):
        start, end = max(span.start, video.start), min(span.end, video.end)
        if end < start:
            continue
        if found and start <= found[-1].end:
            found[-1] = Span(found[-1].start, max(found[-1].end, end))
        else:
            found.append(Span(start, end))
    return tuple(found)


def common(spans: Sequence[Span], others: Sequence[Span]) -> tuple[Span, ...]:
    """What lies in both; each of the two lists in order, without overlaps."""
    cuts = (Span(max(a.start, b.start), min(a.end, b.end)) for a in spans for b in others)
    return tuple(s for s in cuts if s.end >= s.start)


def subtract_spans(video: Span, cuts: Sequence[Span]) -> tuple[Span, ...]:
    """What is left of the video when `cuts` (merged) are taken out."""
    edges = [video.start, *(t for cut in cuts for t in (cut.start, cut.end)), video.end]
    rest = (Span(a, b) for a, b in zip(edges[::2], edges[1::2], strict=True))
    return tuple(s for s in rest if s.seconds > MIN_REST_S)


def spread(spans: Sequence[Span], count: int, at: float = 0.5) -> tuple[float, ...]:
    """The middles of `count` equal stretches of the spans laid end to end, or other places in them
    (`at` 0: their beginnings).
    """
    total = sum(s.seconds for s in spans)
    return tuple(_at(spans, (i + at) * total / count) for i in range(count))


def _stretches(
    condition: ConditionName, video: Span, evidence: Sequence[Span], seed: int | str
) -> tuple[tuple[Span, ...], tuple[Span, ...]]:
    """What is shown, and what is cut."""
    if condition not in SPANS:
        return (video,), ()
    spans = merge_spans(evidence, video) or (video,)
    if condition == "evidence":
        return spans, ()
    if condition == "control":
        spans = _elsewhere(video, spans, random.Random(f"{seed}/control"))
        if not spans:
            return (), ()
    return subtract_spans(video, spans), spans


def _elsewhere(video: Span, spans: Sequence[Span], rng: random.Random) -> tuple[Span, ...]:
    """Cuts as long as the spans, away from them and each other; none where one does not fit."""
    taken = list(spans)
    cuts: list[Span] = []
    for length in sorted((s.seconds for s in spans), reverse=True):
        gaps = [g for g in subtract_spans(video, merge_spans(taken, video)) if g.seconds >= length]
        if not gaps:
            return ()
        room = [g.seconds - length + MIN_REST_S for g in gaps]
        gap = rng.choices(gaps, room)[0]
        start = rng.uniform(gap.start, gap.end - length)
        cuts.append(Span(start, start + length))
        taken.append(cuts[-1])
    return merge_spans(cuts, video)


def _at_rate(spans: Sequence[Span], see: Condition) -> tuple[float, ...]:
    assert see.fps is not None
    found: list[float] = []
    for span in spans:
        least = see.least if span.seconds > MIN_REST_S else 1
        found += spread((span,), max(least, round(span.seconds * see.fps)), see.at)
    return tuple(found)


def _beside(video: Span, left: Sequence[Span], see: Condition) -> tuple[float, ...]:
    """As many pictures of what is left of a video as there are of the whole: the same ones, where
    they are not cut, then others between them. So videos are decoded, and pictures looked at, once
    for many questions.
    """
    count = min(see.most, see.frames or max(1, round(video.seconds * (see.fps or 0.0))))
    times: list[float] = []
    for shift in (0.0, 0.5, 0.25):
        grid = spread((video,), count, (see.at + shift) % 1.0)
        free = [t for t in grid if any(s.start < t < s.end for s in left)]
        wanted = count - len(times)
        step = len(free) / wanted if wanted and len(free) > wanted else 1.0
        times += [free[int(i * step)] for i in range(min(wanted, len(free)))]
    return tuple(sorted((*times, *spread(left, count - len(times)))))


def _at(spans: Sequence[Span], offset: float) -> float:
    """The time that lies `offset` seconds into the spans laid end to end."""
    for span in spans:
        if offset <= span.seconds:
            return span.start + offset
        offset -= span.seconds
    return spans[-1].end


def _out_of_order(times: Sequence[float], seed: int | str) -> tuple[float, ...]:
    """The times in another order than theirs, where there are two at least."""
    order = list(times)
    rng = random.Random(f"{seed}/shuffled")
    while len(set(times)) > 1 and order == list(times):
        rng.shuffle(order)
    return tuple(order)
