"""Readings of frames: each different frame once, several at the same time."""

import threading
from collections.abc import Iterator

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from mustsee.offline import looking
from mustsee.offline.facts_phrases import sight_of
from mustsee.offline.looking import Evidence, GreyFrame, ReadText, ShownFrame


def jpeg(level: int) -> bytes:
    """Return a frame of one brightness."""
    return cv2.imencode(".jpg", np.full((120, 160, 3), level, np.uint8))[1].tobytes()


WORDS = ("black", "shadows", "twilight", "morning", "noon")


class Eyes:
    """Reads the brightness of a frame as a word. `met`: frames that must be read together."""

    def __init__(self, met: int = 1) -> None:
        self.seen = list[str]()
        self._barrier = threading.Barrier(met)

    def read(self, image: NDArray[np.uint8]) -> tuple[ReadText, ...]:
        word = WORDS[round(float(image.mean()) / 40) - 1]
        self.seen.append(word)
        self._barrier.wait(30)
        return (ReadText(text=word, top=0.0),)


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(looking.os, "cpu_count", lambda: 2)
    looking._cached.clear()  # pyright: ignore[reportPrivateUsage]
    looking._recent.clear()  # pyright: ignore[reportPrivateUsage]
    looking.threads.cache_clear()
    yield
    looking.threads.cache_clear()


def shown(*levels: int) -> Evidence:
    frames = (ShownFrame(time=float(t), jpeg=jpeg(level)) for t, level in enumerate(levels))
    return Evidence(frames=tuple(frames), lines=())


def test_frames_are_read_together(monkeypatch: pytest.MonkeyPatch) -> None:
    eyes = Eyes(met=2)
    monkeypatch.setattr(looking, "_readings", eyes.read)
    assert shown(40, 80, 120, 160).read("twilight") == [2.0]
    assert sorted(eyes.seen) == sorted(WORDS[:4])


def test_a_hardly_changed_frame_has_earlier_readings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """This holds while the earlier frame is still being read, in any order."""
    eyes = Eyes()
    monkeypatch.setattr(looking, "_readings", eyes.read)
    video = shown(40, 44, 120, 41, 124, 200)
    assert video.read("black") == [0.0, 1.0, 3.0]
    assert video.read("twilight") == [2.0, 4.0]
    assert sorted(eyes.seen) == ["black", "noon", "twilight"]
    assert [p.lines for p in video.frames[:2]] == [("black",), ("black",)]


def test_a_failed_reading_is_retried(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(image: NDArray[np.uint8]) -> tuple[ReadText, ...]:
        raise MemoryError

    monkeypatch.setattr(looking, "_readings", fails)
    with pytest.raises(MemoryError):
        shown(40).read("black")
    monkeypatch.setattr(looking, "_readings", Eyes().read)
    assert shown(40).read("black") == [0.0]


def test_parts_of_a_line_are_joined() -> None:
    """Parts within a letter's width on one line are joined; distant or lower ones are not."""
    first, second = (10.0, 10.0, 60.0, 30.0), (64.0, 11.0, 100.0, 31.0)
    far, below = (130.0, 10.0, 160.0, 30.0), (10.0, 34.0, 60.0, 54.0)
    parts = [(second, "TIMER"), (below, "OVEN"), (first, "KITCHEN"), (far, "9")]
    lines = looking._join_parts(parts)  # pyright: ignore[reportPrivateUsage]
    assert sorted(text for _, text in lines) == ["9", "KITCHEN TIMER", "OVEN"]
    assert ((10.0, 10.0, 100.0, 31.0), "KITCHEN TIMER") in lines


def test_a_state_is_measured_without_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    eyes = Eyes()
    monkeypatch.setattr(looking, "_readings", eyes.read)
    assert sight_of("the whole picture is dark", shown(0, 240)).seen == (0.0,)
    assert eyes.seen == []
    assert sight_of("the word “noon”", shown(200)).seen == (0.0,)
    assert eyes.seen == ["noon"]


@pytest.mark.parametrize(("changed", "equal"), [(4, True), (40, False)])
def test_a_letter_that_leaves_the_brightness_as_it_is_makes_another_frame(
    changed: int, equal: bool
) -> None:
    grey = np.full((64, 96), 120, np.float32)
    other = grey.copy()
    other[16:24, 16:20] += changed
    other[16:24, 20:24] -= changed
    assert GreyFrame.of(grey).equals(GreyFrame.of(other)) == equal
    assert not GreyFrame.of(grey).equals(GreyFrame.of(grey[:32]))
