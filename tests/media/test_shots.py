"""Shots of drawn videos with known cuts, one video for each difficulty of cut detection."""

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from actors.stages.look import Look
from benchmarks.harness import NO_CALLS
from mustsee.media.changes import blend, change, coarse, unlike
from mustsee.media.frames import Thumbnail, Thumbnails
from mustsee.media.shots import ShotFinder, ShotRules, shots_of
from mustsee.media.video import facts, open_video
from mustsee.records import Span, Video
from tests.support.sample_videos import FPS, cuts, scene, write

Image = NDArray[np.uint8]
RNG = np.random.default_rng(7)


@cache
def world(seed: int) -> Image:
    """A large coloured image."""
    rng = np.random.default_rng(seed)
    image = sum(
        share * cv2.resize(rng.normal(0, 1, (h, w, 3)), (640, 448), interpolation=cv2.INTER_CUBIC)
        for share, h, w in ((45, 14, 20), (30, 42, 60))
    )
    return np.clip(128 + image, 0, 255).astype(np.uint8)


def view(seed: int, x: float = 0.0, y: float = 0.0, zoom: float = 1.0) -> Image:
    """A window on a large coloured image, from (x, y) on."""
    move = np.array([[zoom, 0, -x * zoom], [0, zoom, -y * zoom]], float)
    return cv2.warpAffine(world(seed), move, (160, 120), borderMode=cv2.BORDER_REFLECT)


def still(*lengths: int) -> list[Image]:
    """Still images, with `lengths` frames each."""
    return [view(seed) for seed, n in enumerate(lengths, 1) for _ in range(n)]


def noisy(images: Sequence[Image], strength: float) -> list[Image]:
    return [np.clip(i + RNG.normal(0, strength, i.shape), 0, 255).astype(np.uint8) for i in images]


