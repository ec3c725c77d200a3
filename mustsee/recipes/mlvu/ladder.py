"""The Time-Ladder: the same questions about videos of 180, 360 and 600 s (MLVU, D).

Synthetic tasks are planned anew at each length (`SynthesisSettings.total_seconds`); of the others a
window is cut around the evidence, so that the answer stays in it. A reference that tells the whole,
as a summary does, holds for the length that it was written for and no other: the annotators wrote
one for each.
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
SAME_LENGTH_S = 1.0  # seconds by which a length may miss a rung's
OTHER_LENGTH = "their reference was written for another length"
UNKNOWN_PLACE = "nobody knows where their answer is"
NO_ROOM = "their evidence does not fit, or the video is shorter"


def window(evidence: Sequence[Span], duration: float, length: float, seed: str) -> Span | None:
    """A window of `length` seconds of the video that holds all of the evidence, drawn uniformly;
    None where the evidence is too wide or the video too short.
    """
    if length > duration:
        return None
    first, last = min(s.start for s in evidence), max(s.end for s in evidence)
    low, high = max(0.0, last - length), min(first, duration - length)
    if low > high:
        return None
    start = low + random.Random(seed).random() * (high - low)
    return Span(start, start + length)


def written_for(question: Question, duration: float) -> float | None:
    """The seconds from the beginning that a reference tells as a whole: of a summary those that are
    marked, else all; of another open answer all, where no moment is marked. None where the answer
    is at a moment, and holds in every window around it.
    """
    if question.question_type == "summary":
        return max((s.end for s in question.evidence), default=duration)
    return None if question.evidence or question.options else duration


def rungs(
    video: Video, lengths: Sequence[float] = LENGTHS, seed: int = 0
) -> tuple[list[Video], Counter[str]]:
    """For each question of a row and each length a row of its own with the plan of its cut; and how
    many there are not, by the reason. Windows of one question hold each other.
    """
    rows, left = list[Video](), Counter[str]()
    for question in video.questions or ():
        whole = written_for(question, video.duration or 0.0)
        if whole is not None:
            there = whole <= (video.duration or 0.0) + SAME_LENGTH_S
            same = [n for n in sorted(lengths) if there and abs(n - whole) <= SAME_LENGTH_S]
            cuts, why = [(n, Span(0.0, whole)) for n in same], OTHER_LENGTH
        elif not question.evidence:
            cuts, why = [], UNKNOWN_PLACE
        else:
            cuts, why = _around(video, question, lengths, seed), NO_ROOM
        left[why] += len(lengths) - len(cuts)
        rows += [_rung(video, question, length, cut) for length, cut in cuts]
    return rows, +left


def _around(
    video: Video, question: Question, lengths: Sequence[float], seed: int
) -> list[tuple[float, Span]]:
    """The windows around a question's evidence, the shortest first."""
    outer = Span(0.0, video.duration or 0.0)
    cuts: list[tuple[float, Span]] = []
    for length in sorted(lengths, reverse=True):
        inside = [Span(e.start - outer.start, e.end - outer.start) for e in question.evidence]
        found = window(inside, outer.seconds, length, f"{seed}/{question.question_id}/{length:g}")
        if found is not None:
            outer = Span(outer.start + found.start, outer.start + found.end)
            cuts.append((length, outer))
    return cuts[::-1]


def _rung(video: Video, question: Question, length: float, cut: Span) -> Video:
    plan = InsertionPlan(background=video.uri, start=cut.start, end=cut.end)
    name = f"{video.video_id}_{digest([question.question_id, cut])[:8]}_{length:g}"
    whole = written_for(question, video.duration or 0.0) is not None
    marked = () if whole else question.evidence
    evidence = tuple(Span(e.start - cut.start, e.end - cut.start) for e in marked)
    asked = replace(
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
        questions=(asked,),
    )
