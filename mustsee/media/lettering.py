"""Text recognition in images (rapidocr: weights in its wheel, no GPU)."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mustsee.errors import need

Image = NDArray[np.uint8]
Corners = NDArray[np.float32]  # (4, 2): x and y of a line's corners, clockwise from its start


class Reader(Protocol):
    """A text recogniser in two steps, so that a line that was read is not read again."""

    def lines(self, image: Image) -> list[Corners]:
        """Return the corners of each line in BGR pixels."""
        ...

    def text(self, line: Image) -> tuple[str, float]:
        """Return the text of a line, given its pixels alone, and a score (0 to 1)."""
        ...


class RapidReader:
    """PP-OCR by rapidocr. Lines are searched for in the image at its full size."""

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
        output = self._engine(image, use_det=True, use_rec=False)
        return [] if output.boxes is None else [np.asarray(box, np.float32) for box in output.boxes]

    def text(self, line: Image) -> tuple[str, float]:
        output = self._engine(line, use_det=False, use_rec=True)
        return (output.txts[0], float(output.scores[0])) if output.txts else ("", 0.0)


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
