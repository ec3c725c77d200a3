"""EgoSchema (arXiv 2308.09126): questions on whole clips from their narrations.

The paper chains calls, so that questions, answers and decoys are not written at once. These are its
two sets of prompts and the chains that it compared them with (section 3.1.2, Table 8):

    set_a       questions; then answers and decoys                           (its choice)
    set_b       questions; answers with unused decoys in the same chat; decoys in a new one
    one_shot    everything at once
    n_shot      everything at once, one question a call
    three_call  questions; answers; decoys

`Keywords` drops questions with words of the prompt, or with openings that the curators' sheet
forbids (3.1.3 and 6.1). The words are `keywords` of `conf/egoschema.yaml`.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from functools import cached_property
from typing import Any, ClassVar, TypeVar

from mustsee.calls.llm import Asker, Message
from mustsee.errors import BadRow, Unparsed
from mustsee.questions.checks import normal
from mustsee.questions.drafts import Draft, finish_question
from mustsee.questions.labelled import drafts, is_malformed, questions_in, whole
from mustsee.questions.replies import MIN_SAME_RATIO
from mustsee.recipes.egoschema.narrations import prompt_lines
from mustsee.records import Line, Provenance, Question, Verdict, Video
from mustsee.replies.forms import Form

_ASKING = "do|does|did|is|are|was|were|will|would|has|have|had|can|could|must|should"
_CLAUSE = rf"(?!when\s+(?!(?:{_ASKING})\b))"


@dataclass(frozen=True, kw_only=True)
class Keywords:
    """A filter by words of the question.

    "When" is an opening before a verb like "does" and at the end; else it begins a clause.
    """

    words: tuple[str, ...] = ()
    """Words forbidden in questions and options; the paper names the first three, the rest are
    ours."""
    openings: tuple[str, ...] = ()
    """Beginnings of questions that are forbidden."""

    @cached_property
    def _word(self) -> re.Pattern[str]:
        return _any(self.words, r"\b(?:{})\b")

    @cached_property
    def _opening(self) -> re.Pattern[str]:
        return _any(self.openings, rf"(?:^|[.?!:;,]\s*|\b(?:and|or)\s+){_CLAUSE}(?:{{}})\b")

    def reason(self, question: str, options: Sequence[str]) -> str | None:
        """Return the fault of a question, or None."""
        for text in (question, *options):
            match = self._word.search(text)
            if match:
                return f"keyword: {match.group().lower()!r}"
        opening = self._opening.search(question)
        return f"keyword: asks {opening.group().strip(' .?!:;,').lower()!r}" if opening else None

    def __call__(self, video: Video) -> Video:
        """Add a verdict to each question that is not dropped yet, and drop the faulty ones."""
        return replace(video, questions=tuple(map(self._judge, video.questions or ())))

    def _judge(self, question: Question) -> Question:
        if question.drop is not None:
            return question
        reason = self.reason(question.question, question.options)
        verdict = Verdict(
            filter="keywords", model="rules", passed=reason is None, detail=reason or ""
        )
        return replace(question, verdicts=(*question.verdicts, verdict), drop=reason)


def _any(words: Sequence[str], frame: str) -> re.Pattern[str]:
    if not words:
        return re.compile(r"(?!)")
    kinds = [r"[\s-]*".join(map(re.escape, re.split(r"[\s-]+", word))) for word in words]
    return re.compile(frame.replace("{}", "|".join(kinds)), re.IGNORECASE)


T = TypeVar("T")
ANSWERS = ("egoschema/answers_plain", "egoschema/answers_near", "egoschema/answers_twist")


@dataclass(frozen=True, kw_only=True)
class EgoSchemaSettings:
    """How questions are made of narrations."""

    version: ClassVar[str] = "2"
    reads: ClassVar[tuple[str, ...]] = ("video_id", "start", "lines", "captions")
    area: ClassVar[str] = "egoschema"

    chains: tuple[str, ...] = ("set_a",)
    """Prompt chains, one drawn for each clip: set_a set_b one_shot n_shot three_call."""
    questions: int = 3
    """Questions written for a clip: the paper's N."""
    wrong: int = 4
    """Decoys of each question: the paper's M."""
    length: str = "similar"
    """Length of the decoys: similar to the answer, or longer, as in the paper's prompts, which
    gives answers away."""
    answer_prompts: tuple[str, ...] = ANSWERS
    """Prompts for answers and decoys, one drawn for each clip."""
    keywords: Keywords | None = None
    """Words that drop a question: the job's `keywords`."""
    seed: int = 0

    def __post_init__(self) -> None:
        unknown = sorted(set(self.chains) - set(CHAINS))
        if unknown or not self.chains:
            raise ValueError(f"chains={self.chains!r}: choose among {', '.join(CHAINS)}")
        if self.length not in ("similar", "longer"):
            raise ValueError(f"length={self.length!r}: 'similar' or 'longer'")
        if self.questions < 1 or self.wrong < 1 or not self.answer_prompts:
            raise ValueError("questions and wrong must be at least 1, answer_prompts not empty")


