"""Consistency groups: up to three siblings of a question on the same fact, scored all or nothing.

A model that knows a fact answers every wording of it. A sibling is a paraphrase with the same
options, the opposite (a negation, a swapped order), or a consequence later in the video. Models
that were right on 66.1 % of questions were right on 49.4 % of such groups.

A sibling must keep its fact, or the writer gets it back: a paraphrase has the question's wrong
options, the evidence of an opposite touches the question's, and the evidence of a consequence
reaches beyond the question's. The question filters then verify siblings like any question.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from mustsee.calls.llm import Asker
from mustsee.enrich.twins import SPLITS
from mustsee.errors import BadRow, Unparsed, UserError
from mustsee.questions.checks import fault, normal
from mustsee.questions.drafts import Draft, finish_question
from mustsee.questions.replies import questions
from mustsee.records import Provenance, Question, Span, Video
from mustsee.replies.forms import Form
from mustsee.verify.conditions.lines import nearest
from mustsee.verify.conditions.seen import Condition, lines_within, merge_spans, video_span
from mustsee.verify.conditions.video_frames import VideoFrames
from mustsee.verify.repair import frames_for_writer, segments_near

PROMPT = "enrich/group"
PROMPTS = (PROMPT, "filters/_sight")
PARAPHRASE, OPPOSITE, CONSEQUENCE = RELATIONS = ("paraphrase", "opposite", "consequence")
WITHOUT = "questions left without siblings"  # name of their count in run.json
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class GroupSettings:
    """Settings of siblings.

    `most`: siblings of a question, at most; 0 turns them off. `see`: frames of the video that the
    writer is shown; `near`: frames of the evidence; null shows none. `words`: of the transcript.
    """

    most: int = 0
    see: Condition | None = field(default_factory=lambda: Condition(frames=12, longest=512))
    near: Condition | None = field(
        default_factory=lambda: Condition(
            condition="evidence", fps=0.5, least=2, most=8, longest=512
        )
    )
    words: int = 20_000

    def __post_init__(self) -> None:
        if not 0 <= self.most <= len(RELATIONS):
            raise UserError(f"enrich.groups.most={self.most!r}: from 0 to {len(RELATIONS)}")


async def siblings(
    question: Question,
    video: Video,
    asker: Asker,
    settings: GroupSettings,
    video_frames: VideoFrames,
    *,
    seed: int = 0,
    count: Callable[[str, int], None],
) -> list[Question]:
    """Write the siblings of a multiple-choice question, not yet vetted; empty if the writer finds
    none. Raises Transient.
    """
    wrong = tuple(o for i, o in enumerate(question.options) if i != question.answer_index)
    wanted = " ".join((question.question, *question.options))
    try:
        lines = lines_within(video.lines or (), (video_span(video),))
        times, images = await frames_for_writer(
            video, video_frames, settings.see, settings.near, question.evidence
        )
        drafts = await asker.ask(
            PROMPT,
            related_form(question, wrong, settings.most),
            seed=seed,
            images=images,
            frames=times,
            question=question,
            wrong=wrong,
            most=settings.most,
            segments=segments_near(video, ()),
            lines=nearest(lines, wanted, settings.words),
            video=video,
        )
    except BadRow:
        drafts = ()
    if not drafts:
        count(WITHOUT, 1)
    by = Provenance(llm=asker.llm.identity, prompts=asker.prompts.digest(PROMPT))
    return [_finish_sibling(draft, question, video, by, seed) for draft in drafts]


def _finish_sibling(
    draft: Draft, first: Question, video: Video, by: Provenance, seed: int
) -> Question:
    evidence = merge_spans(draft.evidence, video_span(video)) or first.evidence
    sibling = finish_question(
        replace(draft, evidence=evidence),
        video_id=first.video_id,
        recipe=first.recipe,
        question_type=first.question_type,
        seed=seed,
        decoys=len(first.options) - 1,
        provenance=by,
    )
    return replace(
        sibling,
        subsets=tuple(s for s in first.subsets if s in SPLITS),
        sibling_of=first.question_id,
        relation=draft.tag,
        group=first.question_id,
    )


def related_form(first: Question, wrong: Sequence[str], most: int) -> Form[tuple[Draft, ...]]:
    """Return the form of a reply with at most `most` siblings, one of each kind. Its `read` raises
    Unparsed for a faulty sibling.
    """

    def check_drafts(drafts: Sequence[Draft]) -> tuple[Draft, ...]:
        siblings = tuple(replace(d, tag=_relation(d.tag)) for d in drafts)
        if len({d.tag for d in siblings}) < len(siblings):
            raise Unparsed("it has two questions of one kind; expected one of each")
        for draft in siblings:
            if reason := _fault(draft, first, wrong):
                raise Unparsed(f"the {draft.tag} has a fault: {reason}")
        return siblings[:most]

    return questions(len(RELATIONS), kind=f"one of {', '.join(RELATIONS)}", evidence=True,
                     wrong=len(wrong)).map(check_drafts)  # fmt: skip


def _relation(tag: str) -> str:
    """Return the relation that the text in brackets names. Raises Unparsed."""
    named = [r for r in RELATIONS if r in normal(tag).split()]
    if len(named) != 1:
        raise Unparsed(
            f"the kind of a question is {tag[:40]!r}; expected one of {', '.join(RELATIONS)}"
        )
    return named[0]


def _fault(draft: Draft, first: Question, wrong: Sequence[str]) -> str | None:
    """Return what is wrong with a sibling's text, or why it is not a sibling; None if nothing."""
    if reason := fault(draft.question, draft.answer, draft.decoys, count=len(wrong)):
        return reason
    if normal(draft.question) == normal(first.question):
        return "it is worded as the question itself"
    if draft.tag == PARAPHRASE:
        same = normal(draft.answer) == normal(first.answer)
        if not same or {*map(normal, draft.decoys)} != {*map(normal, wrong)}:
            return "its answers are not those of the question"
    away = bool(draft.evidence and first.evidence) and not _touches(draft.evidence, first.evidence)
    if draft.tag == OPPOSITE and away:
        return "its evidence has nothing of the question's"
    if draft.tag == CONSEQUENCE and not _goes_on(draft.evidence, first.evidence):
        return "its evidence does not go on behind the question's"
    return None


def _touches(some: Sequence[Span], others: Sequence[Span]) -> bool:
    return any(a.start <= b.end and b.start <= a.end for a in some for b in others)


def _goes_on(later: Sequence[Span], before: Sequence[Span]) -> bool:
    """Whether the later evidence ends after the earlier; without earlier, whether there is any."""
    ends = [s.end for s in before]
    return bool(later) and (not ends or max(s.end for s in later) > max(ends))
