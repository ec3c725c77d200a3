"""Looks: calls of the verifier about one question, and their votes.

Each look has its own order of the options. Looks at a set of frames end when the vote is decided,
and the same frames are never asked about twice. An unparseable reply is not a vote; another look
replaces it.
"""

from __future__ import annotations

import json
from asyncio import gather, to_thread
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from mustsee.calls.llm import VideoClip
from mustsee.errors import BadRow
from mustsee.records import Line, Question, Span, Verdict, Video
from mustsee.replies.forms import Form, in_lines
from mustsee.text import LETTERS
from mustsee.verify.conditions.lines import nearest
from mustsee.verify.conditions.options import order, rotated_options
from mustsee.verify.conditions.seen import (
    Condition,
    ConditionName,
    FramePlan,
    common,
    lines_within,
    merge_spans,
    plan,
    video_span,
)
from mustsee.verify.conditions.watch import plan_for_model
from mustsee.verify.look_replies import CANNOT, SEVERAL, Choice, ParsedLook, look_form
from mustsee.verify.vetting import VettingContext

NAME = "sight"
PROMPT, OPEN = "filters/sight", "filters/sight_open"
UNPARSED_LOOKS_COUNT = "looks that could not be read"  # name of their count in run.json
Material = tuple[Sequence[bytes], Sequence[VideoClip]]  # frames (JPEG), or clips in place of them


@dataclass(frozen=True, kw_only=True)
class LookReply:
    """One reply of the verifier.

    `choice`: index of the option in the question, "cannot", "several", or None if the reply was
    unparseable. In a question without options 0 is the right answer and 1 any other. `spans`: named
    in the reply. `words`: the answer's text.
    """

    choice: Choice | None
    spans: tuple[Span, ...]
    words: str = ""
    verdict: Verdict


@dataclass(frozen=True, kw_only=True)
class VoteRule:
    """The rule of a vote.

    The answer wins with `min_right` of `runs` looks, any other choice with more than half of them.
    If neither wins, or replies are unparseable, looks go on up to twice `runs`, and the same shares
    win.
    """

    runs: int
    min_right: int

    def choose(self, looks: Sequence[LookReply], answer: int) -> Choice | None:
        """Return the winner after these looks, or None while there is none."""
        counts = Counter[Choice](x.choice for x in looks if x.choice is not None)
        read = counts.total()
        if self._answer_wins(counts.pop(answer, 0), read):
            return answer
        return next((choice for choice, n in counts.items() if self._other_wins(n, read)), None)

    def wave(self, looks: Sequence[LookReply], answer: int) -> int:
        """Return the fewest further looks that could decide; 0 if decided, or if none could."""
        counts = Counter[Choice](x.choice for x in looks if x.choice is not None)
        read, right = counts.total(), counts.pop(answer, 0)
        other = max(counts.values(), default=0)
        further = range(2 * self.runs - len(looks) + 1)
        decided = (
            k
            for k in further
            if self._answer_wins(right + k, read + k) or self._other_wins(other + k, read + k)
        )
        return next(decided, 0)

    def _answer_wins(self, votes: int, read: int) -> bool:
        return votes >= self.min_right and votes * self.runs >= self.min_right * read

    def _other_wins(self, votes: int, read: int) -> bool:
        return 2 * votes > max(self.runs, read)


