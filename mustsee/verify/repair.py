"""Repair: a dropped question is rewritten with the filters' explanations, and vetted again.

The writer gets the explanations of the guessers and the verifier, and the instruction for the
question's fault (`prompts/filters/repair.j2`). CinePile 2.0's refinement of guessed questions is
this, with its own settings.
"""

from __future__ import annotations

import json
import re
from asyncio import to_thread
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mustsee.errors import BadRow, Unparsed, UserError
from mustsee.media.frames import is_black_jpeg
from mustsee.questions.checks import fault, normal
from mustsee.questions.drafts import Draft, finish_question, reach
from mustsee.questions.orders import build_options
from mustsee.questions.replies import questions
from mustsee.records import Line, Question, Repair, Segment, Span, Verdict, Video
from mustsee.replies.forms import Form
from mustsee.text import LETTERS
from mustsee.verify.conditions.seen import (
    Condition,
    lines_within,
    merge_spans,
    nearest,
    plan,
    video_span,
)
from mustsee.verify.conditions.video_frames import VideoFrames
from mustsee.verify.filters import GUESSED, HEARD, UNNEEDED, WORDED, VettingContext
from mustsee.verify.look_replies import named_in

PROMPT = "filters/repair"
SOLVED = (GUESSED, HEARD, UNNEEDED)  # faults that right replies explain
# Replies of the filter that dropped the question, shown to the writer for each wording.
MAX_REPLIES = 3
MAX_OTHER_QUESTIONS = 30  # other questions of the video, shown to the writer
NARRATOR = "narrator"  # speaker of the lines of an audio description


