"""Reasoning traces: timed steps of what is seen or heard, and why they answer the question.

The writer is shown the evidence and writes the steps with their times. The verifier then gets each
step as a yes-no question, with the frames and transcript lines of its span alone. If it does not
find a step there, the whole trace is dropped. A verified trace is graded along the axes of MINERVA
(arXiv 2505.00681): perception, time, logic, completeness; 0, 1 or 2 each.
"""

from __future__ import annotations

import json
from asyncio import gather
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from mustsee.calls.llm import Asker
from mustsee.errors import BadRow, Unparsed, UserError
from mustsee.questions.drafts import END_TOLERANCE_S, fields, spans
from mustsee.questions.replies import is_none
from mustsee.questions.rows import levels_form
from mustsee.records import Question, Span, Step, Trace, Verdict, Video
from mustsee.replies.forms import Form, form, list_of, number, record, words
from mustsee.verify.conditions.seen import Condition, lines_within, nearest, video_span
from mustsee.verify.filters import (
    UNSHOWN,
    FilterOutcome,
    VettingContext,
    add_outcome,
    mark_unverified,
)
from mustsee.verify.looks import VerifierSession
from mustsee.verify.repair import frames_for_writer

PROMPT, RUBRIC = "enrich/trace", "enrich/rubric"
PROMPTS = (PROMPT, RUBRIC, "filters/_sight")
NAME = "trace"
OUTCOME = FilterOutcome(filter=NAME, passed=True, fault=UNSHOWN, drops=False)
ASKED = "Is this seen or heard in these stretches: {}"  # question to the verifier about a step
YES_NO = ("Yes", "No")
AXES = ("perception", "time", "logic", "completeness")
LEVELS = (0, 1, 2)
TRACES = "traces"  # `what` of the requests
WITHOUT = "questions left without a trace"  # names of counts in run.json
FALLEN = "traces with a step that does not show"
LABELS = {"step": r"step", "conclusion": r"conclusion"}


@dataclass(frozen=True, kw_only=True)
class Traces:
    """Settings of traces."""

    most: int = 0
    """Steps of one trace, such as 8; 0: no traces."""
    near: Condition | None = field(
        default_factory=lambda: Condition(
            condition="evidence", fps=1.0, least=2, most=24, longest=512
        )
    )
    """Frames of the evidence that the writer is shown; null shows none."""
    see: Condition = field(
        default_factory=lambda: Condition(
            condition="evidence", fps=1.0, least=2, most=16, longest=768, transcript=True
        )
    )
    """Frames of a step that the verifier is shown."""
    runs: int = 3
    """Looks at a step, of which most decide."""
    least: int = 1
    """Least grade (0, 1, 2) on each scale: perception, time, logic, completeness."""
    words: int = 5_000
    """Words of the transcript that the writer is shown, at most."""

    def __post_init__(self) -> None:
        if self.most < 0:
            raise UserError(f"enrich.traces.most={self.most!r}: 0 or more")
        if self.least not in LEVELS:
            raise UserError(f"enrich.traces.least={self.least!r}: one of {LEVELS}")
        if self.runs < 1:
            raise UserError(f"enrich.traces.runs={self.runs!r}: at least 1")


async def add_trace(
    question: Question,
    video: Video,
    writer: Asker,
    grader: Asker,
    settings: Traces,
    vetting: VettingContext,
) -> Question:
    """Return the question with a verified trace, or without one if the writing or the verification
    failed. A dropped or unverified question stays as it is. Raises Transient.
    """
    if question.drop is not None or question.unverified_by or not question.answer:
        return question
    vetting.requests.add_sent(TRACES)
    try:
        trace = await _write_trace(question, video, writer, settings, vetting)
    except BadRow as error:
        vetting.requests.add_unread(TRACES, error)
        trace = None
    if trace is None:
        vetting.count(WITHOUT, 1)
        return question
    results = await gather(
        *(_verify_step(s, question, video, settings, vetting) for s in trace.steps)
    )
    verdicts = tuple(v for given, _ in results for v in given)
    judged = replace(question, verdicts=(*question.verdicts, *verdicts))
    confirmed = [right for _, right in results]
    if False in confirmed:
        vetting.count(FALLEN, 1)
        return add_outcome(judged, replace(OUTCOME, passed=False))
    if None in confirmed:
        return mark_unverified(judged, NAME)
    try:
        levels, verdict = await _grade(question, video, trace, grader, settings, vetting.seed)
    except BadRow as error:
        vetting.requests.add_unread(TRACES, error)
        return mark_unverified(judged, NAME)
    judged = replace(
        judged,
        verdicts=(*judged.verdicts, verdict),
        metrics={**judged.metrics, **{f"{NAME}_{axis}": float(levels[axis]) for axis in AXES}},
    )
    passed = min(levels.values()) >= settings.least
    judged = add_outcome(judged, replace(OUTCOME, passed=passed))
    return replace(judged, trace=trace if passed else None)


