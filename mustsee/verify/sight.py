"""Sight: a model that looks must find the answer in the evidence, one answer, and no other.

The verifier is shown the evidence, frame by frame with the lines said there, and chooses among the
options and two more: "cannot be told from this", "more than one fits". What it finds there decides.
Where it does not find the answer, it is shown pictures of the whole video and names its own
evidence, which it then sees from nearer: pictures half a second apart, around what it named. Of a
long video it is shown other moments until it finds something, or they stand about a shot apart.

| on the evidence | on the whole video | then |
| --- | --- | --- |
| right | | the question stays |
| "more than one fits" | or here | ambiguous: dropped |
| not right | right | its own spans are checked; if they hold, they replace the old ones |
| not right | another option | the answer is disputed: dropped |
| another option | nothing is told | the answer is disputed: dropped |
| not right | nothing is told | it cannot be told: dropped |

Evidence that was never named is the whole video, and the verifier's own takes its place.

What stays is asked about once more without its evidence, and without all of the shots that it lies
in, with every line that is spoken there. Where another option is found there, both
places are shown together: an answer that is one of two shows only so. Where it is right there too,
the evidence is not needed; where it is not, but with cuts of equal length elsewhere it is (the
control), the evidence is needed.

A question without options is answered in words, from the same pictures; the judge says whether
that is the known answer, or another one.

A question whose video is not there, or of which too few looks can be read to tell, is unverified:
neither dropped nor passed nor mended, `metrics.sight_unverified` is 1, and it stays out of the
subset. The same of a question without options where there is no judge, or where raters grade its
answers by points.

Published pipelines filter by what cannot be guessed; that a question can be answered by looking was
left to raters, who threw 70 % away (EgoSchema, 3.1; Neptune, C.3).
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
NOT_LOOKED_AT = "questions not looked at"  # how run.json counts those of a verifier without eyes
SPARSE_GAP_S = 4.0  # seconds from picture to picture: about a shot; beyond, something may be missed
# of the stretch between two pictures, shown one after another
LOOK_OFFSETS = (0.5, 0.0, 0.25, 0.75)
MAX_NEARER_LOOKS = 2  # looks from nearer at most, each at the pictures between those before


@dataclass(frozen=True, kw_only=True)
class Sight:
    """`min_right` of `runs` looks at the evidence must be right; each look has the options in an
    order of its own, and looks end when the vote is decided. `see`: how the evidence is shown;
    `whole`: how the video is; `near`: how what the verifier names there is. `needed`: whether the
    video without the evidence, and without other cuts, is asked about: recorded, and dropped on
    where `drop_unneeded` (null: where rules look, whose questions are many and cheap). `fewest`:
    the fewest pictures of the video and of the evidence that suffice are sought (`min_frames`,
    `min_seconds`, some thirty looks a question); what needs less than `drop_below_seconds` of video
    is dropped.
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
            raise UserError(f"vet: sight.min_right={self.min_right!r}: from 1 to runs={self.runs}")
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
        """The question as the verifier leaves it."""
        if question.options and question.answer_index is None:
            return question
        poll = VoteRule(runs=self.runs, min_right=self.min_right)
        try:
            if not question.options and not judgeable(question, vetting):
                raise BadRow("no judge can compare answers with this one")
            return await _Sighting(
                self, VerifierSession(question, video, vetting, poll)
            ).judge_question()
        except BadRow as error:  # no video, of unknown length, or it cannot be decoded; no judge
            verifier = vetting.askers["verifier"].llm.identity
            detail = json.dumps({"unread": str(error)})
            why = Verdict(filter=NAME, model=verifier, seed=vetting.seed, detail=detail)
            return mark_unverified(replace(question, verdicts=(*question.verdicts, why)), NAME)


