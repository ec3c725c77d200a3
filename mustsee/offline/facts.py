"""The prompts of facts answered by rules: they list states and judge phrases that they can measure
(`mustsee.offline.facts_phrases`), and rank answers by wording alone. The steps to the answer of a
composed question are statements that the verifier can measure; a trace is graded by counting.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby

import numpy as np

from mustsee.calls.llm import Request
from mustsee.errors import BadRow
from mustsee.facts.table import VIEW
from mustsee.offline.facts_phrases import VIEWS, make_statement, states_of, verdict_of
from mustsee.offline.facts_questions import phrases_of
from mustsee.offline.filters import guess_set
from mustsee.offline.looking import Evidence, ShownFrame, images_of, sort_frames
from mustsee.offline.things import seen_phrases
from mustsee.records import Fact, Question, Span, Trace
from mustsee.text import terms
from mustsee.verify.traces import AXES

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
    for phrase, times in seen_phrases(window.objects).items():
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


def trace(request: Request) -> str:
    """Write a step for each phrase of a composed question, or NONE."""
    question: Question = request.variables["question"]
    steps = _steps(question)
    if not 0 < len(steps) <= request.variables["most"]:
        return "NONE"
    lines = [
        f"STEP {n}: {span.start:.2f}-{span.end:.2f}: {text}"
        for n, (span, text) in enumerate(steps, 1)
    ]
    return "\n".join((*lines, f"CONCLUSION: So the answer is: {question.answer}"))


def _steps(question: Question) -> list[tuple[Span, str]]:
    """Return the statements of a question with their spans, in the order of time; none if it is not
    known which span shows which.
    """
    phrases, spans = phrases_of(question.question, question.answer), question.evidence
    statements = [text for phrase in phrases if (text := make_statement(phrase))]
    if len(phrases) == 2 and len(spans) == 3:
        spans = (spans[0], spans[2])  # The stretch between them shows neither.
    if len(spans) == 1:
        spans *= len(statements)
    if not len(phrases) == len(statements) == len(spans):
        return []
    return sorted(zip(spans, statements, strict=True), key=lambda step: step[0].start)


def rubric(request: Request) -> str:
    """Grade a trace by counting: steps within the evidence, evidence with a step, and the answer's
    words in the steps. The verifier has checked each step already.
    """
    question: Question = request.variables["question"]
    graded: Trace = request.variables["trace"]
    spans = [Span(step.start, step.end) for step in graded.steps]
    inside = sum(_touch(span, question.evidence) for span in spans)
    covered = sum(_touch(span, spans) for span in question.evidence)
    words_of_steps = {t for step in graded.steps for t in terms(step.text)}
    has_answer = set(terms(question.answer)) <= words_of_steps
    levels = (2, 2 if inside == len(spans) else int(inside > 0), 2 * int(has_answer),
              2 if covered == len(question.evidence) else int(covered > 0))  # fmt: skip
    reasons = ("the verifier found each step", f"{inside} of {len(spans)} lie in the evidence",
               f"the steps {'hold' if has_answer else 'lack'} the answer's words",
               f"{covered} of {len(question.evidence)} stretches have a step")  # fmt: skip
    lines = zip(AXES, reasons, levels, strict=True)
    return "\n".join(f"* {a.upper()} REASON: {r}\n* {a.upper()}: {level}" for a, r, level in lines)


def _touch(span: Span, others: Sequence[Span]) -> bool:
    return any(span.start <= o.end and o.start <= span.end for o in others)


RULES: Mapping[str, Callable[[Request], str]] = {
    "facts/extract": extract,
    "facts/look": look,
    "facts/rank": guess_set,
    "enrich/trace": trace,
    "enrich/rubric": rubric,
}
