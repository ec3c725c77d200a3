"""The Time-Ladder: the same questions on videos of 180, 360 and 600 s (MLVU, D).

Synthetic tasks are planned for each length (`SynthesisSettings.total_seconds`). For other tasks a
window is cut around the evidence, so that it contains the answer. A reference for a whole video,
such as a summary, is right at its own length only: the annotators wrote one for each length.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from mustsee import schemas
from mustsee.records import Question, Span, Video
from mustsee.store import digest
from mustsee.synth.plan import InsertionPlan

LENGTHS = (180.0, 360.0, 600.0)
SAME_LENGTH_S = 1.0  # seconds by which a reference's length may differ from a rung's
OTHER_LENGTH = "their reference was written for another length"
UNKNOWN_PLACE = "their evidence is unknown"
NO_ROOM = "their evidence does not fit, or the video is shorter"


def window(evidence: Sequence[Span], duration: float, length: float, seed: str) -> Span | None:
    """Draw a window of `length` seconds that contains all evidence, uniformly; None if the evidence
    is too wide or the video too short.
    """
    if length > duration:
        return None
    first, last = min(s.start for s in evidence), max(s.end for s in evidence)
    low, high = max(0.0, last - length), min(first, duration - length)
    if low > high:
        return None
    start = low + random.Random(seed).random() * (high - low)
    return Span(start, start + length)


def described_length(question: Question, duration: float) -> float | None:
    """Return the length in seconds, from the beginning, that a reference answer describes as a
    whole: the evidence of a summary or the whole video; the whole video for another open answer
    without evidence. None if the answer is in the evidence, and so is right in every window around
    it.
    """
    if question.question_type == "summary":
        return max((s.end for s in question.evidence), default=duration)
    return None if question.evidence or question.options else duration


def rungs(
    video: Video, lengths: Sequence[float] = LENGTHS, seed: int = 0
) -> tuple[list[Video], Counter[str]]:
    """Return a row with the plan of its cut for each question and length, and the numbers of
    missing rows by reason. Windows of one question contain each other.
    """
    rows, missing = list[Video](), Counter[str]()
    for question in video.questions or ():
        described = described_length(question, video.duration or 0.0)
        if described is not None:
            fits = described <= (video.duration or 0.0) + SAME_LENGTH_S
            same_lengths = [
                n for n in sorted(lengths) if fits and abs(n - described) <= SAME_LENGTH_S
            ]
            cuts, reason = [(n, Span(0.0, described)) for n in same_lengths], OTHER_LENGTH
        elif not question.evidence:
            cuts, reason = [], UNKNOWN_PLACE
        else:
            cuts, reason = _around(video, question, lengths, seed), NO_ROOM
        missing[reason] += len(lengths) - len(cuts)
        rows += [_rung(video, question, length, cut) for length, cut in cuts]
    return rows, +missing


def _around(
    video: Video, question: Question, lengths: Sequence[float], seed: int
) -> list[tuple[float, Span]]:
    """Return the windows around a question's evidence, the shortest first."""
    outer = Span(0.0, video.duration or 0.0)
    cuts: list[tuple[float, Span]] = []
    for length in sorted(lengths, reverse=True):
        inside = [Span(e.start - outer.start, e.end - outer.start) for e in question.evidence]
        cut = window(inside, outer.seconds, length, f"{seed}/{question.question_id}/{length:g}")
        if cut is not None:
            outer = Span(outer.start + cut.start, outer.start + cut.end)
            cuts.append((length, outer))
    return cuts[::-1]


def _rung(video: Video, question: Question, length: float, cut: Span) -> Video:
    plan = InsertionPlan(background=video.uri, start=cut.start, end=cut.end)
    name = f"{video.video_id}_{digest([question.question_id, cut])[:8]}_{length:g}"
    is_whole = described_length(question, video.duration or 0.0) is not None
    cut_evidence = () if is_whole else question.evidence
    evidence = tuple(Span(e.start - cut.start, e.end - cut.start) for e in cut_evidence)
    question_there = replace(
        question,
        question_id=f"{question.question_id}_{length:g}",
        video_id=name,
        evidence=evidence,
        subsets=(*question.subsets, f"ladder_{length:g}"),
    )
    return Video(
        video_id=name,
        uri=video.uri,
        source=video.video_id,
        start=cut.start,
        end=cut.end,
        duration=cut.seconds,
        plan=json.dumps(schemas.dump(plan), sort_keys=True),
        questions=(question_there,),
    )
