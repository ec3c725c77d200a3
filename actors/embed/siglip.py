"""embed=siglip: one vector for a video, from its keyframes."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import ClassVar

from actors import checkpoint
from actors.embed.jax import middle
from actors.part import Opened, RunContext
from mustsee.errors import UserError
from mustsee.files.store import hardware
from mustsee.nn import weights
from mustsee.records import Video


@dataclass(frozen=True, kw_only=True)
class FrameEmbed:
    """The mean of the keyframes' vectors, scaled to length 1; empty for a video without any."""

    version: ClassVar[str] = "1"
    reads: ClassVar[tuple[str, ...]] = ("keyframes",)
    needs: ClassVar[tuple[str, ...]] = ()
    writes: ClassVar[tuple[str, ...]] = ("embedding",)

    model: str
    """Folder, or Hugging Face id: a SigLIP, or a PaliGemma for its tower."""
    revision: str | None = weights.revision_field()
    """Commit or tag; null: the one in the cache."""
    dtype: str = "bfloat16"
    """Numeric type: bfloat16 or float32."""
    batch: int = hardware(32)
    """Frames processed together (not part of the result's identity)."""

    def __post_init__(self) -> None:
        if self.dtype not in ("bfloat16", "float32") or self.batch < 1:
            raise UserError(
                f"embed.dtype={self.dtype!r}, embed.batch={self.batch!r}: expected bfloat16 or "
                "float32, and at least 1"
            )

    def check(self, budget_usd: float | None = None) -> None:
        """Raise UserError if the weights are missing."""
        checkpoint.find(self.model, self.revision, "config.json")

    def open(self, run: RunContext) -> Opened:
        from mustsee.nn.siglip import FrameEncoder

        encoder = FrameEncoder.load(
            self.model, revision=self.revision, dtype=self.dtype, batch=self.batch
        )

        def embed(video: Video) -> Video:
            vectors = encoder.encode([keyframe.jpeg for keyframe in video.keyframes or ()])
            return dataclasses.replace(video, embedding=middle(vectors))

        return embed
