"""Black bars are cut before a frame is sized, and only where they are bars."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mustsee.media.colours import bar_shares
from mustsee.media.frames import crop_jpeg, decode, encode
from mustsee.media.video import frames_at
from mustsee.records import Video
from mustsee.verify.conditions.seen import Condition
from mustsee.verify.conditions.video_frames import VideoFrames
from tests.support.sample_videos import scene, write

Image = np.ndarray


def framed(content: Image, width: int, height: int) -> Image:
    """The content in the middle of a black frame."""
    image = np.zeros((height, width, 3), np.uint8)
    top, left = (height - content.shape[0]) // 2, (width - content.shape[1]) // 2
    image[top : top + content.shape[0], left : left + content.shape[1]] = content
    return image


def bright(seed: int, width: int, height: int) -> Image:
    return np.maximum(scene(seed, width=width, height=height), 60)


@given(st.integers(0, 30), st.integers(0, 40), st.integers(0, 5))
def test_bars_are_measured_on_all_sides(rows: int, columns: int, seed: int) -> None:
    """Exactly where they are wide enough; narrower ones are left."""
    image = framed(bright(seed, 320 - 2 * columns, 180 - 2 * rows), 320, 180)
    expected = (rows / 180, columns / 320)
    assert bar_shares(image) == tuple(x if x >= 0.02 else 0.0 for x in expected)


def dark_room() -> Image:
    """A night with a lamp in the middle, that gets dimmer all around."""
    y, x = np.mgrid[:180, :320]
    light = 255 * np.exp(-((x - 160) ** 2 + (y - 90) ** 2) / 900)
    return np.repeat(light[..., None], 3, axis=2).astype(np.uint8)


@pytest.mark.parametrize(
    "image",
    [
        np.zeros((180, 320, 3), np.uint8),
        dark_room(),
        framed(bright(1, 40, 180), 320, 180),  # narrower than any clip
        np.pad(bright(1, 240, 180), ((0, 0), (80, 0), (0, 0))),  # dark on one side
    ],
    ids=["black", "lamp", "door", "side"],
)
def test_a_dark_frame_stays_whole(image: Image) -> None:
    assert bar_shares(image) == (0.0, 0.0)


def test_a_jpeg_is_cropped_once_and_a_damaged_one_is_left() -> None:
    jpeg = encode(framed(bright(1, 102, 180), 320, 180), 90)
    cropped = crop_jpeg(jpeg)
    image = decode(cropped)
    assert image is not None
    assert image.shape[0] == 180
    assert abs(image.shape[1] - 102) <= 2
    assert crop_jpeg(cropped) == cropped
    assert crop_jpeg(b"no image") == b"no image"
    assert crop_jpeg(b"") == b""


@pytest.fixture(scope="module")
def upright(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An upright clip in a wide frame, as phones' videos stand in compilations."""
    images = [framed(bright(1, 200, 360), 640, 360)] * 24
    return write(tmp_path_factory.mktemp("bars") / "upright.mp4", images)


def sizes(jpegs: tuple[bytes, ...]) -> set[tuple[int, ...]]:
    return {image.shape[:2] for jpeg in jpegs if (image := decode(jpeg)) is not None}


def test_the_longer_side_is_that_of_the_content(upright: Path) -> None:
    """An upright clip gets its pixels; rules that measure bars get the whole frame."""
    video = Video(video_id="v", uri=str(upright))

    def show(frames: VideoFrames) -> set[tuple[int, ...]]:
        return sizes(asyncio.run(frames.jpegs((0.2, 0.6), Condition(longest=180))))

    ((height, width),) = show(VideoFrames(video))
    assert height == 180
    assert abs(width - 100) <= 2
    assert show(VideoFrames(video, crop=False)) == {(101, 180)}


def test_a_keyframe_keeps_its_bars_and_the_pixels_of_its_content(upright: Path) -> None:
    (frame,) = frames_at(str(upright), [0.5])
    jpeg = frame.barred_jpeg(180, 90)
    assert sizes((jpeg,)) == {(180, 320)}
    assert sizes((frame.jpeg(180, 90),)) == {(101, 180)}
    ((height, width),) = sizes((crop_jpeg(jpeg),))
    assert height == 180
    assert abs(width - 100) <= 2
