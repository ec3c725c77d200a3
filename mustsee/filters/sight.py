"""Sight: a model that looks must find the answer in the evidence, one answer, and no other.

The looker is shown the evidence, frame by frame with the lines said there, and chooses among the
options and two more: "cannot be told from this", "more than one fits". What it finds there decides.
Where it does not find the answer, it is shown pictures of the whole film and names its own
evidence.

| on the evidence | on the whole film | then |
| --- | --- | --- |
| right | | the question stays |
| "more than one fits" by majority | or here | ambiguous: dropped |
| not right | right | its own spans are checked; if they hold, they replace the old ones |
| another option | the same other option | the answer is disputed: dropped |
| not right | not right | it cannot be told: dropped |

Published pipelines filter by what cannot be guessed; that a question can be answered by looking was
left to raters, who threw 70 % away (EgoSchema, 3.1; Neptune, C.3).
"""

from __future__ import annotations

import json
import re
from asyncio import gather
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

from mustsee.conditions.lines import nearest
from mustsee.conditions.options import order, shown
from mustsee.conditions.seen import Condition, Plan, Seen, merged, plan, said, stretch
from mustsee.errors import BadRow, Unparsed, UserError
from mustsee.filters.vetting import Vetting
from mustsee.questions.drafts import spans
from mustsee.records import Question, Repair, Span, Verdict, Video
from mustsee.text import LETTERS

CANNOT, SEVERAL = "cannot", "several"
Choice = int | Literal["cannot", "several"]
PROMPT = "filters/sight"


@dataclass(frozen=True, kw_only=True)
class Look:
    """One reply of the looker: the option chosen (its place in the question), "cannot", "several",
    or null where it could not be read; the spans that it names; its verdict.
    """

    choice: Choice | None
    spans: tuple[Span, ...]
    verdict: Verdict


@dataclass(frozen=True, kw_only=True)
class Votes:
    """The looks at one condition."""

    looks: tuple[Look, ...]
    answer: int

    @property
    def read(self) -> int:
        return sum(look.choice is not None for look in self.looks)

    @property
    def right(self) -> int:
        return sum(look.choice == self.answer for look in self.looks)

    @property
    def share(self) -> float:
        """Of the looks that could be read, those that were right."""
        return self.right / self.read if self.read else 0.0

    @property
    def ambiguous(self) -> bool:
        return 2 * sum(look.choice == SEVERAL for look in self.looks) > self.read

    @property
    def other(self) -> int | None:
        """The wrong option that most of the looks choose, if one has a majority."""
        counts = Counter(x.choice for x in self.looks if isinstance(x.choice, int))
        counts.pop(self.answer, None)
        top = max(counts, key=lambda place: counts[place], default=None)
        return top if top is not None and 2 * counts[top] > self.read else None


@dataclass(frozen=True, kw_only=True)
class Sight:
    """`min_right` of `runs` looks at the evidence must be right; each look has the options in an
    order of its own, and looks end when the vote is decided. `see`: how the evidence is shown;
    `whole`: how the film is. `needed`: whether the film without the evidence is asked about, as
    often as a control without other cuts: recorded, and dropped on where `drop_unneeded`.
    """

    name: ClassVar[str] = "sight"
    roles: ClassVar[tuple[str, ...]] = ("looker",)
    prompts: ClassVar[tuple[str, ...]] = (PROMPT, "filters/_sight")
    reads: ClassVar[tuple[str, ...]] = ("digest", "start", "end", "lines")

    runs: int = 3
    min_right: int = 2
    see: Seen = field(
        default_factory=lambda: Seen(
            condition="evidence", fps=1.0, least=2, most=32, transcript=True
        )
    )
    whole: Seen = field(default_factory=lambda: Seen(frames=48, transcript=True))
    needed: bool = True
    drop_unneeded: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.min_right <= self.runs:
            raise UserError(f"vet: sight.min_right={self.min_right!r}: from 1 to runs={self.runs}")

    async def __call__(self, question: Question, video: Video, vetting: Vetting) -> Question:
        """The question as the looker leaves it. One of a film that is not there is left unseen."""
        if question.answer_index is None or not question.options or not video.uri:
            return question
        eye = _Eye(self, question, video, vetting)
        found = await eye.votes("evidence", question.evidence)
        if found is None or found.read == 0:
            return eye.done(drop="sight: no reply could be read")
        if found.ambiguous:
            return eye.done(drop="sight: more than one option fits")
        if found.right < self.min_right:
            fallen = await self._on_the_whole(eye, found)
            if fallen is not None:
                return eye.done(drop=f"sight: {fallen}")
        if not self.needed:
            return eye.done()
        return await self._necessity(eye)

    async def _on_the_whole(self, eye: _Eye, found: Votes) -> str | None:
        """Why the question falls after a look at the whole film; null: its evidence is mended."""
        whole = await eye.votes("whole", ())
        if whole is None or whole.read == 0:
            return f"right in {found.right} of {found.read} looks at the evidence"
        if whole.ambiguous:
            return "more than one option fits"
        if whole.right >= self.min_right:
            return await self._repaired(eye, whole)
        other = whole.other
        if other is not None and other == found.other:
            return f"answer disputed: {eye.question.options[other]!r} is chosen"
        return f"cannot be told: right in {whole.right} of {whole.read} looks at the whole film"

    async def _repaired(self, eye: _Eye, whole: Votes) -> str | None:
        old = eye.question.evidence
        for look in whole.looks:
            named = merged(look.spans, eye.film) if look.choice == whole.answer else ()
            if not named or named == old:
                continue
            again = await eye.votes("evidence", named)
            if again is not None and again.right >= self.min_right:
                eye.replaced(named, look.verdict.model)
                return None
            break
        return "the evidence does not show the answer"

    async def _necessity(self, eye: _Eye) -> Question:
        spans = eye.question.evidence
        without, control = await gather(
            eye.votes("without_evidence", spans), eye.votes("control", spans)
        )
        if without is None or not without.read:
            return eye.done()
        eye.metrics["sight_without"] = without.share
        if control is None or not control.read:
            return eye.done()
        eye.metrics["sight_control"] = control.share
        needed = without.share <= control.share
        eye.metrics["sight_needed"] = float(needed)
        if needed or not self.drop_unneeded:
            return eye.done()
        return eye.done(drop="sight: the evidence is not needed")


