"""Rejection of loops, noise and unknown languages by a recogniser's own probabilities."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mustsee.media.transcript_quality import DoubtThresholds, RecognisedSpeech, compression_ratio
from mustsee.records import Line

SONNET = (
    "From fairest creatures we desire increase, that thereby beauty's rose might never die, but as "
    "the riper should by time decease, his tender heir might bear his memory: but thou, contracted "
    "to thine own bright eyes, feed'st thy light's flame with self-substantial fuel."
)


def span(
    text: str = SONNET, start: float = 0.0, seconds: float = 20.0, log_prob: float = -0.3,
    no_speech: float = 0.05,
) -> RecognisedSpeech:  # fmt: skip
    line = Line(start=start, end=start + seconds, text=text)
    return RecognisedSpeech(lines=(line,), log_prob=log_prob, no_speech=no_speech)


def test_a_loop_is_rejected_at_any_log_probability() -> None:
    assert DoubtThresholds().reason(span()) is None
    loops = ("Thank you for watching, see you in the next video. " * 8, "We, " * 100, "9. " * 29)
    for text in loops:
        assert DoubtThresholds().reason(span(text, log_prob=-0.05)) == "loop"
    repeated = span("This is the end of the game.", seconds=2)
    spread = tuple(replace(repeated.lines[0], start=2.0 * i, end=2.0 * i + 2) for i in range(8))
    # A loop spread over several lines is still a loop.
    assert DoubtThresholds().reason(replace(repeated, lines=spread)) == "loop"
    assert DoubtThresholds().reason(repeated) is None


@pytest.mark.parametrize(
    ("log_prob", "no_speech", "expected"),
    [
        (-1.01, 0.84, "no speech"),  # "Thank you." over a bicycle bell
        (-0.88, 0.64, "no speech"),  # "Mm-hmm." over an orchestra
        (-0.70, 0.95, "no speech"),  # "you" over digital silence
        (-0.43, 0.60, None),  # synthetic speech, correctly recognised
        (-0.26, 0.90, None),
        (-1.13, 0.40, "unsure"),
        (-0.98, 0.40, None),
    ],
)
def test_noise_and_mumbling_are_rejected_with_their_reason(
    log_prob: float, no_speech: float, expected: str | None
) -> None:
    short = span("Thank you.", seconds=0.5, log_prob=log_prob, no_speech=no_speech)
    assert DoubtThresholds().reason(short) == expected


def test_lines_amid_another_language_are_rejected_as_strange() -> None:
    english = [span(start=25.0 * i, log_prob=-0.4) for i in range(4)]
    german = [span(start=100 + 25.0 * i, log_prob=-0.88) for i in range(4)]
    loop = span("We, " * 100, start=200, log_prob=-0.1)
    clear = span(start=220, log_prob=-0.5)
    reasons = DoubtThresholds().reasons([*english, *german, loop, clear], one_language=True)
    assert reasons[:4] == [None] * 4
    assert reasons[5:] == ["strange"] * 3 + ["loop", None]
    assert DoubtThresholds().reasons([*english, *german], one_language=False) == [None] * 8


def test_one_mumbled_line_among_clear_ones_is_kept() -> None:
    rows = [span(start=20.0 * i, log_prob=-0.95 if i == 2 else -0.4) for i in range(5)]
    assert DoubtThresholds().reasons(rows, one_language=True) == [None] * 5


@given(st.lists(st.tuples(st.floats(0, 900), st.floats(0.1, 28), st.floats(-2, 0)), max_size=12))
def test_every_span_gets_a_reason_or_none(rows: list[tuple[float, float, float]]) -> None:
    spans = [span("Good morning.", s, n, p) for s, n, p in sorted(rows)]
    own_reasons = DoubtThresholds().reasons(spans, one_language=False)
    reasons = DoubtThresholds().reasons(spans, one_language=True)
    assert len(own_reasons) == len(reasons) == len(spans)
    assert all(
        b == a or (a is None and b == "strange") for a, b in zip(own_reasons, reasons, strict=True)
    )


def test_repetition_raises_the_compression_ratio() -> None:
    assert compression_ratio("") == 0.0
    assert compression_ratio(SONNET) < 2 < compression_ratio("again and " * 30)


def test_clarity_is_weighted_by_the_duration_of_lines() -> None:
    assert DoubtThresholds().is_clear([span(log_prob=-0.3), span(log_prob=-0.9, seconds=5.0)])
    assert not DoubtThresholds().is_clear([span(log_prob=-0.3, seconds=2.0), span(log_prob=-0.9)])
    assert not DoubtThresholds().is_clear([])
