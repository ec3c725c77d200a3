"""Reading the text in a picture (rapidocr: weights in its wheel, no GPU)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True)
class Reading:
    """One line: how sure it is (0 to 1), and the height of its top edge in shares of the picture's
    height, from the top.
    """

    text: str
    score: float
    top: float


Read = Callable[[NDArray[np.uint8]], list[Reading]]


def reader(threads: int = 1, longest: int | None = None) -> Read:
    """A function from BGR pixels to the lines in them, from the top down. Loads the model.

    `longest`: pixels of the longer side in which lines are looked for; null: rapidocr enlarges
    every picture to 736 pixels along the shorter one, which takes longer and finds smaller letters.
    """
    from rapidocr import RapidOCR

    params: dict[str, Any] = {
        "Global.log_level": "critical",
        "Global.use_cls": False,
        "EngineConfig.onnxruntime.intra_op_num_threads": threads,
    }
    if longest is not None:
        params |= {"Det.limit_type": "max", "Det.limit_side_len": longest}
    engine = RapidOCR(params=params)

    def read(image: NDArray[np.uint8]) -> list[Reading]:
        found: Any = engine(image)
        if found.txts is None:
            return []
        lines = sorted(
            zip(found.boxes, found.txts, found.scores, strict=True),
            key=lambda line: (float(line[0][:, 1].min()), float(line[0][:, 0].min())),
        )
        return [
            Reading(text=text, score=float(score), top=float(box[:, 1].min()) / len(image))
            for box, text, score in lines
        ]

    return read
