"""Reasoning traces: what is seen or heard when, step by step, and why that answers the question.

The writer is shown the evidence and writes the steps with their times. Each step is then put to the
verifier as a question of its own, on the pictures and lines of its stretch alone: is this so? One
that it cannot find there, or finds otherwise, takes the whole trace with it. What stays is graded
along the axes of MINERVA (arXiv 2505.00681): perception, time, logic, completeness; 0, 1 or 2 each.
"""

from __future__ import annotations

import json
from asyncio import gather
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from mustsee.calls.llm import Asker
from mustsee.errors import BadRow, Unparsed, UserError
from mustsee.evaluate.rubric import in_levels
from mustsee.questions.drafts import END_TOLERANCE_S, fields, spans
from mustsee.questions.replies import is_none
from mustsee.records import Question, Span, Step, Trace, Verdict, Video
from mustsee.replies.forms import Form, form, list_of, number, record, words
from mustsee.verify.conditions.lines import nearest
from mustsee.verify.conditions.seen import Condition, lines_within, stretch
from mustsee.verify.looks import VerifierSession, VoteRule
from mustsee.verify.repair import pictures
from mustsee.verify.vetting import VettingContext, mark_unverified

PROMPT, RUBRIC = "enrich/trace", "enrich/rubric"
PROMPTS = (PROMPT, RUBRIC, "filters/_sight")
NAME = "trace"
ASKED = "Is this seen or heard in these stretches: {}"  # as the verifier is asked, step by step
YES_NO = ("Yes", "No")
AXES = ("perception", "time", "logic", "completeness")
LEVELS = (0, 1, 2)
WITHOUT = "questions left without a trace"  # how run.json counts them
FALLEN = "traces with a step that does not show"
LABELS = {"step": r"step", "conclusion": r"conclusion"}


@dataclass(frozen=True, kw_only=True)
class Traces:
    """At most `most` steps; 0: no traces are made. `near`: the pictures of the evidence that the
    writer is shown, null: none; `see`: those of a step that the verifier is; `min_right` of `runs`
    looks must find it there. A trace that is graded below `least` on an axis falls. `words`: of
    what is said.
    """

    most: int = 0
    near: Condition | None = field(
        default_factory=lambda: Condition(
            condition="evidence", fps=1.0, least=2, most=24, longest=512
        )
    )
    see: Condition = field(
        default_factory=lambda: Condition(
            condition="evidence", fps=1.0, least=2, most=16, longest=768, transcript=True
        )
    )
    runs: int = 3
    min_right: int = 2
    least: int = 1
    words: int = 5_000

    def __post_init__(self) -> None:
        if self.most < 0:
            raise UserError(f"enrich.traces.most={self.most!r}: 0 or more")
        if self.least not in LEVELS:
            raise UserError(f"enrich.traces.least={self.least!r}: one of {LEVELS}")
        if not 1 <= self.min_right <= self.runs:
            raise UserError(f"enrich.traces.min_right={self.min_right!r}: 1 to runs={self.runs}")


async def add_trace(
    question: Question,
    video: Video,
    writer: Asker,
    grader: Asker,
    settings: Traces,
    vetting: VettingContext,
) -> Question:
    """The question with its trace, if it has one that holds; one that fell, or of which a filter
    could tell nothing, as it is. Raises Transient.
    """
    if question.drop is not None or question.unverified_by or not question.answer:
        return question
    try:
        made = await _written(question, video, writer, settings, vetting)
        if made is None:
            raise BadRow("it has no steps")
    except BadRow:
        vetting.count(WITHOUT, 1)
        return question
    looked = await gather(*(_looked(s, question, video, settings, vetting) for s in made.steps))
    verdicts = tuple(v for given, _ in looked for v in given)
    found = replace(question, verdicts=(*question.verdicts, *verdicts))
    told = [right for _, right in looked]
    if False in told:
        vetting.count(FALLEN, 1)
        return _marked(found, passed=False)
    if None in told:
        return mark_unverified(found, NAME)
    try:
        levels, verdict = await _graded(question, video, made, grader, settings, vetting.seed)
    except BadRow:
        return mark_unverified(found, NAME)
    found = replace(
        found,
        verdicts=(*found.verdicts, verdict),
        metrics={**found.metrics, **{f"{NAME}_{axis}": float(levels[axis]) for axis in AXES}},
    )
    passed = min(levels.values()) >= settings.least
    return replace(_marked(found, passed=passed), trace=made if passed else None)