class _Eye:
    """One question under the looker's eye: what was asked, what was said, what is recorded."""

    def __init__(self, settings: Sight, question: Question, video: Video, vetting: Vetting) -> None:
        assert question.answer_index is not None
        self.settings, self.question, self.video = settings, question, video
        self.asker, self.seed = vetting.askers["looker"], vetting.seed
        self.film = stretch(video)
        self.pictures = vetting.film.pictures
        self.answer = question.answer_index
        self.verdicts: list[Verdict] = []
        self.metrics: dict[str, float] = {}
        self._asked: dict[tuple[float, ...], Votes] = {}

    async def votes(self, condition: Condition, evidence: Sequence[Span]) -> Votes | None:
        """The looks at a condition; null where it leaves nothing to show. The same pictures are
        not asked about twice.
        """
        evident = condition == "evidence"
        see = self.settings.see if evident else replace(self.settings.whole, condition=condition)
        name = f"{self.seed}/{self.question.question_id}"
        planned = plan(see, self.film, evidence, seed=name)
        if planned is None:
            return None
        if planned.times not in self._asked:
            images = await self.pictures(planned.times, see)
            self._asked[planned.times] = await self._looked(condition, planned, images, see)
        found = self._asked[planned.times]
        if evident:
            self.metrics["sight_right"] = found.share
            self.metrics["sight_frames"] = float(len(planned.times))
        return found

    async def _looked(
        self, condition: Condition, planned: Plan, images: Sequence[bytes], see: Seen
    ) -> Votes:
        looks: list[Look] = []
        while wave := self._undecided(looks):
            numbers = range(len(looks), len(looks) + wave)
            looks += await gather(
                *(self._look(condition, planned, images, see, n) for n in numbers)
            )
        self.verdicts += [look.verdict for look in looks]
        return Votes(looks=tuple(looks), answer=self.answer)

    def _undecided(self, looks: Sequence[Look]) -> int:
        """The fewest further looks that could decide."""
        left = self.settings.runs - len(looks)
        wanted = self.settings.min_right - sum(x.choice == self.answer for x in looks)
        return 0 if wanted <= 0 or wanted > left else min(wanted, left - wanted + 1)

    async def _look(
        self, condition: Condition, planned: Plan, images: Sequence[bytes], see: Seen, number: int
    ) -> Look:
        question, count = self.question, len(self.question.options)
        turned = order(count, self.seed + number)
        lines = said(self.video.lines or (), planned.spans) if see.listens else ()
        wanted = " ".join((question.question, *question.options))
        blank = Verdict(
            filter=Sight.name,
            model=self.asker.llm.identity,
            seed=self.seed + number,
            prompt=self.asker.prompts.digest(PROMPT),
        )
        told = {
            "condition": condition,
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
                whole=condition != "evidence",
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

    def replaced(self, evidence: tuple[Span, ...], by: str) -> None:
        """The looker's own spans take the place of those named before, which stay on record."""
        old = self.question.evidence
        repair = Repair(
            kind="evidence",
            reason="sight: right on the whole film, not on the evidence",
            by=by,
            before=json.dumps([[s.start, s.end] for s in old]),
        )
        self.question = replace(
            self.question, evidence=evidence, repairs=(*self.question.repairs, repair)
        )

    def done(self, drop: str | None = None) -> Question:
        passed = {"sight_passed": float(drop is None)}
        return replace(
            self.question,
            verdicts=(*self.question.verdicts, *self.verdicts),
            metrics={**self.question.metrics, **self.metrics, **passed},
            drop=self.question.drop or drop,
        )


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
    named = " ".join(_EVIDENCE.findall(reply))
    return reply, place, spans(named)
