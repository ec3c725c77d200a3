"""lmms-eval's rules read as version 0.7.3 does, mistakes included. The expected letters are those
of its own functions.
"""

import pytest

from mustsee.evaluate.scorers.lmms_eval import RULES

FIVE = ("to run", "to hide", "C and the man are strangers.", "a dog", "none of it")


@pytest.mark.parametrize(
    ("reply", "letter", "step"),
    [
        ("B", "B", "first character"),
        ("(B)", "B", "'(X)'"),
        ("b", None, "no letter"),
        ("E) none of it", None, "no letter"),  # it reads A to D only
        ("I think the correct answer is (C). Option (A) is wrong.", "A", "answer phrase"),
        ("The answer is clearly B", "B", "last character"),
        ("The answer is the Dog", "D", "answer phrase"),  # of a word
        ("It is A Better choice", "A", "'X '"),
        ("Better", "B", "letter within a word"),
        ("정답은 C", "C", "last character"),
        ("A or B", "A", "first character"),
        ("", None, "no letter"),
        ("?!", None, "no letter"),
    ],
)
def test_video_mme_and_mlvu_rank_the_places_of_letters(
    reply: str, letter: str | None, step: str
) -> None:
    for task in ("videomme", "mlvu"):
        reading = RULES[task].read(reply, FIVE, 0)
        assert (reading.letter, reading.step) == (letter, step)
        assert reading.points == float(letter == "A")


def test_other_benchmarks_have_the_letters_of_their_question() -> None:
    assert RULES[""].read("E) none of it", FIVE, 4).points == 1
    assert RULES[""].read("E) none of it", FIVE[:4], 3).letter is None


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        ("b. to hide", "B"), ("(c)", "C"), ("It is a dog", "A"), ("B.\nBecause", "B"),
        ("Because.", None), ("F", None), ("answer:D", "D"),
        ("(B)x 1,000", None),  # with a number all marks go, and the letter joins a word
    ],
)  # fmt: skip
def test_mvbench_reads_the_first_lone_letter_and_the_article_a(
    reply: str, letter: str | None
) -> None:
    assert RULES["mvbench"].read(reply, FIVE, 1).letter == letter


def test_mvbench_leaves_out_an_empty_reply_only() -> None:
    assert RULES["mvbench"].read("", FIVE, 1).points is None
    assert RULES["mvbench"].read(" ", FIVE, 1).points == 0


@pytest.mark.parametrize(
    ("reply", "letter", "guesses"),
    [
        ("B", "B", 0), ("(D)", "D", 0), ("B.", "B", 0), ("b", None, 5),
        (FIVE[2], "C", 0),  # "C " is the camera wearer
        ("(A) no, (B) yes", "A", 0),
        ("it is said that they meet b. to hide", "B", 0),  # of more than five words
        ("I cannot see the video.", None, 5), ("", None, 5),
    ],
)  # fmt: skip
def test_egoschema_draws_where_it_reads_nothing(
    reply: str, letter: str | None, guesses: int
) -> None:
    reading = RULES["egoschema"].read(reply, FIVE, 1)
    assert (reading.letter, reading.guesses) == (letter, guesses)
    assert reading.points == (0.2 if guesses else float(letter == "B"))


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        ("b", "B"), ("[D]", "D"), ("The answer is clearly E", "C"), ("Option b", "B"),
        ("(A) or (D)", "D"), ("to hide", "B"), ("perhaps b then", "B"), ("a dog, I think", "D"),
        ("nothing is seen here", None), ("", None),
        ("The answer is a man", "A"),
    ],
)  # fmt: skip
def test_neptune_s_letters_have_no_right_boundary(reply: str, letter: str | None) -> None:
    assert RULES["neptune"].read(reply, FIVE, 1).letter == letter


def test_a_failed_call_is_an_empty_reply() -> None:
    assert all(rule.failed == "" for rule in RULES.values())