def _marked(question: Question, *, passed: bool) -> Question:
    return replace(question, metrics={**question.metrics, f"{NAME}_passed": float(passed)})


async def _written(
    question: Question, video: Video, writer: Asker, settings: Traces, vetting: VettingContext
) -> Trace | None:
    times, images = await pictures(
        video, vetting.video_frames, None, settings.near, question.evidence
    )
    lines = lines_within(video.lines or (), question.evidence or (stretch(video),))
    return await writer.ask(
        PROMPT,
        stepwise(stretch(video), settings.most),
        seed=vetting.seed,
        images=images,
        frames=times,
        question=question,
        lines=nearest(lines, question.question, settings.words),
        most=settings.most,
    )


async def _looked(
    step: Step, question: Question, video: Video, settings: Traces, vetting: VettingContext
) -> tuple[list[Verdict], bool | None]:
    """What the looks at one step said, and whether it shows; null where that cannot be told."""
    asked = replace(
        question,
        question_id=f"{question.question_id}/{step.start:g}",
        question=ASKED.format(step.text),
        options=YES_NO,
        answer_index=0,
        answer=YES_NO[0],
        evidence=(Span(step.start, step.end),),
    )
    poll = VoteRule(runs=settings.runs, min_right=settings.min_right)
    session = VerifierSession(asked, video, vetting, poll, name=NAME)
    try:
        votes = await session.votes(settings.see, asked.evidence)
    except BadRow:  # the video is not there, or cannot be decoded
        return [], None
    if votes is None or (votes.chosen is None and votes.read < settings.runs):
        return session.verdicts, None
    return session.verdicts, votes.right


async def _graded(
    question: Question, video: Video, made: Trace, grader: Asker, settings: Traces, seed: int
) -> tuple[dict[str, int], Verdict]:
    lines = lines_within(video.lines or (), question.evidence or (stretch(video),))
    levels, reply = await grader.ask(
        RUBRIC,
        in_levels(dict.fromkeys(AXES, LEVELS)),
        seed=seed,
        question=question,
        trace=made,
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


def stepwise(extent: Span, most: int) -> Form[Trace | None]:
    """The steps and the conclusion in a reply; null for NONE. Unparsed for a step without its
    stretch, or outside of the video, and where the conclusion lacks.
    """

    def step(start: float, end: float, text: str) -> Step:
        if (
            not extent.start - END_TOLERANCE_S <= start <= end <= extent.end + END_TOLERANCE_S
            or end < 0
        ):
            raise Unparsed(f"a step at {start:g}-{end:g} s lies outside of the video")
        if not text:
            raise Unparsed(f"the step at {start:g}-{end:g} s has no text")
        first, last = max(start, extent.start), min(end, extent.end)
        return Step(start=min(first, last), end=max(first, last), text=text)

    def whole(steps: Sequence[Step], conclusion: str) -> Trace | None:
        if not steps and (not conclusion or is_none(conclusion)):
            return None
        if not steps or not conclusion:
            raise Unparsed("steps and a conclusion are wanted, or NONE")
        if len(steps) > most:
            raise Unparsed(f"it has {len(steps)} steps; at most {most} are wanted")
        return Trace(steps=tuple(steps), conclusion=conclusion)

    def parse_trace(reply: str) -> Trace | None:
        if is_none(reply):
            return None
        given = fields(reply, LABELS)
        steps = [_timed(f.text, step) for f in given if f.label == "step"]
        ends = [f.text for f in given if f.label == "conclusion" and f.text]
        return whole(steps, ends[-1] if ends else "")

    def make_step(start: float, end: float, seen: str) -> Step:
        return step(start, end, seen)

    one = record(
        make_step,
        start=number("its first second"),
        end=number("its last second"),
        seen=words("what is seen or heard there"),
    )
    shape = record(
        whole,
        steps=list_of(one, "the steps in their order; none where the answer would be NONE"),
        conclusion=words("why this answers the question"),
    )
    return form(text=parse_trace, shape=shape)


def _timed(text: str, step: Callable[[float, float, str], Step]) -> Step:
    """A step of the form "12.0-15.0: what is seen"."""
    head, _, rest = text.partition(": ")
    found = spans(head)
    if len(found) != 1 or len(head.split()) > 4:
        raise Unparsed(f"the step {text[:40]!r} does not begin with its stretch, as 12.0-15.0: ...")
    return step(found[0].start, found[0].end, rest.strip())
