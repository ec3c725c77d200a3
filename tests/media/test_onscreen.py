"""Words on the screen, in drawn videos and with a reader that counts."""

from collections.abc import Iterable
from pathlib import Path

import cv2
import numpy as np
import pytest

from mustsee.media.lettering import Corners, Image, RapidReader
from mustsee.media.onscreen import TextFinder, TextRules, is_same_text, letters, texts
from mustsee.media.text_search import places
from mustsee.media.video import open_video
from mustsee.records import ScreenText
from tests.support.sample_videos import scene, write

WIDTH, HEIGHT, FPS = 320, 180, 4


class Counting:
    """A reader that counts how many lines it reads."""

    def __init__(self) -> None:
        self._reader, self.read = RapidReader(), 0

    def lines(self, image: Image) -> list[Corners]:
        return self._reader.lines(image)

    def text(self, line: Image) -> tuple[str, float]:
        self.read += 1
        return self._reader.text(line)


class Doubtful:
    """A reader that takes leaves for words."""

    def __init__(self, *said: tuple[str, float]) -> None:
        self._said = list(said)

    def lines(self, image: Image) -> list[Corners]:
        height, width = image.shape[:2]
        return [np.array([(0, 0), (width, 0), (width, height), (0, height)], np.float32)]

    def text(self, line: Image) -> tuple[str, float]:
        return self._said.pop(0) if len(self._said) > 1 else self._said[0]


@pytest.fixture(scope="module")
def reader() -> Counting:
    pytest.importorskip("rapidocr")
    return Counting()


def ground(number: int) -> np.ndarray:
    """Soft blocks that drift, as things do in a video."""
    blocks = scene(3, 6 * number, width=WIDTH, height=HEIGHT)
    return cv2.GaussianBlur(blocks, (0, 0), 12) // 2


def lettered(
    image: np.ndarray, text: str, at: tuple[int, int] = (20, 150), size: float = 0.8
) -> np.ndarray:
    wide = max(1, round(2.5 * size))
    return cv2.putText(
        image.copy(), text, at, cv2.FONT_HERSHEY_SIMPLEX, size, (255,) * 3, wide, cv2.LINE_AA
    )


def seen(
    path: Path, images: Iterable[np.ndarray], reader: object, rules: TextRules | None = None
) -> tuple[ScreenText, ...]:
    rules = rules or TextRules()
    finder = TextFinder(rules, reader)  # type: ignore[arg-type]
    with open_video(str(write(path, images, fps=FPS))) as watched:
        for picture in watched.pictures():
            finder.see(picture)
    return texts(rules, [finder.lines()])


def test_words_are_found_once_from_when_they_come_up_until_they_go(
    reader: Counting, tmp_path: Path
) -> None:
    images = [
        lettered(ground(n), "MARKET SQUARE") if 20 <= n < 52 else ground(n) for n in range(80)
    ]
    (found,) = seen(tmp_path / "overlay.mp4", images, reader)
    assert found.text == "MARKET SQUARE"
    assert found.time == pytest.approx(20 / FPS, abs=1.01)
    assert found.end == pytest.approx(52 / FPS, abs=1.01)
    assert found.score >= 0.92
    assert 0.6 < found.top < 0.85
    assert found.at(8.0)
    assert not found.at(17.0)


def test_a_card_that_stays_is_read_once(reader: Counting, tmp_path: Path) -> None:
    card = lettered(np.full((HEIGHT, WIDTH, 3), 60, np.uint8), "ADD 300 GRAMS", (20, 70))
    before = reader.read
    found = seen(tmp_path / "card.mp4", [lettered(card, "OF FLOUR")] * 60, reader)
    assert [t.text for t in found] == ["ADD 300 GRAMS", "OF FLOUR"]
    assert [(t.time, t.end) for t in found] == [(0.0, 14.0)] * 2
    assert reader.read - before == 2


