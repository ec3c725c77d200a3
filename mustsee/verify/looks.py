"""Looks: one question under the eyes of a model that sees, and what the votes come to.

Each look has the options in an order of its own; looks at one set of pictures end when the vote is
decided, and equal pictures are never asked about twice. A reply that cannot be read is no vote:
another look takes its place.
"""

from __future__ import annotations

import json
import re
from asyncio import gather, to_thread
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from mustsee.calls.llm import VideoClip
from mustsee.errors import BadRow, Unparsed
from mustsee.questions.drafts import spans
from mustsee.questions.replies import stretches
from mustsee.records import Line, Question, Span, Verdict, Video
from mustsee.replies.forms import Form, form, in_lines, one_of, record, words
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
from mustsee.verify.vetting import VettingContext

NAME = "sight"
PROMPT, OPEN = "filters/sight", "filters/sight_open"
UNPARSED_LOOKS_COUNT = "looks that could not be read"  # how run.json counts them
CANNOT: Final = "cannot"
SEVERAL: Final = "several"
Choice = int | Literal["cannot", "several"]
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
        """Seconds from picture to picture; none in a film that is watched."""
        if self.plan.clips:
            return 0.0
        seconds = sum(span.seconds for span in self.plan.spans)
        return seconds / len(self.plan.times) if self.plan.times else seconds


class VerifierSession:
    """One question, its film, and the model that looks: what was asked and said is recorded.

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
        self.film = stretch(video)
        self.pictures = vetting.film.pictures
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
        planned = plan(see, self.film, evidence, seed=f"{self.seed}/{self.question.question_id}")
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
        around = common(merge_spans(wide, self.film), far.plan.spans)
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
                film=self.film,
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


@dataclass(frozen=True, kw_only=True)
class ParsedLook:
    """What a reply says: the place of its option as shown (0 for an answer in words), "cannot" or
    "several"; the stretches that show it, and those where one would have to look.
    """

    choice: Choice
    words: str = ""
    evidence: tuple[Span, ...]
    where: tuple[Span, ...]


def _line(name: str) -> re.Pattern[str]:
    form = rf"^[\s*_#>-]*(?:final\s+)?{name}[\s*_]*[:：=][\s*_]*(.*)$"
    return re.compile(form, re.IGNORECASE | re.MULTILINE)


_ANSWER, _EVIDENCE, _LOOK = _line("answer"), _line("evidence"), _line(r"look(?:\s+at)?")
_LETTER = re.compile(r"[\[(\"'*_\s]*(?:option\s+)?([A-Z])\b(?!['’])", re.IGNORECASE)
_CANNOT = re.compile(r"(?:it\s+)?(?:cannot|can't|can not) be told\b", re.IGNORECASE)
_SEVERAL = re.compile(r"several\W*$", re.IGNORECASE)


def look_form(count: int) -> Form[ParsedLook]:
    """A reply to a question of `count` options, or of none. Unparsed where it has no answer,
    several, or does not name the stretches that its answer rests on.
    """
    said = "the answer, SEVERAL, or CANNOT BE TOLD"
    letters = LETTERS[: count + 2]

    def make_look(
        seen: str, evidence: tuple[Span, ...], look: tuple[Span, ...], answer: str
    ) -> ParsedLook:
        choice = _lettered(answer, count) if count else _written(answer)
        return ParsedLook(
            choice=choice, words="" if count else answer, evidence=evidence, where=look
        )

    shape = record(
        make_look,
        seen=words("what decides it, and when; or what is missing"),
        evidence=stretches("the stretches that show the answer, in seconds; none where none do"),
        look=stretches("where it cannot be told, the stretches where one would have to look"),
        answer=one_of(letters, "one letter") if count else words(said),
    )
    return form(text=lambda reply: _read(reply, count), shape=shape)


def _read(reply: str, count: int) -> ParsedLook:
    answers = list(dict.fromkeys(a.strip(" *_") for a in _ANSWER.findall(reply)))
    choices: list[Choice] = [_lettered(a, count) if count else _written(a) for a in answers]
    if len(set(choices)) != 1:
        found = "several answers" if choices else "no line of the form '* ANSWER: ...'"
        raise Unparsed(f"it has {found}")
    choice = choices[0]
    return ParsedLook(
        choice=choice,
        words="" if count else answers[0],
        evidence=_named(reply, "EVIDENCE", _EVIDENCE, needed=choice != CANNOT),
        where=_named(reply, "LOOK", _LOOK, needed=choice == CANNOT),
    )


def _lettered(answer: str, count: int) -> Choice:
    match = _LETTER.match(answer)
    place = LETTERS.index(match[1].upper()) if match else len(LETTERS)
    if place > count + 1:
        raise Unparsed(f"its letter is none of A to {LETTERS[count + 1]}")
    return place if place < count else CANNOT if place == count else SEVERAL


def _written(answer: str) -> Choice:
    if not answer:
        raise Unparsed("its answer is empty")
    return CANNOT if _CANNOT.match(answer) else SEVERAL if _SEVERAL.match(answer) else 0


def _named(reply: str, name: str, line: re.Pattern[str], *, needed: bool) -> tuple[Span, ...]:
    told = " ".join(line.findall(reply)).strip()
    found = spans(told)
    if needed and not found and not re.match(r"[\W_]*none\b", told, re.IGNORECASE):
        raise Unparsed(f"it has no line '* {name}: ...' with stretches in seconds, or NONE")
    return found


def named_in(reply: str) -> tuple[Span, ...]:
    """The spans that a reply in lines names, as evidence or to be looked at."""
    return spans(" ".join((*_EVIDENCE.findall(reply), *_LOOK.findall(reply))))
