"""embed=minilm, embed=jax: one vector for a video, from what was said and seen in it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import ClassVar

from actors.part import Opened, RunContext
from longshot.records import Video


@dataclass(frozen=True, kw_only=True)
class Embed:
    """The mean of the sentence vectors of title, transcript lines and captions (each text once),
    of length 1; empty for a video without any text.

    `model`: a BERT-type encoder by folder, `package:NAME/FOLDER` or Hugging Face id; `sha256`: what
    its weights must hash to, where they are known.
    """

    version: ClassVar[str] = "1"
    reads: ClassVar[tuple[str, ...]] = ("lines", "captions", "title")
    needs: ClassVar[tuple[str, ...]] = ()
    writes: ClassVar[tuple[str, ...]] = ("embedding",)

    model: str
    revision: str | None = None
    sha256: str | None = None

    def open(self, run: RunContext) -> Opened:
        import numpy as np

        from longshot.nn.bert import Encoder

        encoder = Encoder.load(self.model, revision=self.revision, sha256=self.sha256)

        def embed(video: Video) -> Video:
            found = texts(video)
            if not found:
                return dataclasses.replace(video, embedding=())
            mean = encoder.encode(found).mean(axis=0)
            mean /= max(float(np.linalg.norm(mean)), 1e-12)
            return dataclasses.replace(video, embedding=tuple(map(float, mean)))

        return embed


def texts(video: Video) -> list[str]:
    """What an embedding of the whole video is made of: each text once, in order."""
    found = [
        video.title or "",
        *(line.text for line in video.lines or ()),
        *(caption.text for caption in video.captions or ()),
    ]
    return list(dict.fromkeys(text.strip() for text in found if text.strip()))
