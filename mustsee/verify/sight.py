"""Sight: a vision model, the verifier, must find exactly one right answer in the video.

The verifier judges every option at once: right, wrong, or open, each with its times; and the
premise, which is what the question takes for granted. It is asked in one chat:

1. The video without its evidence: without every shot that contains it, two seconds on both sides,
   and the words spoken there.
2. The evidence, densely, together with all that it saw before; with the stretches that it has named
   as right or open; and, for a question of order, number or the whole video, with the moments that
   captions, on-screen texts, lines and likeness of frames name (`candidates`).
3. While an option is open: the stretches that it names, at two frames per second; where it names
   none and frames are sparse, frames at the times between.

| the last look | result |
| --- | --- |
| only the answer is right | kept |
| more than one is right | dropped: ambiguous |
| another option is right, or all are wrong | dropped: disputed |
| the premise does not hold | dropped: premise |
| open | dropped: undecidable |

A look against the question is repeated from all frames at once, with the options in another order,
and most of `runs` looks decide. If the answer is right, but not in the evidence, the stretches that
show it replace the evidence. The evidence is needed if the answer is not right in the first look,
which has the same frames of the rest as the last.

A question without options is answered in words, from the same frames, and the judge compares the
answer with the reference.

A question is unverified if its video is missing, if too few replies are parseable to decide, or, in
a question without options, if no judge can grade it. It is neither dropped nor passed nor repaired,
`metrics.sight_unverified` is 1, and it stays out of the subset.

Published pipelines filter by what can be guessed, and leave the check that a question can be
answered from the video to raters, who rejected 70 % (EgoSchema, 3.1; Neptune, C.3).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from mustsee.errors import BadRow, UserError
from mustsee.questions.drafts import evidence_metrics
from mustsee.records import Question, Repair, Span, Verdict, Video, is_rules
from mustsee.verify.candidates import candidate_moments
from mustsee.verify.conditions.seen import (
    BORDER_TOLERANCE_S,
    MAX_CUT_SHARE,
    Condition,
    FramePlan,
    common,
    merge_spans,
    plan,
    whole_shots,
)
from mustsee.verify.fewest import fewest, spread_rungs, trim_frames
from mustsee.verify.filters import (
    AMBIGUOUS,
    DISPUTED,
    UNNEEDED,
    UNSHOWN,
    UNTOLD,
    UNTRUE,
    FilterOutcome,
    VettingContext,
    add_outcome,
    is_judgeable,
    mark_unverified,
)
from mustsee.verify.look_replies import CANNOT, NO_OPTION, PREMISE
from mustsee.verify.looks import (
    NAME,
    OPEN,
    PROMPT,
    Chat,
    LookReply,
    Spacing,
    VerifierSession,
    Votes,
)

NOT_LOOKED_AT = "questions not looked at"  # count in run.json of questions for a text-only verifier
SPARSE_GAP_S = 4.0  # seconds between frames, about a shot; larger gaps may miss something
MAX_LEAD_S = 8.0  # seconds of an open stretch that is shown beside the evidence; longer ones wait
MAX_FURTHER_LOOKS = 3  # looks at what is open after the evidence was shown
MAX_EVIDENCE_SHARE = 0.9  # share of a video; with more evidence there is no rest to show
SAMPLED = "sight_sampled"  # metric of a question that was drawn to be looked at
OTHER_TIMES = (0.0, 0.25, 0.75)  # places of further frames, as shares of the gap between frames
SAME_FRAME_S = 0.1  # a frame no farther from one that was shown is not shown, too
SEVERAL_FIT = "more than one option fits"
RULES_FPS = 0.5  # frames a second for rules that stand in for a verifier: their looks cost nothing

MRFS_FRAMES = 16


@dataclass(frozen=True, kw_only=True)
class Sight:
    """The filter `sight`.

    `see`, `whole`, `near`: how the evidence, the rest of the video, and the stretches that are
    open or were named are shown; `near.most` frames in one look. `mrfs16` is `min_frames` of the
    questions that at most 16 evenly spread frames suffice for (HERBench, 3.4, with this
    selector). Questions without options are all looked at: what else is true is known of none.
    """

    runs: int = 3
    """Looks of which most decide, where the first is against the question."""
    see: Condition = field(
        default_factory=lambda: Condition(
            condition="evidence", fps=1.0, least=4, most=16, longest=768, transcript=True
        )
    )
    whole: Condition = field(
        default_factory=lambda: Condition(fps=0.125, least=20, most=64, transcript=True)
    )
    near: Condition = field(
        default_factory=lambda: Condition(
            condition="evidence", fps=2.0, most=24, longest=768, transcript=True
        )
    )
    candidates: int = 4
    """Further moments shown for a question of order, number or the whole video; 0: none."""
    needed: bool = True
    """Show the video without the evidence first: metrics.sight_needed."""
    drop_unneeded: bool | None = None
    """Drop questions answered without their evidence; null: only where rules verify (verifier:
    offline)."""
    fewest: bool = False
    """Search for the fewest frames that suffice: metrics.min_frames, min_seconds (some thirty
    calls)."""
    drop_below_seconds: float = 0
    """Drop questions that less than this many seconds of video answer; needs fewest."""
    sample: float = 1.0
    """Share of the questions that it verifies, drawn by their ids; 1: all."""
    least: int = 1
    """Questions of each video that it verifies in any case."""

    def __post_init__(self) -> None:
        if not 0 <= self.sample <= 1:
            raise UserError(f"vet: sight.sample={self.sample!r}: expected 0 to 1")
        if self.runs < 1:
            raise UserError(f"vet: sight.runs={self.runs!r}: expected at least 1")
        if self.drop_below_seconds and not self.fewest:
            raise UserError(
                f"vet: sight.drop_below_seconds={self.drop_below_seconds!r} needs sight.fewest=true"
            )

    @property
    def name(self) -> str:
        return NAME

    @property
    def roles(self) -> tuple[str, ...]:
        return ("verifier",)

    @property
    def prompts(self) -> tuple[str, ...]:
        return (PROMPT, OPEN, "filters/_sight")

    @property
    def reads(self) -> tuple[str, ...]:
        named = ("captions", "texts", "frames") if self.candidates else ()
        return ("digest", "start", "end", "lines", "shots", *named)

    async def __call__(self, question: Question, video: Video, vetting: VettingContext) -> Question:
        """Return the question with the verifier's verdicts, and dropped if it does not pass."""
        if question.options and question.answer_index is None:
            return question
        if self.sample < 1:
            if question.options and not self.draws(question, video):
                return question
            question = replace(question, metrics={**question.metrics, SAMPLED: 1.0})
        try:
            if not question.options and not is_judgeable(question, vetting):
                raise BadRow("no judge can compare answers with this one")
            session = VerifierSession(question, video, vetting, self.runs)
            return await _Sighting(self, session).judge_question()
        except BadRow as error:  # the video is missing, undecodable or of unknown length; no judge
            verifier = vetting.askers["verifier"].llm.identity
            detail = json.dumps({"unread": str(error)})
            failure = Verdict(filter=NAME, model=verifier, seed=vetting.seed, detail=detail)
            return mark_unverified(replace(question, verdicts=(*question.verdicts, failure)), NAME)

    def draws(self, question: Question, video: Video) -> bool:
        """Whether a question is in the sample of its video's questions that were not dropped."""

        def rank(question_id: str) -> bytes:
            return hashlib.sha256(f"sight/{question_id}".encode()).digest()

        own = rank(question.question_id)
        ranks = [rank(q.question_id) for q in video.questions or () if q.drop is None]
        share = int.from_bytes(own[:8]) / 2**64
        return share < self.sample or sum(other < own for other in ranks) < self.least