@dataclass(frozen=True, kw_only=True)
class FailedWording:
    """A dropped wording: the reason, the fault (`mustsee.verify.filters`), and the filter's replies
    about it, latest first. A reply that the reason holds is not repeated. `named`: the spans that
    the replies name.
    """

    question: str
    answer: str
    wrong: tuple[str, ...]
    reason: str
    fault: str
    replies: tuple[str, ...]
    named: tuple[Span, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RepairRule:
    """Settings of repair.

    Where only the wording is at fault, none are shown.
    """

    rounds: int = 2
    """Rewrites of one question, at most."""
    of: Sequence[str] | None = None
    """Filters whose questions are repaired; null: all."""
    see: Condition | None = field(default_factory=lambda: Condition(frames=6, longest=768))
    """Frames that the writer is shown; null: none, it reads the scene."""
    near: Condition | None = field(
        default_factory=lambda: Condition(
            condition="evidence", fps=0.5, least=2, most=10, longest=768
        )
    )
    """Frames of the evidence that it is shown; null: none."""
    words: int = 20_000
    """Words of the transcript that the writer is shown, at most."""
    far: float = 60
    """Least distance of joined moments, seconds, from which a repair must keep them joined."""
    kinds: Sequence[str] = ()
    """Question types that a repair may change a question to."""
    narrator: float = 0.5
    """Least probability at which a line counts as the narrator's."""
    builds_options: bool = False
    """Make wrong orders and combinations by code, 4 to 6 options; false: the model writes
    them."""
    prompts: tuple[str, ...] = (PROMPT, "filters/_sight")

    def __post_init__(self) -> None:
        if self.rounds < 0:
            raise UserError(f"vet.repair.rounds={self.rounds!r}: expected at least 0")

    async def __call__(
        self, question: Question, video: Video, vetting: VettingContext, failed_filter: str
    ) -> Question | None:
        """Return the repaired question, with the repair on record; None if the writer cannot repair
        it, or if the filter `failed_filter` gave no explanation.
        """
        now = attempt_of(question, failed_filter)
        excluded = self.of is not None and failed_filter not in self.of
        if excluded or not _is_explained(question, failed_filter) or video.until is None:
            return None
        draft, by = self._build(question, now), "rules"
        if draft is None:
            by = vetting.askers["repairer"].llm.identity
            vetting.requests.add_sent("repairs")
            try:
                draft = await self._ask(question, video, vetting, now)
            except BadRow as error:
                vetting.requests.add_unread("repairs", error)
                return None
        if draft is None:
            return None
        kinds = {normal(kind): kind for kind in self.kinds}
        new = finish_question(
            replace(
                draft, evidence=merge_spans(draft.evidence, video_span(video)) or question.evidence
            ),
            video_id=question.video_id,
            recipe=question.recipe,
            question_type=kinds.get(normal(draft.tag), question.question_type),
            seed=vetting.seed,
            decoys=len(draft.decoys),
            provenance=question.provenance,
        )
        repair = Repair(
            kind="wording",
            reason=now.reason,
            by=by,
            before=json.dumps(wording_fields(question), ensure_ascii=False),
            filter=failed_filter,
            fault=now.fault,
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

    def _build(self, question: Question, now: FailedWording) -> Draft | None:
        """Return the question with options made by code, if its wording is at fault and code makes
        other options than it has.
        """
        draft = Draft(
            question=question.question,
            answer=question.answer,
            tag=question.question_type,
            evidence=question.evidence,
            decoys=now.wrong,
        )
        built = build_options(draft)
        is_other = {built.answer, *built.decoys} != {*question.options}
        wanted = self.builds_options and now.fault == WORDED
        has_fault = fault(built.question, built.answer, built.decoys, count=len(built.decoys))
        return built if wanted and is_other and not has_fault else None

    async def _ask(
        self, question: Question, video: Video, vetting: VettingContext, now: FailedWording
    ) -> Draft | None:
        """Return the writer's draft; None for NONE. Raises BadRow."""
        least = self.far if question.metrics.get("apart_seconds", 0.0) >= self.far else 0.0
        see, near = (None, None) if now.fault == WORDED else (self.see, self.near)
        times, images = await frames_for_writer(
            video, vetting.video_frames, see, near, question.evidence, now.named
        )
        return await vetting.askers["repairer"].ask(
            PROMPT,
            repair_form(len(now.wrong), least, builds_options=self.builds_options),
            seed=vetting.seed,
            images=images,
            frames=times,
            segments=segments_near(
                video, question.evidence if now.fault not in (GUESSED, HEARD) else ()
            ),
            lines=nearest(_lines(video, self.narrator), question.question, self.words),
            described=video.scene is not None,
            others=other_questions(video, question),
            question=question,
            kinds=tuple(self.kinds),
            now=now,
            earlier=earlier_wordings(question),
            fault=now.fault,
            least=least,
            builds_options=self.builds_options,
        )


async def frames_for_writer(
    video: Video,
    video_frames: VideoFrames,
    see: Condition | None,
    near: Condition | None,
    evidence: Sequence[Span],
    named: Sequence[Span] = (),
) -> tuple[tuple[float, ...], tuple[bytes, ...]]:
    """Return the times and the JPEGs of the frames that a writer is shown: of the whole video by
    `see`, and by `near` of the `named` spans and then, within its `most`, of the evidence; black
    ones only where there are no others. Raises BadRow if the video is missing.
    """
    if (of := near or see) is None or not video.uri:
        return (), ()
    extent = video_span(video)
    overview = plan(see, extent, ()) if see is not None else None
    times = {*(overview.times if overview else ())}
    left = near.most if near is not None else 0
    for spans in (merge_spans(named, extent), merge_spans(evidence, extent)):
        if near is not None and left and spans:
            planned = plan(replace(near, most=left), extent, spans)
            left -= len(planned.times) if planned else 0
            times |= {*(planned.times if planned else ())}
    ordered = tuple(sorted(times))
    jpegs = await video_frames.jpegs(ordered, of)
    black = await to_thread(lambda: [is_black_jpeg(jpeg) for jpeg in jpegs])
    shown = [n for n in range(len(ordered)) if not black[n]] or range(len(ordered))
    return tuple(ordered[n] for n in shown), tuple(jpegs[n] for n in shown)


def attempt_of(question: Question, by: str) -> FailedWording:
    """Return the current wording, with its drop reason and the filter's replies about it."""
    about = [v for v in question.verdicts[question.earlier_verdicts :] if v.filter == by]
    reason = question.drop or f"{by}: {mark_reason(about)}"
    return _failed_wording(wording_fields(question), reason, question.faults.get(by, ""), about)


def earlier_wordings(question: Question) -> tuple[FailedWording, ...]:
    """Return the earlier wordings, first to last, each with the filter's replies about it."""
    wordings: list[FailedWording] = []
    start = 0
    for repair in _rewordings(question):
        before = json.loads(repair.before)
        about = question.verdicts[start : before["verdicts"]]
        by_filter = [v for v in about if v.filter == repair.filter]
        wordings.append(_failed_wording(before, repair.reason, repair.fault, by_filter))
        start = before["verdicts"]
    return tuple(wordings)


def _is_explained(question: Question, by: str) -> bool:
    """Whether the filter gave a reply about the current wording."""
    return any(v.filter == by and v.reply for v in question.verdicts[question.earlier_verdicts :])


def _failed_wording(
    wording: Mapping[str, Any], reason: str, fault: str, about: Sequence[Verdict]
) -> FailedWording:
    replies = explanations(about, solved=fault in SOLVED, options=wording["options"])
    return FailedWording(
        question=wording["question"],
        answer=wording["answer"],
        wrong=tuple(o for o in wording["options"] if o != wording["answer"]),
        reason=reason,
        fault=fault,
        replies=tuple(reply for reply in replies if reply not in reason),
        named=tuple(span for verdict in about for span in named_in(verdict.reply)),
    )


_RANKED = re.compile(
    r"^[\s*_#>-]*(?:final\s+)?(?:answer|ranking)\b.*$", re.IGNORECASE | re.MULTILINE
)
_EXPLANATION = re.compile(
    r"^[\s*_#>-]*explanation[\s*_]*[:：][\s*_]*", re.IGNORECASE | re.MULTILINE
)
_ORDER = re.compile(r"(?:options shown as |\"order\": \")([A-Z]+)")
_JUDGED = re.compile(
    r"^([\s*_#>-]*)(?:option\s+)?[\[(]?([A-Z])[\])]?([\s*_]*[:：=][\s*_]*(?:RIGHT|WRONG|OPEN)\b)",
    re.IGNORECASE | re.MULTILINE,
)
# "A" alone may be an article, but not where it fits.
_LETTER = re.compile(
    r"(?<![\w'’])(?:[Oo]ption\s+\(?([A-Z])\)?|\(([A-Z])\)|([B-HJ-Z]|A(?= fits\b)))(?![\w'’])"
)


def explanations(
    verdicts: Sequence[Verdict], *, solved: bool, options: Sequence[str] = ()
) -> tuple[str, ...]:
    """Return at most `MAX_REPLIES` replies of a filter: first those that were right (`solved`) or
    not, and of these the latest first. Rankings are removed, and the letters of options are
    replaced by the options, because each run had another order.
    """
    latest = verdicts[::-1]
    order = sorted(latest, key=lambda v: (v.correct is True) != solved)
    replies = (_explanation(verdict, options) for verdict in order)
    return tuple(dict.fromkeys(r for r in replies if r))[:MAX_REPLIES]


def _explanation(verdict: Verdict, options: Sequence[str]) -> str:
    """Return a reply without its ranking and its labels, with options in place of letters."""
    text = _EXPLANATION.sub("", _RANKED.sub("", verdict.reply)).strip()
    match = _ORDER.search(verdict.detail)
    places = [LETTERS.index(letter) for letter in match[1]] if match else []
    shown = [options[place] for place in places if place < len(options)]
    quoted = {letter: f"“{option}”" for letter, option in zip(LETTERS, shown, strict=False)}
    text = _JUDGED.sub(lambda m: m[1] + quoted.get(m[2].upper(), m[2]) + m[3], text)
    return _LETTER.sub(lambda m: quoted.get(m[1] or m[2] or m[3], m[0]), text)


def other_questions(video: Video, question: Question) -> tuple[str, ...]:
    """Return the video's other kept questions, in their first wording."""
    before = (json.loads(r.before)["question_id"] for r in _rewordings(question))
    own = {question.question_id, *before}
    others = (q for q in video.questions or () if q.question_id not in own and q.drop is None)
    return tuple(q.question for q in others)[:MAX_OTHER_QUESTIONS]


def segments_near(video: Video, evidence: Sequence[Span]) -> tuple[Segment, ...]:
    """Return the segments that the evidence overlaps; all if there are none."""
    segments = video.segments or ()
    near = tuple(s for s in segments if any(e.start < s.end and e.end > s.start for e in evidence))
    return near or segments


def repair_form(
    wrong: int, least: float = 0.0, *, builds_options: bool = False
) -> Form[Draft | None]:
    """Return the form of a reply with one question and `wrong` wrong answers, or NONE. With
    `builds_options`, orders and combinations get the wrong answers that code makes.

    Its `read` raises Unparsed for a question with a fault in its text, or with a reach below
    `least` seconds.
    """

    def check_drafts(drafts: Sequence[Draft]) -> Draft | None:
        if not drafts:
            return None
        if len(drafts) != 1:
            raise Unparsed("it has more than one question; expected one or none")
        (draft,) = drafts
        if len(draft.decoys) != wrong:
            raise Unparsed(f"it has {len(draft.decoys)} wrong answers; expected {wrong}")
        if builds_options:
            draft = build_options(draft)
        if reason := fault(draft.question, draft.answer, draft.decoys, count=len(draft.decoys)):
            raise Unparsed(f"the question has a fault: {reason}")
        if draft.evidence and (seconds := reach(draft.evidence)) < least:
            raise Unparsed(
                f"its evidence reaches over {seconds:.0f} s; expected evidence that reaches over "
                f"at least {least:.0f} s, or no question"
            )
        return draft

    return questions(2, evidence=True, wrong=wrong).map(check_drafts)


def _lines(video: Video, narrator: float) -> tuple[Line, ...]:
    """Return the transcript, or the lines of a scene with an audio description."""
    scene = video.scene
    if scene is None:
        return lines_within(video.lines or (), (video_span(video),))
    pairs = zip(scene.lines, scene.visual, strict=True)
    return tuple(replace(x, speaker=NARRATOR if p >= narrator else None) for x, p in pairs)


def mark_reason(verdicts: Sequence[Verdict]) -> str:
    """Return the reason of a filter that marks questions without dropping them."""
    if any(v.correct is not None for v in verdicts):
        return f"right in {sum(v.correct is True for v in verdicts)} of {len(verdicts)} runs"
    return "; ".join(v.reply for v in verdicts if v.reply) or "it does not pass"


def wording_fields(question: Question) -> dict[str, Any]:
    """Return the fields of a wording. `verdicts`: number of verdicts on it and earlier wordings."""
    return {
        "question_id": question.question_id,
        "question": question.question,
        "question_type": question.question_type,
        "answer": question.answer,
        "options": list(question.options),
        "evidence": [[s.start, s.end] for s in question.evidence],
        "verdicts": len(question.verdicts),
    }


def _rewordings(question: Question) -> list[Repair]:
    return [r for r in question.repairs if r.kind == "wording"]
