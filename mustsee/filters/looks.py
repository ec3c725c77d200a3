"""Looks: one question under the eyes of a model that sees, and what the votes come to.

Each look has the options in an order of its own; looks at one set of pictures end when the vote is
decided, and equal pictures are never asked about twice. A reply that cannot be read is no vote:
another look takes its place.
"""

from __future__ import annotations

import json
import re
from asyncio import gather
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from mustsee.conditions.lines import nearest
from mustsee.conditions.options import order, shown
from mustsee.conditions.seen import Condition, Plan, Seen, common, merged, plan, said, stretch
from mustsee.errors import BadRow, Unparsed
from mustsee.filters.vetting import Vetting
from mustsee.questions.drafts import spans
from mustsee.records import Question, Span, Verdict, Video
from mustsee.text import LETTERS

NAME = "sight"
PROMPT = "filters/sight"
CANNOT, SEVERAL = "cannot", "several"
Choice = int | Literal["cannot", "several"]


@dataclass(frozen=True, kw_only=True)
class Look:
    """One reply: the option chosen (its place in the question), "cannot", "several", or null where
    it could not be read; the spans that it names; its verdict.
    """

    choice: Choice | None
    spans: tuple[Span, ...]
    verdict: Verdict


@dataclass(frozen=True, kw_only=True)
class Poll:
    """How a vote is taken: the answer needs `min_right` of `runs` looks, anything else more than
    half of them. Where neither has it, or replies could not be read, it goes on to twice as many
    looks, of which the same shares are needed.
    """

    runs: int
    min_right: int

    def chosen(self, looks: Sequence[Look], answer: int) -> Choice | None:
        """What the looks so far come to; null where that is open."""
        counts = Counter[Choice](x.choice for x in looks if x.choice is not None)
        read = counts.total()
        if self._right(counts.pop(answer, 0), read):
            return answer
        return next((choice for choice, n in counts.items() if self._other(n, read)), None)

    def wave(self, looks: Sequence[Look], answer: int) -> int:
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

    looks: tuple[Look, ...]
    answer: int
    chosen: Choice | None
    plan: Plan

    @property
    def right(self) -> bool:
        return self.chosen == self.answer

    @property
    def ambiguous(self) -> bool:
        return self.chosen == SEVERAL

    @property
    def other(self) -> int | None:
        """The wrong option that the vote comes to, if it does."""
        return self.chosen if isinstance(self.chosen, int) and not self.right else None

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
    def named(self) -> tuple[Span, ...]:
        """The stretches named by the first of the looks that chose what was chosen."""
        return next((x.spans for x in self.looks if x.choice == self.chosen and x.spans), ())

    @property
    def gap(self) -> float:
        """Seconds from picture to picture."""
        seconds = sum(span.seconds for span in self.plan.spans)
        return seconds / len(self.plan.times) if self.plan.times else seconds


