"""What is read in pictures: each that differs once, several of them at the same time."""

import threading
from collections.abc import Iterator

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from mustsee.media.lettering import Read, Reading
from mustsee.offline import looking
from mustsee.offline.looking import Picture, Shown


def jpeg(level: int) -> bytes:
    """A picture of one brightness."""
    return cv2.imencode(".jpg", np.full((120, 160, 3), level, np.uint8))[1].tobytes()


WORDS = ("black", "shadows", "twilight", "morning", "noon")


class Eyes:
    """Reads how bright a picture is, in a word. `met`: pictures that must be looked at together."""

    def __init__(self, met: int = 1) -> None:
        self.seen = list[str]()
        self._barrier = threading.Barrier(met)

    def reader(self, longest: int) -> Read:
        def read(image: NDArray[np.uint8]) -> list[Reading]:
            word = WORDS[round(float(image.mean()) / 40) - 1]
            self.seen.append(word)
            self._barrier.wait(30)
            return [Reading(text=word, score=1.0, top=0.0)]

        return read


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(looking.os, "cpu_count", lambda: 2)
    looking._known.clear()  # pyright: ignore[reportPrivateUsage]
    looking._lately.clear()  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(looking, "_readers", looking._Readers())  # pyright: ignore[reportPrivateUsage]
    looking._threads.cache_clear()  # pyright: ignore[reportPrivateUsage]
    yield
    looking._threads.cache_clear()  # pyright: ignore[reportPrivateUsage]


def shown(*levels: int) -> Shown:
    pictures = (Picture(time=float(t), jpeg=jpeg(level)) for t, level in enumerate(levels))
    return Shown(pictures=tuple(pictures), lines=())


def test_pictures_are_read_together(monkeypatch: pytest.MonkeyPatch) -> None:
    eyes = Eyes(met=2)
    monkeypatch.setattr(looking, "reader", eyes.reader)
    assert shown(40, 80, 120, 160).read("twilight") == [2.0]
    assert sorted(eyes.seen) == sorted(WORDS[:4])


def test_what_has_hardly_changed_says_what_came_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where that is still being read, and whichever is done first."""
    eyes = Eyes()
    monkeypatch.setattr(looking, "reader", eyes.reader)
    film = shown(40, 44, 120, 41, 124, 200)
    assert film.read("black") == [0.0, 1.0, 3.0]
    assert film.read("twilight") == [2.0, 4.0]
    assert sorted(eyes.seen) == ["black", "noon", "twilight"]
    assert [p.lines for p in film.pictures[:2]] == [("black",), ("black",)]
