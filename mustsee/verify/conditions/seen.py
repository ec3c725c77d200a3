"""Conditions: which frames and transcript lines of a video a model is shown for one question.

    plan(Condition(condition="evidence", fps=1.0), Span(0.0, 231.5), question.evidence, seed=0)

Plans are deterministic in the seed. The options of a question are shown in an order that is rotated
from run to run (`order`), and a long transcript as an `excerpt`. Filters, `ray_jobs.evaluate`,
audits and certificates use them.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, groupby
from typing import Literal

from mustsee.errors import BadRow, UserError
from mustsee.records import Line, Question, Span, Video, Word
from mustsee.text import length, term_vectors

ConditionName = Literal[
    "blind",  # nothing
    "transcript",  # the whole transcript, no frames
    "one_frame",  # the frame in the middle of the video
    "frames",  # frames spread over the video, no transcript
    "shuffled",  # the same frames in random order
    "evidence",  # frames and transcript of the evidence
    "without_evidence",  # frames and transcript of the video without the evidence
    "control",  # the same without spans of equal length elsewhere
    "whole",  # frames spread over the video, and its transcript
]
SPANS = ("evidence", "without_evidence", "control")
MIN_REST_S = 0.05  # a shorter rest of video shows nothing
BORDER_TOLERANCE_S = 1.0  # seconds by which the ends of evidence may be wrong
CUT_MARGIN_S = 2.0  # cut out on both sides of evidence: its tolerance, and a second more
SPOKEN_MARGIN_S = 0.5  # seconds by which the time of a word may be wrong, if it is estimated
# Share of a video that is cut out, at most, so that the control has room elsewhere.
MAX_CUT_SHARE = 0.4


@dataclass(frozen=True, kw_only=True)
class Condition:
    """The part of a video that a model is shown."""

    condition: ConditionName = "whole"
    """Content shown: blind, transcript, one_frame, frames, shuffled, evidence,
    without_evidence, control, whole."""
    frames: int = 0
    """Frames shown, spread evenly; 0: none."""
    fps: float | None = None
    """Frames per second, in place of a number; needs frames: 0."""
    least: int = 1
    """Least frames of each evidence span, with fps."""
    most: int = 256
    """Frames at most."""
    at: float = 0.5
    """Position of a frame in its interval, 0 to 1."""
    longest: int = 512
    """Longer side of a frame, pixels."""
    quality: int = 85
    """JPEG quality of a frame, 1 to 100."""
    captions: int = 0
    """Captions shown, spread evenly, of the run whose output folder is videos=."""
    transcript: bool = False
    """Show the transcript."""
    words: int = 20_000
    """Words of a longer transcript; the lines nearest to the question are shown."""

    def __post_init__(self) -> None:
        if self.captions < 0:
            raise UserError(f"see: captions={self.captions!r}: at least 0")
        if self.frames < 0 or (self.fps is not None and self.fps <= 0):
            raise UserError(
                f"see: frames={self.frames!r}, fps={self.fps!r}: expected at least 0 frames, and "
                "fps above 0"
            )
        if self.frames and self.fps is not None:
            raise UserError(f"see: frames={self.frames!r} and fps={self.fps!r}: set one of them")
        if not 0 <= self.at <= 1:
            raise UserError(f"see: at={self.at!r}: expected 0 to 1")
        if self.most < 1 or self.longest < 1 or self.least < 1:
            raise UserError(
                f"see: most={self.most!r}, least={self.least!r}, longest={self.longest!r}: "
                "at least 1"
            )

    @property
    def looks(self) -> bool:
        """Whether frames are shown."""
        has_frames = self.frames > 0 or self.fps is not None
        return has_frames and self.condition not in ("blind", "transcript")

    @property
    def listens(self) -> bool:
        """Whether the transcript is shown."""
        silent = ("blind", "one_frame", "frames", "shuffled")
        return self.transcript and self.condition not in silent


@dataclass(frozen=True, kw_only=True)
class FramePlan:
    """What a model is shown, in seconds of the video.

    `spans`: the shown spans. `times`: of the frames, in the order shown. `cuts`: spans that are cut
    out, with every word spoken there. `clips`: spans of video clips that replace the frames.
    """

    spans: tuple[Span, ...]
    times: tuple[float, ...] = ()
    cuts: tuple[Span, ...] = ()
    clips: tuple[Span, ...] = ()


def plan(
    see: Condition, video: Span, evidence: Sequence[Span], *, seed: int | str = 0
) -> FramePlan | None:
    """Plan what is shown of `video`, a span of its file; None if nothing is left to show (without
    evidence that is the whole video, or without room for a control).

    `evidence`: spans in seconds of the file; if empty, the whole video.
    """
    spans, cuts = _shown_and_cut(see.condition, video, evidence, seed)
    if not spans:
        return None
    if not see.looks:
        return FramePlan(spans=spans, cuts=cuts)
    if see.condition == "one_frame":
        return FramePlan(spans=spans, times=spread(spans, 1))
    if see.condition in ("without_evidence", "control"):
        return FramePlan(spans=spans, times=_times_left(video, spans, see), cuts=cuts)
    times = _at_rate(spans, see) if see.fps is not None else spread(spans, see.frames, see.at)
    if len(times) > see.most:
        times = spread(spans, see.most, see.at)
    if see.condition == "shuffled":
        times = _out_of_order(times, seed)
    return FramePlan(spans=spans, times=times)


def video_span(video: Video) -> Span:
    """Return the span of a video or clip in its file. Raises BadRow if its length is unknown."""
    if video.until is None:
        raise BadRow(
            f"the length of {video.video_id!r} is unknown: give the folder of its video as videos="
        )
    return Span(video.start or 0.0, video.until)


def lines_within(
    lines: Sequence[Line], spans: Sequence[Span], cuts: Sequence[Span] = ()
) -> tuple[Line, ...]:
    """Return the lines that overlap any of the spans, without their words in the cuts."""
    inside = (x for x in lines if any(x.start < s.end and x.end > s.start for s in spans))
    return tuple(piece for line in inside for piece in _cut_words(line, cuts))


def _cut_words(line: Line, cuts: Sequence[Span]) -> tuple[Line, ...]:
    """Return what is left of a line without the words that overlap a cut, as a line for each run of
    words. A line without times of its words is taken as spoken at an even pace.
    """
    near = [c for c in cuts if line.start < c.end and line.end > c.start]
    if not near:
        return (line,)
    words, margin = line.words, 0.0
    if not words:
        words, margin = _even_words(line), SPOKEN_MARGIN_S
    kept = [
        not any(w.start < c.end + margin and w.end > c.start - margin for c in near) for w in words
    ]
    runs = [list(run) for is_kept, run in groupby(range(len(words)), kept.__getitem__) if is_kept]
    return tuple(
        replace(
            line,
            start=words[run[0]].start,
            end=words[run[-1]].end,
            text=" ".join(words[n].word.strip() for n in run),
            words=tuple(words[n] for n in run) if line.words else (),
        )
        for run in runs
    )


def _even_words(line: Line) -> tuple[Word, ...]:
    """Return the words of a line with times in proportion to their letters."""
    texts = line.text.split()
    ends = list(accumulate(len(text) + 1 for text in texts))
    pace = (line.end - line.start) / ends[-1] if ends else 0.0
    starts = (0, *ends)
    return tuple(
        Word(line.start + pace * a, line.start + pace * b, text, 1.0)
        for a, b, text in zip(starts, ends, texts, strict=False)
    )


def whole_shots(evidence: Sequence[Span], shots: Sequence[Span], video: Span) -> tuple[Span, ...]:
    """Return the spans to cut out so that nothing of the evidence is left.

    These are the evidence with `CUT_MARGIN_S` on both sides, and every shot that contains
    some of it, because a slide stays visible long after it was explained. If the shots are more
    than `MAX_CUT_SHARE` of the video, the evidence alone is cut.
    """
    near = tuple(Span(s.start - CUT_MARGIN_S, s.end + CUT_MARGIN_S) for s in evidence)
    within = tuple(shot for shot in shots if any(_is_in_shot(e, shot) for e in evidence))
    wide = merge_spans((*near, *within), video)
    too_much = sum(s.seconds for s in wide) > MAX_CUT_SHARE * video.seconds
    return merge_spans(near, video) if too_much else wide


def _is_in_shot(evidence: Span, shot: Span) -> bool:
    """Whether evidence and shot overlap by more than the tolerance of the evidence's ends."""
    shared = min(evidence.end, shot.end) - max(evidence.start, shot.start)
    return shared >= min(BORDER_TOLERANCE_S, evidence.seconds / 2, shot.seconds / 2)


