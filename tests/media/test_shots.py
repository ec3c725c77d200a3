"""Shots against drawn videos whose cuts are known: one for each of what makes cuts hard to see."""

from collections.abc import Callable, Sequence
from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from mustsee.media.changes import blend, change, coarse, unlike
from mustsee.media.pictures import Thumbnail, Thumbnails
from mustsee.media.shots import ShotFinder, ShotRules, shots_of
from mustsee.media.video import open_video
from mustsee.records import Span
from tests.support.sample_videos import FPS, cuts, scene, write

Image = NDArray[np.uint8]
RNG = np.random.default_rng(7)


def view(seed: int, x: float = 0.0, y: float = 0.0, zoom: float = 1.0) -> Image:
    """A window on a large coloured picture, from (x, y) on."""
    rng = np.random.default_rng(seed)
    world = sum(
        share * cv2.resize(rng.normal(0, 1, (h, w, 3)), (640, 448), interpolation=cv2.INTER_CUBIC)
        for share, h, w in ((45, 14, 20), (30, 42, 60))
    )
    world = np.clip(128 + world, 0, 255).astype(np.uint8)
    move = np.array([[zoom, 0, -x * zoom], [0, zoom, -y * zoom]], float)
    return cv2.warpAffine(world, move, (160, 120), borderMode=cv2.BORDER_REFLECT)


def still(*lengths: int) -> list[Image]:
    """Standing pictures of so many frames each."""
    return [view(seed) for seed, n in enumerate(lengths, 1) for _ in range(n)]


def noisy(images: Sequence[Image], strength: float) -> list[Image]:
    return [np.clip(i + RNG.normal(0, strength, i.shape), 0, 255).astype(np.uint8) for i in images]


