"""Video RAG (MLVU, appendix H): of a long video, look only at the clips that the question is about.

The video is cut into equal clips of `frames` pictures; each clip's vector is the mean of its
pictures'; the `clips` nearest to the question (cosine, FAISS) are kept, in order of time. For
16-frame models the paper takes (clips, frames) of (2, 8), (4, 4), (8, 2): it helps where a detail
must be found, and hurts where order or the whole matters.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from longshot.records import Span

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Chosen:
    """A clip with its likeness to the question (-1 to 1)."""

    span: Span
    score: float


def windows(duration: float, seconds: float) -> tuple[Span, ...]:
    """Equal clips of about `seconds` that cover the whole video. Raises ValueError."""
    if duration <= 0 or seconds <= 0:
        raise ValueError(f"duration={duration!r}, seconds={seconds!r}: expected above 0")
    count = max(1, round(duration / seconds))
    edges = np.linspace(0, duration, count + 1)
    return tuple(Span(float(a), float(b)) for a, b in pairwise(edges))


def times(span: Span, frames: int) -> tuple[float, ...]:
    """When to look within a clip: the middles of `frames` equal parts, in seconds."""
    return tuple(span.start + (i + 0.5) * span.seconds / frames for i in range(frames))


def _unit(vectors: Floats) -> Floats:
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return (vectors / np.maximum(norms, 1e-12)).astype(np.float32)


def retrieve(
    spans: tuple[Span, ...], pictures: Floats, question: Floats, clips: int
) -> tuple[Chosen, ...]:
    """The `clips` best clips in order of time.

    `pictures`: vectors of each clip's frames, (clips, frames, width), or one vector per clip
    (clips, width); `question`: (width,), of the same model. Of equals the earlier clip is taken.
    """
    import faiss

    vectors = np.asarray(pictures, dtype=np.float32)
    if len(vectors) != len(spans):
        raise ValueError(f"{len(vectors)} vectors for {len(spans)} clips")
    if vectors.ndim == 3:
        vectors = _unit(vectors).mean(axis=1)
    vectors = _unit(vectors)
    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(vectors)  # pyright: ignore[reportCallIssue]
    asked = _unit(np.asarray(question, dtype=np.float32)[None])
    scores, places = index.search(asked, len(spans))  # pyright: ignore[reportCallIssue]
    pairs = zip(scores[0].tolist(), places[0].tolist(), strict=True)
    order = sorted(pairs, key=lambda p: (-round(p[0], 6), p[1]))[: max(1, clips)]
    return tuple(Chosen(spans[i], float(s)) for s, i in sorted(order, key=lambda p: p[1]))
