"""VLMEvalKit's rules read as it does without a judge, mistakes included."""

import pytest

from mustsee.evaluate.scorers.vlmevalkit import FAILED, RANDOM_RULES, RULES

FOUR = ("teddy bear", "rabbit", "cat", "dog")


@pytest.mark.parametrize(
    ("reply", "letter", "step"),
    [
        ("B", "B", "only letter, in the last words"),
        ("a cute teddy bear", "A", "option text"),
        ("The correct answer is **B**. Here is why it is so, as one sees at once.", None,
         "nothing found"),
        ("B is what I would choose if I had to", None, "nothing found"),  # not in the last words
        ("A or B", None, "nothing found"),
        ("b", None, "nothing found"),
        ("Z", None, "letter Z"),
        ("Cannot determine the answer: A", None, "refusal"),
        ("cat and dog", None, "nothing found"),
        ("dog " * 30, None, "nothing found"),  # longer than twice the options
    ],
)  # fmt: skip
def test_any_choice(reply: str, letter: str | None, step: str) -> None:
    reading = RULES[""].read(reply, FOUR, 0)
    assert (reading.letter, reading.step) == (letter, step)


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        ("b", None), ("Because", "B"), ("The answer is D", "D"), ("Answer: C", "C"),
        ("The best option is D", "D"), ("Best answer: D", "B"),  # commas are missing in its list
        ("E", None), ("", None), (FAILED, "A"),
    ],
)  # fmt: skip
def test_video_mme_takes_the_first_capital(reply: str, letter: str | None) -> None:
    assert RULES["videomme"].read(reply, FOUR, 0).letter == letter


def test_mlvu_and_mvbench_look_at_the_label_first() -> None:
    assert RULES["mlvu"].read("(B) or (A)", FOUR, 1).points == 1
    assert RULES["mlvu"].read("b) rabbit", FOUR, 1).step == "option text"
    assert RULES["mvbench"].read("b. it is", FOUR, 1).points == 1
    assert RULES["mvbench"].read("it is a rabbit", FOUR, 1).step == "option text"


def test_an_empty_reply_to_mvbench_is_right_and_unreadable() -> None:
    for reply in ("", " \n"):
        reading = RULES["mvbench"].read(reply, FOUR, 1)
        assert (reading.letter, reading.points) == (None, 1)


@pytest.mark.parametrize(
    ("benchmark", "points"), [("", 0), ("mlvu", -1), ("mvbench", 1), ("videomme", 1)]
)
def test_each_counts_a_failed_call_in_its_own_way(benchmark: str, points: float) -> None:
    rule = RULES[benchmark]
    assert rule.failed is not None
    assert rule.read(rule.failed, FOUR, 0).points == points


def test_with_a_judge_that_fails_it_draws_among_the_options_and_none() -> None:
    reading = RANDOM_RULES[""].read("no idea", FOUR, 2)
    assert (reading.points, reading.guesses) == (0.2, 5)
    assert RANDOM_RULES[""].read("C", FOUR, 2).guesses == 0
    assert RANDOM_RULES[""].read("Cannot determine the answer", FOUR, 2).points == 0
    assert RANDOM_RULES["videomme"].read("no idea", FOUR, 2).guesses == 0