@dataclass(frozen=True, kw_only=True)
class Votes:
    """The looks at one plan, and the winner of their vote (`chosen`; None if undecided)."""

    looks: tuple[LookReply, ...]
    answer: int
    chosen: Choice | None
    plan: FramePlan

    @property
    def right(self) -> bool:
        return self.chosen == self.answer

    @property
    def ambiguous(self) -> bool:
        return self.chosen == SEVERAL

    @property
    def wrong_option(self) -> int | None:
        """The winner, if it is a wrong option."""
        return self.chosen if isinstance(self.chosen, int) and not self.right else None

    @property
    def words(self) -> str:
        """The winner's text."""
        return next((x.words for x in self.looks if x.choice == self.chosen), "")

    @property
    def read(self) -> int:
        """The number of looks whose reply was parsed."""
        return sum(look.choice is not None for look in self.looks)

    @property
    def share(self) -> float:
        """The share of right looks among those whose reply was parsed."""
        return self.hits / self.read if self.read else 0.0

    @property
    def hits(self) -> int:
        return sum(look.choice == self.answer for look in self.looks)

    @property
    def named_spans(self) -> tuple[Span, ...]:
        """The spans named by the first look that chose the winner."""
        return next((x.spans for x in self.looks if x.choice == self.chosen and x.spans), ())

    @property
    def gap(self) -> float:
        """Seconds between frames; 0 for clips."""
        if self.plan.clips:
            return 0.0
        seconds = sum(span.seconds for span in self.plan.spans)
        return seconds / len(self.plan.times) if self.plan.times else seconds


