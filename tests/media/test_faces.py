"""Faces that are followed, with a detector that counts; the real one looks at the sample videos in
tests/actors/test_look.py.
"""

from pathlib import Path

import cv2
import numpy as np
import pytest

from mustsee.errors import UserError
from mustsee.media.faces import FaceFollower, Image, detector
from mustsee.media.pictures import encode
from mustsee.media.pixels import captions
from mustsee.media.video import open_video
from mustsee.records import Face, Frame, Keyframe, Span
from tests.support.sample_videos import scene, write

WIDTH, HEIGHT = 192, 108


class Finder:
    """Finds the bright square, as a detector finds a face."""

    def __init__(self) -> None:
        self.looks = 0

    def __call__(self, image: Image) -> list[Face]:
        self.looks += 1
        there = np.argwhere(image.min(axis=2) > 150)
        if len(there) < 100:
            return []
        (top, left), (bottom, right) = there.min(axis=0), there.max(axis=0) + 1
        height, width = image.shape[:2]
        return [
            Face(
                x=left / width,
                y=top / height,
                width=(right - left) / width,
                height=(bottom - top) / height,
            )
        ]


def drawn(number: int | None, seed: int = 1) -> np.ndarray:
    """A ground, and on it a square with a pattern, further to the right with each number."""
    image = cv2.GaussianBlur(scene(seed, width=WIDTH, height=HEIGHT), (0, 0), 8) // 3
    if number is not None:
        face = np.full((30, 30, 3), 220, np.uint8)
        cv2.circle(face, (10, 12), 4, (170,) * 3, -1)
        cv2.circle(face, (20, 12), 4, (170,) * 3, -1)
        left = 20 + 3 * number
        image[40:70, left : left + 30] = face
    return image


def followed(path: Path, images: list[np.ndarray]) -> tuple[list[tuple[Face, ...]], Finder]:
    """One frame a second."""
    finder = Finder()
    follower = FaceFollower(finder, every=2.0)
    with open_video(str(write(path, images, fps=1))) as watched:
        found = [follower.see(picture) for picture in watched.pictures()]
    assert follower.looks == finder.looks
    return found, finder


def test_a_face_that_moves_is_followed(tmp_path: Path) -> None:
    found, finder = followed(tmp_path / "moves.mp4", [drawn(n) for n in range(16)])
    assert [len(faces) for faces in found] == [1] * 16
    assert [faces[0].x * WIDTH for faces in found] == pytest.approx(
        [20 + 3 * n for n in range(16)], abs=2
    )
    assert finder.looks <= 3


def test_a_face_that_goes_is_not_kept_and_one_that_comes_is_found(tmp_path: Path) -> None:
    images = [drawn(n if 4 <= n < 10 else None) for n in range(16)]
    found, _ = followed(tmp_path / "goes.mp4", images)
    counts = [len(faces) for faces in found]
    assert counts[:4] == [0] * 4
    assert counts[8:10] == [1] * 2  # found at most `every` times LONG seconds after it came
    assert counts[10:] == [0] * 6


def test_another_scene_is_looked_at(tmp_path: Path) -> None:
    other = [np.full((HEIGHT, WIDTH, 3), 120, np.uint8)] * 2
    found, finder = followed(tmp_path / "cut.mp4", [*[drawn(0)] * 3, *other, *[drawn(0)] * 3])
    assert [len(faces) for faces in found] == [1, 1, 1, 0, 0, 1, 1, 1]
    assert finder.looks >= 3


def test_missing_weights_are_named_with_the_command_that_brings_them() -> None:
    from actors.stages.look import Faces, Look

    with pytest.raises(UserError, match="no model folder"):
        Look(faces=Faces(model="/nowhere/at/all")).check()


def test_the_detector_sees_no_face_in_plain_pictures() -> None:
    from actors.stages.look import Faces

    try:
        file = Faces().file()
    except UserError as error:
        pytest.skip(str(error))
    assert detector(file, 0.6)(np.full((HEIGHT, WIDTH, 3), 128, np.uint8)) == []


def test_a_face_is_told_of_its_own_shot_alone() -> None:
    """The next shot's face is seen sooner after the keyframe than its own shot was measured."""
    face = Face(x=0.4, y=0.2, width=0.2, height=0.3)
    look = (0.5,) * 96
    frames = [
        Frame(time=3.0, brightness=0.5, motion=0.0, descriptor=look, faces=()),
        Frame(time=4.0, brightness=0.5, motion=0.0, descriptor=look, faces=(face,)),
    ]
    grey = encode(np.full((36, 64, 3), 128, np.uint8), 90)
    shots = (Span(0.0, 3.8), Span(3.8, 3.95), Span(3.95, 8.0))
    keyframes = [Keyframe(time=t, shot=n, jpeg=grey) for n, t in enumerate((3.7, 3.9, 4.1))]
    told = [text for _, text in captions(keyframes, frames, (), shots)]
    assert ["face" in text for text in told] == [False, False, True]
