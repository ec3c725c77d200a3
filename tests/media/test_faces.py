"""Face tracking with a detector that counts its calls; tests/actors/stages/test_look.py runs the
real one on the sample videos.
"""

from pathlib import Path

import cv2
import numpy as np
import pytest

from actors.stages.look import Faces, Look
from mustsee.errors import UserError
from mustsee.media import faces
from mustsee.media.faces import (
    ANCHOR_STRIDE_PIXELS,
    MODEL_PIXELS,
    FaceFollower,
    Image,
    _is_frontal,
    _litert_net,
    _opencv_net,
    detector,
)
from mustsee.media.frames import encode
from mustsee.media.pixels import captions
from mustsee.media.video import open_video
from mustsee.records import Face, Frame, Keyframe, ObjectBox, SeenObject, Span
from tests.support.sample_videos import scene, write

WIDTH, HEIGHT = 192, 108


class FakeDetector:
    """Detects the bright square as if it were a face."""

    def __init__(self) -> None:
        self.looks = 0

    def __call__(self, image: Image) -> list[Face]:
        self.looks += 1
        bright = np.argwhere(image.min(axis=2) > 150)
        if len(bright) < 100:
            return []
        (top, left), (bottom, right) = bright.min(axis=0), bright.max(axis=0) + 1
        height, width = image.shape[:2]
        return [
            Face(
                x=left / width,
                y=top / height,
                width=(right - left) / width,
                height=(bottom - top) / height,
            )
        ]


def draw_face(number: int | None, seed: int = 1) -> np.ndarray:
    """An image of blurred blocks with a patterned square, further to the right for a larger
    number.
    """
    image = cv2.GaussianBlur(scene(seed, width=WIDTH, height=HEIGHT), (0, 0), 8) // 3
    if number is not None:
        face = np.full((30, 30, 3), 220, np.uint8)
        cv2.circle(face, (10, 12), 4, (170,) * 3, -1)
        cv2.circle(face, (20, 12), 4, (170,) * 3, -1)
        left = 20 + 3 * number
        image[40:70, left : left + 30] = face
    return image


def track(path: Path, images: list[np.ndarray]) -> tuple[list[tuple[Face, ...]], FakeDetector]:
    """The faces in each frame of a video with one frame per second, and the detector."""
    finder = FakeDetector()
    follower = FaceFollower(finder, every=2.0)
    with open_video(str(write(path, images, fps=1))) as video:
        faces = [follower.see(frame) for frame in video.frames()]
    assert follower.looks == finder.looks
    return faces, finder


def test_a_moving_face_is_tracked(tmp_path: Path) -> None:
    faces_by_frame, finder = track(tmp_path / "moves.mp4", [draw_face(n) for n in range(16)])
    assert [len(faces) for faces in faces_by_frame] == [1] * 16
    assert [faces[0].x * WIDTH for faces in faces_by_frame] == pytest.approx(
        [20 + 3 * n for n in range(16)], abs=2
    )
    assert finder.looks <= 3


def test_faces_that_leave_are_dropped_and_new_ones_detected(tmp_path: Path) -> None:
    images = [draw_face(n if 4 <= n < 10 else None) for n in range(16)]
    faces_by_frame, _ = track(tmp_path / "goes.mp4", images)
    counts = [len(faces) for faces in faces_by_frame]
    assert counts[:4] == [0] * 4
    assert (
        counts[8:10] == [1] * 2
    )  # detected at most `every` times MAX_INTERVAL_FACTOR seconds after it appears
    assert counts[10:] == [0] * 6


def test_faces_are_detected_again_in_another_scene(tmp_path: Path) -> None:
    other = [np.full((HEIGHT, WIDTH, 3), 120, np.uint8)] * 2
    faces_by_frame, finder = track(
        tmp_path / "cut.mp4", [*[draw_face(0)] * 3, *other, *[draw_face(0)] * 3]
    )
    assert [len(faces) for faces in faces_by_frame] == [1, 1, 1, 0, 0, 1, 1, 1]
    assert finder.looks >= 3


def test_missing_weights_of_the_face_detector_are_an_error() -> None:
    with pytest.raises(UserError, match="no model folder"):
        Look(faces=Faces(model="/nowhere/at/all")).check()


def test_the_detector_finds_no_face_in_a_plain_image() -> None:
    try:
        file = Faces().file()
    except UserError as error:
        pytest.skip(str(error))
    assert detector(file, 0.6)(np.full((HEIGHT, WIDTH, 3), 128, np.uint8)) == []