async def _write_trace(
    question: Question, video: Video, writer: Asker, settings: Traces, vetting: VettingContext
) -> Trace | None:
    times, images = await frames_for_writer(
        video, vetting.video_frames, None, settings.near, question.evidence
    )
    lines = lines_within(video.lines or (), question.evidence or (video_span(video),))
    return await writer.ask(
        PROMPT,
        steps_form(video_span(video), settings.most),
        seed=vetting.seed,
        images=images,
        frames=times,
        question=question,
        lines=nearest(lines, question.question, settings.words),
        most=settings.most,
    )


async def _verify_step(
    step: Step, question: Question, video: Video, settings: Traces, vetting: VettingContext
) -> tuple[list[Verdict], bool | None]:
    """Return the verifier's verdicts on one step, and whether it confirms it; None if undecided."""
    step_question = replace(
        question,
        question_id=f"{question.question_id}/{step.start:g}",
        question=ASKED.format(step.text),
        options=YES_NO,
        answer_index=0,
        answer=YES_NO[0],
        evidence=(Span(step.start, step.end),),
    )
    session = VerifierSession(step_question, video, vetting, settings.runs, name=NAME)
    try:
        votes = await session.votes(settings.see, step_question.evidence)
    except BadRow:  # the video is missing or cannot be decoded
        return [], None
    if votes is None or (votes.chosen is None and votes.read < settings.runs):
        return session.verdicts, None
    return session.verdicts, votes.right


async def _grade(
    question: Question, video: Video, trace: Trace, grader: Asker, settings: Traces, seed: int
) -> tuple[dict[str, int], Verdict]:
    """Return the trace's level on each axis, and the verdict that holds the grader's reply."""
    lines = lines_within(video.lines or (), question.evidence or (video_span(video),))
    levels, reply = await grader.ask(
        RUBRIC,
        levels_form(dict.fromkeys(AXES, LEVELS)),
        seed=seed,
        question=question,
        trace=trace,
        lines=nearest(lines, question.question, settings.words),
    )
    verdict = Verdict(
        filter=NAME,
        model=grader.llm.identity,
        seed=seed,
        prompt=grader.prompts.digest(RUBRIC),
        reply=reply,
        detail=json.dumps(dict(levels)),
    )
    return dict(levels), verdict


def steps_form(extent: Span, most: int) -> Form[Trace | None]:
    """Return the form of a reply with steps and a conclusion, or NONE.

    Its `read` raises Unparsed for a step without times or outside of the video, and for a missing
    conclusion. `extent`: the video's span.
    """

    def make_step(start: float, end: float, seen: str) -> Step:
        earliest, latest = extent.start - END_TOLERANCE_S, extent.end + END_TOLERANCE_S
        if not earliest <= start <= end <= latest or end < 0:
            raise Unparsed(f"a step at {start:g}-{end:g} s lies outside of the video")
        if not seen:
            raise Unparsed(f"the step at {start:g}-{end:g} s has no text")
        first, last = max(start, extent.start), min(end, extent.end)
        return Step(start=min(first, last), end=max(first, last), text=seen)

    def whole(steps: Sequence[Step], conclusion: str) -> Trace | None:
        if not steps and (not conclusion or is_none(conclusion)):
            return None
        if not steps or not conclusion:
            raise Unparsed("expected both steps and a conclusion, or neither")
        if len(steps) > most:
            raise Unparsed(f"it has {len(steps)} steps; expected at most {most}")
        return Trace(steps=tuple(steps), conclusion=conclusion)

    def parse_trace(reply: str) -> Trace | None:
        if is_none(reply):
            return None
        labelled = fields(reply, LABELS)
        steps = [_timed(f.text, make_step) for f in labelled if f.label == "step"]
        conclusions = [f.text for f in labelled if f.label == "conclusion" and f.text]
        return whole(steps, conclusions[-1] if conclusions else "")

    one = record(
        make_step,
        start=number("its first second"),
        end=number("its last second"),
        seen=words("what is seen or heard there"),
    )
    shape = record(
        whole,
        steps=list_of(one, "the steps in their order; empty if you write none"),
        conclusion=words("why this answers the question; empty without steps"),
    )
    return form(text=parse_trace, shape=shape)


def _timed(text: str, step: Callable[[float, float, str], Step]) -> Step:
    """Parse a step of the form "12.0-15.0: what is seen"."""
    head, _, rest = text.partition(": ")
    times = spans(head)
    if len(times) != 1 or len(head.split()) > 4:
        raise Unparsed(f"the step {text[:40]!r} does not begin with its stretch, as 12.0-15.0: ...")
    return step(times[0].start, times[0].end, rest.strip())
