"""Rankings of shuffled options return to the given ones."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mustsee.errors import BadRow
from mustsee.text import LETTERS
from mustsee.verify.guess.ask import rank
from tests.support.guesser import asker, requests


def by_preference(wanted: dict[str, list[str]], options: list[str], question: str) -> str:
    return " > ".join(LETTERS[options.index(answer)] for answer in wanted[question])


@given(st.lists(st.integers(2, 14), min_size=1, max_size=10), st.integers(0, 99))
def test_rankings_return_to_their_questions_and_options(sizes: list[int], seed: int) -> None:
    wanted = {f"Which {n}?": [f"{n}/{a}" for a in range(size)] for n, size in enumerate(sizes)}

    def guess(variables: Any) -> str:
        return "\n".join(
            f"QUESTION {n}: {by_preference(wanted, list(q['options']), q['question'])} | so"
            for n, q in enumerate(variables["asked"], 1)
        )

    asked = [(question, answers[::-1]) for question, answers in wanted.items()]
    ranked = asyncio.run(rank(asked, asker(guess), seed=seed))
    for order, (_, answers) in zip(ranked, asked, strict=True):
        assert order == tuple(range(len(answers)))[::-1]


def test_options_are_shuffled_by_the_seed() -> None:
    asked = [(f"Which {n}?", [f"{n}/{a}" for a in range(10)]) for n in range(3)]
    guesser = asker(lambda _: "")
    for seed in (0, 0, 1):
        with pytest.raises(BadRow):
            asyncio.run(rank(asked, guesser, seed=seed))
    one, same, other = ([q["options"] for q in r.variables["asked"]] for r in requests(guesser))
    assert one == same
    assert one != other
    assert one[0] != tuple(asked[0][1])
