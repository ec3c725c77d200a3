"""Text recognition in images (rapidocr: weights in its wheel, no GPU)."""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mustsee.errors import need

MIN_HALVED_PIXELS = 64  # pixels: shorter side of an image that is first searched at half its size
MIN_TRACE = 0.01  # the detector's probability, 0-1, from which a half-size image may have a line
MIN_LINE_SCORE = 0.6  # the detector's mean probability, 0-1, below which a line is not read
PLACE_MARGIN_PIXELS = 10  # pixels around the place of a trace, beside its own height
PLACE_LENGTH = 3  # factor on that margin to the left and right, because lines are long
READ_PIXELS = 48  # pixels: height of the recogniser's input
LOW_LINE_PIXELS = 30  # pixels: height of a line that is read at less than its width
LOW_LINE_WIDTH = 0.85  # share of its width at which it is read
NET_STEP_PIXELS = 32  # pixels: the sides of the detector's input are multiples of it

Image = NDArray[np.uint8]
Corners = NDArray[np.float32]  # (4, 2): x and y of a line's corners, clockwise from its start
Place = tuple[int, int, int, int]  # left, top, right, bottom in pixels


class Reader(Protocol):
    """A text recogniser in two steps, so that a line that was read is not read again."""

    def lines(self, image: Image, *, low: bool = False) -> list[Corners]:
        """Return the corners of each line in BGR pixels. `low`: the lines are known to be low."""
        ...

    def text(self, line: Image) -> tuple[str, float]:
        """Return the text of a line, given its pixels alone, and a score (0 to 1)."""
        ...


class RapidReader:
    """PP-OCR by rapidocr. Lines are searched for at the image's full size, in the places where a
    search at half its size, which costs a quarter, sees a trace of one. Most images have none. At
    half the size low lines leave no trace.
    """

    def __init__(self, threads: int = 1) -> None:
        need("look.texts (on-screen text)", "mustsee[offline]", "rapidocr")
        from rapidocr import RapidOCR

        self._engine: Any = RapidOCR(
            params={
                "Global.log_level": "critical",
                "Global.use_cls": False,
                "Det.box_thresh": MIN_LINE_SCORE,
                "Rec.rec_img_shape": [3, READ_PIXELS, 2 * READ_PIXELS],
                "EngineConfig.onnxruntime.intra_op_num_threads": threads,
                "EngineConfig.onnxruntime.inter_op_num_threads": 1,
            }
        )
        # Its steps are called one by one: the call that does all of them takes longer to prepare an
        # image than to search a small one.
        self._detector = self._engine._load_det_model()

    def lines(self, image: Image, *, low: bool = False) -> list[Corners]:
        height, width = image.shape[:2]
        whole = [(0, 0, width, height)]
        lines = list[Corners]()
        at_once = low or min(height, width) < MIN_HALVED_PIXELS
        for left, top, right, bottom in whole if at_once else self._likely_places(image):
            crop = image[top:bottom, left:right]
            boxes, _ = self._detector.postprocess_op(self._probability(crop, 1), crop.shape[:2])
            lines += [
                np.asarray(box, np.float32) + np.array((left, top), np.float32) for box in boxes
            ]
        return lines

    def text(self, line: Image) -> tuple[str, float]:
        import cv2

        height, width = line.shape[:2]
        if height <= LOW_LINE_PIXELS:  # Enlarged, it has no detail that a narrower one lacks.
            share = LOW_LINE_WIDTH * READ_PIXELS / height
            size = (max(1, round(share * width)), READ_PIXELS)
            line = np.asarray(cv2.resize(line, size), np.uint8)
        output = self._engine(line, use_det=False, use_rec=True)
        return (output.txts[0], float(output.scores[0])) if output.txts else ("", 0.0)

    def _likely_places(self, image: Image) -> list[Place]:
        """The places in an image where a search at half its size sees a trace of a line."""
        import cv2

        height, width = image.shape[:2]
        trace = np.asarray(self._probability(image, 2)[0, 0] >= MIN_TRACE, np.uint8)
        across, down = width / trace.shape[1], height / trace.shape[0]
        places = list[Place]()
        for x, y, w, h, _ in cv2.connectedComponentsWithStats(trace)[2][1:].tolist():
            margin = PLACE_MARGIN_PIXELS + h * down
            place = (
                max(0, int(x * across - PLACE_LENGTH * margin)),
                max(0, int(y * down - margin)),
                min(width, math.ceil((x + w) * across + PLACE_LENGTH * margin)),
                min(height, math.ceil((y + h) * down + margin)),
            )
            while met := next((other for other in places if _meet(place, other)), None):
                places.remove(met)
                (a, b, c, d), (e, f, g, i) = place, met
                place = (min(a, e), min(b, f), max(c, g), max(d, i))
            places.append(place)
        return places

    def _probability(self, image: Image, shrink: int) -> NDArray[np.float32]:
        """How likely each pixel of an image, shrunk by a factor, belongs to a line: 0 to 1, (1, 1,
        height, width).
        """
        import cv2

        size = [
            max(1, round(n / shrink / NET_STEP_PIXELS)) * NET_STEP_PIXELS
            for n in image.shape[1::-1]
        ]
        how = cv2.INTER_LINEAR if shrink == 1 else cv2.INTER_AREA
        resized = cv2.resize(image, size, interpolation=how)
        return self._detector.session(cv2.dnn.blobFromImage(resized, 1 / 127.5, mean=(127.5,) * 3))


def _meet(one: Place, other: Place) -> bool:
    """Whether two places have pixels in common."""
    across = min(one[2], other[2]) - max(one[0], other[0])
    return across > 0 and min(one[3], other[3]) > max(one[1], other[1])


def crop_line(image: Image, corners: Corners) -> Image:
    """Return a line's pixels, level. A line far higher than wide is rotated by 90 degrees."""
    import cv2

    sides = np.linalg.norm(corners - np.roll(corners, -1, axis=0), axis=1)
    width, height = (max(1, round(float(max(sides[k], sides[k + 2])))) for k in (0, 1))
    level = np.array([(0, 0), (width, 0), (width, height), (0, height)], np.float32)
    transform = cv2.getPerspectiveTransform(corners, level)
    line: Any = cv2.warpPerspective(
        image, transform, (width, height), flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE
    )
    return np.ascontiguousarray(np.rot90(line)) if height >= 1.5 * width else line
