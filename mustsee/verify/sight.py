"""Sight: a vision model, the verifier, must find exactly one right answer in the evidence.

The verifier is shown the frames and transcript lines of the evidence, and chooses among the options
and two more: "cannot be told from this", "more than one fits". If it does not find the answer, it
is shown frames of the whole video and names its own evidence, which it then sees at two frames
per second. Of a long video it is shown frames at further times until it finds the answer, or
until the gaps between frames are about as long as a shot.

| on the evidence | on the whole video | result |
| --- | --- | --- |
| right | | kept |
| "more than one fits" | or here | dropped: ambiguous |
| not right | right | its spans replace the evidence, if it is right on them |
| not right | another option | dropped: disputed |
| another option | "cannot be told" | dropped: disputed |
| not right | "cannot be told" | dropped: undecidable |

A question without evidence has the whole video as its evidence; the verifier's spans replace it.

The verifier then gets each kept question without its evidence: without the shots that contain it,
and without the lines spoken there. If it finds another option there, it sees both places together,
because only then two fitting options show. If it is right there, the evidence is not needed. If it
is wrong there, but right with cuts of equal length elsewhere (the control), the evidence is needed.

A question without options is answered in words, from the same frames, and the judge compares the
answer with the reference.

A question is unverified if its video is missing, if too few replies are parseable to decide, or, in
a question without options, if no judge can grade it. It is neither dropped nor passed nor repaired,
`metrics.sight_unverified` is 1, and it stays out of the subset.

Published pipelines filter by what can be guessed, and leave the check that a question can be
answered from the video to raters, who rejected 70 % (EgoSchema, 3.1; Neptune, C.3).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from mustsee.calls.llm import is_rules
from mustsee.errors import BadRow, UserError
from mustsee.questions.drafts import reach
from mustsee.records import Question, Repair, Span, Verdict, Video
from mustsee.verify.conditions.seen import (
    BORDER_TOLERANCE_S,
    Condition,
    ConditionName,
    merge_spans,
    whole_shots,
)
from mustsee.verify.fewest import fewest, spread_rungs, trim_frames
from mustsee.verify.look_replies import CANNOT, Choice
from mustsee.verify.looks import NAME, OPEN, PROMPT, VerifierSession, VoteRule, Votes
from mustsee.verify.vetting import VettingContext, judgeable, mark_unverified

AMBIGUOUS = "more than one option fits"
TOO_FEW_LOOKS = "too few looks could be read"
NOT_LOOKED_AT = "questions not looked at"  # count in run.json of questions for a text-only verifier
SPARSE_GAP_S = 4.0  # seconds between frames, about a shot; larger gaps may miss something
LOOK_OFFSETS = (0.5, 0.0, 0.25, 0.75)  # shares of the gap between frames, tried in this order
MAX_NEARER_LOOKS = 2  # votes on denser frames, each between the frames before


@dataclass(frozen=True, kw_only=True)
class Sight:
    """The filter `sight`.

    `min_right` of `runs` looks at the evidence must be right. Each look has its own order of the
    options, and looks end when the vote is decided.
    `see`, `whole`, `near`: how the evidence, the whole video, and the spans that the verifier named
    are shown.
    `needed`: whether the video without the evidence, and without the control's cuts, is shown too.
    `drop_unneeded`: whether a question that does not need its evidence is dropped; null: only with
    rules as verifier, whose questions are many and cheap.
    `fewest`: whether the fewest frames of the video and of the evidence that suffice are searched
    (`min_frames`, `min_seconds`; some thirty looks a question).
    `drop_below_seconds`: a question that needs less video is dropped.
    """

    runs: int = 3
    min_right: int = 2
    see: Condition = field(
        default_factory=lambda: Condition(
            condition="evidence", fps=0.5, least=4, most=16, longest=768, transcript=True
        )
    )
    whole: Condition = field(default_factory=lambda: Condition(fps=0.5, most=64, transcript=True))
    near: Condition = field(
        default_factory=lambda: Condition(condition="evidence", fps=2.0, most=64, transcript=True)
    )
    needed: bool = True
    drop_unneeded: bool | None = None
    fewest: bool = False
    drop_below_seconds: float = 0.0

    def __post_init__(self) -> None:
        if not 1 <= self.min_right <= self.runs:
            raise UserError(
                f"vet: sight.min_right={self.min_right!r}: expected 1 to runs={self.runs}"
            )
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
        return ("digest", "start", "end", "lines", "shots")

    async def __call__(self, question: Question, video: Video, vetting: VettingContext) -> Question:
        """Return the question with the verifier's verdicts, and dropped if it does not pass."""
        if question.options and question.answer_index is None:
            return question
        rule = VoteRule(runs=self.runs, min_right=self.min_right)
        try:
            if not question.options and not judgeable(question, vetting):
                raise BadRow("no judge can compare answers with this one")
            return await _Sighting(
                self, VerifierSession(question, video, vetting, rule)
            ).judge_question()
        except BadRow as error:  # the video is missing, undecodable or of unknown length; no judge
            verifier = vetting.askers["verifier"].llm.identity
            detail = json.dumps({"unread": str(error)})
            failure = Verdict(filter=NAME, model=verifier, seed=vetting.seed, detail=detail)
            return mark_unverified(replace(question, verdicts=(*question.verdicts, failure)), NAME)


