"""The benchmarks' own scorers read as published, and no rule fails on any text."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mustsee.evaluate.scorers import BENCHMARKS, SCORERS
from mustsee.evaluate.scorers.official import RULES
from mustsee.replies.extract import official
from mustsee.text import LETTERS

FOUR = ("red", "Blue", "a man", "green")


@pytest.mark.parametrize(
    ("benchmark", "reply", "letter", "points"),
    [
        ("cinepile", "b", "B", 1), ("cinepile", "Answer: B", "B", 1), ("cinepile", "blue", "B", 1),
        ("cinepile", "Answer: B because", "B", 0), ("cinepile", "B) blue", None, 0),
        ("mlvu", "B", "B", 1), ("mlvu", "(B) blue", "B", 1), ("mlvu", "B.", None, 0),
        ("mlvu", "b)", None, 0),
        ("videomme", "The answer is B", "B", 1), ("videomme", "Because", "B", 1),
        ("videomme", "b", None, None), ("videomme", "Best option: C", "B", 1),
        ("mvbench", "B) blue", "B", 1), ("mvbench", "(b", None, 0), ("mvbench", "b.", "B", 1),
        ("mvbench", "", None, 1), ("mvbench", "blue", None, 0), ("mvbench", "\nb", "B", 1),
        ("tempcompass", "B. blue", "B", 1), ("tempcompass", "B)", "B", 1),
        ("tempcompass", "**B.**", None, 0), ("tempcompass", "B\n", None, 0),
        ("tempcompass", "C", "C", 0),
    ],
)  # fmt: skip
def test_own_scorers(benchmark: str, reply: str, letter: str | None, points: float | None) -> None:
    reading = RULES[benchmark].read(reply, FOUR, 1)
    assert (reading.letter, reading.points) == (letter, points)


def test_a_letter_beside_another_text_is_read_but_does_not_count() -> None:
    reading = RULES["cinepile"].read("Answer: B) red", FOUR, 1)
    assert (reading.letter, reading.step, reading.points) == ("B", "letter with other text", 0)


@given(st.text(max_size=60), st.integers(0, 4))
def test_points_are_those_of_the_released_parsers(reply: str, place: int) -> None:
    five = (*FOUR, "none")
    assert RULES["mlvu"].read(reply, five, place).points == official.mlvu(reply, place)
    assert RULES["cinepile"].read(reply, five, place).points == official.cinepile(
        reply, five, place
    )


REPLIES = st.one_of(
    st.text(max_size=80), st.text("ABCDabcd ().:,*'\"\n1", max_size=40),
    st.sampled_from(["The answer is ", "Answer: ", "(B", "Best option: ("]),
)  # fmt: skip


@settings(max_examples=150)
@given(
    st.lists(REPLIES, max_size=3).map("".join),
    st.lists(st.text(max_size=12), min_size=2, max_size=26),
    st.data(),
)
def test_every_rule_reads_any_text(reply: str, options: list[str], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(options) - 1))
    for scorer, rules in SCORERS.items():
        for benchmark in ("", *BENCHMARKS):
            rule = rules.get(benchmark)
            if rule is None:
                continue
            for text in (reply, rule.failed or ""):
                reading = rule.read(text, options, place)
                assert reading.step, (scorer, benchmark)
                assert reading.letter is None or reading.letter in LETTERS
                assert reading.points is None or -1 <= reading.points <= 1
                assert not (reading.guesses and reading.letter)
                if rule.letters and reading.letter and reading.step != "whole option text":
                    assert reading.letter in rule.letters
