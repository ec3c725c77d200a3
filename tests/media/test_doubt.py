"""Loops, noise and languages that a model does not know are told from speech by its own figures."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mustsee.media.doubt import DoubtThresholds, RecognisedSpeech, ratio
from mustsee.records import Line

SONNET = (
    "From fairest creatures we desire increase, that thereby beauty's rose might never die, but as "
    "the riper should by time decease, his tender heir might bear his memory: but thou, contracted "
    "to thine own bright eyes, feed'st thy light's flame with self-substantial fuel."
)


def guess(
    text: str = SONNET, start: float = 0.0, seconds: float = 20.0, log_prob: float = -0.3,
    no_speech: float = 0.05,
) -> RecognisedSpeech:  # fmt: skip
    line = Line(start=start, end=start + seconds, text=text)
    return RecognisedSpeech(lines=(line,), log_prob=log_prob, no_speech=no_speech)


def test_a_loop_is_known_however_sure_the_model_is() -> None:
    assert DoubtThresholds().reason(guess()) is None
    loops = ("Thank you for watching, see you in the next video. " * 8, "We, " * 100, "9. " * 29)
    for text in loops:
        assert DoubtThresholds().reason(guess(text, log_prob=-0.05)) == "loop"
    many = guess("This is the end of the game.", seconds=2)
    spread = tuple(replace(many.lines[0], start=2.0 * i, end=2.0 * i + 2) for i in range(8))
    # one line a turn is no escape
    assert DoubtThresholds().reason(replace(many, lines=spread)) == "loop"
    assert DoubtThresholds().reason(many) is None


@pytest.mark.parametrize(
    ("log_prob", "no_speech", "expected"),
    [
        (-1.01, 0.84, "no speech"),  # "Thank you." over a bicycle bell
        (-0.88, 0.64, "no speech"),  # "Mm-hmm." over an orchestra
        (-0.70, 0.95, "no speech"),  # "you", said of digital silence
        (-0.43, 0.60, None),  # synthetic speech, understood
        (-0.26, 0.90, None),
        (-1.13, 0.40, "unsure"),
        (-0.98, 0.40, None),
    ],
)
def test_noise_and_mumbling(log_prob: float, no_speech: float, expected: str | None) -> None:
    short = guess("Thank you.", seconds=0.5, log_prob=log_prob, no_speech=no_speech)
    assert DoubtThresholds().reason(short) == expected


def test_another_language_around_a_line_makes_it_strange() -> None:
    english = [guess(start=25.0 * i, log_prob=-0.4) for i in range(4)]
    german = [guess(start=100 + 25.0 * i, log_prob=-0.88) for i in range(4)]
    loop = guess("We, " * 100, start=200, log_prob=-0.1)
    clear = guess(start=220, log_prob=-0.5)
    reasons = DoubtThresholds().reasons([*english, *german, loop, clear], one_language=True)
    assert reasons[:4] == [None] * 4
    assert reasons[5:] == ["strange"] * 3 + ["loop", None]
    assert DoubtThresholds().reasons([*english, *german], one_language=False) == [None] * 8


def test_one_mumbled_line_among_clear_ones_stays() -> None:
    rows = [guess(start=20.0 * i, log_prob=-0.95 if i == 2 else -0.4) for i in range(5)]
    assert DoubtThresholds().reasons(rows, one_language=True) == [None] * 5


@given(st.lists(st.tuples(st.floats(0, 900), st.floats(0.1, 28), st.floats(-2, 0)), max_size=12))
def test_each_guess_has_its_reason(rows: list[tuple[float, float, float]]) -> None:
    guesses = [guess("Good morning.", s, n, p) for s, n, p in sorted(rows)]
    alone = DoubtThresholds().reasons(guesses, one_language=False)
    near = DoubtThresholds().reasons(guesses, one_language=True)
    assert len(alone) == len(near) == len(guesses)
    assert all(b == a or (a is None and b == "strange") for a, b in zip(alone, near, strict=True))


def test_ratio() -> None:
    assert ratio("") == 0.0
    assert ratio(SONNET) < 2 < ratio("again and " * 30)


def test_an_english_only_model_is_sure_of_english_by_the_time_of_its_lines() -> None:
    assert DoubtThresholds().is_clear([guess(log_prob=-0.3), guess(log_prob=-0.9, seconds=5.0)])
    assert not DoubtThresholds().is_clear([guess(log_prob=-0.3, seconds=2.0), guess(log_prob=-0.9)])
    assert not DoubtThresholds().is_clear([])
