"""Repair: a question that fell is mended with the reasons that were given, and vetted anew.

The guessers' and the verifier's explanations are paid for; here they go back to a writer, with the
one instruction that fits the fault (`prompts/filters/repair.j2`). It is the one way in which the
house mends: CinePile 2.0's refinement of what is guessed is this, with settings of its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mustsee.errors import BadRow, Unparsed, UserError
from mustsee.questions.checks import fault, normal
from mustsee.questions.drafts import Draft, finish_question, reach
from mustsee.questions.replies import questions
from mustsee.records import Line, Question, Repair, Segment, Span, Verdict, Video
from mustsee.replies.forms import Form
from mustsee.verify.conditions.lines import nearest
from mustsee.verify.conditions.seen import Condition, lines_within, merge_spans, plan, stretch
from mustsee.verify.conditions.video_frames import VideoFrames
from mustsee.verify.look_replies import named_in
from mustsee.verify.vetting import VettingContext

PROMPT = "filters/repair"
FAULTS: Mapping[str, str] = {  # how a reason begins -> the part of the prompt that mends it
    "sight: more than one option fits": "ambiguous",
    "sight: answer disputed": "disputed",
    "sight: the evidence does not show": "unshown",
    "sight: cannot be told": "untold",
    "sight:": "unneeded",
    "refine: the scene": "disputed",
    "giveaways": "worded",
    "asr": "heard",
    "": "guessed",
}
SOLVED = ("guessed", "heard", "unneeded")  # of these faults, the replies that were right tell why
MAX_REPLIES = 3  # of the filter that it fell by, handed on, for each wording
MAX_OTHER_QUESTIONS = 30  # of the video's other questions
NARRATOR = "narrator"  # who speaks the lines of an audio description


@dataclass(frozen=True, kw_only=True)
class FailedWording:
    """A wording that fell: why, and what those said who tried it, latest first."""

    question: str
    answer: str
    wrong: tuple[str, ...]
    reason: str
    replies: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class RepairRule:
    """At most `rounds` rewrites of one question that fell by one of the filters named in `of`;
    null: by any. `see`: the pictures of the video that the writer is shown; `near`: those of the
    evidence, and of the stretches that the verifier named; null: none. `words`: of what is said.
    `far`: a question whose moments lie at least so many seconds apart keeps that. `kinds`: those
    that a mended question may turn into; none: it stays what it was. `narrator`: probability from
    which a line of an audio description is the narrator's.
    """

    rounds: int = 2
    of: Sequence[str] | None = None
    see: Condition | None = field(default_factory=lambda: Condition(frames=6, longest=768))
    near: Condition | None = field(
        default_factory=lambda: Condition(
            condition="evidence", fps=0.5, least=2, most=10, longest=768
        )
    )
    words: int = 20_000
    far: float = 60.0
    kinds: Sequence[str] = ()
    narrator: float = 0.5
    prompts: tuple[str, ...] = (PROMPT, "filters/_sight")

    def __post_init__(self) -> None:
        if self.rounds < 0:
            raise UserError(f"vet.repair.rounds={self.rounds!r}: 0 or more")

    async def __call__(
        self, question: Question, video: Video, vetting: VettingContext, fallen_by: str
    ) -> Question | None:
        """The question mended, its fault on record; null where the writer cannot, or where nothing
        was said that could be gone by.
        """
        now = attempt_of(question, fallen_by)
        unasked = self.of is not None and fallen_by not in self.of
        if unasked or not now.replies or video.until is None:
            return None
        try:
            draft = await self._asked(question, video, vetting, now)
        except BadRow:
            return None
        if draft is None:
            return None
        kinds = {normal(kind): kind for kind in self.kinds}
        new = finish_question(
            replace(
                draft, evidence=merge_spans(draft.evidence, stretch(video)) or question.evidence
            ),
            video_id=question.video_id,
            recipe=question.recipe,
            question_type=kinds.get(normal(draft.tag), question.question_type),
            seed=vetting.seed,
            decoys=len(question.options) - 1,
            provenance=question.provenance,
        )
        repair = Repair(
            kind="wording",
            reason=now.reason,
            by=vetting.askers["repairer"].llm.identity,
            before=json.dumps(wording_fields(question), ensure_ascii=False),
        )
        vetting.count("questions rewritten", 1)
        same = (new.question, new.answer) == (question.question, question.answer)
        return replace(
            new,
            rationale=question.rationale if same else None,
            subsets=question.subsets,
            verdicts=question.verdicts,
            repairs=(*question.repairs, repair),
        )

    async def _asked(
        self, question: Question, video: Video, vetting: VettingContext, now: FailedWording
    ) -> Draft | None:
        """The writer's draft; null for NONE. Raises BadRow."""
        named = (span for reply in now.replies for span in named_in(reply))
        times, images = await pictures(
            video, vetting.video_frames, self.see, self.near, (*question.evidence, *named)
        )
        least = self.far if question.metrics.get("reach_seconds", 0.0) >= self.far else 0.0
        kind = fault_of(now.reason)
        return await vetting.askers["repairer"].ask(
            PROMPT,
            repair_form(len(now.wrong), least),
            seed=vetting.seed,
            images=images,
            frames=times,
            segments=segments_near(
                video, question.evidence if kind not in ("guessed", "heard") else ()
            ),
            lines=nearest(_lines(video, self.narrator), question.question, self.words),
            described=video.scene is not None,
            others=other_questions(video, question),
            question=question,
            kinds=tuple(self.kinds),
            now=now,
            earlier=earlier_wordings(question),
            fault=kind,
            least=least,
        )


