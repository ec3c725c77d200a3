"""A matching returns to its questions, and nothing but one letter a question is read."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mustsee.errors import Unparsed
from mustsee.text import LETTERS
from mustsee.verify.guess.ask import match, matching_form
from tests.support.guesser import asker, requests

MATCHING = matching_form(3)
MATCHED = (2, 0, 1)


@pytest.mark.parametrize(
    "reply",
    [
        "QUESTION 1: C | it fits\nQUESTION 2: A | so\nQUESTION 3: B | left over",
        "Sure!\n\n**QUESTION 1:** C\n**QUESTION 2:** A\n**QUESTION 3:** B\n\nGood luck!",
        "Question 3: (B)\nQuestion 1: [C] - surest\nQuestion 2: A. A door",
        "```\nQUESTION 1: C | x\nQUESTION 2: A | y\nQUESTION 3: B | z\n```",
        '{"matches": [{"question": 2, "answer": "A"}, {"question": 1, "answer": "C | so"}, '
        '{"question": 3, "answer": "B"}]}',
    ],
)
def test_common_matchings_are_parsed(reply: str) -> None:
    assert MATCHING.read(reply) == MATCHED


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "C A B",
        "QUESTION 1: C\nQUESTION 2: A",
        "QUESTION 1: C\nQUESTION 2: A\nQUESTION 3: A",
        "QUESTION 1: C\nQUESTION 2: A\nQUESTION 3: D",
        "QUESTION 1: C\nQUESTION 2: A\nQUESTION 3: B > A > C",
        "QUESTION 1: C or A\nQUESTION 2: A\nQUESTION 3: B",
        "QUESTION 1: C, A\nQUESTION 2: A\nQUESTION 3: B",
        "QUESTION 1: Cup\nQUESTION 2: A\nQUESTION 3: B",
        "QUESTION 1: C\nQUESTION 2: A\nQUESTION 3: B\nQUESTION 1: B",
        '{"matches": [{"question": 1, "answer": "C"}]}',
    ],
)
def test_other_matchings_are_refused(reply: str) -> None:
    with pytest.raises(Unparsed):
        MATCHING.read(reply)


@given(st.integers(2, 8).flatmap(lambda n: st.permutations(range(n))), st.integers(0, 99))
def test_any_matching_returns_to_its_questions(order: list[int], seed: int) -> None:
    questions, answers = ([f"{name} {n}" for n in range(len(order))] for name in "qa")
    right = {f"q {n}": f"a {a}" for n, a in enumerate(order)}

    def guess(variables: Any) -> str:
        shown = list(variables["answers"])
        return "\n".join(
            f"QUESTION {n}: {LETTERS[shown.index(right[q])]} | so"
            for n, q in enumerate(variables["asked"], 1)
        )

    assert asyncio.run(match(questions, answers, asker(guess), seed=seed)) == tuple(order)


def test_a_transcript_is_shown_only_where_there_is_one() -> None:
    guesser = asker(lambda _: "QUESTION 1: A\nQUESTION 2: B")
    for transcript, recognised in ((None, False), ("[1.0-2.0] Hello.", False), ("Hi.", True)):
        asyncio.run(
            match(["q", "r"], ["a", "b"], guesser, seed=0, transcript=transcript,
                  recognised=recognised)
        )  # fmt: skip
    without, with_lines, by_machine = ("\n".join(m.text for m in r.messages)
                                       for r in requests(guesser))  # fmt: skip
    assert "said in" not in without
    assert "Hello." in with_lines
    assert "words may be wrong" not in with_lines
    assert "words may be wrong" in by_machine


def test_a_set_has_as_many_answers_as_questions() -> None:
    with pytest.raises(ValueError, match="2 questions and 1 answers"):
        asyncio.run(match(["q", "r"], ["a"], asker(lambda _: ""), seed=0))
