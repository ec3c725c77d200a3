"""A model looks through the background for what is to be inserted into it (MLVU had people skim it,
F.4, F.8). What it sees there drops the video; what it cannot tell is written down for a person.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from mustsee.calls.llm import Asker
from mustsee.errors import BadRow, Unparsed
from mustsee.records import Segment, Span, Video
from mustsee.replies.forms import Form, form, one_of, record, words
from mustsee.synth.plan import InsertionPlan
from mustsee.verify.conditions.seen import Condition, spread
from mustsee.verify.conditions.video_frames import VideoFrames

PROMPT = "mlvu/absent"
VERDICTS = ("YES", "NO", "UNCLEAR")


@dataclass(frozen=True, kw_only=True)
class AbsenceLook:
    """A picture every `every` seconds of the background, `together` in one request, each `longest`
    pixels along its longer side.
    """

    every: float = 10.0
    together: int = 24
    longest: int = 512


async def search_background(
    video: Video,
    plan: InsertionPlan,
    video_frames: VideoFrames,
    asker: Asker,
    look: AbsenceLook,
    seed: int = 0,
) -> Video:
    """The row, dropped where what a probe shows is seen in pictures of the background.
    `video_frames`: the background's. Its segments say what was seen. Replies that cannot be read
    are unclear.
    """
    segments = list(video.segments or ())
    shown = list(dict.fromkeys(map(segment_name, segments)))
    stretch = Span(plan.start, plan.end)
    times = spread((stretch,), max(1, round(stretch.seconds / look.every)))
    found = dict.fromkeys(shown, "NO")
    for start in range(0, len(times), look.together):
        part = times[start : start + look.together]
        images = await video_frames.pictures(part, Condition(longest=look.longest))
        try:
            said = await asker.ask(
                PROMPT, sightings(len(shown)), images=images, seed=seed,
                shown=shown, frames=list(part),
            )  # fmt: skip
        except BadRow:
            said = ("UNCLEAR",) * len(shown)
        for what, verdict in zip(shown, said, strict=True):
            found[what] = min(found[what], verdict, key=("YES", "UNCLEAR", "NO").index)
    seen = next((w for w in shown if found[w] == "YES"), None)
    reason = seen and f"needle: {seen!r} is seen in the background; absent.verifier=null keeps it"
    noted = [replace(s, visual_support=_noted(s, found[segment_name(s)])) for s in segments]
    return replace(video, segments=tuple(noted), drop=video.drop or reason)


def segment_name(segment: Segment) -> str:
    """What is looked for: the action, or the scene that is described."""
    return segment.topic or segment.dense_caption or "the inserted scene"


def _noted(segment: Segment, verdict: str) -> str:
    said = {"YES": "seen by the verifier", "NO": "not seen by the verifier"}
    return "; ".join(filter(None, (segment.visual_support, said.get(verdict, "verifier unsure"))))


def sightings(count: int) -> Form[tuple[str, ...]]:
    """YES, NO or UNCLEAR for each of so many things."""

    def make_sightings(seen: str, **verdicts: str) -> tuple[str, ...]:
        return tuple(verdicts[f"shown_{n}"] for n in range(1, count + 1))

    def parse_sightings(reply: str) -> tuple[str, ...]:
        lines = re.findall(
            r"^[\s>*_#-]*(?:SHOWN\s*)?(\d+)[*_]*\s*[.):：-][\s*_]*(YES|NO|UNCLEAR)\b",
            reply, re.IGNORECASE | re.MULTILINE,
        )  # fmt: skip
        found = {int(number): verdict.upper() for number, verdict in lines}
        missing = [n for n in range(1, count + 1) if n not in found]
        if missing:
            raise Unparsed(f"it holds no line 'SHOWN {missing[0]}: YES, NO or UNCLEAR'")
        return tuple(found[n] for n in range(1, count + 1))

    each = {
        f"shown_{n}": one_of(VERDICTS, "whether it is in the pictures") for n in range(1, count + 1)
    }
    shape = record(make_sightings, seen=words("what goes on in the pictures"), **each)
    return form(text=parse_sightings, shape=shape)