async def pictures(
    video: Video,
    video_frames: VideoFrames,
    see: Condition | None,
    near: Condition | None,
    evidence: Sequence[Span],
) -> tuple[tuple[float, ...], tuple[bytes, ...]]:
    """What a writer is shown of a video, with the times: pictures of the whole, as `see` has it,
    and of the evidence, as `near` has it. Raises BadRow where the video is not there.
    """
    if (of := near or see) is None or not video.uri:
        return (), ()
    spans = merge_spans(evidence, stretch(video))
    wanted = [(see, ()), *([(near, spans)] if spans else [])]
    plans = [plan(seen, stretch(video), where) for seen, where in wanted if seen is not None]
    times = tuple(sorted({time for shown in plans if shown for time in shown.times}))
    return times, await video_frames.pictures(times, of)


def fault_of(reason: str) -> str:
    """What is to be mended where a question fell for this reason."""
    return next(kind for start, kind in FAULTS.items() if reason.startswith(start))


def attempt_of(question: Question, by: str) -> FailedWording:
    """The question as it is worded now, with why it fell and what was said of this wording."""
    about = [v for v in question.verdicts[question.earlier_verdicts :] if v.filter == by]
    return _tried(wording_fields(question), question.drop or f"{by}: {_marked(about)}", about)


def earlier_wordings(question: Question) -> tuple[FailedWording, ...]:
    """The wordings that it had before, first to last, each with what was said of it."""
    found: list[FailedWording] = []
    begun = 0
    for repair in _rewordings(question):
        before, by = json.loads(repair.before), repair.reason.partition(":")[0]
        about = question.verdicts[begun : before["verdicts"]]
        found.append(_tried(before, repair.reason, [v for v in about if v.filter == by]))
        begun = before["verdicts"]
    return tuple(found)


def _tried(wording: Mapping[str, Any], reason: str, about: Sequence[Verdict]) -> FailedWording:
    return FailedWording(
        question=wording["question"],
        answer=wording["answer"],
        wrong=tuple(o for o in wording["options"] if o != wording["answer"]),
        reason=reason,
        replies=explanations(about, solved=fault_of(reason) in SOLVED),
    )


_LETTERS = re.compile(
    r"^[\s*_#>-]*(?:final\s+)?(?:answer|ranking)\b.*$", re.IGNORECASE | re.MULTILINE
)


def explanations(verdicts: Sequence[Verdict], *, solved: bool) -> tuple[str, ...]:
    """What a filter's model said, latest first, those first that solved the question (or did not),
    without the letters of options, which stood in another order there.
    """
    latest = verdicts[::-1]
    order = sorted(latest, key=lambda v: (v.correct is True) != solved)
    replies = (_LETTERS.sub("", v.reply).strip() for v in order)
    return tuple(dict.fromkeys(r for r in replies if r))[:MAX_REPLIES]


def other_questions(video: Video, question: Question) -> tuple[str, ...]:
    """What else is asked about the video: the first of its questions, as they were first asked."""
    before = (json.loads(r.before)["question_id"] for r in _rewordings(question))
    own = {question.question_id, *before}
    asked = (q for q in video.questions or () if q.question_id not in own and q.drop is None)
    return tuple(q.question for q in asked)[:MAX_OTHER_QUESTIONS]


def segments_near(video: Video, evidence: Sequence[Span]) -> tuple[Segment, ...]:
    """The segments that the evidence touches; without evidence all of them."""
    segments = video.segments or ()
    near = tuple(s for s in segments if any(e.start < s.end and e.end > s.start for e in evidence))
    return near or segments


def repair_form(wrong: int, least: float = 0.0) -> Form[Draft | None]:
    """The question mended, with so many wrong answers; null for NONE. `least`: seconds that its
    moments must lie apart. Unparsed, too, for a question that the checks on its text would drop.
    """

    def check_drafts(drafts: Sequence[Draft]) -> Draft | None:
        if not drafts:
            return None
        if len(drafts) != 1:
            raise Unparsed("it has more than one question; one is wanted, or NONE")
        (draft,) = drafts
        if len(draft.decoys) != wrong:
            raise Unparsed(f"it has {len(draft.decoys)} wrong answers; {wrong} are wanted")
        if found := fault(draft.question, draft.answer, draft.decoys, count=wrong):
            raise Unparsed(f"the question has a fault: {found}")
        if draft.evidence and (apart := reach(draft.evidence)) < least:
            raise Unparsed(
                f"its evidence holds moments {apart:.0f} s apart; moments that lie {least:.0f} s "
                "apart at least are wanted, named in EVIDENCE, or NONE"
            )
        return draft

    return questions(2, evidence=True, wrong=wrong).map(check_drafts)


def _lines(video: Video, narrator: float) -> tuple[Line, ...]:
    """What is said; of a scene with an audio description also what a narrator says of it."""
    scene = video.scene
    if scene is None:
        return lines_within(video.lines or (), (stretch(video),))
    pairs = zip(scene.lines, scene.visual, strict=True)
    return tuple(replace(x, speaker=NARRATOR if p >= narrator else None) for x, p in pairs)


def _marked(verdicts: Sequence[Verdict]) -> str:
    """What a filter that only marks has found."""
    if any(v.correct is not None for v in verdicts):
        return f"right in {sum(v.correct is True for v in verdicts)} of {len(verdicts)} runs"
    return "; ".join(v.reply for v in verdicts if v.reply) or "it does not pass"


def wording_fields(question: Question) -> dict[str, Any]:
    """A wording, with the number of verdicts that are about it and those before it."""
    return {
        "question_id": question.question_id,
        "question": question.question,
        "answer": question.answer,
        "options": list(question.options),
        "evidence": [[s.start, s.end] for s in question.evidence],
        "verdicts": len(question.verdicts),
    }


def _rewordings(question: Question) -> list[Repair]:
    return [r for r in question.repairs if r.kind == "wording"]
