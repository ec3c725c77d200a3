"""What is sent can be read back: cards from their pixels, clips by decoding, digits by ear."""

from __future__ import annotations

import io
import random

import numpy as np
import pytest
from PIL import Image

from mustsee.errors import UserError
from mustsee.server_probe.steps import ProbeSettings, digits_step, planned_steps, times_step
from mustsee.server_probe.stimuli import (
    RATE,
    SIZE,
    SLOT_S,
    NumeralClip,
    draw_card,
    encode_clip,
    play_tones,
    speak_digits,
    spoken_digits,
)
from tests.support.probed_server import decode_video, loud_spans, read_card, read_digit, read_tone


@pytest.mark.parametrize("numeral", [10, 47, 99, 100, 505, 999])
def test_the_border_of_a_card_says_its_numeral(numeral: int) -> None:
    card = Image.open(io.BytesIO(draw_card(numeral)))
    assert card.size == SIZE
    assert read_card(card) == numeral
    assert read_card(card.resize((SIZE[0] // 2, SIZE[1] // 2))) == numeral


def test_the_numeral_of_a_card_is_large() -> None:
    grey = np.asarray(Image.open(io.BytesIO(draw_card(47))).convert("L"))[30:-30, 30:-30]
    rows, columns = np.nonzero(grey < 90)
    assert np.ptp(rows) > 0.3 * SIZE[1]
    assert np.ptp(columns) > 0.3 * SIZE[0]


def test_a_clip_shows_each_numeral_for_its_time() -> None:
    clip = NumeralClip(numerals=(47, 12, 90), seconds=(1.0, 2.5, 1.5))
    assert (clip.length, clip.starts) == (5.0, (0.0, 1.0, 3.5))
    decoded = decode_video(encode_clip(clip), 4.0)
    assert decoded.sound is None
    shown = [n for _, n in decoded.numerals]
    assert [shown.count(n) for n in clip.numerals] == [4, 10, 6]
    assert {n: t for t, n in reversed(decoded.numerals)} == {47: 0.0, 12: 1.0, 90: 3.5}


def test_each_digit_and_tone_is_heard_in_the_sound_of_a_clip() -> None:
    digits = tuple(random.Random(1).sample(range(10), 10))
    clip = NumeralClip.steady((47, 12), 8.0, speak_digits(digits, 1.5))
    sound = decode_video(encode_clip(clip), 1.0).sound
    assert sound is not None
    assert len(sound) == pytest.approx(16 * RATE, rel=0.01)
    assert tuple(read_digit(part) for part in loud_spans(sound)) == digits
    tones = ("high", "low", "low", "high")
    parts = loud_spans(play_tones(tones, 1.5))
    assert tuple(read_tone(part) for part in parts) == tones


def test_the_digits_are_ten_different_words() -> None:
    voices = spoken_digits()
    assert len(voices) == 10
    for voice in voices:
        assert len(voice) == round(SLOT_S * RATE)
        assert 0.5 < np.abs(voice).max() <= 1.0
        assert np.count_nonzero(np.abs(voice) > 0.05) > 0.1 * RATE


def test_a_second_draw_is_another_one_and_a_seed_gives_the_same() -> None:
    assert digits_step(6, 0, 0).sent == digits_step(6, 0, 0).sent != digits_step(6, 1, 0).sent
    silent = digits_step(6, 0, 0, silent=True)
    spoken = digits_step(6, 0, 0)
    assert silent.clip is not None
    assert spoken.clip is not None
    assert silent.clip.numerals == spoken.clip.numerals
    assert silent.clip.for_model().digest != spoken.clip.for_model().digest
    step = times_step(0, 0)
    assert step.clip is not None
    assert all(step.clip.starts[step.clip.numerals.index(n)] == s for n, s in step.sent.items())
    assert len(set(step.clip.seconds)) > 1


def test_the_plan_grows_with_what_is_asked() -> None:
    few = ProbeSettings(images=(8,), longest_seconds=16, in_flight=0)
    many = ProbeSettings(images=(8, 48), longest_seconds=64, in_flight=16)
    assert few.lengths == (8, 16)
    assert many.levels == (1, 2, 4, 8, 16)
    counts = [sum(times for _, times in planned_steps(s, 0)) for s in (few, many)]
    assert counts[0] < counts[1]


@pytest.mark.parametrize(
    "wrong",
    [
        {"images": (48, 8)}, {"images": (0,)}, {"images": (8, 8)}, {"first_seconds": 2},
        {"longest_seconds": 4}, {"longest_seconds": 5000}, {"digits": 0}, {"in_flight": -1},
        {"prefix_words": 3}, {"max_tokens": 1},
    ],
)  # fmt: skip
def test_impossible_settings_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(UserError, match=next(iter(wrong))):
        ProbeSettings(**wrong)  # type: ignore[arg-type]
