"""EgoSchema's no-question baseline: guesses from the narrations and the options without the
question. It is an analysis that drops nothing: the paper measured chance and did not filter by it
(Fig. 5).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from mustsee.calls.llm import Asker
from mustsee.calls.usage import RequestTally
from mustsee.errors import BadRow, Unparsed
from mustsee.questions.chance import chance_of
from mustsee.recipes.egoschema.ask import narrations_of
from mustsee.recipes.egoschema.narrations import prompt_lines
from mustsee.records import Question, Verdict, Video
from mustsee.replies.extract import extract
from mustsee.replies.forms import free
from mustsee.stats import mean
from mustsee.text import LETTERS

NAME = "no_question"


@dataclass(frozen=True, kw_only=True)
class NoQuestionSettings:
    version: ClassVar[str] = "1"
    reads: ClassVar[tuple[str, ...]] = ("lines", "captions", "questions")
    area: ClassVar[str] = "egoschema"

    seed: int = 0


async def no_question(video: Video, asker: Asker, settings: NoQuestionSettings) -> Video:
    """Add a verdict of the model to each question that is not dropped. `passed` is null; `correct`
    is null for a reply without a letter.
    """
    narrations, requests = prompt_lines(narrations_of(video), video.start or 0.0), RequestTally()

    async def guess(question: Question) -> Question:
        if question.drop is not None or question.answer_index is None:
            return question
        prompt = asker.prompts.digest("egoschema/no_question")
        base = Verdict(filter=NAME, model=asker.llm.identity, seed=settings.seed, prompt=prompt)
        requests.add_sent("guesses without the question")
        try:
            reply, index = await asker.ask(
                "egoschema/no_question",
                free(lambda text: _letter(text, question.options)).keep_reply(),
                seed=settings.seed,
                narrations=narrations,
                options=question.options,
            )
        except BadRow as error:
            requests.add_unread("guesses without the question", error)
            verdict = replace(base, detail=str(error))
        else:
            verdict = replace(base, reply=reply, correct=index == question.answer_index)
        return replace(question, verdicts=(*question.verdicts, verdict))

    questions = await asyncio.gather(*map(guess, video.questions or ()))
    return replace(video, questions=tuple(questions), requests=requests.counts)


def _letter(text: str, options: Sequence[str]) -> int:
    letter = extract(text, options).letter
    if letter is None:
        raise Unparsed("it names no answer by its letter")
    return LETTERS.index(letter)


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """Share of right guesses with its 95 % interval by clip, and the share by chance."""

    questions: int
    accuracy: float
    low: float
    high: float
    chance: float


def baseline(questions: Iterable[Question]) -> Baseline | None:
    """Sum up the verdicts of the baseline; None without any."""
    guesses = [
        (v.correct, chance_of(q), q.video_id)
        for q in questions
        for v in q.verdicts
        if v.filter == NAME and v.correct is not None
    ]
    if not guesses:
        return None
    count = len(guesses)
    share = mean([float(correct) for correct, _, _ in guesses], [clip for _, _, clip in guesses])
    return Baseline(
        questions=count,
        accuracy=share.value,
        low=0.0 if share.low is None else share.low,
        high=1.0 if share.high is None else share.high,
        chance=sum(chance for _, chance, _ in guesses) / count,
    )
