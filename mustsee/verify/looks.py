"""Looks: calls of the verifier about one question.

A look judges every option and the premise at once. A second look in the same chat adds frames and
lines to those that the verifier has seen: no frame is sent twice, and an endpoint that caches
prompts charges little for the earlier turns. A look that decides against the question is repeated
from all frames at once, with the options in another order; most of these looks decide.
"""

from __future__ import annotations

import json
from asyncio import to_thread
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mustsee.calls.llm import Message, VideoClip
from mustsee.errors import BadRow
from mustsee.records import Line, Question, Span, Verdict, Video
from mustsee.replies.forms import Form, label_lines
from mustsee.text import LETTERS
from mustsee.verify.conditions.seen import (
    Condition,
    FramePlan,
    lines_within,
    merge_spans,
    nearest,
    order,
    plan,
    rotated_options,
    video_span,
)
from mustsee.verify.conditions.video_frames import plan_for_model
from mustsee.verify.filters import VettingContext
from mustsee.verify.look_replies import SEVERAL, Choice, ParsedLook, look_form

NAME = "sight"
PROMPT, OPEN = "filters/sight", "filters/sight_open"
UNPARSED_LOOKS_COUNT = "looks that could not be read"  # name of their count in run.json
Material = tuple[Sequence[bytes], Sequence[VideoClip]]  # frames (JPEG), or clips in place of them


@dataclass(frozen=True, kw_only=True)
class Spacing:
    """How densely a span is shown: `gap` seconds between its frames."""

    span: Span
    gap: float


@dataclass(frozen=True, kw_only=True)
class Chat:
    """What the verifier has seen and written before: messages, and the times and lines in them."""

    messages: tuple[Message, ...] = ()
    times: tuple[float, ...] = ()
    lines: tuple[Line, ...] = ()


@dataclass(frozen=True, kw_only=True)
class LookReply:
    """One reply of the verifier.

    `choice`: index of the option in the question, or a name of `look_replies`; None if the reply
    was unparseable. In a question without options 0 is the right answer and 1 any other. `spans`:
    that show what is right. `where`: spans to look at for what is open. `words`: the answer's text,
    or what is not so of the premise. `chat`: all that the verifier has seen and written by now.
    """

    choice: Choice | None
    spans: tuple[Span, ...] = ()
    where: tuple[Span, ...] = ()
    words: str = ""
    verdict: Verdict
    chat: Chat = field(default=Chat(), repr=False)


@dataclass(frozen=True, kw_only=True)
class Votes:
    """The looks that decide, and what they decide (`chosen`; None if they differ too much)."""

    looks: tuple[LookReply, ...]
    answer: int
    chosen: Choice | None

    @property
    def right(self) -> bool:
        return self.chosen == self.answer

    @property
    def ambiguous(self) -> bool:
        return self.chosen == SEVERAL

    @property
    def words(self) -> str:
        """The text of what is chosen."""
        return next((x.words for x in self.looks if x.choice == self.chosen), "")

    @property
    def named_spans(self) -> tuple[Span, ...]:
        """The spans named by the last look that chose the winner."""
        return next((x.spans for x in reversed(self.looks) if x.choice == self.chosen), ())

    @property
    def read(self) -> int:
        """The number of looks whose reply was parsed."""
        return sum(look.choice is not None for look in self.looks)

    @property
    def share(self) -> float:
        """The share of right looks among those whose reply was parsed."""
        hits = sum(look.choice == self.answer for look in self.looks)
        return hits / self.read if self.read else 0.0


def majority(looks: Sequence[LookReply], runs: int) -> Choice | None:
    """Return what more than half of `runs` looks choose; None if there is no such choice."""
    counts = Counter[Choice](x.choice for x in looks if x.choice is not None)
    most = counts.most_common(1)
    return most[0][0] if most and 2 * most[0][1] > runs else None


