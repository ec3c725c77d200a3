"""Reading the text in a picture (rapidocr: weights in its wheel, no GPU)."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mustsee.errors import need

Image = NDArray[np.uint8]
Corners = NDArray[np.float32]  # (4, 2): x and y of a line's corners, clockwise from its beginning


class Reader(Protocol):
    """A model that reads in two steps, so that a line need not be read twice."""

    def lines(self, image: Image) -> list[Corners]:
        """Where there are lines in BGR pixels, in pixels."""
        ...

    def text(self, line: Image) -> tuple[str, float]:
        """What a line says, cut out of its picture, and how sure that is (0 to 1)."""
        ...


class RapidReader:
    """PP-OCR by rapidocr. Lines are looked for in the picture as large as it is given."""

    def __init__(self, threads: int = 1) -> None:
        need("look.texts (on-screen text)", "mustsee[offline]", "rapidocr")
        from rapidocr import RapidOCR

        self._engine: Any = RapidOCR(
            params={
                "Global.log_level": "critical",
                "Global.use_cls": False,
                "Det.limit_type": "max",
                "Det.limit_side_len": 4096,
                "Rec.rec_img_shape": [3, 48, 96],
                "EngineConfig.onnxruntime.intra_op_num_threads": threads,
                "EngineConfig.onnxruntime.inter_op_num_threads": 1,
            }
        )

    def lines(self, image: Image) -> list[Corners]:
        found = self._engine(image, use_det=True, use_rec=False)
        return [] if found.boxes is None else [np.asarray(box, np.float32) for box in found.boxes]

    def text(self, line: Image) -> tuple[str, float]:
        found = self._engine(line, use_det=False, use_rec=True)
        return (found.txts[0], float(found.scores[0])) if found.txts else ("", 0.0)


def crop_line(image: Image, corners: Corners) -> Image:
    """A line's pixels, level; one that is far higher than wide is turned to be read."""
    import cv2

    sides = np.linalg.norm(corners - np.roll(corners, -1, axis=0), axis=1)
    width, height = (max(1, round(float(max(sides[k], sides[k + 2])))) for k in (0, 1))
    level = np.array([(0, 0), (width, 0), (width, height), (0, height)], np.float32)
    turned = cv2.getPerspectiveTransform(corners, level)
    line: Any = cv2.warpPerspective(
        image, turned, (width, height), flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE
    )
    return np.ascontiguousarray(np.rot90(line)) if height >= 1.5 * width else line