@dataclass(frozen=True, kw_only=True)
class NarratedClip:
    """The input of a chain: the narrations as text, and how to ask. `counted`: replies with drifted
    labels, and replies that were requested again.
    """

    asker: Asker
    settings: EgoSchemaSettings
    narrations: str
    answer_prompt: str
    seed: int
    counted: Counter[str] = field(default_factory=lambda: Counter(drifted=0, regenerated=0))


async def ask(video: Video, asker: Asker, settings: EgoSchemaSettings) -> Video:
    """Return the clip with its questions. The narrations are `video.lines`, or else the captions.
    `question_type` names the chain.

    Metrics of each question count the clip's replies: with labels of another form ("drifted"), and
    unparseable ones that were requested again ("regenerated"). Raises BadRow without narrations,
    and if a model's replies cannot be parsed.
    """
    lines = narrations_of(video)
    if not lines:
        raise BadRow(f"clip {video.video_id!r} has neither narrations nor captions to ask from")
    draw = random.Random(f"{settings.seed}/{video.video_id}/chain")
    chain = draw.choice(settings.chains)
    clip = NarratedClip(
        asker=asker,
        settings=settings,
        narrations=prompt_lines(lines, video.start or 0.0),
        answer_prompt=draw.choice(settings.answer_prompts),
        seed=draw.randrange(2**31),
    )
    drafts_made = await CHAINS[chain](clip)
    origin = Provenance(llm=asker.llm.identity, prompts=asker.prompts.digest("egoschema"))
    questions = [
        finish_question(
            draft,
            video_id=video.video_id,
            recipe="egoschema",
            question_type=chain,
            seed=settings.seed,
            decoys=settings.wrong,
            provenance=origin,
        )
        for draft in drafts_made
    ]
    counts = {name: float(n) for name, n in clip.counted.items()}
    asked_video = replace(video, questions=tuple(replace(q, metrics=counts) for q in questions))
    return asked_video if settings.keywords is None else settings.keywords(asked_video)


def narrations_of(video: Video) -> Sequence[Line]:
    """Return the clip's lines, or else its captions as lines."""
    if video.lines:
        return video.lines
    return [Line(start=c.time, end=c.time, text=c.text) for c in video.captions or ()]


async def _set_a(clip: NarratedClip) -> list[Draft]:
    questions, _ = await _questions(clip)
    if not questions:
        return []
    wrong, length = clip.settings.wrong, clip.settings.length
    form = drafts(len(questions), wrong=wrong, with_question=False)
    parsed = await _ask(clip, clip.answer_prompt, form, questions=questions, wrong=wrong,
                        length=length)  # fmt: skip
    pairs = zip(match_drafts(parsed, questions), questions, strict=True)
    return [replace(draft, question=q) for draft, q in pairs]


async def _set_b(clip: NarratedClip) -> list[Draft]:
    questions, history = await _questions(clip)
    if not questions:
        return []
    count, wrong = len(questions), clip.settings.wrong
    form = drafts(count, wrong=wrong, with_question=False)
    parsed = await _ask(clip, "egoschema/reveal", form, history=history, count=count, wrong=wrong,
                        questions=questions)  # fmt: skip
    return await _wrong(clip, questions, parsed)