def test_a_large_face_needs_less_score(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two boxes of one score, which only a large face may have, and one box with enough score."""
    count = (MODEL_PIXELS // ANCHOR_STRIDE_PIXELS) ** 2
    boxes = np.zeros((1, count, 16), np.float32)
    logits = np.full((1, count, 1), -10, np.float32)
    row = MODEL_PIXELS // ANCHOR_STRIDE_PIXELS
    for column, width, score in ((8, 40, 0.55), (24, 20, 0.55), (40, 20, 0.65)):
        anchor = row // 2 * row + column
        boxes[0, anchor, 2:4] = width
        logits[0, anchor] = np.log(score / (1 - score))
    for name in ("_litert_net", "_opencv_net"):
        monkeypatch.setattr(faces, name, lambda _: lambda _: (boxes, logits))
    found = detector(Path("weights"), 0.6)(np.zeros((HEIGHT, WIDTH, 3), np.uint8))
    assert [round(face.width * WIDTH) for face in found] == [20, 40]


def test_litert_and_opencv_run_the_detector_alike() -> None:
    pytest.importorskip("ai_edge_litert", reason="LiteRT is not installed")
    try:
        file = Faces().file()
    except UserError as error:
        pytest.skip(str(error))
    square = scene(4, width=MODEL_PIXELS, height=MODEL_PIXELS)
    by_litert, by_opencv = (
        {out.shape[-1]: out for out in map(np.asarray, load(file)(square))}
        for load in (_litert_net, _opencv_net)
    )
    assert by_litert.keys() == by_opencv.keys() == {1, 16}
    for size, expected in by_opencv.items():
        np.testing.assert_allclose(by_litert[size], expected, atol=1e-3)
        assert expected.std() > 0.1


def test_a_caption_mentions_a_face_only_in_its_own_shot() -> None:
    """The nearest measured frame of a keyframe may lie in the next shot; it must not be used."""
    face = Face(x=0.4, y=0.2, width=0.2, height=0.3)
    descriptor = (0.5,) * 96
    frames = [
        Frame(time=3.0, brightness=0.5, motion=0.0, descriptor=descriptor, faces=()),
        Frame(time=4.0, brightness=0.5, motion=0.0, descriptor=descriptor, faces=(face,)),
    ]
    grey = encode(np.full((36, 64, 3), 128, np.uint8), 90)
    shots = (Span(0.0, 3.8), Span(3.8, 3.95), Span(3.95, 8.0))
    keyframes = [Keyframe(time=t, shot=n, jpeg=grey) for n, t in enumerate((3.7, 3.9, 4.1))]
    sentences = [text for _, text in captions(keyframes, frames, (), shots)]
    assert ["face" in text for text in sentences] == [False, False, True]


@pytest.mark.parametrize(
    ("nose", "frontal"),
    [((50, 60), True), ((45, 55), True), ((28, 60), False), ((80, 52), False)],
)
def test_a_frontal_face_has_its_nose_between_its_eyes(nose: tuple[int, int], frontal: bool) -> None:
    points = (np.asarray(p, np.float32) for p in ((30, 40), (70, 40), nose))
    assert _is_frontal(*points) == frontal


def test_a_caption_begins_with_the_people_and_things_that_are_seen() -> None:
    jpeg = encode(draw_face(None), 90)
    keyframes = [Keyframe(time=float(n), jpeg=jpeg, shot=0) for n in range(3)]

    def thing(name: str, start: float, end: float) -> SeenObject:
        boxes = tuple(
            ObjectBox(time=t, score=0.9, x=0.1, y=0.1, width=0.2, height=0.2)
            for t in dict.fromkeys((start, end))
        )
        return SeenObject(name=name, start=start, end=end, score=0.9, boxes=boxes)

    objects = [thing("person", 0, 1), thing("person", 1, 2), thing("dog", 1, 1)]
    begins = [text.partition(" The picture is ")[0] for _, text in captions(
        keyframes, (), (), (), objects)]  # fmt: skip
    assert begins == [
        "A person can be seen.",
        "At least two people and a dog can be seen.",
        "A person can be seen.",
    ]
    text = captions(keyframes, (), (), (), objects)[1][1]
    bare = captions(keyframes, (), ())[1][1]
    assert text == f"{begins[1]} {bare}"