def with_gain_steps(images: Sequence[Image]) -> list[Image]:
    """A webcam: the sensor's noise, and its gain in steps of a quarter of the brightness."""
    gains = [1.0, 0.75, 1.0, 1.25]
    return noisy([np.clip(i * gains[n // 12 % 4], 0, 255) for n, i in enumerate(images)], 6)


def with_flashes(images: Sequence[Image], *at: int) -> list[Image]:
    """Two white frames at each of the places `at`."""
    return [np.full_like(i, 250) if {n, n - 1} & set(at) else i for n, i in enumerate(images)]


def with_passing_object(images: Sequence[Image], at: int) -> list[Image]:
    """A large object passes before the camera within four frames."""
    changed = [i.copy() for i in images]
    for n in range(4):
        changed[at + n][:, 40 * n : 40 * n + 100] = (200, 30, 30)
    return changed


def dissolve_images(length: int) -> list[Image]:
    """Two still images of 48 frames with a dissolve between them."""
    shares = [*[0.0] * 48, *np.linspace(0, 1, length + 2)[1:-1], *[1.0] * 48]
    return [(view(1) * (1 - s) + view(2) * s).astype(np.uint8) for s in shares]


def slide(seed: int) -> Image:
    """Dark words on white within a black border."""
    page = np.zeros((120, 160, 3), np.uint8)
    page[12:108, 16:144] = 240
    for n in range(6):
        text = f"{seed * 7919 ** (n + 1)}"[: 8 + (seed * n) % 7]
        cv2.putText(page, text, (22, 26 + 14 * n), cv2.FONT_HERSHEY_SIMPLEX, 0.45, (20,) * 3)
    return page


def shot_starts(path: Path, rules: ShotRules | None = None) -> list[float]:
    return [shot.start for shot in shots_of(str(path), rules)]


def test_cuts_are_found_where_they_were_drawn(tmp_path: Path) -> None:
    lengths = [30, 24, 40, 18, 50, 33]
    shots = shots_of(str(write(tmp_path / "cuts.mp4", cuts(lengths))))
    edges = np.cumsum([0, *lengths]) / FPS
    assert [s.start for s in shots] == pytest.approx(edges[:-1].tolist())
    assert [s.end for s in shots] == pytest.approx(edges[1:].tolist())


def grey(images: Sequence[Image]) -> list[Image]:
    return [np.repeat(i.mean(2, keepdims=True), 3, 2).astype(np.uint8) for i in images]


def equal_light(images: Sequence[Image]) -> list[Image]:
    """Only the colours differ: all pixels have nearly the same brightness."""
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
        ("webcam", lambda: with_gain_steps(still(96)), ()),
        ("flashes", lambda: with_flashes(still(80), 20, 44, 60), ()),
        ("flash before a cut", lambda: with_flashes(still(48, 40), 24), (48,)),
        ("passing by", lambda: with_passing_object(still(60), 30), ()),
        ("pan", lambda: [view(3, 3 * n) for n in range(90)], ()),
        ("whip pan", lambda: [view(3, 10 * max(0, min(n - 30, 40))) for n in range(90)], ()),
        ("zoom", lambda: [view(3, 120, 90, 1 + n / 50) for n in range(80)], ()),
        ("cut in a pan", lambda: [view(3 + (n >= 40), 3 * n) for n in range(80)], (40,)),
        ("slides", lambda: [slide(s) for s in (1, 2, 3) for _ in range(30)], (30, 60)),
    ],
)  # fmt: skip
def test_only_real_cuts_are_found(
    tmp_path: Path, name: str, draw: Callable[[], list[Image]], edges: Sequence[int]
) -> None:
    path = write(tmp_path / "video.mp4", draw())
    assert shot_starts(path) == pytest.approx([0.0, *(edge / FPS for edge in edges)], abs=0.5 / FPS)


def test_a_change_of_colour_alone_is_a_cut(tmp_path: Path) -> None:
    images = equal_light(still(40, 40))
    path = write(tmp_path / "colours.mp4", images)
    luma = [cv2.cvtColor(i, cv2.COLOR_RGB2GRAY) for i in (images[0], images[-1])]
    assert cv2.norm(luma[0], luma[1], cv2.NORM_L1) / luma[0].size < 25
    assert shot_starts(path) == pytest.approx([0, 40 / FPS])


@pytest.mark.parametrize("repeats", [2, 4])
def test_cuts_are_found_among_repeated_frames(tmp_path: Path, repeats: int) -> None:
    """Each frame is repeated, as in webcam videos, with motion between the repetitions."""
    moving = [view(1, 6 * n) for n in range(12)] + [view(2, 6 * n) for n in range(12)]
    path = write(tmp_path / "low.mp4", [i for i in moving for _ in range(repeats)])
    assert shot_starts(path) == pytest.approx([0, 12 * repeats / FPS])


def test_cuts_are_found_at_a_variable_frame_rate(tmp_path: Path) -> None:
    """Four frames per second, then twenty-four, with a cut in each."""
    times = [*np.arange(20) / 4, *(5 + np.arange(72) / 24)]
    images = [view(1 + (n >= 10) + (n >= 60), 2 * n) for n in range(len(times))]
    path = write(tmp_path / "varying.mp4", images, times=times)
    assert shot_starts(path) == pytest.approx([0, times[10], times[60]], abs=0.01)


@pytest.mark.parametrize("length", [10, 24, 40])
def test_a_dissolve_is_found_in_its_middle(tmp_path: Path, length: int) -> None:
    path = write(tmp_path / "dissolve.mp4", dissolve_images(length))
    middle = (48 + length / 2) / FPS
    assert shot_starts(path) == pytest.approx([0, middle], abs=max(0.25, length / 4 / FPS))
    assert shot_starts(path, ShotRules(dissolve=None)) == [0]


def sweep_images(length: int, to: int) -> list[Image]:
    """One still image of 48 frames pushes another one away, which is still before it."""
    shares = [*[0.0] * 48, *np.linspace(0, 1, length + 2)[1:-1], *[1.0] * 48]
    small = [np.random.default_rng(n).integers(0, 255, (15, 20, 3), np.uint8) for n in (1, to)]
    large = [cv2.resize(i, (160, 120), interpolation=cv2.INTER_CUBIC) for i in small]
    both = np.concatenate(large, axis=1)
    return [np.ascontiguousarray(both[:, round(s * 160) :][:, :160]) for s in shares]


@pytest.mark.parametrize("length", [10, 16])
def test_a_sweep_is_found_in_its_middle(tmp_path: Path, length: int) -> None:
    """A sweep that returns to the image before it is not one."""
    path = write(tmp_path / "sweep.mp4", sweep_images(length, 2))
    assert shot_starts(path) == pytest.approx([0, (48 + length / 2) / FPS], abs=0.3)
    assert shot_starts(path, ShotRules(dissolve=None)) == [0]
    assert shot_starts(write(tmp_path / "same.mp4", sweep_images(length, 1))) == [0]


@pytest.mark.parametrize("back", [False, True])
def test_a_fade_through_black_is_found_in_its_middle(tmp_path: Path, back: bool) -> None:
    """One cut in the middle of the black, at any speed; a video that begins or ends in black has no
    cut there.
    """
    light = [*[1.0] * 24, *np.linspace(1, 0, 24), *[0.0] * 12, *np.linspace(0, 1, 24), *[1.0] * 24]
    images = [view(1 + (n >= 54)) * share for n, share in enumerate(light)]
    if back:
        images = [images[0] * 0.0] * 12 + [images[0] * s for s in np.linspace(0, 1, 24)] + images
    path = write(tmp_path / "fade.mp4", [i.astype(np.uint8) for i in images])
    middle = (54 + 36 * back) / FPS
    assert shot_starts(path) == pytest.approx([0, middle], abs=6 / FPS)
    none = ShotRules(fade_below=None, dissolve=None)
    assert len(shot_starts(path, none)) == 1


@pytest.mark.parametrize("first", [True, False])
def test_black_that_lasts_after_a_cut_is_a_shot(tmp_path: Path, first: bool) -> None:
    """Or at the beginning; a few black frames belong to the image that comes out of them."""
    before = [] if first else still(40)
    rise = [(view(2) * s).astype(np.uint8) for s in np.linspace(0, 1, 24)]
    for number, lasts in ((4, False), (30, True)):
        black = [np.zeros((120, 160, 3), np.uint8)] * number
        path = write(tmp_path / f"{number}.mp4", [*before, *black, *rise, *[view(2)] * 24])
        begins, ends = len(before) / FPS, (len(before) + number) / FPS
        expected = [*dict.fromkeys((0.0, begins)), *([ends] if lasts else [])]
        assert shot_starts(path) == pytest.approx(expected, abs=0.25)


def test_no_shot_is_shorter_than_the_shortest(tmp_path: Path) -> None:
    path = write(tmp_path / "fast.mp4", cuts([20, 5, 5, 5, 30, 4, 30, 6]))
    for shortest in (0.25, 0.6, 1.0):
        shots = shots_of(str(path), ShotRules(shortest=shortest))
        assert all(s.seconds >= shortest - 1e-6 for s in shots)
        assert [a.end for a in shots[:-1]] == [b.start for b in shots[1:]]
        assert shots[0].start == 0
        assert shots[-1].end == pytest.approx(105 / FPS)


def test_a_video_without_frames_has_no_shots() -> None:
    assert ShotFinder(ShotRules()).shots(1.0) == ()


def test_cuts_are_returned_soon_and_few_frames_are_held(tmp_path: Path) -> None:
    """Cuts are returned within 1.5 seconds, whatever the length of the video."""
    path = write(tmp_path / "long.mp4", cuts([60] * 8))
    with open_video(str(path)) as video:
        finder, cuts_and_times = ShotFinder(ShotRules()), list[tuple[float, float]]()
        for frame in video.frames():
            cuts_and_times += [(cut, frame.time) for cut in finder.see(frame)]
            assert len(finder._cut_finder._seen) <= 2 * FPS
            assert len(finder._waiting) <= 8
    assert len(cuts_and_times) >= 6
    assert all(now - cut < 1.5 for cut, now in cuts_and_times)


def thumbnail(image: Image) -> Thumbnail:
    return Thumbnail(cv2.cvtColor(cv2.resize(image, (64, 48)), cv2.COLOR_RGB2YUV_I420))


@given(share=st.floats(0.0, 1.0), seeds=st.tuples(st.integers(0, 99), st.integers(100, 199)))
def test_a_blend_gives_its_share_and_a_small_residue(share: float, seeds: tuple[int, int]) -> None:
    a, b = (view(seed).astype(float) for seed in seeds)
    ends = coarse(thumbnail(a.astype(np.uint8))), coarse(thumbnail(b.astype(np.uint8)))
    middle = thumbnail((a * (1 - share) + b * share).astype(np.uint8))
    measured_share, residue = blend(ends[0], coarse(middle), ends[1])
    assert measured_share == pytest.approx(share, abs=0.06)
    assert residue < 0.15


@given(seed=st.integers(0, 99), x=st.integers(0, 8), y=st.integers(0, 6), light=st.floats(0.6, 1))
def test_moved_or_darkened_content_is_not_gone(seed: int, x: int, y: int, light: float) -> None:
    before, other = thumbnail(view(seed, 40, 40)), thumbnail(view(seed + 100, 40, 40))
    after = thumbnail((view(seed, 40 + x, 40 + y) * light).astype(np.uint8))
    assert unlike(before, after, 1 / 3) < 0.2
    assert unlike(before, other, 1 / 3) > unlike(before, after, 1 / 3)
    assert change(before, before) == 0
    assert change(before, other) == pytest.approx(change(other, before))


@pytest.mark.parametrize("size", [(160, 120), (2, 2), (30, 200)])
def test_frames_of_any_size_have_shots(tmp_path: Path, size: tuple[int, int]) -> None:
    width, height = size
    images = [scene(1 + (n >= 30), 0, width, height) for n in range(60)]
    shots = shots_of(str(write(tmp_path / "size.mp4", images)))
    assert shots[0].start == 0
    assert shots[-1].end == pytest.approx(60 / FPS)
    assert Thumbnails(64) is not None


def test_a_video_without_cuts_is_one_shot(tmp_path: Path) -> None:
    path = write(tmp_path / "still.mp4", [scene(1, number // 4) for number in range(60)])
    assert shots_of(str(path)) == (Span(0.0, pytest.approx(60 / FPS)),)


SLIDES = [slide(seed) for seed in range(2, 7)]


@pytest.mark.parametrize("gap", [1.0, 1.5, 2.0, 4.0, 11.0])
def test_cuts_are_found_where_a_recorder_wrote_a_frame_for_each_change(
    gap: float, tmp_path: Path
) -> None:
    times = [*(n * gap for n in range(5)), 5 * gap - 0.04]
    path = write(tmp_path / "changes.mkv", [*SLIDES, SLIDES[-1]], times=times)
    assert shot_starts(path) == pytest.approx(times[:-1], abs=0.01)


def test_cuts_are_found_between_changes_at_any_times(tmp_path: Path) -> None:
    times = [0.0, 1.3, 2.9, 6.0, 14.5, 17.0]
    path = write(tmp_path / "changes.mkv", [*SLIDES, SLIDES[-1]], times=times)
    assert shot_starts(path) == pytest.approx(times[:-1], abs=0.01)


@pytest.mark.parametrize(("fps", "count"), [(1, 4), (1, 2), (0.5, 2), (0.5, 3), (2, 4)])
def test_cuts_between_slides_are_found_at_a_low_frame_rate(
    fps: float, count: int, tmp_path: Path
) -> None:
    images = [image for image in SLIDES for _ in range(count)]
    times = [n / fps for n in range(len(images))]
    path = write(tmp_path / "slow.mkv", images, times=times)
    assert shot_starts(path) == pytest.approx(times[::count], abs=0.01)


@pytest.mark.parametrize(("fps", "count"), [(1, 4), (1, 6), (0.5, 3), (0.5, 4)])
@pytest.mark.parametrize("pixels", [3, 8])
def test_cuts_between_moving_scenes_are_found_at_a_low_frame_rate(
    fps: float, count: int, pixels: int, tmp_path: Path
) -> None:
    images = [view(seed, x=pixels * n) for seed in range(1, 5) for n in range(count)]
    times = [n / fps for n in range(len(images))]
    path = write(tmp_path / "slow.mkv", images, times=times)
    assert shot_starts(path) == pytest.approx(times[::count], abs=0.01)


def test_motion_at_a_low_frame_rate_is_no_cut(tmp_path: Path) -> None:
    images = [view(3, x=8 * n) for n in range(12)]
    path = write(tmp_path / "slow.mkv", images, times=[float(n) for n in range(12)])
    assert shot_starts(path) == [0.0]


@pytest.mark.parametrize("kind", ["mkv", "mp4", "mov", "ts"])
@pytest.mark.parametrize("lengths", [[1], [24], [24, 24]])
def test_the_last_shot_lasts_while_its_frame_is_held_for_the_sound(
    lengths: list[int], kind: str, tmp_path: Path
) -> None:
    """As long as the video; so does the last shot of a look, whatever its windows."""
    path = write(tmp_path / f"held.{kind}", cuts(lengths), tone=6.0)
    length = facts(str(path)).duration
    assert length == pytest.approx(6.0, abs=0.15)
    assert shots_of(str(path))[-1].end == length
    row = Video(video_id="v", uri=str(path), duration=length)
    for window in (300.0, 2.0):
        shots = Look(window=window).open(NO_CALLS)(row).shots or ()
        assert len(shots) == len(lengths)
        assert shots[-1].end == length


def test_sound_that_is_a_little_longer_holds_no_frame(tmp_path: Path) -> None:
    path = write(tmp_path / "usual.mp4", cuts([48]), tone=2.3)
    assert shots_of(str(path))[-1].end == pytest.approx(2.0, abs=0.01)
