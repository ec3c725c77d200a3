"""Rankings of shuffled questions and answers return to the given ones."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mustsee.calls.llm import Asker, Reply, Request
from mustsee.errors import BadRow
from mustsee.facts.rank import rank, rank_apart_lists
from mustsee.prompts import Prompts
from mustsee.text import LETTERS


class Guesser:
    """Answers with a function of the request's variables."""

    identity = "guesser"

    def __init__(self, answer: Callable[[Any], str]) -> None:
        self.answer, self.requests = answer, list[Request]()

    async def complete(self, request: Request) -> Reply:
        self.requests.append(request)
        return Reply(text=self.answer(request.variables), model="guesser")


def asker(answer: Callable[[Any], str]) -> Asker:
    return Asker(llm=Guesser(answer), prompts=Prompts(), tries=1)


def requests(of: Asker) -> list[Request]:
    assert isinstance(of.llm, Guesser)
    return of.llm.requests


def preferences(questions: int, answers: int) -> dict[str, list[str]]:
    """What a guesser would rank, by question: another order for each."""
    names = [f"answer {n}" for n in range(answers)]
    return {f"Which {n}?": names[n % answers :] + names[: n % answers] for n in range(questions)}


def by_preference(wanted: dict[str, list[str]], options: list[str], question: str) -> str:
    return " > ".join(LETTERS[options.index(answer)] for answer in wanted[question])


@given(st.integers(1, 12), st.integers(2, 14), st.integers(0, 99))
def test_rankings_return_to_their_questions_and_answers(
    count: int, answers: int, seed: int
) -> None:
    wanted = preferences(count, answers)

    def guess(variables: Any) -> str:
        return "\n".join(
            f"QUESTION {n}: {by_preference(wanted, list(variables['answers']), q)} | so"
            for n, q in enumerate(variables["asked"], 1)
        )

    given_ = [f"answer {n}" for n in range(answers)]
    ranked = asyncio.run(rank(list(wanted), given_, asker(guess), seed=seed))
    assert [[given_[i] for i in order] for order in ranked] == list(wanted.values())


@given(st.lists(st.integers(2, 14), min_size=1, max_size=10), st.integers(0, 99))
def test_rankings_of_lists_of_their_own_return_too(sizes: list[int], seed: int) -> None:
    wanted = {f"Which {n}?": [f"{n}/{a}" for a in range(size)] for n, size in enumerate(sizes)}

    def guess(variables: Any) -> str:
        return "\n".join(
            f"QUESTION {n}: {by_preference(wanted, list(q['options']), q['question'])} | so"
            for n, q in enumerate(variables["asked"], 1)
        )

    asked = [(question, answers[::-1]) for question, answers in wanted.items()]
    ranked = asyncio.run(rank_apart_lists(asked, asker(guess), seed=seed))
    for order, (_, answers) in zip(ranked, asked, strict=True):
        assert order == tuple(range(len(answers)))[::-1]


def test_questions_and_answers_are_shuffled_by_the_seed() -> None:
    wanted = preferences(8, 10)
    guesser = asker(lambda _: "")
    for seed in (0, 0, 1):
        with pytest.raises(BadRow):
            asyncio.run(rank(list(wanted), next(iter(wanted.values())), guesser, seed=seed))
    one, same, other = ((r.variables["asked"], r.variables["answers"]) for r in requests(guesser))
    assert one == same
    assert one[0] != other[0] != tuple(wanted)
    assert one[1] != other[1] != tuple(next(iter(wanted.values())))