def test_a_card_that_comes_again_and_again_in_its_place(reader: Counting, tmp_path: Path) -> None:
    plain = np.full((HEIGHT, WIDTH, 3), 60, np.uint8)
    card = lettered(plain, "ADD 300 GRAMS", (20, 70))
    shown = [(0, 4), (10, 14), (15, 20)]  # seconds
    lit = [any(a <= n / FPS < b for a, b in shown) for n in range(22 * FPS)]
    images = [card if on else plain + 140 for on in lit]
    found = seen(tmp_path / "again.mp4", images, reader)
    assert {t.text for t in found} == {"ADD 300 GRAMS"}
    assert [t.time for t in found] == pytest.approx([0, 10], abs=1.01)


@pytest.mark.parametrize("size", [0.5, 1.0, 2.2])
def test_letters_of_any_size_are_found(reader: Counting, tmp_path: Path, size: float) -> None:
    plain = np.full((HEIGHT, WIDTH, 3), 90, np.uint8)
    found = seen(tmp_path / "size.mp4", [lettered(plain, "HARBOUR", (4, 110), size)] * 8, reader)
    assert [t.text for t in found] == ["HARBOUR"]


def test_a_video_without_words_costs_no_reading(reader: Counting, tmp_path: Path) -> None:
    before = reader.read
    assert seen(tmp_path / "none.mp4", [ground(n) for n in range(60)], reader) == ()
    assert reader.read == before
    assert places(cv2.cvtColor(ground(0), cv2.COLOR_RGB2GRAY))[0] == []


def test_a_clock_is_not_what_it_was(reader: Counting, tmp_path: Path) -> None:
    plain = np.full((HEIGHT, WIDTH, 3), 60, np.uint8)
    images = [lettered(plain, "13:44" if n < 32 else "13:49", size=1.2) for n in range(64)]
    first, second = seen(tmp_path / "clock.mp4", images, reader)
    assert (first.text, second.text) == ("13:44", "13:49")
    assert first.end is not None
    assert first.end <= second.time + 4  # until the next search the old digits are believed


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ([("HOUT EN SuCm", 0.68)], []),
        ([("BUNKY", 0.9)], []),
        ([("BUNKY", 0.97), ("EUNKY", 0.7), ("EUNKY", 0.75)], []),
        ([("JY", 0.99)], []),
        ([("LONDON", 0.97)], ["LONDON"]),
    ],
)
def test_what_is_not_surely_read_is_left_out(
    tmp_path: Path, said: list[tuple[str, float]], kept: list[str]
) -> None:
    """However often it is seen; what most readings say counts, and how sure those are."""
    images = [scene(n // 8, n, width=WIDTH, height=HEIGHT) for n in range(80)]
    images = [lettered(image, "WHATEVER") for image in images]
    found = seen(tmp_path / "junk.mp4", images, Doubtful(*said))
    assert sorted({t.text for t in found}) == kept


def test_readings_are_of_the_same_words_but_never_of_other_numbers() -> None:
    assert is_same_text("clideo.com", "clideo.")
    assert is_same_text("Blender Cloud", "BlenderCloud")
    assert not is_same_text("57", "51")
    assert not is_same_text("200 GRAMS", "300 GRAMS")
    assert [letters(t) for t in ("TOO HOT!", "东京", "★", "--")] == [6, 4, 0, 0]


def test_equal_words_at_two_places_are_two_lines_each_with_its_time(
    reader: Counting, tmp_path: Path
) -> None:
    plain = np.full((HEIGHT, WIDTH, 3), 60, np.uint8)
    below, above = (lettered(plain, "ONE FLAG", (20, y)) for y in (165, 30))
    other = cv2.GaussianBlur(plain + 100, (0, 0), 3)
    images = [below] * (10 * FPS) + [other] * FPS + [above] * (8 * FPS)
    low, high = seen(tmp_path / "places.mp4", images, reader)
    assert low.text == high.text == "ONE FLAG"
    assert low.top > 0.7 > 0.3 > high.top
    assert (low.time, low.end) == (0.0, pytest.approx(9.0, abs=1.01))
    assert high.time == pytest.approx(11.0, abs=1.01)