class _Sighting:
    """What the looks at one question come to."""

    def __init__(self, settings: Sight, session: VerifierSession) -> None:
        self.settings, self.session = settings, session
        self.question = session.question
        self.metrics: dict[str, float] = {}

    async def judge_question(self) -> Question:
        reason = await self._fault()
        told = replace(
            self.question,
            verdicts=(*self.question.verdicts, *self.session.verdicts),
            metrics={**self.question.metrics, **self.metrics},
        )
        if reason == TOO_FEW_LOOKS:
            return mark_unverified(told, NAME)
        return replace(
            told,
            metrics={**told.metrics, "sight_passed": float(reason is None)},
            drop=told.drop or (reason and f"sight: {reason}"),
        )

    def _unread(self, found: Votes | None) -> bool:
        """Whether a vote is open for want of looks that could be read."""
        return found is None or (found.chosen is None and found.read < self.settings.runs)

    async def _fault(self) -> str | None:
        found = await self._on(self.question.evidence)
        if found is None or self._unread(found):
            return TOO_FEW_LOOKS
        if found.ambiguous:
            return AMBIGUOUS
        fallen = None
        if not found.right:
            fallen = await self._on_the_whole(found)
        elif not self.question.evidence:
            fallen = await self._repaired(found)
        if fallen is None and self.settings.needed:
            fallen = await self._necessity()
        return await self._fewest() if fallen is None and self.settings.fewest else fallen

    async def _on(self, evidence: Sequence[Span]) -> Votes | None:
        found = await self.session.votes(self.settings.see, evidence)
        if found is not None:
            self.metrics["sight_right"] = found.share
            self.metrics["sight_frames"] = float(len(found.plan.times))
        return found

    async def _on_the_whole(self, found: Votes) -> str | None:
        """Why the question falls after a look at the whole video; null: its evidence is mended."""
        whole = await self._search("whole", expected=found.wrong_option)
        if whole is None or self._unread(whole):
            return TOO_FEW_LOOKS
        if whole.ambiguous:
            return AMBIGUOUS
        if whole.right:
            return await self._repaired(whole)
        other = whole if whole.wrong_option is not None else found
        if other.wrong_option is not None:
            return f"answer disputed: {other.words!r} is chosen"
        return f"cannot be told: right in {whole.hits} of {whole.read} looks at the whole video"

    async def _search(
        self, condition: ConditionName, cuts: Sequence[Span] = (), expected: Choice | None = None
    ) -> Votes | None:
        """The looks at the video; where its pictures stand too far apart to tell, but lines or
        pictures show where to look, those at what lies there. Where nothing does, pictures of the
        moments between are shown.
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

    async def _repaired(self, seen: Votes) -> str | None:
        """The verifier's own spans take the place of those named before, if they hold."""
        for _ in range(MAX_NEARER_LOOKS):
            if seen.gap <= BORDER_TOLERANCE_S:
                break
            nearer = await self.session.nearer_votes(seen, self.settings.near, self.session.answer)
            if nearer is None or not nearer.right or not nearer.named_spans:
                break
            seen = nearer
        named = merge_spans(seen.named_spans, self.session.extent)
        again = await self._on(named) if named else None
        if again is not None and self._unread(again):
            return TOO_FEW_LOOKS
        if again is not None and again.ambiguous:
            return AMBIGUOUS
        if again is None or not again.right:
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

    async def _necessity(self) -> str | None:
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

    async def _fewest(self) -> str | None:
        """Two counts: pictures spread over the video, and over the evidence."""
        session, whole, see = self.session, self.settings.whole, self.settings.see
        spread = await fewest(session, whole, [spread_rungs(whole, session.extent)])
        if spread.shown is not None:
            self.metrics["min_frames"] = float(len(spread.shown.times))
        rungs = spread_rungs(see, session.extent, self.question.evidence)
        needed = await fewest(session, see, [rungs])
        if needed.shown is None:
            return None
        if needed.shown.times:
            needed = await trim_frames(session, see, needed.shown)
        self.metrics["min_seconds"] = needed.seconds
        if needed.seconds >= self.settings.drop_below_seconds:
            return None
        return f"{needed.seconds:.1f} s of video are enough"
