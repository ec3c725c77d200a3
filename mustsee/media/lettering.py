"""Reading the text in a picture (rapidocr: weights in its wheel, no GPU)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Read = Callable[[NDArray[np.uint8]], list[tuple[str, float]]]


def reader(threads: int = 1) -> Read:
    """A function from BGR pixels to the lines in them, from the top down, each with how sure the
    reading is (0 to 1). Loads the model.
    """
    from rapidocr import RapidOCR

    engine = RapidOCR(
        params={
            "Global.log_level": "critical",
            "Global.use_cls": False,
            "EngineConfig.onnxruntime.intra_op_num_threads": threads,
        }
    )

    def read(image: NDArray[np.uint8]) -> list[tuple[str, float]]:
        found: Any = engine(image)
        if found.txts is None:
            return []
        lines = sorted(
            zip(found.boxes, found.txts, found.scores, strict=True),
            key=lambda line: (float(line[0][:, 1].min()), float(line[0][:, 0].min())),
        )
        return [(text, float(score)) for _, text, score in lines]

    return read