async def _three_call(clip: NarratedClip) -> list[Draft]:
    questions, _ = await _questions(clip)
    if not questions:
        return []
    form = drafts(len(questions), wrong=0, with_question=False)
    parsed = await _ask(clip, "egoschema/answers_only", form, questions=questions)
    return await _wrong(clip, questions, parsed)


async def _one_shot(clip: NarratedClip) -> list[Draft]:
    return await _at_once(clip, clip.settings.questions, clip.seed)


async def _n_shot(clip: NarratedClip) -> list[Draft]:
    calls = (_at_once(clip, 1, clip.seed + n) for n in range(clip.settings.questions))
    parsed = [draft for reply in await asyncio.gather(*calls) for draft in reply]
    return list({draft.question: draft for draft in parsed}.values())


CHAINS: dict[str, Callable[[NarratedClip], Awaitable[list[Draft]]]] = {
    "set_a": _set_a,
    "set_b": _set_b,
    "one_shot": _one_shot,
    "n_shot": _n_shot,
    "three_call": _three_call,
}


async def _questions(clip: NarratedClip) -> tuple[list[str], tuple[Message, ...]]:
    """Return the questions, and the chat for a chain that continues in it."""
    count = clip.settings.questions
    prompt, form = "egoschema/questions", _counted(clip, questions_in(count)).keep_reply()
    asked: dict[str, Any] = {"narrations": clip.narrations, "count": count}
    reply, questions = await clip.asker.ask(prompt, form, seed=clip.seed, **asked)
    rendered = clip.asker.prompts.render(prompt, **asked)
    opening = (Message("system", rendered.system),) if rendered.system else ()
    question = Message("user", rendered.user, lines=rendered.lines)
    return questions, (*opening, question, Message("assistant", reply))


async def _wrong(
    clip: NarratedClip, questions: Sequence[str], answered: Sequence[Draft]
) -> list[Draft]:
    """Return the questions with their answers in `answered`, and with decoys."""
    answers = [draft.answer for draft in match_drafts(answered, questions)]
    wrong, length = clip.settings.wrong, clip.settings.length

    def check_answers(parsed: Sequence[Draft]) -> list[Draft]:
        triples = zip(match_drafts(parsed, questions), questions, answers, strict=True)
        return [whole(replace(draft, question=q, answer=a)) for draft, q, a in triples]

    form = drafts(len(questions), wrong=wrong, with_question=False, with_answer=False)
    return await _ask(
        clip, "egoschema/wrong", form.map(check_answers), questions=list(questions),
        answers=answers, wrong=wrong, length=length,
    )  # fmt: skip


async def _at_once(clip: NarratedClip, count: int, seed: int) -> list[Draft]:
    wrong, length = clip.settings.wrong, clip.settings.length
    form = drafts(count, wrong=wrong, with_question=True)
    return await _ask(
        clip, "egoschema/one_shot", form, seed=seed, count=count, wrong=wrong, length=length
    )


async def _ask(
    clip: NarratedClip, prompt: str, form: Form[T], *, seed: int | None = None, **variables: Any
) -> T:
    """Ask about the narrations with the clip's seed or another one."""
    return await clip.asker.ask(
        prompt,
        _counted(clip, form),
        seed=clip.seed if seed is None else seed,
        narrations=clip.narrations,
        **variables,
    )


def match_drafts(parsed: Sequence[Draft], questions: Sequence[str]) -> list[Draft]:
    """Sort the drafts in the order of the questions if each clearly repeats one of them; else
    return them unchanged. Replies may have the questions in another order.
    """
    order: list[int] = []
    for question in questions:
        likeness = [
            SequenceMatcher(None, normal(question), normal(draft.question)).ratio()
            for draft in parsed
        ]
        best = max(likeness)
        if best < MIN_SAME_RATIO or likeness.index(best) in order:
            return list(parsed)
        order.append(likeness.index(best))
    return [parsed[n] for n in order]


def _counted(clip: NarratedClip, form: Form[T]) -> Form[T]:
    """Wrap a form so that drifted and unparseable replies are counted."""

    def read_and_count(text: str) -> T:
        try:
            parsed = form.read(text)
        except Unparsed:
            clip.counted["regenerated"] += 1
            raise
        if is_malformed(text):
            clip.counted["drifted"] += 1
        return parsed

    return Form(form.schema, read_and_count)