def merge_spans(spans: Sequence[Span], video: Span) -> tuple[Span, ...]:
    """Return the spans clipped to the video, in order, with touching ones merged and outside ones
    left out.
    """
    merged: list[Span] = []
    for span in sorted(spans, key=lambda s: (s.start, s.end)):
        start, end = max(span.start, video.start), min(span.end, video.end)
        if end < start:
            continue
        if merged and start <= merged[-1].end:
            merged[-1] = Span(merged[-1].start, max(merged[-1].end, end))
        else:
            merged.append(Span(start, end))
    return tuple(merged)


def common(spans: Sequence[Span], others: Sequence[Span]) -> tuple[Span, ...]:
    """Return the intersection of two lists of spans, each in order and without overlaps."""
    overlaps = (Span(max(a.start, b.start), min(a.end, b.end)) for a in spans for b in others)
    return tuple(s for s in overlaps if s.end >= s.start)


def subtract_spans(video: Span, cuts: Sequence[Span]) -> tuple[Span, ...]:
    """Return the spans of the video that are left without `cuts` (merged)."""
    edges = [video.start, *(t for cut in cuts for t in (cut.start, cut.end)), video.end]
    rest = (Span(a, b) for a, b in zip(edges[::2], edges[1::2], strict=True))
    return tuple(s for s in rest if s.seconds > MIN_REST_S)


