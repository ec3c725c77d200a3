"""hear=parakeet: words and their times from the tokens of onnx-asr, and what is missing is said."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from actors.hear.parakeet import Parakeet, _lines, join_tokens
from mustsee.errors import UserError
from mustsee.media.speech import SAMPLE_RATE, SpeechWindow
from mustsee.records import Span

TOKENS = [" Hel", "lo", " there", ".", " We", " go", "."]
TIMES = [0.08, 0.24, 0.4, 0.72, 2.0, 2.4, 2.9]


def test_tokens_become_words_with_times_within_their_utterance() -> None:
    words = [*join_tokens(TOKENS, TIMES, [-0.1] * 7, Span(10.0, 12.95))]
    assert [w.word for w in words] == ["Hello", "there.", "We", "go."]
    assert [w.start for w in words] == pytest.approx([10.08, 10.4, 12.0, 12.4])
    assert words[0].end == pytest.approx(10.4)
    assert words[1].end == pytest.approx(10.96)  # not up to the next word, a second later
    assert words[-1].end == pytest.approx(12.95)
    assert all(w.start <= w.end <= 12.95 for w in words)
    assert words[0].score == pytest.approx(math.exp(-0.1))


def test_a_token_without_a_space_begins_the_first_word_and_empty_tokens_are_none() -> None:
    assert [w.word for w in join_tokens(["A", " ", " b"], [0, 0.1, 0.2], [], Span(0, 1))] == [
        "A", "b",
    ]  # fmt: skip
    assert [*join_tokens([], [], [], Span(0, 1))] == []


def test_lines_are_of_each_utterance() -> None:
    class Model:
        """In the place of onnx-asr's adapter."""

        def recognize(self, samples: Any, *, sample_rate: int) -> SimpleNamespace:
            assert sample_rate == SAMPLE_RATE
            assert samples.dtype == np.float32
            return SimpleNamespace(tokens=TOKENS, timestamps=TIMES, logprobs=None)

    window = SpeechWindow(
        start=5.0, samples=np.zeros(SAMPLE_RATE * 8, np.float32),
        speech=(Span(5.0, 8.5), Span(9.0, 12.5)),
    )  # fmt: skip
    lines = [*_lines(Model(), window)]
    assert [line.text for line in lines] == ["Hello there.", "We go."] * 2
    assert lines[2].start == pytest.approx(9.08)


def test_a_missing_package_or_model_is_said() -> None:
    with pytest.raises(UserError, match="parakeet"):
        Parakeet(model="no/such-model").check()
