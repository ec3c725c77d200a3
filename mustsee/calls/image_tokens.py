"""Tokens that endpoints bill for an image: by tiles, or by patches.

OpenAI's rules (https://platform.openai.com/docs/guides/images-vision, "Calculating costs"); Gemini
counts tiles of 768 pixels (https://ai.google.dev/gemini-api/docs/tokens).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

PATCH_SIDE, MAX_PATCHES = 32, 1536  # pixels; patches of one image
# Pixels of the longer and the shorter side that an image is scaled down to before it is tiled.
MAX_LONGER_SIDE, MAX_SHORTER_SIDE = 2048, 768


@dataclass(frozen=True, kw_only=True)
class ImageTokens:
    """A model's rule for the tokens of an image.

    `base`: tokens of the whole image. `tile`: tokens of each tile of `side` x `side` pixels.
    `patch`: tokens of each patch of 32 x 32 pixels; None where the model counts tiles.
    """

    base: float = 85
    tile: float = 170
    side: int = 512
    patch: float | None = None

    def count(self, width: int, height: int, *, low: bool = False) -> float:
        """Return the tokens of an image; `low`: at low detail, where tiles are not counted."""
        if self.patch is not None:
            patches = math.ceil(width / PATCH_SIDE) * math.ceil(height / PATCH_SIDE)
            return self.patch * min(patches, MAX_PATCHES)
        if low and self.base:
            return self.base
        longer, shorter = max(width, height), min(width, height)
        scale = min(1.0, MAX_LONGER_SIDE / longer, MAX_SHORTER_SIDE / shorter)
        tiles = math.ceil(width * scale / self.side) * math.ceil(height * scale / self.side)
        return self.base + self.tile * tiles