class VerifierSession:
    """The looks of the verifier at one question's video, each recorded as a verdict of the filter
    `name`. Of a look that is contrary to the question at most `runs` decide.
    """

    def __init__(
        self,
        question: Question,
        video: Video,
        vetting: VettingContext,
        runs: int = 1,
        name: str = NAME,
    ) -> None:
        self.question, self.video, self.runs, self.name = question, video, runs, name
        self.asker, self.seed = vetting.askers["verifier"], vetting.seed
        self.judge, self.count = vetting.judge, vetting.count
        self.extent = video_span(video)
        self.jpegs = vetting.video_frames.jpegs
        self.answer = question.answer_index or 0
        self.verdicts: list[Verdict] = []
        self._looks: dict[object, LookReply] = {}

    async def votes(self, see: Condition, evidence: Sequence[Span] = ()) -> Votes | None:
        """Return what most of `runs` looks at what a condition shows choose; None if it shows
        nothing.
        """
        planned = plan(see, self.extent, evidence, seed=f"{self.seed}/{self.question.question_id}")
        if planned is None:
            return None
        return await self.settle(planned, see, await self.look(planned, see), doubted=True)

    async def settle(
        self, planned: FramePlan, see: Condition, look: LookReply, *, doubted: bool = False
    ) -> Votes:
        """Decide what a look at a plan comes to: what it chose, if that is right and it is not
        `doubted`; else what most of `runs` looks choose.
        """
        looks = [look]
        chosen = None if doubted else look.choice
        while chosen != self.answer and (chosen := majority(looks, self.runs)) is None:
            parsed = sum(x.choice is not None for x in looks)
            if parsed >= self.runs or len(looks) >= 2 * self.runs:
                chosen = majority(looks, parsed)
                break
            looks.append(await self.look(planned, see, len(looks)))
        return Votes(looks=tuple(looks), answer=self.answer, chosen=chosen)

    async def look(
        self,
        planned: FramePlan,
        see: Condition,
        number: int = 0,
        chat: Chat = Chat(),
        spacing: Sequence[Spacing] = (),
    ) -> LookReply:
        """Return look number `number` at a plan, by which the options are rotated; in a chat, they
        keep their order. The same look is made once.
        """
        lines = self._lines(planned, see, chat)
        key = (number, planned.times or planned.spans, lines, len(chat.messages))
        if key not in self._looks:
            planned, clips = await to_thread(
                plan_for_model, self.asker.watch, self.video, planned, see
            )
            images = await self.jpegs(planned.times, see)
            self._looks[key] = await self._ask(planned, (images, clips), see, number, chat, spacing)
            self.verdicts.append(self._looks[key].verdict)
        return self._looks[key]

    @property
    def looks(self) -> tuple[LookReply, ...]:
        """All looks so far."""
        return tuple(self._looks.values())

    def _lines(self, planned: FramePlan, see: Condition, chat: Chat) -> tuple[Line, ...]:
        """Return the lines to show: none that was shown before."""
        if not see.listens:
            return ()
        lines = lines_within(self.video.lines or (), planned.spans, planned.cuts)
        shown = set(chat.lines)
        return tuple(line for line in lines if line not in shown)

    async def _ask(
        self,
        planned: FramePlan,
        material: Material,
        see: Condition,
        number: int,
        chat: Chat,
        spacing: Sequence[Spacing],
    ) -> LookReply:
        question, count = self.question, len(self.question.options)
        shown_order = order(count, self.seed + number)
        lines = self._lines(planned, see, chat)
        shorter = nearest(lines, " ".join((question.question, *question.options)), see.words)
        prompt = PROMPT if count else OPEN
        replies: list[str] = []
        reply_form = look_form(count)

        def read(reply: str) -> ParsedLook:
            replies.append(reply)
            return reply_form.read(reply)

        detail = {
            "condition": see.condition,
            "frames": [round(t, 2) for t in planned.times],
            **({"clips": [[s.start, s.end] for s in planned.clips]} if planned.clips else {}),
            **({"earlier frames": len(chat.times)} if chat.messages else {}),
            "order": "".join(LETTERS[i] for i in shown_order),
        }
        verdict = Verdict(
            filter=self.name,
            model=self.asker.llm.identity,
            seed=self.seed + number,
            prompt=self.asker.prompts.digest(prompt),
        )
        seconds = sum(span.seconds for span in planned.spans)
        even = Spacing(span=self.extent, gap=seconds / max(1, len(planned.times)))
        variables: dict[str, Any] = {
            "images": material[0],
            "clips": material[1],
            "question": question.question,
            "options": rotated_options(question, self.seed + number),
            "video": self.extent,
            "spans": planned.spans,
            "cuts": planned.cuts,
            "whole": see.condition != "evidence",
            "frames": planned.times,
            "spacing": spacing or (even,) if planned.times else (),
            "watched": planned.clips,
            "lines": shorter,
            "listens": see.listens and self.video.lines is not None,
            "shortened": len(shorter) < len(lines),
            "earlier": bool(chat.messages),
            "earlier_frames": chat.times,
            "earlier_lines": chat.lines,
        }
        try:
            parsed = await self.asker.ask(
                prompt,
                Form(reply_form.schema, read),
                seed=self.seed + number,
                history=chat.messages,
                **variables,
            )
            choice = await self._choice(parsed, shown_order)
        except BadRow as error:
            self.count(UNPARSED_LOOKS_COUNT, 1)
            texts = [label_lines(reply) for reply in replies]
            failure = json.dumps({**detail, "unread": str(error), "replies": texts})
            return LookReply(choice=None, verdict=replace(verdict, detail=failure), chat=chat)
        words, chose = parsed.words, choice
        if isinstance(choice, int):
            words = question.options[choice] if count else parsed.words
            chose = LETTERS[choice] if count else ("right", "another")[choice]
        messages = self.asker.messages(prompt, history=chat.messages, **variables)
        return LookReply(
            choice=choice,
            spans=merge_spans(parsed.evidence, self.extent),
            where=merge_spans(parsed.where, self.extent),
            words=words,
            verdict=replace(
                verdict,
                reply=label_lines(replies[-1]),
                correct=choice == self.answer,
                detail=json.dumps({**detail, "chose": chose}),
            ),
            chat=Chat(
                messages=(*messages, Message("assistant", replies[-1])),
                times=(*chat.times, *planned.times),
                lines=(*chat.lines, *lines),
            ),
        )

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