def gained(images: Sequence[Image]) -> list[Image]:
    """A webcam: the sensor's noise, and its gain in steps of a quarter of the brightness."""
    gains = [1.0, 0.75, 1.0, 1.25]
    return noisy([np.clip(i * gains[n // 12 % 4], 0, 255) for n, i in enumerate(images)], 6)


def flashed(images: Sequence[Image], *at: int) -> list[Image]:
    """Two white frames at each of some places."""
    return [np.full_like(i, 250) if {n, n - 1} & set(at) else i for n, i in enumerate(images)]


def passed(images: Sequence[Image], at: int) -> list[Image]:
    """Something large goes by before the camera within four frames."""
    found = [i.copy() for i in images]
    for n in range(4):
        found[at + n][:, 40 * n : 40 * n + 100] = (200, 30, 30)
    return found


def blended(length: int) -> list[Image]:
    """Two pictures of 48 frames and a dissolve between them."""
    shares = [*[0.0] * 48, *np.linspace(0, 1, length + 2)[1:-1], *[1.0] * 48]
    return [(view(1) * (1 - s) + view(2) * s).astype(np.uint8) for s in shares]


def slide(seed: int) -> Image:
    """Dark words on white within a black frame."""
    page = np.zeros((120, 160, 3), np.uint8)
    page[12:108, 16:144] = 240
    for n in range(6):
        text = f"{seed * 7919 ** (n + 1)}"[: 8 + (seed * n) % 7]
        cv2.putText(page, text, (22, 26 + 14 * n), cv2.FONT_HERSHEY_SIMPLEX, 0.45, (20,) * 3)
    return page


def starts(path: Path, rules: ShotRules | None = None) -> list[float]:
    return [shot.start for shot in shots_of(str(path), rules)]


def test_cuts_are_where_they_were_drawn(tmp_path: Path) -> None:
    lengths = [30, 24, 40, 18, 50, 33]
    found = shots_of(str(write(tmp_path / "cuts.mp4", cuts(lengths))))
    edges = np.cumsum([0, *lengths]) / FPS
    assert [s.start for s in found] == pytest.approx(edges[:-1].tolist())
    assert [s.end for s in found] == pytest.approx(edges[1:].tolist())


def grey(images: Sequence[Image]) -> list[Image]:
    return [np.repeat(i.mean(2, keepdims=True), 3, 2).astype(np.uint8) for i in images]


def equal_light(images: Sequence[Image]) -> list[Image]:
    """Only the colours differ: every pixel as bright as any other."""
    light = [i.astype(float) @ np.array([0.299, 0.587, 0.114]) for i in images]
    pairs = zip(images, light, strict=True)
    return [np.clip(128 + (i - v[..., None]) * 0.8, 0, 255).astype(np.uint8) for i, v in pairs]


@pytest.mark.parametrize(
    ("name", "draw", "edges"),
    [
        ("noise", lambda: noisy(still(30, 40, 30), 12), (30, 70)),
        ("noise in one shot", lambda: noisy(still(80), 16), ()),
        ("black and white", lambda: grey(cuts([30, 24, 40])), (30, 54)),
        ("shots of 0.3 s", lambda: still(24, 8, 7, 8, 24), (24, 32, 39, 47)),
        ("there and back", lambda: [*still(24), *[view(2)] * 8, *still(24)], (24, 32)),
        ("webcam", lambda: gained(still(96)), ()),
        ("flashes", lambda: flashed(still(80), 20, 44, 60), ()),
        ("flash before a cut", lambda: flashed(still(48, 40), 24), (48,)),
        ("passing by", lambda: passed(still(60), 30), ()),
        ("pan", lambda: [view(3, 3 * n) for n in range(90)], ()),
        ("whip pan", lambda: [view(3, 10 * max(0, min(n - 30, 40))) for n in range(90)], ()),
        ("zoom", lambda: [view(3, 120, 90, 1 + n / 50) for n in range(80)], ()),
        ("cut in a pan", lambda: [view(3 + (n >= 40), 3 * n) for n in range(80)], (40,)),
        ("slides", lambda: [slide(s) for s in (1, 2, 3) for _ in range(30)], (30, 60)),
    ],
)  # fmt: skip
def test_cuts_and_what_is_none(
    tmp_path: Path, name: str, draw: Callable[[], list[Image]], edges: Sequence[int]
) -> None:
    path = write(tmp_path / "video.mp4", draw())
    assert starts(path) == pytest.approx([0.0, *(edge / FPS for edge in edges)], abs=0.5 / FPS)


def test_colours_alone_make_a_cut(tmp_path: Path) -> None:
    images = equal_light(still(40, 40))
    path = write(tmp_path / "colours.mp4", images)
    luma = [cv2.cvtColor(i, cv2.COLOR_RGB2GRAY) for i in (images[0], images[-1])]
    assert cv2.norm(luma[0], luma[1], cv2.NORM_L1) / luma[0].size < 25
    assert starts(path) == pytest.approx([0, 40 / FPS])


@pytest.mark.parametrize("repeats", [2, 4])
def test_low_frame_rates_by_repetition(tmp_path: Path, repeats: int) -> None:
    """Each frame several times, as in webcam videos, and movement between them."""
    moving = [view(1, 6 * n) for n in range(12)] + [view(2, 6 * n) for n in range(12)]
    path = write(tmp_path / "low.mp4", [i for i in moving for _ in range(repeats)])
    assert starts(path) == pytest.approx([0, 12 * repeats / FPS])


def test_varying_frame_rates(tmp_path: Path) -> None:
    """Four frames a second, then twenty-four, and a cut in each."""
    times = [*np.arange(20) / 4, *(5 + np.arange(72) / 24)]
    images = [view(1 + (n >= 10) + (n >= 60), 2 * n) for n in range(len(times))]
    path = write(tmp_path / "varying.mp4", images, times=times)
    assert starts(path) == pytest.approx([0, times[10], times[60]], abs=0.01)


@pytest.mark.parametrize("length", [10, 24, 40])
def test_dissolves(tmp_path: Path, length: int) -> None:
    path = write(tmp_path / "dissolve.mp4", blended(length))
    middle = (48 + length / 2) / FPS
    assert starts(path) == pytest.approx([0, middle], abs=max(0.25, length / 4 / FPS))
    assert starts(path, ShotRules(dissolve=None)) == [0]


def pushed(length: int, to: int) -> list[Image]:
    """One picture of 48 frames pushes another one away; both stand before and after."""
    shares = [*[0.0] * 48, *np.linspace(0, 1, length + 2)[1:-1], *[1.0] * 48]
    small = [np.random.default_rng(n).integers(0, 255, (15, 20, 3), np.uint8) for n in (1, to)]
    whole = [cv2.resize(i, (160, 120), interpolation=cv2.INTER_CUBIC) for i in small]
    both = np.concatenate(whole, axis=1)
    return [np.ascontiguousarray(both[:, round(s * 160) :][:, :160]) for s in shares]


@pytest.mark.parametrize("length", [10, 16])
def test_sweeps(tmp_path: Path, length: int) -> None:
    """What comes back to the picture that stood there is none."""
    path = write(tmp_path / "sweep.mp4", pushed(length, 2))
    assert starts(path) == pytest.approx([0, (48 + length / 2) / FPS], abs=0.3)
    assert starts(path, ShotRules(dissolve=None)) == [0]
    assert starts(write(tmp_path / "same.mp4", pushed(length, 1))) == [0]


@pytest.mark.parametrize("back", [False, True])
def test_fades_through_black(tmp_path: Path, back: bool) -> None:
    """One cut in the middle of the black, however slowly the picture goes; a video that begins or
    ends in black has none there.
    """
    light = [*[1.0] * 24, *np.linspace(1, 0, 24), *[0.0] * 12, *np.linspace(0, 1, 24), *[1.0] * 24]
    images = [view(1 + (n >= 54)) * share for n, share in enumerate(light)]
    if back:
        images = [images[0] * 0.0] * 12 + [images[0] * s for s in np.linspace(0, 1, 24)] + images
    path = write(tmp_path / "fade.mp4", [i.astype(np.uint8) for i in images])
    middle = (54 + 36 * back) / FPS
    assert starts(path) == pytest.approx([0, middle], abs=6 / FPS)
    none = ShotRules(fade_below=None, dissolve=None)
    assert len(starts(path, none)) == 1


def test_a_cut_to_black_is_one_cut(tmp_path: Path) -> None:
    black = [np.zeros((120, 160, 3), np.uint8)] * 24
    rise = [(view(2) * s).astype(np.uint8) for s in np.linspace(0, 1, 24)]
    path = write(tmp_path / "black.mp4", [*still(40), *black, *rise, *[view(2)] * 24])
    assert starts(path) == pytest.approx([0, 40 / FPS])


def test_shots_are_never_shorter_than_asked_for(tmp_path: Path) -> None:
    path = write(tmp_path / "fast.mp4", cuts([20, 5, 5, 5, 30, 4, 30, 6]))
    for shortest in (0.25, 0.6, 1.0):
        found = shots_of(str(path), ShotRules(shortest=shortest))
        assert all(s.seconds >= shortest - 1e-6 for s in found)
        assert [a.end for a in found[:-1]] == [b.start for b in found[1:]]
        assert found[0].start == 0
        assert found[-1].end == pytest.approx(105 / FPS)


def test_a_video_without_frames_has_no_shots() -> None:
    assert ShotFinder(ShotRules()).shots(1.0) == ()


def test_cuts_come_soon_and_little_is_held(tmp_path: Path) -> None:
    """Cuts are told a second and a half after they pass, however long the video is."""
    path = write(tmp_path / "long.mp4", cuts([60] * 8))
    with open_video(str(path)) as watched:
        finder, told = ShotFinder(ShotRules()), list[tuple[float, float]]()
        for picture in watched.pictures():
            told += [(cut, picture.time) for cut in finder.see(picture)]
            assert len(finder._cut._seen) <= 2 * FPS
            assert len(finder._waiting) <= 8
    assert len(told) >= 6
    assert all(now - cut < 1.5 for cut, now in told)


def thumbnail(image: Image) -> Thumbnail:
    return Thumbnail(cv2.cvtColor(cv2.resize(image, (64, 48)), cv2.COLOR_RGB2YUV_I420))


@given(share=st.floats(0.0, 1.0), seeds=st.tuples(st.integers(0, 99), st.integers(100, 199)))
def test_a_blend_is_known_as_one(share: float, seeds: tuple[int, int]) -> None:
    a, b = (view(seed).astype(float) for seed in seeds)
    ends = coarse(thumbnail(a.astype(np.uint8))), coarse(thumbnail(b.astype(np.uint8)))
    middle = thumbnail((a * (1 - share) + b * share).astype(np.uint8))
    way, rest = blend(ends[0], coarse(middle), ends[1])
    assert way == pytest.approx(share, abs=0.06)
    assert rest < 0.15


@given(seed=st.integers(0, 99), x=st.integers(0, 8), y=st.integers(0, 6), light=st.floats(0.6, 1))
def test_what_moves_or_darkens_is_still_there(seed: int, x: int, y: int, light: float) -> None:
    before, other = thumbnail(view(seed, 40, 40)), thumbnail(view(seed + 100, 40, 40))
    now = thumbnail((view(seed, 40 + x, 40 + y) * light).astype(np.uint8))
    assert unlike(before, now, 1 / 3) < 0.2
    assert unlike(before, other, 1 / 3) > unlike(before, now, 1 / 3)
    assert change(before, before) == 0
    assert change(before, other) == pytest.approx(change(other, before))


@pytest.mark.parametrize("size", [(160, 120), (2, 2), (30, 200)])
def test_pictures_of_any_size(tmp_path: Path, size: tuple[int, int]) -> None:
    width, height = size
    images = [scene(1 + (n >= 30), 0, width, height) for n in range(60)]
    found = shots_of(str(write(tmp_path / "size.mp4", images)))
    assert found[0].start == 0
    assert found[-1].end == pytest.approx(60 / FPS)
    assert Thumbnails(64) is not None


def test_one_shot_where_nothing_cuts(tmp_path: Path) -> None:
    path = write(tmp_path / "still.mp4", [scene(1, number // 4) for number in range(60)])
    assert shots_of(str(path)) == (Span(0.0, pytest.approx(60 / FPS)),)
