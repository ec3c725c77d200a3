"""The prompts of facts answered by rules: they list states and judge phrases that they can measure
(`mustsee.offline.facts_phrases`), and rank answers by wording alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby

from mustsee.calls.llm import Request
from mustsee.errors import BadRow
from mustsee.offline.facts_phrases import sight_of, states_of
from mustsee.offline.filters import giveaway, guess_set, ranking_of
from mustsee.offline.looking import Evidence, ShownFrame, sort_frames
from mustsee.records import Fact, Span

SEEN_AROUND_S = 0.5  # seconds before and after a frame in which what it shows is claimed
MIN_SPAN_S = 0.1  # of a fact; a shorter one vanishes where times are rounded
NEAR_S = 3.0  # from a moment to where a text is claimed, within which it may be fading there


def extract(request: Request) -> str:
    """List the states that frames of the window surely show, the rarest first, or NONE. On-screen
    texts and lines need no model, and the rules recognise nothing else.
    """
    variables = request.variables
    frames = _frames(request)
    moments: Sequence[Span] = variables["window"].moments
    if "state" not in variables["kinds"] or not frames or not moments:
        return "NONE"
    spans = {
        phrase: _spans([f.time for f, v in zip(frames, verdicts, strict=True) if v], moments)
        for phrase, verdicts in states_of(frames).items()
    }
    rarest = sorted((p for p in spans if spans[p]), key=lambda p: len(spans[p]))
    lines = [
        f"FACT {n}: state | {phrase} | {_written(spans[phrase])}"
        for n, phrase in enumerate(rarest[: variables["most"]], 1)
    ]
    return "\n".join(lines) or "NONE"


def _frames(request: Request) -> tuple[ShownFrame, ...]:
    jpegs = [jpeg for message in request.messages for jpeg in message.images]
    return sort_frames(request.variables["frames"], jpegs)


def _spans(times: Sequence[float], moments: Sequence[Span]) -> list[Span]:
    """Return for each moment with some of the times the span around them that lies within it."""

    def moment_at(time: float) -> int:
        return max((n for n, moment in enumerate(moments) if moment.start <= time), default=0)

    spans: list[Span] = []
    for number, times_within in groupby(times, key=moment_at):
        here, inside = moments[number], list(times_within)
        start = max(here.start, inside[0] - SEEN_AROUND_S)
        spans.append(Span(start, min(here.end, inside[-1] + SEEN_AROUND_S)))
    return [span for span in spans if span.seconds > MIN_SPAN_S]


def _written(spans: Sequence[Span]) -> str:
    return "; ".join(f"{span.start:.1f}-{span.end:.1f}" for span in spans)


def look(request: Request) -> str:
    """Say of each phrase whether the frames of the moment show it."""
    frames, span = _frames(request), request.variables["span"]
    lines = [
        f"{n}: {_verdict(fact, frames, span)}"
        for n, fact in enumerate(request.variables["phrases"], 1)
    ]
    return "\n".join(lines)


def _verdict(fact: Fact, frames: Sequence[ShownFrame], span: Span) -> str:
    if fact.kind not in ("state", "text"):
        return "UNSURE | the rules cannot measure it"
    gaps = (max(s.start - span.end, span.start - s.end) for s in fact.spans)
    is_near = min(gaps, default=0.0) <= NEAR_S
    try:
        sighting = sight_of(fact.phrase, Evidence(frames=tuple(frames), lines=()), is_near=is_near)
    except BadRow:
        return "UNSURE | the rules cannot measure it"
    if sighting.seen:
        return "SEEN"
    if sighting.open or not frames:
        return "UNSURE | the measurements are doubtful"
    return "NOT SEEN | no frame shows it"


def rank(request: Request) -> str:
    """Rank the answers for each question as if it stood alone."""
    answers: Sequence[str] = request.variables["answers"]
    return "\n".join(
        f"QUESTION {n}: {ranking_of(giveaway(question, answers, request.seed))} | by wording, "
        "likeness and length"
        for n, question in enumerate(request.variables["asked"], 1)
    )


RULES: Mapping[str, Callable[[Request], str]] = {
    "facts/extract": extract,
    "facts/look": look,
    "facts/rank": rank,
    "facts/rank_each": guess_set,
}