class VerifierSession:
    """The looks of the verifier at one question's video, each recorded as a verdict of the filter
    `name`.
    """

    def __init__(
        self,
        question: Question,
        video: Video,
        vetting: VettingContext,
        rule: VoteRule,
        name: str = NAME,
    ) -> None:
        self.question, self.video, self.rule, self.name = question, video, rule, name
        self.asker, self.seed = vetting.askers["verifier"], vetting.seed
        self.judge, self.count = vetting.judge, vetting.count
        self.extent = video_span(video)
        self.jpegs = vetting.video_frames.jpegs
        self.answer = question.answer_index or 0
        self.verdicts: list[Verdict] = []
        self._votes: dict[object, Votes] = {}
        self._looks: dict[object, LookReply] = {}

    async def votes(
        self,
        see: Condition,
        evidence: Sequence[Span] = (),
        condition: ConditionName | None = None,
        expected: Choice | None = None,
        cuts: Sequence[Span] = (),
    ) -> Votes | None:
        """Vote on what a condition shows; None if it shows nothing.

        `condition`: in place of `see`'s own. `expected`: the choice that decides the vote if the
        first look makes it. `cuts`: spans of which no transcript line is shown, in addition to the
        condition's.
        """
        see = replace(see, condition=condition or see.condition)
        planned = plan(see, self.extent, evidence, seed=f"{self.seed}/{self.question.question_id}")
        if planned is None:
            return None
        planned = replace(planned, cuts=planned.cuts or tuple(cuts))
        key = self._key(planned, see)
        if key not in self._votes:
            planned, clips = await to_thread(
                plan_for_model, self.asker.watch, self.video, planned, see
            )
            images = await self.jpegs(planned.times, see)
            self._votes[key] = await self._vote(planned, (images, clips), see, expected)
        return self._votes[key]

    async def nearer_votes(
        self, far: Votes, see: Condition, expected: Choice | None = None
    ) -> Votes | None:
        """Vote on the spans named in `far`, extended to the next frames that were shown; None if no
        span was named.
        """
        wide = [Span(s.start - far.gap, s.end + far.gap) for s in far.named_spans]
        around = common(merge_spans(wide, self.extent), far.plan.spans)
        if not around:
            return None
        return await self.votes(see, around, "evidence", expected, far.plan.cuts)

    async def _vote(
        self, planned: FramePlan, material: Material, see: Condition, expected: Choice | None
    ) -> Votes:
        looks: list[LookReply] = []
        wave, chosen = 1, None
        if expected is None:
            wave = self.rule.wave(looks, self.answer)
        while wave:
            numbers = range(len(looks), len(looks) + wave)
            looks += await gather(*(self.look(planned, material, see, n) for n in numbers))
            if expected is not None and looks[0].choice == expected:
                chosen = expected
                break
            chosen = self.rule.choose(looks, self.answer)
            wave = 0 if chosen is not None else self.rule.wave(looks, self.answer)
        self.record(looks)
        return Votes(looks=tuple(looks), answer=self.answer, chosen=chosen, plan=planned)

    def record(self, looks: Sequence[LookReply]) -> None:
        """Add the looks' verdicts, each once."""
        self.verdicts += [x.verdict for x in looks if x.verdict not in self.verdicts]

    async def look(
        self, planned: FramePlan, material: Material, see: Condition, number: int
    ) -> LookReply:
        """Return look number `number`, by which the options are rotated."""
        key = (self._key(planned, see), number)
        if key not in self._looks:
            self._looks[key] = await self._ask(planned, material, see, number)
        return self._looks[key]

    def _key(self, planned: FramePlan, see: Condition) -> object:
        """Identify what is shown: plans with the same frames and lines are equal."""
        return planned.clips, planned.times or planned.spans, self._lines(planned, see)

    def _lines(self, planned: FramePlan, see: Condition) -> tuple[Line, ...]:
        return (
            lines_within(self.video.lines or (), planned.spans, planned.cuts) if see.listens else ()
        )

    async def _ask(
        self, planned: FramePlan, material: Material, see: Condition, number: int
    ) -> LookReply:
        question, count = self.question, len(self.question.options)
        shown_order = order(count, self.seed + number)
        lines = self._lines(planned, see)
        shorter = nearest(lines, " ".join((question.question, *question.options)), see.words)
        prompt = PROMPT if count else OPEN
        replies: list[str] = []

        reply_form = look_form(count)

        def read(reply: str) -> ParsedLook:
            replies.append(in_lines(reply))
            return reply_form.read(reply)

        detail = {
            "condition": see.condition,
            "frames": [round(t, 2) for t in planned.times],
            **({"clips": [[s.start, s.end] for s in planned.clips]} if planned.clips else {}),
            "order": "".join(LETTERS[i] for i in shown_order),
        }
        verdict = Verdict(
            filter=self.name,
            model=self.asker.llm.identity,
            seed=self.seed + number,
            prompt=self.asker.prompts.digest(prompt),
        )
        try:
            parsed = await self.asker.ask(
                prompt,
                Form(reply_form.schema, read),
                seed=self.seed + number,
                images=material[0],
                clips=material[1],
                question=question.question,
                options=rotated_options(question, self.seed + number),
                video=self.extent,
                spans=planned.spans,
                cuts=planned.cuts,
                whole=see.condition != "evidence",
                frames=planned.times,
                watched=planned.clips,
                lines=shorter,
                listens=see.listens and self.video.lines is not None,
                shortened=len(shorter) < len(lines),
            )
            choice = await self._choice(parsed, shown_order)
        except BadRow as error:
            self.count(UNPARSED_LOOKS_COUNT, 1)
            failure = json.dumps({**detail, "unread": str(error), "replies": replies})
            return LookReply(choice=None, spans=(), verdict=replace(verdict, detail=failure))
        words, chose = parsed.words, choice
        if isinstance(choice, int):
            words = question.options[choice] if count else parsed.words
            chose = LETTERS[choice] if count else ("right", "another")[choice]
        verdict = replace(
            verdict,
            reply=replies[-1],
            correct=choice == self.answer,
            detail=json.dumps({**detail, "chose": chose}),
        )
        spans = parsed.where if choice == CANNOT else parsed.evidence
        return LookReply(choice=choice, spans=spans, words=words, verdict=verdict)

    async def _choice(self, parsed: ParsedLook, shown_order: Sequence[int]) -> Choice:
        """Return the choice of a `LookReply`. Raises BadRow if the judge cannot grade an answer in
        words.
        """
        if not isinstance(parsed.choice, int):
            return parsed.choice
        if shown_order:
            return shown_order[parsed.choice]
        assert self.judge is not None
        right = await self.judge(self.question.question, parsed.words, self.question.references)
        if right is None:
            raise BadRow(f"the judge did not decide whether {parsed.words!r} is right")
        return self.answer if right else 1
