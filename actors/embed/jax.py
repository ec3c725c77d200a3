"""embed=minilm: one vector for a video, from its transcript and captions."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from actors import checkpoint
from actors.part import Opened, RunContext
from mustsee.nn import weights
from mustsee.records import Video


@dataclass(frozen=True, kw_only=True)
class Embed:
    """The mean of the sentence vectors of title, transcript lines and captions (each text once),
    of length 1; empty for a video without any text.
    """

    version: ClassVar[str] = "1"
    reads: ClassVar[tuple[str, ...]] = ("lines", "captions", "title")
    needs: ClassVar[tuple[str, ...]] = ()
    writes: ClassVar[tuple[str, ...]] = ("embedding",)

    model: str
    """Folder, or id in the Hugging Face cache (hf download ...)."""
    revision: str | None = weights.revision_field()
    """Commit or tag; null: the one in the cache."""

    def check(self, budget_usd: float | None = None) -> None:
        """Raise UserError if the weights are missing."""
        checkpoint.find(self.model, self.revision, "config.json", "tokenizer.json")

    def open(self, run: RunContext) -> Opened:
        from mustsee.nn.bert import Encoder

        encoder = Encoder.load(self.model, revision=self.revision)

        def embed(video: Video) -> Video:
            return dataclasses.replace(video, embedding=middle(encoder.encode(texts(video))))

        return embed


def middle(vectors: NDArray[np.float32]) -> tuple[float, ...]:
    """The mean of vectors [n, d], scaled to length 1; empty for no vectors."""
    if not len(vectors):
        return ()
    mean = vectors.mean(axis=0)
    return tuple(map(float, mean / max(float(np.linalg.norm(mean)), 1e-12)))


def texts(video: Video) -> list[str]:
    """The texts of a video: title, lines and captions, each text once, in order."""
    every = [
        video.title or "",
        *(line.text for line in video.lines or ()),
        *(caption.text for caption in video.captions or ()),
    ]
    return list(dict.fromkeys(text.strip() for text in every if text.strip()))
