"""The prompts of facts answered by rules: they list states and judge phrases that they can measure
(`mustsee.offline.facts_phrases`), and rank answers by wording alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby

import numpy as np

from mustsee.calls.llm import Request
from mustsee.errors import BadRow
from mustsee.facts.table import VIEW
from mustsee.offline.facts_phrases import VIEWS, states_of, verdict_of
from mustsee.offline.filters import guess_set
from mustsee.offline.looking import Evidence, ShownFrame, images_of, sort_frames
from mustsee.offline.things import phrases_of
from mustsee.records import Fact, Span

NOUNS = {state: phrase for phrase, state in VIEWS.items()}
SEEN_AROUND_S = 0.5  # seconds before and after a frame in which what it shows is claimed
LEAST_READ = 4  # frames of a moment whose texts are read, at least
EDGE_S = 0.1  # seconds at both ends of a moment whose frames may be of its neighbours
LEAST_SPAN_S = 0.1  # seconds of a span; a shorter one is lost when its times are rounded


def extract(request: Request) -> str:
    """List as views the states that frames of the window surely show, and the things and people
    that two detectors saw there, the rarest first, or NONE. On-screen texts and lines need no
    model.
    """
    variables = request.variables
    frames = _frames(request)
    moments: Sequence[Span] = variables["window"].moments
    if not frames or not moments:
        return "NONE"
    spans = {
        NOUNS[phrase]: _spans([f.time for f, v in zip(frames, verdicts, strict=True) if v], moments)
        for phrase, verdicts in states_of(frames).items()
    }
    window = variables["window"]
    for phrase, times in phrases_of(window.objects).items():
        inside = [t for t in times if window.span.start <= t < window.span.end]
        spans[phrase] = _spans(inside, moments)
    rarest = sorted((p for p in spans if spans[p]), key=lambda p: len(spans[p]))
    lines = [
        f"FACT {n}: {VIEW} | {phrase} | {_written(spans[phrase])}"
        for n, phrase in enumerate(rarest[: variables["most"]], 1)
    ]
    return "\n".join(lines) or "NONE"


def _frames(request: Request) -> tuple[ShownFrame, ...]:
    return sort_frames(request.variables["frames"], images_of(request))


def _spans(times: Sequence[float], moments: Sequence[Span]) -> list[Span]:
    """Return for each moment with some of the times the span around them that lies within it."""

    def moment_at(time: float) -> int:
        return max((n for n, moment in enumerate(moments) if moment.start <= time), default=0)

    spans: list[Span] = []
    for number, times_within in groupby(times, key=moment_at):
        here, inside = moments[number], list(times_within)
        start = max(here.start, inside[0] - SEEN_AROUND_S)
        spans.append(Span(start, min(here.end, inside[-1] + SEEN_AROUND_S)))
    return [span for span in spans if span.seconds > LEAST_SPAN_S]


def _written(spans: Sequence[Span]) -> str:
    return "; ".join(f"{span.start:.1f}-{span.end:.1f}" for span in spans)


def look(request: Request) -> str:
    """Say of each phrase whether the frames of the moment show it, without those beside it or at
    its edges. Texts last for seconds and reading is expensive: half of many frames are read, both
    ends among them. So it is with things and people.
    """
    frames, span = _frames(request), request.variables["span"]
    inside = [f for f in frames if span.start + EDGE_S <= f.time <= span.end - EDGE_S]
    some = np.linspace(0, len(inside) - 1, max(min(LEAST_READ, len(inside)), len(inside) // 2 + 1))
    shown = Evidence(frames=tuple(inside), lines=())
    half = Evidence(frames=tuple(inside[int(n)] for n in some if inside), lines=())
    verdicts = [
        _verdict(fact, shown if fact.phrase in VIEWS else half)
        for fact in request.variables["phrases"]
    ]
    return "\n".join(f"{n}: {verdict}" for n, verdict in enumerate(verdicts, 1))


def _verdict(fact: Fact, evidence: Evidence) -> str:
    if fact.kind not in (VIEW, "text"):
        return "UNSURE | the rules cannot measure it"
    try:
        verdict = verdict_of(fact.phrase, evidence)
    except BadRow:
        return "UNSURE | the rules cannot measure it"
    if verdict is None:
        return "UNSURE | the measurements are doubtful"
    return "SEEN" if verdict else "NOT SEEN | no frame shows it"


RULES: Mapping[str, Callable[[Request], str]] = {
    "facts/extract": extract,
    "facts/look": look,
    "facts/rank": guess_set,
}
