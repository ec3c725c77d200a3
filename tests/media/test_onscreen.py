"""On-screen text in drawn videos, with a reader that counts."""

from collections.abc import Iterable
from pathlib import Path

import cv2
import numpy as np
import pytest

from mustsee.media.ocr import Corners, Image, RapidReader
from mustsee.media.onscreen import ReadLine, TextFinder, TextRules, is_same_text, letters, texts
from mustsee.media.text_search import has_changed, is_redrawn, letter_density, letter_mask
from mustsee.media.video import open_video
from mustsee.records import ScreenText
from tests.support.sample_videos import scene, write

WIDTH, HEIGHT, FPS = 320, 180, 4
COLOR = cv2.COLOR_RGB2GRAY


class CountingReader:
    """A reader that counts the lines it reads."""

    def __init__(self) -> None:
        self._reader, self.read = RapidReader(), 0

    def lines(self, image: Image, *, low: bool = False) -> list[Corners]:
        return self._reader.lines(image, low=low)

    def text(self, line: Image) -> tuple[str, float]:
        self.read += 1
        return self._reader.text(line)


class FixedReader:
    """A reader that finds one line as large as the image and returns fixed readings."""

    def __init__(self, *readings: tuple[str, float]) -> None:
        self._readings = list(readings)

    def lines(self, image: Image, *, low: bool = False) -> list[Corners]:
        height, width = image.shape[:2]
        return [np.array([(0, 0), (width, 0), (width, height), (0, height)], np.float32)]

    def text(self, line: Image) -> tuple[str, float]:
        return self._readings.pop(0) if len(self._readings) > 1 else self._readings[0]


@pytest.fixture(scope="module")
def reader() -> CountingReader:
    pytest.importorskip("rapidocr")
    return CountingReader()


def background(number: int) -> np.ndarray:
    """Blurred blocks that drift, as objects in a video do."""
    blocks = scene(3, 6 * number, width=WIDTH, height=HEIGHT)
    return cv2.GaussianBlur(blocks, (0, 0), 12) // 2


def write_text(
    image: np.ndarray, text: str, at: tuple[int, int] = (20, 150), size: float = 0.8
) -> np.ndarray:
    wide = max(1, round(2.5 * size))
    return cv2.putText(
        image.copy(), text, at, cv2.FONT_HERSHEY_SIMPLEX, size, (255,) * 3, wide, cv2.LINE_AA
    )


def find_texts(
    path: Path, images: Iterable[np.ndarray], reader: object, rules: TextRules | None = None
) -> tuple[ScreenText, ...]:
    rules = rules or TextRules()
    finder = TextFinder(rules, reader)  # type: ignore[arg-type]
    with open_video(str(write(path, images, fps=FPS))) as video:
        for frame in video.frames():
            finder.see(frame)
    return texts(rules, [finder.lines()])


def test_text_is_found_once_with_its_start_and_end(reader: CountingReader, tmp_path: Path) -> None:
    images = [
        write_text(background(n), "MARKET SQUARE") if 20 <= n < 52 else background(n)
        for n in range(80)
    ]
    (text,) = find_texts(tmp_path / "overlay.mp4", images, reader)
    assert text.text == "MARKET SQUARE"
    assert text.time == pytest.approx(20 / FPS, abs=1.01)
    assert text.end == pytest.approx(52 / FPS, abs=1.01)
    assert text.score >= 0.92
    assert 0.6 < text.top < 0.85
    assert text.at(8.0)
    assert not text.at(17.0)


def test_a_still_card_is_read_once(reader: CountingReader, tmp_path: Path) -> None:
    card = write_text(np.full((HEIGHT, WIDTH, 3), 60, np.uint8), "ADD 300 GRAMS", (20, 70))
    before = reader.read
    screen_texts = find_texts(tmp_path / "card.mp4", [write_text(card, "OF FLOUR")] * 60, reader)
    assert [t.text for t in screen_texts] == ["ADD 300 GRAMS", "OF FLOUR"]
    assert [(t.time, t.end) for t in screen_texts] == [(0.0, 14.0)] * 2
    assert reader.read - before == 2


def test_a_card_that_reappears_in_its_place_is_found_again(
    reader: CountingReader, tmp_path: Path
) -> None:
    plain = np.full((HEIGHT, WIDTH, 3), 60, np.uint8)
    card = write_text(plain, "ADD 300 GRAMS", (20, 70))
    spans = [(0, 4), (10, 14), (15, 20)]  # seconds
    is_shown = [any(a <= n / FPS < b for a, b in spans) for n in range(22 * FPS)]
    images = [card if on else plain + 140 for on in is_shown]
    screen_texts = find_texts(tmp_path / "again.mp4", images, reader)
    assert {t.text for t in screen_texts} == {"ADD 300 GRAMS"}
    assert [t.time for t in screen_texts] == pytest.approx([0, 10], abs=1.01)


