"""How many tokens endpoints bill for a picture: by tiles, or by patches.

OpenAI's rules (https://platform.openai.com/docs/guides/images-vision, "Calculating costs"); Gemini
counts tiles of 768 pixels (https://ai.google.dev/gemini-api/docs/tokens).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

PATCH_SIDE, MOST_PATCHES = 32, 1536
LONGEST, SHORTEST = 2048, 768  # pixels that a picture is made to fit before it is cut into tiles


@dataclass(frozen=True, kw_only=True)
class PictureTokens:
    """`base` tokens for the whole and `tile` for each tile of `side` pixels; or `patch` tokens for
    each patch of 32 x 32 pixels, None where the model counts tiles.
    """

    base: float = 85
    tile: float = 170
    side: int = 512
    patch: float | None = None

    def count(self, width: int, height: int, *, low: bool = False) -> float:
        """Tokens of a picture; `low`: at low detail, where tiles are not counted."""
        if self.patch is not None:
            patches = math.ceil(width / PATCH_SIDE) * math.ceil(height / PATCH_SIDE)
            return self.patch * min(patches, MOST_PATCHES)
        if low and self.base:
            return self.base
        scale = min(1.0, LONGEST / max(width, height), SHORTEST / min(width, height))
        tiles = math.ceil(width * scale / self.side) * math.ceil(height * scale / self.side)
        return self.base + self.tile * tiles
