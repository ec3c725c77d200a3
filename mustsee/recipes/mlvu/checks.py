"""Checks of MLVU's videos and questions.

A model searches the background for the content of the inserted clips (MLVU had people skim it,
F.4, F.8). If the background shows it, the video is dropped; if it is unclear, the row says so. Over
all rows, guessers are brought to chance; the run's record has what they guess before and after.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from mustsee.calls.llm import Asker
from mustsee.calls.usage import RequestTally
from mustsee.errors import Unparsed
from mustsee.files import schemas
from mustsee.questions import balance
from mustsee.questions.decision import Decision
from mustsee.records import Question, Segment, Span, Video
from mustsee.replies.forms import Form, form, one_of, record, words
from mustsee.run.tables import Tables, standing_questions
from mustsee.synth.plan import InsertionPlan
from mustsee.verify.conditions.seen import Condition, spread
from mustsee.verify.conditions.video_frames import VideoFrames

PROMPT = "mlvu/absent"
VERDICTS = ("YES", "NO", "UNCLEAR")


@dataclass(frozen=True, kw_only=True)
class AbsenceLook:
    """How a needle is made sure of as absent."""

    every: float = 10
    """Distance between the frames that it is shown, seconds."""
    together: int = 24
    """Frames in one request."""
    longest: int = 512
    """Longer side of these frames, pixels."""


async def search_background(
    video: Video,
    plan: InsertionPlan,
    video_frames: VideoFrames,
    asker: Asker,
    look: AbsenceLook,
    seed: int = 0,
) -> Video:
    """Return the row with the verdict in each segment's `visual_support`, dropped if the content of
    a segment is seen in frames of the background (`video_frames`). Unparseable replies are unclear,
    and counted.
    """
    requests = RequestTally()
    segments = list(video.segments or ())
    names = list(dict.fromkeys(map(segment_name, segments)))
    span = Span(plan.start, plan.end)
    times = spread((span,), max(1, round(span.seconds / look.every)))
    verdicts = dict.fromkeys(names, "NO")
    for start in range(0, len(times), look.together):
        times_shown = times[start : start + look.together]
        images = await video_frames.jpegs(times_shown, Condition(longest=look.longest))
        call = asker.ask(
            PROMPT, sightings(len(names)), images=images, seed=seed,
            shown=names, frames=list(times_shown),
        )  # fmt: skip
        replies = await requests.try_call("looks at the background", call)
        replies = replies or ("UNCLEAR",) * len(names)
        for name, verdict in zip(names, replies, strict=True):
            verdicts[name] = min(verdicts[name], verdict, key=("YES", "UNCLEAR", "NO").index)
    name_seen = next((w for w in names if verdicts[w] == "YES"), None)
    reason = (
        name_seen
        and f"needle: {name_seen!r} is seen in the background; absent.verifier=null keeps it"
    )
    noted_segments = [
        replace(s, visual_support=_noted(s, verdicts[segment_name(s)])) for s in segments
    ]
    return replace(
        video, segments=tuple(noted_segments), drop=video.drop or reason, requests=requests.counts
    )


def segment_name(segment: Segment) -> str:
    """Return the content to search for: the action, or the described scene."""
    return segment.topic or segment.dense_caption or "the inserted scene"


def _noted(segment: Segment, verdict: str) -> str:
    notes = {"YES": "seen by the verifier", "NO": "not seen by the verifier"}
    return "; ".join(filter(None, (segment.visual_support, notes.get(verdict, "verifier unsure"))))


def sightings(count: int) -> Form[tuple[str, ...]]:
    """Parse YES, NO or UNCLEAR for each of `count` things."""

    def make_sightings(seen: str, **verdicts: str) -> tuple[str, ...]:
        return tuple(verdicts[f"shown_{n}"] for n in range(1, count + 1))

    def parse_sightings(reply: str) -> tuple[str, ...]:
        lines = re.findall(
            r"^[\s>*_#-]*(?:SHOWN\s*)?(\d+)[*_]*\s*[.):：-][\s*_]*(YES|NO|UNCLEAR)\b",
            reply, re.IGNORECASE | re.MULTILINE,
        )  # fmt: skip
        verdict_of = {int(number): verdict.upper() for number, verdict in lines}
        missing = [n for n in range(1, count + 1) if n not in verdict_of]
        if missing:
            raise Unparsed(f"it holds no line 'SHOWN {missing[0]}: YES, NO or UNCLEAR'")
        return tuple(verdict_of[n] for n in range(1, count + 1))

    each = {
        f"shown_{n}": one_of(VERDICTS, f"whether number {n} is shown") for n in range(1, count + 1)
    }
    seen = words("in one sentence, what goes on in the pictures")
    shape = record(make_sightings, seen=seen, **each)
    return form(text=parse_sightings, shape=shape)


@dataclass(frozen=True, kw_only=True)
class GuesserBalance:
    """Drops questions until no guesser beats chance. `least`: smallest share of a task to keep."""

    fair: bool = True
    least: float = 0.5
    seed: int = 0

    @property
    def columns(self) -> tuple[str, ...]:
        return ("questions",)

    def __call__(self, rows: pa.Table) -> Decision:
        if not self.fair:
            return Decision()
        before = list(standing_questions(rows))
        after = balance.balance_questions(before, self.seed, self.least)
        dropped = {
            new.question_id: new.drop
            for new, old in zip(after, before, strict=True)
            if new.drop is not None and new.drop != old.drop
        }
        return Decision(questions=dropped)


def record_notes(tables: Tables) -> Mapping[str, object]:
    """The balance before and after resampling, and each background's nearest match to its probes.

    A person reviews the matches (`review`): `at` is in seconds.
    """
    after = list(tables.questions("options", "answer_index", "drop"))
    before = [replace(q, drop=None) if _dropped_by_balance(q) else q for q in after]
    reports = {"before": _guesser_report(before), "after": _guesser_report(after)}
    review = [
        {
            "video_id": row.video_id,
            "probe": segment.topic or segment.dense_caption,
            "at": segment.start,
            "seen": segment.visual_support,
            "drop": row.drop,
        }
        for row in tables.videos("segments", "drop")
        for segment in row.segments or ()
        if segment.visual_support
    ]
    unfair = {when: sum(not g["fair"] for g in report) for when, report in reports.items()}
    note = (
        f"balance: {unfair['before']} of {len(reports['before'])} guessers off chance, "
        f"{unfair['after']} after {sum(map(_dropped_by_balance, after))} questions were dropped"
    )
    return {"balance": reports, "review": review, "notes": [note]}


def _dropped_by_balance(question: Question) -> bool:
    return question.dropped_by == "balance"


def _guesser_report(questions: Sequence[Question]) -> list[dict[str, Any]]:
    return [{**schemas.dump(f), "fair": f.fair} for f in balance.report(questions)]