class Eye:
    """One question, its film, and the model that looks: what was asked and said is recorded."""

    def __init__(self, question: Question, video: Video, vetting: Vetting, poll: Poll) -> None:
        assert question.answer_index is not None
        self.question, self.video, self.poll = question, video, poll
        self.asker, self.seed = vetting.askers["looker"], vetting.seed
        self.film = stretch(video)
        self.pictures = vetting.film.pictures
        self.answer = question.answer_index
        self.verdicts: list[Verdict] = []
        self._asked: dict[tuple[float | Span, ...], Votes] = {}

    async def votes(
        self,
        see: Seen,
        evidence: Sequence[Span] = (),
        condition: Condition | None = None,
        expected: Choice | None = None,
    ) -> Votes | None:
        """The looks at a condition (`see`'s own unless another is given); null where it leaves
        nothing to show. Where the first look chooses what is `expected`, it is the only one.
        """
        see = replace(see, condition=condition or see.condition)
        planned = plan(see, self.film, evidence, seed=f"{self.seed}/{self.question.question_id}")
        if planned is None:
            return None
        key = planned.times or planned.spans
        if key not in self._asked:
            images = await self.pictures(planned.times, see)
            self._asked[key] = await self._polled(planned, images, see, expected)
        return self._asked[key]

    async def nearer(self, far: Votes, see: Seen, expected: Choice | None = None) -> Votes | None:
        """The looks at the stretches named in `far`, and at what lies between them and the next
        pictures that were shown; null where none were named.
        """
        wide = [Span(s.start - far.gap, s.end + far.gap) for s in far.named]
        around = common(merged(wide, self.film), far.plan.spans)
        return await self.votes(see, around, "evidence", expected) if around else None

    async def _polled(
        self, planned: Plan, images: Sequence[bytes], see: Seen, expected: Choice | None
    ) -> Votes:
        looks: list[Look] = []
        wave, chosen = 1, None
        if expected is None:
            wave = self.poll.wave(looks, self.answer)
        while wave:
            numbers = range(len(looks), len(looks) + wave)
            looks += await gather(*(self.look(planned, images, see, n) for n in numbers))
            if expected is not None and looks[0].choice == expected:
                chosen = expected
                break
            chosen = self.poll.chosen(looks, self.answer)
            wave = 0 if chosen is not None else self.poll.wave(looks, self.answer)
        self.verdicts += [look.verdict for look in looks]
        return Votes(looks=tuple(looks), answer=self.answer, chosen=chosen, plan=planned)

    async def look(self, planned: Plan, images: Sequence[bytes], see: Seen, number: int) -> Look:
        """The look of a number, which turns the options."""
        question, count = self.question, len(self.question.options)
        turned = order(count, self.seed + number)
        lines = said(self.video.lines or (), planned.spans) if see.listens else ()
        wanted = " ".join((question.question, *question.options))
        blank = Verdict(
            filter=NAME,
            model=self.asker.llm.identity,
            seed=self.seed + number,
            prompt=self.asker.prompts.digest(PROMPT),
        )
        told = {
            "condition": see.condition,
            "frames": [round(t, 2) for t in planned.times],
            "order": "".join(LETTERS[i] for i in turned),
        }
        try:
            reply, letter, named = await self.asker.ask(
                PROMPT,
                lambda text: parse_look(text, count),
                seed=self.seed + number,
                images=images,
                question=question.question,
                options=shown(question, self.seed + number),
                frames=planned.times,
                lines=nearest(lines, wanted, see.words),
                whole=see.condition != "evidence",
            )
        except BadRow as error:
            detail = json.dumps({**told, "unread": str(error)})
            return Look(choice=None, spans=(), verdict=replace(blank, detail=detail))
        choice: Choice = (
            turned[letter] if letter < count else CANNOT if letter == count else SEVERAL
        )
        chose = LETTERS[choice] if isinstance(choice, int) else choice
        verdict = replace(
            blank,
            reply=reply,
            correct=choice == self.answer,
            detail=json.dumps({**told, "chose": chose}),
        )
        return Look(choice=choice, spans=named, verdict=verdict)


_ANSWER = re.compile(
    r"^[\s*_#>-]*(?:final\s+)?answer[\s*_]*[:：=][\s*_\[(\"']*(?:option\s+)?([A-Z])\b(?!['’])",
    re.IGNORECASE | re.MULTILINE,
)
_EVIDENCE = re.compile(r"^[\s*_#>-]*evidence[\s*_]*[:：][\s*_]*(.*)$", re.IGNORECASE | re.MULTILINE)


def parse_look(reply: str, count: int) -> tuple[str, int, tuple[Span, ...]]:
    """The reply, the place of its letter (`count`: it cannot be told; `count` + 1: several fit),
    and the spans that it names. Raises Unparsed.
    """
    letters = {match.upper() for match in _ANSWER.findall(reply)}
    if len(letters) != 1:
        found = "several answers" if letters else "no line of the form '* ANSWER: letter'"
        raise Unparsed(f"it has {found}")
    place = LETTERS.index(letters.pop())
    if place > count + 1:
        raise Unparsed(f"its letter is none of A to {LETTERS[count + 1]}")
    return reply, place, stretches(reply)


def stretches(reply: str) -> tuple[Span, ...]:
    """The spans on the evidence lines of a reply."""
    return spans(" ".join(_EVIDENCE.findall(reply)))