def spread(spans: Sequence[Span], count: int, at: float = 0.5) -> tuple[float, ...]:
    """Return the times at `at` (0: start, 0.5: middle) of `count` equal intervals of the spans laid
    end to end.
    """
    total = sum(s.seconds for s in spans)
    return tuple(_at(spans, (i + at) * total / count) for i in range(count))


def _shown_and_cut(
    condition: ConditionName, video: Span, evidence: Sequence[Span], seed: int | str
) -> tuple[tuple[Span, ...], tuple[Span, ...]]:
    """Return the spans that are shown, and those that are cut out."""
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
    """Draw spans of the same lengths that overlap neither the spans nor each other; empty if one
    does not fit.
    """
    taken = list(spans)
    cuts: list[Span] = []
    for seconds in sorted((s.seconds for s in spans), reverse=True):
        gaps = [g for g in subtract_spans(video, merge_spans(taken, video)) if g.seconds >= seconds]
        if not gaps:
            return ()
        room = [g.seconds - seconds + MIN_REST_S for g in gaps]
        gap = rng.choices(gaps, room)[0]
        start = rng.uniform(gap.start, gap.end - seconds)
        cuts.append(Span(start, start + seconds))
        taken.append(cuts[-1])
    return merge_spans(cuts, video)


def _at_rate(spans: Sequence[Span], see: Condition) -> tuple[float, ...]:
    assert see.fps is not None
    times: list[float] = []
    for span in spans:
        least = see.least if span.seconds > MIN_REST_S else 1
        times += spread((span,), max(least, round(span.seconds * see.fps)), see.at)
    return tuple(times)


def _times_left(video: Span, left: Sequence[Span], see: Condition) -> tuple[float, ...]:
    """Return as many times in `left` as the whole video would have.

    They are the times of the whole video that are not cut out, and then times between them, so that
    many questions share decoded frames.
    """
    count = min(see.most, see.frames or max(see.least, round(video.seconds * (see.fps or 0.0))))
    times: list[float] = []
    for shift in (0.0, 0.5, 0.25):
        grid = spread((video,), count, (see.at + shift) % 1.0)
        free = [t for t in grid if any(s.start < t < s.end for s in left)]
        wanted = count - len(times)
        step = len(free) / wanted if wanted and len(free) > wanted else 1.0
        times += [free[int(i * step)] for i in range(min(wanted, len(free)))]
    return tuple(sorted((*times, *spread(left, count - len(times)))))


def _at(spans: Sequence[Span], offset: float) -> float:
    """Return the time at `offset` seconds into the spans laid end to end."""
    for span in spans:
        if offset <= span.seconds:
            return span.start + offset
        offset -= span.seconds
    return spans[-1].end


def _out_of_order(times: Sequence[float], seed: int | str) -> tuple[float, ...]:
    """Return the times in a different order, unless all are equal."""
    order = list(times)
    rng = random.Random(f"{seed}/shuffled")
    while len(set(times)) > 1 and order == list(times):
        rng.shuffle(order)
    return tuple(order)


def order(count: int, rotation: int) -> tuple[int, ...]:
    """Return the indices of the options as shown: rotated by `rotation` positions, so that over
    `count` rotations each option is once in each position (CinePile 2.0).
    """
    turn = rotation % count if count else 0
    return tuple((i - turn) % count for i in range(count))


def rotated_options(question: Question, rotation: int) -> tuple[str, ...]:
    """Return the texts of the options in that order."""
    return tuple(question.options[i] for i in order(len(question.options), rotation))


def excerpt(lines: Sequence[Line], wanted: str, most: int) -> str:
    """Return the lines that `nearest` keeps, as text with times."""
    kept = nearest(lines, wanted, most)
    return "\n".join(map(_format_line, kept)) if kept else "(nothing is said)"


def nearest(lines: Sequence[Line], wanted: str, most: int) -> tuple[Line, ...]:
    """Return the lines in order; if they have more than `most` words, those most similar in words
    to the text `wanted`, as many as fit.
    """
    sizes = [length(_format_line(x)) for x in lines]
    if sum(sizes) <= most:
        return tuple(lines)
    likeness = term_vectors(tuple(x.text for x in lines)).likeness(wanted)
    kept: set[int] = set()
    words_left = most
    for index in sorted(range(len(lines)), key=lambda i: (-likeness[i], i)):
        if sizes[index] <= words_left:
            kept.add(index)
            words_left -= sizes[index]
    return tuple(lines[i] for i in sorted(kept))


def _format_line(line: Line) -> str:
    return f"[{line.start:.1f}-{line.end:.1f}] {' '.join(line.text.split())}"
