"""Repair: a question that fell is mended with the reasons that were given, and vetted anew.

The guessers' and the looker's explanations are paid for; here they go back to a writer, who mends
the wrong answers (guessed), the question (ambiguous), the answer or the evidence (disputed).
CinePile 2.0 refines what is guessed in this way.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from mustsee.conditions.lines import nearest
from mustsee.conditions.seen import Seen, merged, plan, said, stretch
from mustsee.errors import BadRow, Unparsed, UserError
from mustsee.filters.looks import stretches
from mustsee.filters.vetting import Vetting
from mustsee.questions.drafts import Draft, finished, parse_questions
from mustsee.records import Question, Repair, Segment, Video

PROMPT = "filters/repair"
MARKED = {  # what a filter that only marks has found
    "giveaways": "the wording of the options gives the answer away",
    "blind": "guessed without the video",
    "asr": "solved from what is said alone",
}
REPLIES = 3  # of the filter that dropped it, handed on


@dataclass(frozen=True, kw_only=True)
class Mend:
    """At most `rounds` rewrites of one question. `see`: the pictures of the film that the writer is
    shown; `near`: those of the evidence, and of the stretches that the looker named.
    """

    rounds: int = 2
    see: Seen = field(default_factory=lambda: Seen(frames=24, transcript=True))
    near: Seen = field(default_factory=lambda: Seen(condition="evidence", fps=1.0, most=24))
    prompts: tuple[str, ...] = (PROMPT, "filters/_sight")

    def __post_init__(self) -> None:
        if self.rounds < 0:
            raise UserError(f"vet.repair.rounds={self.rounds!r}: 0 or more")

    async def __call__(
        self, question: Question, video: Video, vetting: Vetting, fallen_by: str
    ) -> Question | None:
        """The question mended, its fault on record; null where the writer cannot, or where nothing
        was said that could be gone by.
        """
        replies = explanations(question, fallen_by)
        if not replies or video.until is None:
            return None
        asker, film = vetting.askers["repairer"], stretch(video)
        reason = question.drop or f"{fallen_by}: {MARKED.get(fallen_by, 'it does not pass')}"
        times = self._times(question, video, replies)
        try:
            draft = await asker.ask(
                PROMPT,
                lambda text: parse_repair(text, len(question.options) - 1),
                seed=vetting.seed,
                images=await vetting.film.pictures(times, self.see),
                frames=times,
                segments=told(video, question),
                lines=nearest(said(video.lines or (), (film,)), question.question, self.see.words),
                question=question,
                wrong=[o for i, o in enumerate(question.options) if i != question.answer_index],
                reason=reason,
                replies=replies,
            )
        except BadRow:
            return None
        if draft is None:
            return None
        evidence = merged(draft.evidence, film) or question.evidence
        new = finished(
            replace(draft, evidence=evidence),
            video_id=question.video_id,
            recipe=question.recipe,
            question_type=question.question_type,
            seed=vetting.seed,
            decoys=len(question.options) - 1,
            provenance=question.provenance,
        )
        before = {
            "question_id": question.question_id,
            "question": question.question,
            "answer": question.answer,
            "options": list(question.options),
            "evidence": [[s.start, s.end] for s in question.evidence],
        }
        repair = Repair(
            kind="wording",
            reason=reason,
            by=asker.llm.identity,
            before=json.dumps(before, ensure_ascii=False),
        )
        vetting.count("questions rewritten", 1)
        return replace(
            new,
            rationale=question.rationale,
            subsets=question.subsets,
            verdicts=question.verdicts,
            repairs=(*question.repairs, repair),
        )

    def _times(self, question: Question, video: Video, replies: Sequence[str]) -> tuple[float, ...]:
        """Of the pictures shown: the film's, and those of the stretches spoken of."""
        if not video.uri:
            return ()
        film = stretch(video)
        spoken = merged((*question.evidence, *(s for r in replies for s in stretches(r))), film)
        shown = plan(self.see, film, ()), plan(self.near, film, spoken) if spoken else None
        return tuple(sorted({time for planned in shown if planned for time in planned.times}))


def told(video: Video, question: Question) -> tuple[Segment, ...]:
    """The segments that the evidence touches; without evidence all of them."""
    segments = video.segments or ()
    near = tuple(
        s for s in segments if any(e.start < s.end and e.end > s.start for e in question.evidence)
    )
    return near or segments


_LETTERS = re.compile(
    r"^[\s*_#>-]*(?:final\s+)?(?:answer|ranking)\b.*$", re.IGNORECASE | re.MULTILINE
)


def explanations(question: Question, by: str) -> tuple[str, ...]:
    """What the filter's model said, latest first, without the letters of options, which stood in
    another order there.
    """
    replies = [_LETTERS.sub("", v.reply).strip() for v in question.verdicts if v.filter == by]
    return tuple(dict.fromkeys(r for r in reversed(replies) if r))[:REPLIES]


def parse_repair(reply: str, decoys: int) -> Draft | None:
    """The question mended; null for NONE. Raises Unparsed."""
    drafts = parse_questions(reply, 2)
    if not drafts:
        return None
    if len(drafts) != 1:
        raise Unparsed("it has more than one question; one is wanted, or NONE")
    if len(drafts[0].decoys) != decoys:
        raise Unparsed(f"it has {len(drafts[0].decoys)} wrong answers; {decoys} are wanted")
    return drafts[0]
