"""Contact sheets: which frames they hold, how large they are, and that no bar or black frame wastes
a cell.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mustsee.errors import UserError
from mustsee.media.contact_sheet import SheetRules, choose_frames, contact_sheets, spread_evenly
from mustsee.media.frames import decode, encode
from mustsee.records import Keyframe, Span

WHOLE = Span(0.0, 1e6)
GREEN = (40, 200, 40)


def frame(colour: tuple[int, int, int], width: int = 160, height: int = 90) -> bytes:
    return encode(np.full((height, width, 3), colour, np.uint8), 90)


def keyframes(shots: list[int], jpeg: bytes = b"") -> list[Keyframe]:
    """Keyframes a second apart, as many in each shot as `shots` says."""
    numbers = [shot for shot, count in enumerate(shots) for _ in range(count)]
    return [Keyframe(time=float(n), shot=shot, jpeg=jpeg) for n, shot in enumerate(numbers)]


@given(st.lists(st.integers(1, 5), max_size=12), st.integers(0, 20))
def test_one_frame_of_each_shot_comes_before_a_second_of_any(shots: list[int], count: int) -> None:
    every = keyframes(shots)
    chosen = choose_frames(every, count)
    assert len(chosen) == min(count, len(every))
    assert chosen == sorted({k.time: k for k in chosen}.values(), key=lambda k: k.time)
    seen = Counter(k.shot for k in chosen)
    most = max(seen.values(), default=0)
    assert all(seen[shot] >= min(held, most - 1) for shot, held in enumerate(shots))


@given(st.integers(0, 50), st.integers(0, 20))
def test_chosen_items_are_spread_evenly(length: int, count: int) -> None:
    chosen = spread_evenly(range(length), count)
    assert len(chosen) == min(length, count)
    gaps = np.diff([-1, *chosen, length])
    assert not chosen or gaps.max() <= -(-length // len(chosen)) + 1


@pytest.mark.parametrize(("width", "height"), [(160, 90), (90, 160), (120, 120), (640, 90)])
@pytest.mark.parametrize("count", [1, 2, 7, 12, 30])
def test_sheets_hold_all_frames_in_order_within_the_size(
    count: int, width: int, height: int
) -> None:
    rules = SheetRules(most=4, cells=12, longest=600)
    jpeg = frame(GREEN, width, height)
    sheets = contact_sheets(keyframes([1] * count, jpeg), WHOLE, rules)
    assert [t for sheet in sheets for t in sheet.times] == [float(n) for n in range(count)]
    assert len(sheets) == -(-count // 12)
    assert max(len(s.times) for s in sheets) - min(len(s.times) for s in sheets) <= 1
    for sheet in sheets:
        image = decode(sheet.jpeg)
        assert image is not None
        assert max(image.shape[:2]) <= 600
        green = (image[..., 1] > 150) & (image[..., 0] < 90)
        largest = 600 * (600 - 20) * min(1.0, width / height, height / width)
        assert green.sum() > (0.5 if len(sheet.times) > 2 else 0.25) * largest


def test_each_frame_has_its_time_above_it() -> None:
    """The strip above a frame differs with its time, and nothing is written into the frame."""
    (sheet,) = contact_sheets(keyframes([1, 1], frame(GREEN)), WHOLE, SheetRules(longest=400))
    image = decode(sheet.jpeg)
    assert image is not None
    green = (image[..., 1] > 150) & (image[..., 0] < 90)
    rows = np.flatnonzero(green.any(axis=1))
    first, second = np.split(image, [rows[np.flatnonzero(np.diff(rows) > 1)[0]] + 1])
    strips = [part[:20].max(axis=2) for part in (first, second)]
    assert all((strip > 200).sum() > 30 for strip in strips)
    assert (strips[0] > 128).sum() != (strips[1] > 128).sum()
    inside = first[22:, :200]
    assert np.ptp(inside[..., 1]) < 30


def test_bars_are_cut_and_black_and_damaged_frames_are_left_out() -> None:
    barred = np.zeros((90, 160, 3), np.uint8)
    barred[:, 55:105] = GREEN
    jpegs = [encode(barred, 90), frame((0, 0, 0)), b"no image", encode(barred, 90)]
    every = [Keyframe(time=float(n), shot=n, jpeg=jpeg) for n, jpeg in enumerate(jpegs)]
    (sheet,) = contact_sheets(every, WHOLE, SheetRules(longest=400))
    assert sheet.times == (0.0, 3.0)
    image = decode(sheet.jpeg)
    assert image is not None
    assert image.shape[1] > 380
    assert ((image[..., 1] > 150).mean(axis=0) > 0.8).mean() > 0.9
    assert contact_sheets(every[1:3], WHOLE, SheetRules()) == ()


def test_only_frames_of_the_span_are_shown_and_none_if_off() -> None:
    every = keyframes([1] * 9, frame(GREEN))
    (sheet,) = contact_sheets(every, Span(2.0, 5.0), SheetRules())
    assert sheet.times == (2.0, 3.0, 4.0, 5.0)
    assert contact_sheets(every, WHOLE, SheetRules(most=0)) == ()
    assert contact_sheets((), WHOLE, SheetRules()) == ()
    for wrong in ({"most": -1}, {"cells": 0}, {"longest": 10}):
        with pytest.raises(UserError, match=next(iter(wrong))):
            SheetRules(**wrong)
