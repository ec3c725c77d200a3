"""Requests for guesses: at one question, at several at once, at drafts, at a set with one list of
answers.

A guess is text alone and short, so most of its price is the request. A guesser of several questions
also reads the other ones, whose words may give an answer away: what it cannot guess is harder to
guess than alone. In a set, sure pairs shrink the rest, so that a matching is easier to guess than
its questions one by one.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from mustsee.calls.llm import Asker
from mustsee.errors import BadRow
from mustsee.records import Question, Verdict
from mustsee.replies.forms import Form, label_lines
from mustsee.text import LETTERS
from mustsee.verify.guess.replies import ANSWER, matching_form, rankings
from mustsee.verify.vetting import Judges

OPEN_PROMPT = "filters/guess_open"  # the prompt of questions without options
SET_PROMPT = "filters/guess_set"
MATCH_PROMPT = "filters/match"
RANK_PROMPT = "facts/rank"


class Guess(NamedTuple):
    """One run. `first`: index of the option that it ranks first; None for a guess in words, and if
    its replies are unparseable.
    """

    verdict: Verdict
    first: int | None = None


def draw_order(count: int, seed: int, name: str) -> list[int]:
    """Return the numbers below `count` in an order drawn from the seed and a name."""
    order = list(range(count))
    random.Random(f"{seed}/{name}").shuffle(order)
    return order


def blank_verdict(name: str, asker: Asker, prompt: str, seed: int) -> Verdict:
    """Return the verdict of a guess by the filter `name`, still without its reply."""
    digest = asker.prompts.digest(prompt)
    return Verdict(filter=name, model=asker.llm.identity, seed=seed, prompt=digest)


async def guess_option(
    question: Question,
    asker: Asker,
    blank: Verdict,
    prompt: str,
    order: Sequence[int],
    form: Form[tuple[int, ...]],
    variables: Mapping[str, Any],
) -> Guess:
    """Return a guess at one question, its options shown in `order`. `correct` of its verdict is
    None if its replies are unparseable: the vote is lost, not the video.
    """
    detail = "options shown as " + "".join(LETTERS[i] for i in order)
    options = tuple(question.options[i] for i in order)
    try:
        reply, ranked = await asker.ask(
            prompt, form.keep_reply(), seed=blank.seed, options=options, **variables
        )
    except BadRow as error:
        return Guess(replace(blank, detail=f"{detail}; {error}"))
    first, text = order[ranked[0]], label_lines(reply)
    right = first == question.answer_index
    return Guess(replace(blank, detail=detail, reply=text, correct=right), first)


async def guess_in_words(
    question: Question,
    asker: Asker,
    blank: Verdict,
    judge: Judges,
    variables: Mapping[str, Any],
) -> Guess:
    """Return a guess at a question without options. `correct` of its verdict is None if its replies
    are unparseable, or the judge does not decide.
    """
    try:
        reply, answer = await asker.ask(
            OPEN_PROMPT, ANSWER.keep_reply(), seed=blank.seed, **variables
        )
    except BadRow as error:
        return Guess(replace(blank, detail=str(error)))
    right = await judge(question.question, answer, question.references)
    detail = "undecided by the judge" if right is None else ""
    return Guess(replace(blank, reply=label_lines(reply), correct=right, detail=detail))


async def guess_together(
    questions: Sequence[Question],
    asker: Asker,
    blank: Verdict,
    *,
    prompt: str = SET_PROMPT,
    with_question: bool = True,
    forced: bool = True,
    images: Sequence[bytes] = (),
    **variables: Any,
) -> tuple[Guess, ...]:
    """Return a guess at each question, its verdict made from `blank`, from one request. Raises
    BadRow if no reply can be parsed. `forced`: whether a guess is wanted where nothing tells.
    `variables`: of the prompt, besides the questions (`asked`).
    """
    orders = [
        draw_order(len(q.options), blank.seed, f"{q.question_id}/{blank.filter}/set")
        for q in questions
    ]
    ranked = await asker.ask(
        prompt,
        rankings([len(order) for order in orders], forced=forced),
        seed=blank.seed,
        images=images,
        asked=[
            {"question": q.question if with_question else "", "options": [q.options[i] for i in o]}
            for q, o in zip(questions, orders, strict=True)
        ],
        **variables,
    )
    guesses: list[Guess] = []
    for question, order, (rank, why) in zip(questions, orders, ranked, strict=True):
        first = order[rank[0]] if rank else None
        answer = " > ".join(LETTERS[i] for i in rank) or "NONE"
        verdict = replace(
            blank,
            reply=f"* ANSWER: {answer}\n* EXPLANATION: {why}",
            correct=first == question.answer_index,
            detail=f"options shown as {''.join(LETTERS[i] for i in order)}, one of {len(orders)}",
        )
        guesses.append(Guess(verdict, first))
    return tuple(guesses)


async def rank(
    asked: Sequence[tuple[str, Sequence[str]]], asker: Asker, *, seed: int
) -> tuple[tuple[int, ...], ...]:
    """Return for each question with its options the options' indices, the most plausible first. The
    options of each are shown in an order drawn from the seed. Raises BadRow if no reply can be
    parsed.
    """
    orders = [draw_order(len(options), seed, question) for question, options in asked]
    ranked = await asker.ask(
        RANK_PROMPT,
        rankings([len(order) for order in orders]),
        seed=seed,
        asked=tuple(
            {"question": question, "options": tuple(options[i] for i in order)}
            for (question, options), order in zip(asked, orders, strict=True)
        ),
    )
    each = zip(orders, ranked, strict=True)
    return tuple(tuple(order[place] for place in ranking) for order, (ranking, _) in each)


async def match(
    questions: Sequence[str],
    answers: Sequence[str],
    asker: Asker,
    *,
    seed: int,
    transcript: str | None = None,
    recognised: bool = False,
) -> tuple[int, ...]:
    """Return for each question the index of the answer that the guesser gives it; each answer is
    given once. `transcript`: shown to it; `recognised`: by a machine. Raises BadRow if no reply can
    be parsed.
    """
    if len(questions) != len(answers):
        raise ValueError(f"{len(questions)} questions and {len(answers)} answers")
    asked = draw_order(len(questions), seed, "/".join(questions))
    shown = draw_order(len(answers), seed, "/".join(answers))
    matched = await asker.ask(
        MATCH_PROMPT,
        matching_form(len(questions)),
        seed=seed,
        asked=tuple(questions[i] for i in asked),
        answers=tuple(answers[i] for i in shown),
        transcript=transcript,
        recognised=recognised,
    )
    by_question = {i: shown[a] for i, a in zip(asked, matched, strict=True)}
    return tuple(by_question[i] for i in range(len(questions)))
