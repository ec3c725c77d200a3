"""Shots against drawn films whose cuts are known, and against PySceneDetect."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mustsee.errors import UserError
from mustsee.media.pictures import Thumbnails
from mustsee.media.shots import ShotFinder, ShotRules, quick
from mustsee.media.video import film
from mustsee.records import Span
from tests.support.films import FPS, cuts, scene, write
from tests.support.material import material

USUAL = ShotRules()


def shots(path: Path, rules: ShotRules = USUAL, end: float | None = None) -> tuple[Span, ...]:
    with film(str(path)) as watched:
        fps = watched.fps or 25.0
        finder, small, last = ShotFinder(rules, fps), Thumbnails(rules.thumbnail), 0.0
        for picture in watched.pictures(0.0, end):
            finder.see(picture.time, small(picture.frame).bgr)
            last = picture.end(fps)
    return finder.shots(last)


def scenedetect_cuts(path: Path, fps: float, seconds: float | None = None) -> list[float]:
    from scenedetect import AdaptiveDetector, SceneManager, open_video

    manager = SceneManager()
    manager.add_detector(AdaptiveDetector(min_scene_len=round(0.6 * fps)))
    manager.detect_scenes(open_video(str(path), backend="pyav"), duration=seconds)
    return [start.seconds for start, _ in manager.get_scene_list()[1:]]


@pytest.mark.parametrize("detector", ["adaptive", "content"])
def test_cuts_are_where_they_were_drawn(tmp_path: Path, detector: str) -> None:
    lengths = [30, 24, 40, 18, 50, 33]
    path = write(tmp_path / "cuts.mp4", cuts(lengths))
    found = shots(path, ShotRules(detector=detector, fade_below=None))
    edges = np.cumsum([0, *lengths]) / FPS
    assert [s.start for s in found] == pytest.approx(edges[:-1].tolist())
    assert [s.end for s in found] == pytest.approx(edges[1:].tolist())


def test_fades_through_black(tmp_path: Path) -> None:
    """One cut in the middle of the black, however slowly the picture goes; grey pictures, since
    the hue of a nearly black one jumps about.
    """
    light = [*[1.0] * 24, *np.linspace(1, 0, 24), *[0.0] * 12, *np.linspace(0, 1, 24), *[1.0] * 24]
    grey = [np.repeat(scene(n).mean(axis=2, keepdims=True), 3, axis=2) for n in (1, 2)]
    images = [(grey[n >= 54] * share).astype(np.uint8) for n, share in enumerate(light)]
    path = write(tmp_path / "fade.mp4", images)
    assert [s.start for s in shots(path)] == pytest.approx([0, 54 / FPS], abs=3 / FPS)
    assert len(shots(path, ShotRules(fade_below=None))) == 1


def test_shots_are_never_shorter_than_asked_for(tmp_path: Path) -> None:
    path = write(tmp_path / "fast.mp4", cuts([20, 5, 5, 5, 30, 4, 30, 6]))
    for shortest in (0.3, 0.6, 1.0):
        found = shots(path, ShotRules(shortest=shortest))
        assert all(s.seconds >= shortest - 1e-6 for s in found)
        assert [a.end for a in found[:-1]] == [b.start for b in found[1:]]
        assert found[0].start == 0
        assert found[-1].end == pytest.approx(105 / FPS)


def test_one_shot_where_nothing_cuts(tmp_path: Path) -> None:
    path = write(tmp_path / "still.mp4", [scene(1, number // 4) for number in range(60)])
    assert shots(path) == (Span(0.0, pytest.approx(60 / FPS)),)
    assert ShotFinder(ShotRules(), 25.0).shots(1.0) == ()


@given(seed=st.integers(0, 1000), move=st.integers(0, 9))
def test_the_quick_score_is_pyscenedetects(seed: int, move: int) -> None:
    from scenedetect import AdaptiveDetector, ContentDetector, FrameTimecode

    theirs, ours = ContentDetector(), quick(AdaptiveDetector)()
    for number, image in enumerate((scene(seed), scene(seed, move), scene(seed + 1))):
        stamp = FrameTimecode(number, 24.0)
        expected = theirs._calculate_frame_score(stamp, image)
        assert ours._calculate_frame_score(stamp, image) == pytest.approx(expected)


def test_an_unknown_detector_is_named() -> None:
    with pytest.raises(UserError, match="detektor"):
        ShotRules(detector="detektor")  # pyright: ignore[reportArgumentType]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "seconds", "apart"),
    [
        ("Zulko+moviepy/media/big_buck_bunny_0_30.webm", 12.0, 0),
        ("awwkl+ZWM/data/demo_videos/clip_03_sintel.mp4", None, 0),
        # lights flash so fast that the shortest shot decides which flash counts
        ("EvolvingLMMs-Lab+LongVA/local_demo/assets/dc_demo.mp4", None, 2),
        ("vidstack+files/agent327_hls360p_remux.mp4", 45.0, 0),
    ],
)
def test_no_worse_than_pyscenedetect(name: str, seconds: float | None, apart: int) -> None:
    """As many cuts as PySceneDetect's, and the same within a frame but for `apart`; only the last
    shot is not shorter than the shortest.
    """
    path = material(f"video/{name}")
    with film(str(path)) as watched:
        fps = watched.fps or 25.0
    found = shots(path, ShotRules(fade_below=None), seconds)
    theirs = [c for c in scenedetect_cuts(path, fps, seconds) if found[-1].end - c >= 0.6]
    assert len(found) - 1 == len(theirs)
    near = [any(abs(s.start - c) < 1.01 / fps for s in found) for c in theirs]
    assert near.count(False) <= apart