@dataclass(frozen=True)
class Found:
    """What is wrong with a question: the fault (`mustsee.verify.filters`), and the reason."""

    fault: str
    reason: str


TOO_FEW_LOOKS = Found("", "too few looks could be read")


class _Sighting:
    """The verification of one question. Methods that return `Found` return why it is dropped.

    `dense`: what was shown closely. `times`: of all frames that were shown; `added`: by the last
    look. `cut_out`: what was cut out and not shown yet.
    """

    def __init__(self, settings: Sight, session: VerifierSession) -> None:
        self.settings, self.session = settings, session
        self.question, self.extent = session.question, session.extent
        self.metrics: dict[str, float] = {}
        self.whole = settings.whole
        self.rules = is_rules(session.asker.llm.identity)
        if self.rules and self.whole.fps is not None:
            self.whole = replace(self.whole, fps=max(RULES_FPS, self.whole.fps))
        self.dense: tuple[Span, ...] = ()
        self.times: tuple[float, ...] = ()
        self.added: tuple[float, ...] = ()
        self.cut_out: tuple[Span, ...] = ()

    async def judge_question(self) -> Question:
        found = await self._fault()
        judged = replace(
            self.question,
            verdicts=(*self.question.verdicts, *self.session.verdicts),
            metrics={**self.question.metrics, **self.metrics},
        )
        if found is TOO_FEW_LOOKS:
            return mark_unverified(judged, NAME)
        fault, reason = (found.fault, found.reason) if found else ("", "")
        outcome = FilterOutcome(filter=NAME, passed=found is None, fault=fault, reason=reason)
        return add_outcome(judged, outcome)

    async def _fault(self) -> Found | None:
        rest, without = self._rest(), None
        if rest is not None:
            self.cut_out = rest.cuts
            without = await self._look(rest, Chat())
            if without.choice is None:
                return TOO_FEW_LOOKS
        last = await self._look_at_all(without)
        see = replace(self.whole, longest=self.settings.see.longest)
        everything = FramePlan(spans=(self.extent,), times=self.times)
        votes = await self.session.settle(everything, see, last, doubted=self._is_doubtful(last))
        self.metrics |= {"sight_right": votes.share, "sight_frames": float(len(self.times))}
        if votes.chosen is None and votes.read < self.settings.runs:
            return TOO_FEW_LOOKS
        if not votes.right:
            return _find_fault(votes)
        found = self._replace_evidence(votes.named_spans)
        if found is None and rest is not None and without is not None:
            found = await self._check_necessity(rest, without)
        return await self._find_fewest() if found is None and self.settings.fewest else found

    def _is_doubtful(self, last: LookReply) -> bool:
        """Whether an earlier look chose another answer than the last one, or the last one rests on
        nothing that it added.
        """
        usual = (None, CANNOT, self.session.answer)
        earlier = [look.choice for look in self.session.looks if look is not last]
        rests = any(s.start - 1 <= t <= s.end + 1 for s in last.spans for t in self.added)
        unfounded = bool(self.added and last.spans) and not rests
        confirmed = bool(earlier) and earlier[-1] == self.session.answer
        return any(choice not in usual for choice in earlier) or (unfounded and not confirmed)

    def _rest(self) -> FramePlan | None:
        """Return the plan of the video without the evidence; None if it is not to be shown, or if
        hardly anything is left of it.
        """
        if not self.question.evidence or not self.settings.needed:
            return None
        shots = self.session.video.shots or ()
        cuts = whole_shots(self.question.evidence, shots, self.extent)
        if sum(s.seconds for s in cuts) > MAX_EVIDENCE_SHARE * self.extent.seconds:
            return None
        return plan(replace(self.whole, condition="without_evidence"), self.extent, cuts)

    async def _look(
        self, planned: FramePlan, chat: Chat, spacing: Sequence[Spacing] = ()
    ) -> LookReply:
        """Return the first of two looks at a plan, or the second if it cannot be parsed."""
        see = replace(self.settings.see, condition="whole")
        if planned.cuts:
            see = replace(self.whole, condition="without_evidence")
        elif chat.messages:
            see = replace(see, condition="evidence")
        self.added = planned.times
        self.times = tuple(sorted({*self.times, *planned.times}))
        look = await self.session.look(planned, see, 0, chat, spacing)
        if look.choice is None:
            look = await self.session.look(planned, see, 1, chat, spacing)
        return look

    async def _look_at_all(self, without: LookReply | None) -> LookReply:
        """Show the evidence beside the rest, then what is open; return the last look."""
        video, chat = self.session.video, Chat() if without is None else without.chat
        named = () if without is None else without.spans
        candidates = candidate_moments(self.question, video, self.settings.candidates)
        leads = [s for s in (without.where if without is not None else ())
                 if s.seconds <= MAX_LEAD_S and not common((s,), self.cut_out)]  # fmt: skip
        near = (*self._widen(self._short(named), self._gap), *leads, *candidates)
        look = await self._show(chat, self.question.evidence, near, self._grid(self.whole.at))
        others = iter(OTHER_TIMES)
        for _ in range(MAX_FURTHER_LOOKS):
            open_spans = self._unsettled(look)
            times: tuple[float, ...] = ()
            if not open_spans:
                if look.choice != CANNOT or self._gap <= SPARSE_GAP_S:
                    break
                times = self._grid(next(others))
            further = await self._show(look.chat, (), open_spans, times)
            if further.choice is None:
                break
            look = further
        return look

    def _unsettled(self, look: LookReply) -> tuple[Span, ...]:
        """Return the stretches to show densely: those on which a look's choice rests, up to the
        frames before and after them, and those that it leaves open.
        """
        shown = any(common((span,), self.dense) for span in look.spans)
        rests = () if shown and look.choice == self.session.answer else look.spans
        new_rests = [s for s in rests if not self._is_dense(s)]
        new_where = [s for s in look.where if not self._is_dense(s)]
        widened = self._widen(self._short(new_rests), self._gap)
        return (*widened, *self._widen(self._short(new_where), BORDER_TOLERANCE_S))

    def _is_dense(self, span: Span) -> bool:
        overlaps = common((span,), self.dense)
        return bool(overlaps) and sum(s.seconds for s in overlaps) >= 0.9 * span.seconds

    def _short(self, spans: Sequence[Span]) -> tuple[Span, ...]:
        """Return the spans unless they are too much of the video to be shown densely."""
        merged = merge_spans(spans, self.extent)
        too_much = sum(s.seconds for s in merged) > MAX_CUT_SHARE * self.extent.seconds
        return () if too_much else merged

    @staticmethod
    def _widen(spans: Sequence[Span], seconds: float) -> tuple[Span, ...]:
        return tuple(Span(s.start - seconds, s.end + seconds) for s in spans)

    @property
    def _gap(self) -> float:
        """Seconds between the frames that were shown of the whole video; 0 for clips."""
        return self._gap_of(self.times, [Spacing(span=s, gap=0.0) for s in self.dense])

    def _gap_of(self, times: Collection[float], closer: Sequence[Spacing]) -> float:
        """Return the seconds between frames at `times` outside of the spans shown closer."""
        spans = [one.span for one in closer]
        outside = sum(not any(s.start <= t <= s.end for s in spans) for t in times)
        seconds = self.extent.seconds - sum(s.seconds for s in spans)
        return max(0.0, seconds) / (outside + 1) if times else 0.0

    def _grid(self, at: float) -> tuple[float, ...]:
        planned = plan(replace(self.whole, at=at), self.extent, ())
        return planned.times if planned is not None else ()

    async def _show(
        self, chat: Chat, evidence: Sequence[Span], near: Sequence[Span], times: Sequence[float]
    ) -> LookReply:
        """Look at the evidence, at `near` densely, and at frames at `times`, as far as they were
        not shown before.
        """
        asked = ((self.settings.see, merge_spans(evidence, self.extent)),
                 (self.settings.near, merge_spans(near, self.extent)))  # fmt: skip
        plans = [plan(see, self.extent, spans) for see, spans in asked if spans]
        shown = [planned for planned in plans if planned is not None]
        every = {*times, *(t for planned in shown for t in planned.times)}
        new: list[float] = []
        for time in sorted(every):
            if all(abs(time - t) > SAME_FRAME_S for t in (*self.times, *new[-1:])):
                new.append(time)
        dense = merge_spans([s for planned in shown for s in planned.spans], self.extent)
        every = {*new, *self.times}
        closer = [
            Spacing(span=s, gap=s.seconds / max(1, sum(s.start <= t <= s.end for t in every)))
            for s in merge_spans((*self.dense, *dense), self.extent)
        ]
        spacing = (Spacing(span=self.extent, gap=self._gap_of(every, closer)), *closer)
        close = (x.span for x in closer if x.gap <= BORDER_TOLERANCE_S)
        self.dense = merge_spans((*self.dense, *evidence, *close), self.extent)
        spans = merge_spans((*self.cut_out, *dense), self.extent)
        self.cut_out = ()  # from now on it is shown
        if not chat.messages or not all(any(s.start <= t <= s.end for s in spans) for t in new):
            spans = (self.extent,)
        return await self._look(
            FramePlan(spans=spans, times=tuple(new)), chat, spacing if new else ()
        )

    def _replace_evidence(self, named: Sequence[Span]) -> Found | None:
        """Replace the evidence if the verifier found the answer only elsewhere."""
        evidence = self.question.evidence
        wide = [Span(s.start - BORDER_TOLERANCE_S, s.end + BORDER_TOLERANCE_S) for s in evidence]
        if evidence and (not named or common(merge_spans(named, self.extent), wide)):
            return None
        if not named:
            return Found(UNSHOWN, "the evidence does not show the answer")
        repair = Repair(
            kind="evidence",
            reason="sight: right on the whole video, not on the evidence"
            if evidence
            else "sight: no evidence was named",
            by=self.session.asker.llm.identity,
            before=json.dumps([[s.start, s.end] for s in evidence]),
        )
        self.question = replace(
            self.question, evidence=tuple(named), repairs=(*self.question.repairs, repair)
        )
        self.metrics["sight_needed"] = float(bool(self._short(named)))
        if "reach_seconds" in self.question.metrics:
            self.metrics |= evidence_metrics(named)
        return None

    async def _check_necessity(self, rest: FramePlan, without: LookReply) -> Found | None:
        """Record whether the answer is right only with the evidence in view: in the first look, or
        in a look without the evidence that replaced the first.
        """
        see = replace(self.whole, condition="without_evidence")
        if self.question.evidence != self.session.question.evidence:
            moved = self._rest()
            if moved is None:
                return None
            rest, without = moved, await self.session.look(moved, see)
        chosen = self.settings.drop_unneeded
        drops = self.rules if chosen is None else chosen
        needless = without.choice == self.session.answer
        if needless or (drops and without.choice != CANNOT):
            needless = (await self.session.settle(rest, see, without, doubted=True)).right
        self.metrics["sight_needed"] = float(not needless)
        return Found(UNNEEDED, "the evidence is not needed") if needless and drops else None

    async def _find_fewest(self) -> Found | None:
        """Search the fewest frames that suffice, over the video and over the evidence."""
        session, whole, see = self.session, self.whole, self.settings.see
        spread = await fewest(session, whole, [spread_rungs(whole, session.extent)])
        if spread.plan is not None:
            frames = len(spread.plan.times)
            self.metrics["min_frames"] = float(frames)
            if frames <= MRFS_FRAMES:
                self.metrics["mrfs16"] = float(frames)
        rungs = spread_rungs(see, session.extent, self.question.evidence)
        needed = await fewest(session, see, [rungs])
        if needed.plan is None:
            return None
        if needed.plan.times:
            needed = await trim_frames(session, see, needed.plan)
        self.metrics["min_seconds"] = needed.seconds
        if needed.seconds >= self.settings.drop_below_seconds:
            return None
        return Found(UNNEEDED, f"{needed.seconds:.1f} s of video are enough")


def _find_fault(votes: Votes) -> Found:
    """Return what is wrong with a question whose answer is not what was chosen."""
    if votes.ambiguous:
        return Found(AMBIGUOUS, SEVERAL_FIT)
    if votes.chosen == PREMISE:
        return Found(UNTRUE, f"the premise does not hold: {votes.words}")
    if votes.chosen == NO_OPTION:
        return Found(DISPUTED, "answer disputed: every option is wrong")
    if isinstance(votes.chosen, int):
        return Found(DISPUTED, f"answer disputed: {votes.words!r} is chosen")
    hits = sum(look.choice == votes.answer for look in votes.looks)
    return Found(
        UNTOLD, f"cannot be told: right in {hits} of {votes.read} looks at the whole video"
    )
