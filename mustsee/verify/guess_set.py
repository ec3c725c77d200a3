"""Guesses at several questions of one video in one request.

A guess is text alone and short, so most of its price is the request. The guesser also reads the
other questions, whose words may give an answer away: what it cannot guess is harder to guess than
alone.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from mustsee.calls.llm import Asker
from mustsee.errors import Unparsed
from mustsee.questions.numbered import Items, complete, items
from mustsee.records import Question, Verdict
from mustsee.replies.forms import Form, form
from mustsee.text import LETTERS

PROMPT = "filters/guess_set"
_LINE = re.compile(r"^[\s>*_#-]*question\s+(\d{1,3})[*_]*\s*[:：.)][\s*_]*(.+)$", re.I | re.M)
_NONE = re.compile(r"[\[(\"'*_\s]*NONE[\])\"'*_\s]*(?:$|[.|–—:,-]\s*(.*)$)", re.I)
_GUESS = re.compile(r"[\[(\"'*_\s]*([A-Z](?:\s*>\s*[A-Z])*)[\])*_\s]*(?:[|–—:,.-]\s*(.*))?$")


def rankings(
    counts: Sequence[int], *, forced: bool = True
) -> Form[tuple[tuple[tuple[int, ...], str], ...]]:
    """Return the form of a reply with a ranking for each question, by its number of options: the
    options' indices, the most probable first, and why. Its `read` raises Unparsed unless each
    question has a ranking of all its options; if not `forced`, also NONE, an empty ranking.
    """

    def check(numbered: Items) -> tuple[tuple[tuple[int, ...], str], ...]:
        texts = complete(numbered, len(counts))
        numbered_counts = enumerate(zip(texts, counts, strict=True), 1)
        return tuple(_ranking(text, n, c, forced) for n, (text, c) in numbered_counts)

    return form(
        text=question_lines,
        shape=items("guesses", "question", "guess"),
    ).map(check)


def draw_order(count: int, seed: int, name: str) -> list[int]:
    """Return the numbers below `count` in an order drawn from the seed and a name."""
    order = list(range(count))
    random.Random(f"{seed}/{name}").shuffle(order)
    return order


def question_lines(reply: str) -> Items:
    """Return the lines `QUESTION 1: ...` of a reply: their numbers and texts."""
    return [(int(number), text) for number, text in _LINE.findall(reply)]


def _ranking(text: str, number: int, count: int, forced: bool) -> tuple[tuple[int, ...], str]:
    if not forced and (none := _NONE.match(text)):
        return (), (none[1] or "").strip()
    match = _GUESS.match(text)
    letters = re.findall(r"[A-Z]", match[1]) if match else []
    if match is None or sorted(letters) != list(LETTERS[:count]):
        raise Unparsed(
            f"question {number} is answered with {text[:40]!r}; expected a ranking of all of "
            f"{', '.join(LETTERS[:count])}, then | and why"
        )
    return tuple(LETTERS.index(letter) for letter in letters), (match[2] or "").strip()


class Guess(NamedTuple):
    """One run. `first`: index of the option that it ranks first; None for a guess in words, and if
    its replies are unparseable.
    """

    verdict: Verdict
    first: int | None = None


async def guess_set(
    questions: Sequence[Question],
    asker: Asker,
    blank: Verdict,
    *,
    prompt: str = PROMPT,
    with_question: bool = True,
    forced: bool = True,
    images: Sequence[bytes] = (),
    **variables: Any,
) -> tuple[Guess, ...]:
    """Return a guess at each question, its verdict made from `blank`, from one request. Raises
    BadRow if no reply can be parsed. `forced`: whether a guess is wanted where nothing tells.
    `variables`: of the prompt, besides the questions (`asked`).
    """
    orders: list[list[int]] = []
    for question in questions:
        order = list(range(len(question.options)))
        random.Random(f"{blank.seed}/{question.question_id}/{blank.filter}/set").shuffle(order)
        orders.append(order)
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
