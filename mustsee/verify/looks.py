"""Looks: one question under the eyes of a model that sees, and what the votes come to.

Each look has the options in an order of its own; looks at one set of pictures end when the vote is
decided, and equal pictures are never asked about twice. A reply that cannot be read is no vote:
another look takes its place.
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
    stretch,
)
from mustsee.verify.conditions.watch import plan_for_model
from mustsee.verify.look_replies import CANNOT, SEVERAL, Choice, ParsedLook, look_form
from mustsee.verify.vetting import VettingContext

NAME = "sight"
PROMPT, OPEN = "filters/sight", "filters/sight_open"
UNPARSED_LOOKS_COUNT = "looks that could not be read"  # how run.json counts them
Material = tuple[Sequence[bytes], Sequence[VideoClip]]  # pictures, or clips in place of them


@dataclass(frozen=True, kw_only=True)
class LookReply:
    """One reply: the option chosen (its place in the question), "cannot", "several", or null where
    it could not be read; the spans that it names; the answer's text; its verdict. Of a question
    without options the answer is 0, any other 1.
    """

    choice: Choice | None
    spans: tuple[Span, ...]
    words: str = ""
    verdict: Verdict


@dataclass(frozen=True, kw_only=True)
class VoteRule:
    """How a vote is taken: the answer needs `min_right` of `runs` looks, anything else more than
    half of them. Where neither has it, or replies could not be read, it goes on to twice as many
    looks, of which the same shares are needed.
    """

    runs: int
    min_right: int

    def choose(self, looks: Sequence[LookReply], answer: int) -> Choice | None:
        """What the looks so far come to; null where that is open."""
        counts = Counter[Choice](x.choice for x in looks if x.choice is not None)
        read = counts.total()
        if self._right(counts.pop(answer, 0), read):
            return answer
        return next((choice for choice, n in counts.items() if self._other(n, read)), None)

    def wave(self, looks: Sequence[LookReply], answer: int) -> int:
        """The fewest further looks that could decide; 0 when it is decided or none could."""
        counts = Counter[Choice](x.choice for x in looks if x.choice is not None)
        read, right = counts.total(), counts.pop(answer, 0)
        other = max(counts.values(), default=0)
        further = range(2 * self.runs - len(looks) + 1)
        decided = (
            k
            for k in further
            if self._right(right + k, read + k) or self._other(other + k, read + k)
        )
        return next(decided, 0)

    def _right(self, votes: int, read: int) -> bool:
        return votes >= self.min_right and votes * self.runs >= self.min_right * read

    def _other(self, votes: int, read: int) -> bool:
        return 2 * votes > max(self.runs, read)


@dataclass(frozen=True, kw_only=True)
class Votes:
    """The looks at what a plan shows."""

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
        """The wrong option that the vote comes to, if it does."""
        return self.chosen if isinstance(self.chosen, int) and not self.right else None

    @property
    def words(self) -> str:
        """The answer that was chosen, in words."""
        return next((x.words for x in self.looks if x.choice == self.chosen), "")

    @property
    def read(self) -> int:
        return sum(look.choice is not None for look in self.looks)

    @property
    def share(self) -> float:
        """Of the looks that could be read, those that were right."""
        return self.hits / self.read if self.read else 0.0

    @property
    def hits(self) -> int:
        return sum(look.choice == self.answer for look in self.looks)

    @property
    def named_spans(self) -> tuple[Span, ...]:
        """The stretches named by the first of the looks that chose what was chosen."""
        return next((x.spans for x in self.looks if x.choice == self.chosen and x.spans), ())

    @property
    def gap(self) -> float:
        """Seconds from picture to picture; none in a video that is watched."""
        if self.plan.clips:
            return 0.0
        seconds = sum(span.seconds for span in self.plan.spans)
        return seconds / len(self.plan.times) if self.plan.times else seconds


class VerifierSession:
    """One question, its video, and the model that looks: what was asked and said is recorded.

    `name`: of the filter that the verdicts are given to.
    """

    def __init__(
        self,
        question: Question,
        video: Video,
        vetting: VettingContext,
        poll: VoteRule,
        name: str = NAME,
    ) -> None:
        self.question, self.video, self.poll, self.name = question, video, poll, name
        self.asker, self.seed = vetting.askers["verifier"], vetting.seed
        self.judge, self.count = vetting.judge, vetting.count
        self.extent = stretch(video)
        self.pictures = vetting.video_frames.pictures
        self.answer = question.answer_index or 0
        self.verdicts: list[Verdict] = []
        self._asked: dict[object, Votes] = {}
        self._looks: dict[object, LookReply] = {}

    async def votes(
        self,
        see: Condition,
        evidence: Sequence[Span] = (),
        condition: ConditionName | None = None,
        expected: Choice | None = None,
        cuts: Sequence[Span] = (),
    ) -> Votes | None:
        """The looks at a condition (`see`'s own unless another is given); null where it leaves
        nothing to show. Where the first look chooses what is `expected`, it is the only one.
        `cuts`: of which no line is shown, besides those that the condition makes.
        """
        see = replace(see, condition=condition or see.condition)
        planned = plan(see, self.extent, evidence, seed=f"{self.seed}/{self.question.question_id}")
        if planned is None:
            return None
        planned = replace(planned, cuts=planned.cuts or tuple(cuts))
        key = self._key(planned, see)
        if key not in self._asked:
            planned, clips = await to_thread(
                plan_for_model, self.asker.watch, self.video, planned, see
            )
            images = await self.pictures(planned.times, see)
            self._asked[key] = await self._polled(planned, (images, clips), see, expected)
        return self._asked[key]

    async def nearer_votes(
        self, far: Votes, see: Condition, expected: Choice | None = None
    ) -> Votes | None:
        """The looks at the stretches named in `far`, and at what lies between them and the next
        pictures that were shown; null where none were named.
        """
        wide = [Span(s.start - far.gap, s.end + far.gap) for s in far.named_spans]
        around = common(merge_spans(wide, self.extent), far.plan.spans)
        if not around:
            return None
        return await self.votes(see, around, "evidence", expected, far.plan.cuts)

    async def _polled(
        self, planned: FramePlan, given: Material, see: Condition, expected: Choice | None
    ) -> Votes:
        looks: list[LookReply] = []
        wave, chosen = 1, None
        if expected is None:
            wave = self.poll.wave(looks, self.answer)
        while wave:
            numbers = range(len(looks), len(looks) + wave)
            looks += await gather(*(self.look(planned, given, see, n) for n in numbers))
            if expected is not None and looks[0].choice == expected:
                chosen = expected
                break
            chosen = self.poll.choose(looks, self.answer)
            wave = 0 if chosen is not None else self.poll.wave(looks, self.answer)
        self.record(looks)
        return Votes(looks=tuple(looks), answer=self.answer, chosen=chosen, plan=planned)

    def record(self, looks: Sequence[LookReply]) -> None:
        """Each look's verdict is kept once."""
        self.verdicts += [x.verdict for x in looks if x.verdict not in self.verdicts]

    async def look(
        self, planned: FramePlan, given: Material, see: Condition, number: int
    ) -> LookReply:
        """The look of a number, which turns the options."""
        key = (self._key(planned, see), number)
        if key not in self._looks:
            self._looks[key] = await self._new(planned, given, see, number)
        return self._looks[key]

    def _key(self, planned: FramePlan, see: Condition) -> object:
        """What is shown: other spans of the same pictures and lines are nothing new."""
        return planned.clips, planned.times or planned.spans, self._lines(planned, see)

    def _lines(self, planned: FramePlan, see: Condition) -> tuple[Line, ...]:
        return (
            lines_within(self.video.lines or (), planned.spans, planned.cuts) if see.listens else ()
        )

    async def _new(
        self, planned: FramePlan, given: Material, see: Condition, number: int
    ) -> LookReply:
        question, count = self.question, len(self.question.options)
        turned = order(count, self.seed + number)
        lines = self._lines(planned, see)
        shorter = nearest(lines, " ".join((question.question, *question.options)), see.words)
        prompt = PROMPT if count else OPEN
        replies: list[str] = []

        wanted = look_form(count)

        def read(reply: str) -> ParsedLook:
            replies.append(in_lines(reply))
            return wanted.read(reply)

        told = {
            "condition": see.condition,
            "frames": [round(t, 2) for t in planned.times],
            **({"clips": [[s.start, s.end] for s in planned.clips]} if planned.clips else {}),
            "order": "".join(LETTERS[i] for i in turned),
        }
        verdict = Verdict(
            filter=self.name,
            model=self.asker.llm.identity,
            seed=self.seed + number,
            prompt=self.asker.prompts.digest(prompt),
        )
        try:
            found = await self.asker.ask(
                prompt,
                Form(wanted.schema, read),
                seed=self.seed + number,
                images=given[0],
                clips=given[1],
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
            choice = await self._choice(found, turned)
        except BadRow as error:
            self.count(UNPARSED_LOOKS_COUNT, 1)
            detail = json.dumps({**told, "unread": str(error), "replies": replies})
            return LookReply(choice=None, spans=(), verdict=replace(verdict, detail=detail))
        words, chose = found.words, choice
        if isinstance(choice, int):
            words = question.options[choice] if count else found.words
            chose = LETTERS[choice] if count else ("right", "another")[choice]
        verdict = replace(
            verdict,
            reply=replies[-1],
            correct=choice == self.answer,
            detail=json.dumps({**told, "chose": chose}),
        )
        spans = found.where if choice == CANNOT else found.evidence
        return LookReply(choice=choice, spans=spans, words=words, verdict=verdict)

    async def _choice(self, found: ParsedLook, turned: Sequence[int]) -> Choice:
        """What was chosen; of an answer in words, whether it is as good as the known one. Raises
        BadRow where the judge cannot say.
        """
        if not isinstance(found.choice, int):
            return found.choice
        if turned:
            return turned[found.choice]
        assert self.judge is not None
        right = await self.judge(self.question.question, found.words, self.question.references)
        if right is None:
            raise BadRow(f"the judge cannot tell whether {found.words!r} is right")
        return self.answer if right else 1