@pytest.mark.parametrize("size", [0.5, 1.0, 2.2])
def test_text_of_any_size_is_found(reader: CountingReader, tmp_path: Path, size: float) -> None:
    plain = np.full((HEIGHT, WIDTH, 3), 90, np.uint8)
    screen_texts = find_texts(
        tmp_path / "size.mp4", [write_text(plain, "HARBOUR", (4, 110), size)] * 8, reader
    )
    assert [t.text for t in screen_texts] == ["HARBOUR"]


def test_a_video_without_text_costs_no_reading(reader: CountingReader, tmp_path: Path) -> None:
    before = reader.read
    assert find_texts(tmp_path / "none.mp4", [background(n) for n in range(60)], reader) == ()
    assert reader.read == before
    luma = cv2.cvtColor(background(0), cv2.COLOR_RGB2GRAY)
    assert not letter_mask(letter_density(np.asarray(luma, np.uint8))).any()


def test_changed_digits_are_another_text(reader: CountingReader, tmp_path: Path) -> None:
    plain = np.full((HEIGHT, WIDTH, 3), 60, np.uint8)
    images = [write_text(plain, "13:44" if n < 32 else "13:49", size=1.2) for n in range(64)]
    first, second = find_texts(tmp_path / "clock.mp4", images, reader)
    assert (first.text, second.text) == ("13:44", "13:49")
    assert first.end is not None
    assert first.end <= second.time


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ([("HOUT EN SuCm", 0.68)], []),
        ([("BUNKY", 0.9)], []),
        ([("JY", 0.99)], []),
        ([("LONDON", 0.97)], ["LONDON"]),
    ],
)
def test_unsure_readings_are_dropped(
    tmp_path: Path, said: list[tuple[str, float]], kept: list[str]
) -> None:
    images = [scene(n // 8, n, width=WIDTH, height=HEIGHT) for n in range(80)]
    images = [write_text(image, "WHATEVER") for image in images]
    screen_texts = find_texts(tmp_path / "junk.mp4", images, FixedReader(*said))
    assert sorted({t.text for t in screen_texts}) == kept


def test_similar_readings_are_the_same_text_unless_digits_differ() -> None:
    assert is_same_text("clideo.com", "clideo.")
    assert is_same_text("Blender Cloud", "BlenderCloud")
    assert not is_same_text("57", "51")
    assert not is_same_text("200 GRAMS", "300 GRAMS")
    assert [letters(t) for t in ("TOO HOT!", "东京", "★", "--")] == [6, 4, 0, 0]


def test_equal_text_in_two_places_is_two_lines_with_their_own_times(
    reader: CountingReader, tmp_path: Path
) -> None:
    plain = np.full((HEIGHT, WIDTH, 3), 60, np.uint8)
    below, above = (write_text(plain, "ONE FLAG", (20, y)) for y in (165, 30))
    other = cv2.GaussianBlur(plain + 100, (0, 0), 3)
    images = [below] * (10 * FPS) + [other] * FPS + [above] * (8 * FPS)
    low, high = find_texts(tmp_path / "places.mp4", images, reader)
    assert low.text == high.text == "ONE FLAG"
    assert low.top > 0.7 > 0.3 > high.top
    assert (low.time, low.end) == (0.0, pytest.approx(9.0, abs=1.01))
    assert high.time == pytest.approx(11.0, abs=1.01)


def test_captions_of_a_second_and_a_half_are_all_read(
    reader: CountingReader, tmp_path: Path
) -> None:
    captions = ["WONDERED", "WELL NOW", "BECAUSE", "IPOD NANO", "COMING SOON", "RIVER BANK"]
    length = 6  # frames at 4 a second
    images = [
        write_text(background(n), captions[n // length % len(captions)])
        for n in range(length * len(captions))
    ]
    screen_texts = find_texts(tmp_path / "short.mp4", images, reader)
    assert [t.text for t in screen_texts] == captions
    for number, text in enumerate(screen_texts):
        begin, end = number * length / FPS, (number + 1) * length / FPS
        assert begin - 0.01 <= text.time <= (text.end or text.time) < end


def test_a_caption_beside_a_lasting_text_is_read(reader: CountingReader, tmp_path: Path) -> None:
    images = [write_text(background(n), "CHANNEL", (20, 30)) for n in range(40)]
    images[18:23] = [write_text(image, "MIDWAY") for image in images[18:23]]
    screen_texts = find_texts(tmp_path / "beside.mp4", images, reader)
    assert [(t.text, t.time) for t in screen_texts] == [("CHANNEL", 0.0), ("MIDWAY", 5.0)]
    assert screen_texts[0].end == 9.0


def test_a_line_that_drifts_or_grows_is_read_once(reader: CountingReader, tmp_path: Path) -> None:
    plain = np.full((HEIGHT, WIDTH, 3), 60, np.uint8)
    drifting = [write_text(plain, "SLOWLY UP", (20, 150 - 2 * (n // FPS))) for n in range(8 * FPS)]
    card = write_text(plain, "EVER LARGER", (40, 100))
    growing = [
        cv2.warpAffine(
            card,
            cv2.getRotationMatrix2D((WIDTH / 2, HEIGHT / 2), 0, 1 + 0.02 * (n // FPS)),
            (WIDTH, HEIGHT),
            borderMode=cv2.BORDER_REPLICATE,
        )
        for n in range(6 * FPS)
    ]
    for name, images in (("SLOWLY UP", drifting), ("EVER LARGER", growing)):
        before = reader.read
        (text,) = find_texts(tmp_path / "moves.mp4", images, reader)
        assert (text.text, text.time, text.end) == (name, 0.0, len(images) / FPS - 1)
        assert reader.read - before == 1


def test_another_line_in_the_place_of_one_is_read(reader: CountingReader, tmp_path: Path) -> None:
    plain = np.full((HEIGHT, WIDTH, 3), 60, np.uint8)
    names = ["BE RIGHT HERE", "SO LIGHT HAIR", "TO FIGHT FEAR"]
    images = [write_text(plain, names[n // (4 * FPS)]) for n in range(12 * FPS)]
    screen_texts = find_texts(tmp_path / "names.mp4", images, reader)
    assert [t.text for t in screen_texts] == names


def test_a_line_with_digits_that_fades_in_is_read_once(
    reader: CountingReader, tmp_path: Path
) -> None:
    dark = np.full((HEIGHT, WIDTH, 3), 20, np.uint8)
    card = write_text(dark, "AGENT 327", size=1.2)
    shares = [min(1.0, 0.4 + 0.1 * (n // FPS)) for n in range(10 * FPS)]
    images = [cv2.addWeighted(card, share, dark, 1 - share, 0) for share in shares]
    before = reader.read
    (text,) = find_texts(tmp_path / "fade.mp4", images, reader)
    assert text.text == "AGENT 327"
    assert reader.read - before == 1


def test_digits_that_change_in_more_light_are_redrawn() -> None:
    first, second = (
        cv2.cvtColor(write_text(np.full((60, 200, 3), 20, np.uint8), t, (10, 40)), COLOR)
        for t in ("AT 13:44", "AT 13:49")
    )
    dim = np.asarray(first // 2, np.uint8)
    assert has_changed(dim, first)
    assert not is_redrawn(dim, first)
    assert is_redrawn(dim, second)
    assert is_redrawn(first, dim)  # In less light, digits differ by too little to tell.


def test_low_lines_are_read(reader: CountingReader) -> None:
    """At less than their width, as they are enlarged."""
    line = write_text(np.full((20, 120, 3), 30, np.uint8), "Hjalti Low", (4, 15), 0.5)
    text, score = reader.text(line)
    assert text == "Hjalti Low"
    assert score > 0.9


def test_a_place_as_high_as_wide_is_not_read(tmp_path: Path) -> None:
    class SquareReader(FixedReader):
        def lines(self, image: Image, *, low: bool = False) -> list[Corners]:
            return [np.array([(0, 0), (30, 0), (30, 30), (0, 30)], np.float32)]

    images = [write_text(background(n), "WHATEVER") for n in range(8)]
    for shortest, found in ((3, []), (1, ["OXO"])):
        rules = TextRules(shortest=shortest)
        screen_texts = find_texts(tmp_path / "o.mp4", images, SquareReader(("OXO", 0.99)), rules)
        assert [t.text for t in screen_texts] == found


def test_equal_texts_of_two_cards_three_seconds_apart_stay_apart(
    reader: CountingReader, tmp_path: Path
) -> None:
    plain = np.full((HEIGHT, WIDTH, 3), 60, np.uint8)
    low, high = (write_text(plain, "COLIN LEVY", (20, y)) for y in (150, 80))
    images = [low] * (3 * FPS) + [plain] * (3 * FPS) + [high] * (3 * FPS)
    screen_texts = find_texts(tmp_path / "apart.mp4", images, reader)
    assert [(t.time, t.end) for t in screen_texts] == [(0.0, 2.0), (6.0, 8.0)]


def test_the_text_is_that_of_most_readings_and_the_score_their_mean() -> None:
    read = {"BUNKY": (0.97,), "EUNKY": (0.7, 0.75)}
    line = ReadLine(first=0, last=2, top=0.5, read=read)
    assert texts(TextRules(), [[line]]) == ()
    (text,) = texts(TextRules(score=0.7), [[line]])
    assert (text.text, text.score) == ("EUNKY", 0.725)
