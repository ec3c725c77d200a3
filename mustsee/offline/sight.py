"""The verifier without a model. It decides questions whose phrases it can measure in the frames
that it is shown, and statements; other questions stay unverified.

One fitting option is the answer. None, or frames with doubtful measurements, make the question
undecidable, and several make it ambiguous.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mustsee.calls.llm import Request
from mustsee.errors import BadRow
from mustsee.offline.facts_questions import OptionFits, decide
from mustsee.offline.filters import giveaway, ranking_of
from mustsee.offline.looking import Evidence, sort_frames
from mustsee.offline.statements import check_statement
from mustsee.records import Span
from mustsee.verify.conditions.seen import merge_spans
from mustsee.verify.look_replies import OPEN, RIGHT, WRONG, OptionVerdict, say

MOMENT_REACH_S = 1.0  # seconds before and after a time that are named as evidence with it


def look(request: Request) -> str:
    """Write a verdict on each option, with the spans around the measured times.

    Raises BadRow for a question of an unknown form.
    """
    options = tuple(request.variables["options"])
    shown = evidence_shown(request)
    fitting = OptionFits()
    if shown.frames:
        fitting = _answer(request.variables["question"], options, shown)
    measured = named_spans(fitting.times)
    if fitting.fits and not measured:  # All that is shown decides that something is absent.
        measured = (Span(shown.start, shown.end),)
    other = OptionVerdict(WRONG) if fitting.fits else OptionVerdict(OPEN, measured)
    verdicts = [
        OptionVerdict(RIGHT, measured) if i in fitting.fits else other for i in range(len(options))
    ]
    return say(verdicts, _why(len(fitting.fits)))


def evidence_shown(request: Request) -> Evidence:
    """Return the frames and lines of a look and of the earlier ones in its chat."""
    variables = request.variables
    jpegs = [jpeg for message in request.messages for jpeg in message.images]
    times = (*variables["earlier_frames"], *variables["frames"])
    lines = sorted(
        (*variables["earlier_lines"], *variables["lines"]), key=lambda x: (x.start, x.end)
    )
    extent = variables.get("video")
    return Evidence(frames=sort_frames(times, jpegs), lines=tuple(lines), extent=extent)


def _answer(question: str, options: tuple[str, ...], evidence: Evidence) -> OptionFits:
    if (statement := check_statement(question, evidence)) is not None:
        return OptionFits(
            fits=(options.index("Yes" if statement[0] else "No"),), times=tuple(statement[1])
        )
    return decide(question, options, evidence)


def _why(count: int) -> str:
    if count == 1:
        return "It is the only option that fits what was measured."
    return "Several options fit what was measured." if count else "Nothing measured decides it."


def named_spans(times: Sequence[float]) -> tuple[Span, ...]:
    """Return the joined spans around times."""
    around = [Span(max(0.0, time - MOMENT_REACH_S), time + MOMENT_REACH_S) for time in times]
    return merge_spans(around, Span(0.0, float("inf")))


def glimpse(request: Request) -> str:
    """Rank the options of each question of which the few frames decide one, in the order in which
    they are shown: this one first, the others by their words. NONE for the other questions.
    """
    jpegs = [jpeg for message in request.messages for jpeg in message.images]
    times = [GLIMPSE_GAP_S * n for n in range(len(jpegs))]
    extent = Span(0.0, times[-1] + GLIMPSE_GAP_S) if len(times) > 1 else None
    shown = Evidence(frames=sort_frames(times, jpegs), lines=(), extent=extent)
    ranked: list[str] = []
    for number, one in enumerate(request.variables["asked"], 1):
        question, options = one["question"], tuple(one["options"])
        try:
            fits = decide(question, options, shown).fits
        except BadRow:
            fits = ()
        if len(fits) == 1:
            scores = giveaway(question, options, request.seed)
            scores[fits[0]] = scores.max() + 1
            ranked.append(f"QUESTION {number}: {ranking_of(scores)} | what the pictures show")
        else:
            ranked.append(f"QUESTION {number}: NONE | {_why(len(fits))}")
    return "\n".join(ranked)


GLIMPSE_GAP_S = 3.0  # seconds between frames whose times are not known
RULES: dict[str, Callable[[Request], str]] = {
    "filters/sight": look,
    "filters/glimpse": glimpse,
}
