"""The Time-Ladder: the same questions about videos of 180, 360 and 600 s (MLVU, D).

Synthetic tasks are planned anew at each length (`Making.total_seconds`); of the others a window is
cut around the evidence, so that the answer stays in it.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import replace

from mustsee import schemas
from mustsee.records import Question, Span, Video
from mustsee.store import digest
from mustsee.synth.plan import Plan

LENGTHS = (180.0, 360.0, 600.0)


def window(evidence: Sequence[Span], duration: float, length: float, seed: str) -> Span | None:
    """A window of `length` seconds of the video that holds all of the evidence, drawn uniformly;
    None where the evidence is too wide or the video too short. Without evidence it begins at 0: a
    summary is of the first minutes (MLVU, D).
    """
    if length > duration:
        return None
    if not evidence:
        return Span(0.0, length)
    first, last = min(s.start for s in evidence), max(s.end for s in evidence)
    low, high = max(0.0, last - length), min(first, duration - length)
    if low > high:
        return None
    start = low + random.Random(seed).random() * (high - low)
    return Span(start, start + length)


def rungs(video: Video, lengths: Sequence[float] = LENGTHS, seed: int = 0) -> list[Video]:
    """For each question of a row and each length a row of its own with the plan of its cut;
    questions that fit no window are left out at that length, and so are questions with options but
    no evidence: nobody knows whether their answer is in the first minutes. Windows of one question
    hold each other.
    """
    if video.duration is None:
        return []
    rows: list[Video] = []
    for question in video.questions or ():
        if question.options and not question.evidence:
            continue
        outer = Span(0.0, video.duration)
        cuts: list[tuple[float, Span]] = []
        for length in sorted(lengths, reverse=True):
            inside = [Span(e.start - outer.start, e.end - outer.start) for e in question.evidence]
            found = window(
                inside, outer.seconds, length, f"{seed}/{question.question_id}/{length:g}"
            )
            if found is not None:
                outer = Span(outer.start + found.start, outer.start + found.end)
                cuts.append((length, outer))
        rows += [_rung(video, question, length, cut) for length, cut in reversed(cuts)]
    return rows


def _rung(video: Video, question: Question, length: float, cut: Span) -> Video:
    plan = Plan(background=video.uri, start=cut.start, end=cut.end)
    name = f"{video.video_id}_{digest([question.question_id, cut])[:8]}_{length:g}"
    evidence = tuple(Span(e.start - cut.start, e.end - cut.start) for e in question.evidence)
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