class _Sighting:
    """The verification of one question. Methods that return a text return a reason to drop it."""

    def __init__(self, settings: Sight, session: VerifierSession) -> None:
        self.settings, self.session = settings, session
        self.question = session.question
        self.metrics: dict[str, float] = {}

    async def judge_question(self) -> Question:
        reason = await self._fault()
        judged = replace(
            self.question,
            verdicts=(*self.question.verdicts, *self.session.verdicts),
            metrics={**self.question.metrics, **self.metrics},
        )
        if reason == TOO_FEW_LOOKS:
            return mark_unverified(judged, NAME)
        return replace(
            judged,
            metrics={**judged.metrics, "sight_passed": float(reason is None)},
            drop=judged.drop or (reason and f"sight: {reason}"),
        )

    def _undecided(self, votes: Votes | None) -> bool:
        """Whether a vote is undecided because too few replies were parseable."""
        return votes is None or (votes.chosen is None and votes.read < self.settings.runs)

    async def _fault(self) -> str | None:
        votes = await self._vote_on(self.question.evidence)
        if votes is None or self._undecided(votes):
            return TOO_FEW_LOOKS
        if votes.ambiguous:
            return AMBIGUOUS
        reason = None
        if not votes.right:
            reason = await self._check_whole_video(votes)
        elif not self.question.evidence:
            reason = await self._replace_evidence(votes)
        if reason is None and self.settings.needed:
            reason = await self._check_necessity()
        return await self._find_fewest() if reason is None and self.settings.fewest else reason

    async def _vote_on(self, evidence: Sequence[Span]) -> Votes | None:
        votes = await self.session.votes(self.settings.see, evidence)
        if votes is not None:
            self.metrics["sight_right"] = votes.share
            self.metrics["sight_frames"] = float(len(votes.plan.times))
        return votes

    async def _check_whole_video(self, on_evidence: Votes) -> str | None:
        """Vote on the whole video; if the answer is found there, replace the evidence."""
        whole = await self._search("whole", expected=on_evidence.wrong_option)
        if whole is None or self._undecided(whole):
            return TOO_FEW_LOOKS
        if whole.ambiguous:
            return AMBIGUOUS
        if whole.right:
            return await self._replace_evidence(whole)
        other = whole if whole.wrong_option is not None else on_evidence
        if other.wrong_option is not None:
            return f"answer disputed: {other.words!r} is chosen"
        return f"cannot be told: right in {whole.hits} of {whole.read} looks at the whole video"

    async def _search(
        self, condition: ConditionName, cuts: Sequence[Span] = (), expected: Choice | None = None
    ) -> Votes | None:
        """Vote on the video under a condition.

        If the frames are too sparse to decide, but the verifier names spans to look at, vote on
        denser frames of these. If it names none, vote on frames at the times between.
        """
        far = None
        for number, at in enumerate(LOOK_OFFSETS, 1):
            far = await self.session.votes(
                replace(self.settings.whole, at=at), cuts, condition, expected
            )
            if far is None or far.chosen != CANNOT:
                return far
            near = (
                await self.session.nearer_votes(far, self.settings.near)
                if far.gap > BORDER_TOLERANCE_S
                else None
            )
            if near is not None and near.chosen is not None:
                return near
            if far.gap <= SPARSE_GAP_S * number:
                break
            expected = CANNOT
        return far

    async def _replace_evidence(self, votes: Votes) -> str | None:
        """Replace the evidence with the verifier's spans, if it is right on these alone."""
        for _ in range(MAX_NEARER_LOOKS):
            if votes.gap <= BORDER_TOLERANCE_S:
                break
            nearer = await self.session.nearer_votes(votes, self.settings.near, self.session.answer)
            if nearer is None or not nearer.right or not nearer.named_spans:
                break
            votes = nearer
        named = merge_spans(votes.named_spans, self.session.extent)
        on_named = await self._vote_on(named) if named else None
        if on_named is not None and self._undecided(on_named):
            return TOO_FEW_LOOKS
        if on_named is not None and on_named.ambiguous:
            return AMBIGUOUS
        if on_named is None or not on_named.right:
            return "the evidence does not show the answer"
        repair = Repair(
            kind="evidence",
            reason="sight: right on the whole video, not on the evidence"
            if self.question.evidence
            else "sight: no evidence was named",
            by=self.session.asker.llm.identity,
            before=json.dumps([[s.start, s.end] for s in self.question.evidence]),
        )
        self.question = replace(
            self.question, evidence=named, repairs=(*self.question.repairs, repair)
        )
        if "reach_seconds" in self.question.metrics:
            self.metrics["reach_seconds"] = reach(named)
        return None

    async def _check_necessity(self) -> str | None:
        """Vote on the video without the evidence, and on the control."""
        evidence = self.question.evidence
        cuts = whole_shots(evidence, self.session.video.shots or (), self.session.extent)
        without = await self._search("without_evidence", cuts, expected=CANNOT)
        if without is None or not without.read:
            return None
        self.metrics["sight_without"] = without.share
        if without.ambiguous or without.wrong_option is not None:
            both = merge_spans((*evidence, *without.named_spans), self.session.extent)
            together = await self.session.votes(self.settings.see, both)
            if together is not None and together.ambiguous:
                return AMBIGUOUS
        if without.right:
            self.metrics["sight_needed"] = 0.0
            return "the evidence is not needed" if self._drops_unneeded else None
        control = await self._search("control", cuts, expected=self.session.answer)
        if control is not None and control.read:
            self.metrics["sight_control"] = control.share
            if control.right:
                self.metrics["sight_needed"] = 1.0
        return None

    @property
    def _drops_unneeded(self) -> bool:
        chosen = self.settings.drop_unneeded
        return is_rules(self.session.asker.llm.identity) if chosen is None else chosen

    async def _find_fewest(self) -> str | None:
        """Search the fewest frames that suffice, over the video and over the evidence."""
        session, whole, see = self.session, self.settings.whole, self.settings.see
        spread = await fewest(session, whole, [spread_rungs(whole, session.extent)])
        if spread.plan is not None:
            self.metrics["min_frames"] = float(len(spread.plan.times))
        rungs = spread_rungs(see, session.extent, self.question.evidence)
        needed = await fewest(session, see, [rungs])
        if needed.plan is None:
            return None
        if needed.plan.times:
            needed = await trim_frames(session, see, needed.plan)
        self.metrics["min_seconds"] = needed.seconds
        if needed.seconds >= self.settings.drop_below_seconds:
            return None
        return f"{needed.seconds:.1f} s of video are enough"
