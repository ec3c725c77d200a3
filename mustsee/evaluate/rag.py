"""Video RAG (MLVU, appendix H): show a model only the clips of a video nearest to the question.

The video is split into equal clips; the `clips` nearest to the question (by cosine) are kept,
in order of time, with `per_clip` frames each. For 16-frame models the paper takes (clips, frames)
of (2, 8), (4, 4), (8, 2). It helps where a detail must be found, and hurts where order or the whole
video matters.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from mustsee.errors import UserError
from mustsee.nn import weights
from mustsee.nn.vectors import unit
from mustsee.records import Caption, Line, Span

Floats = NDArray[np.float32]


@dataclass(frozen=True, kw_only=True)
class Rag:
    """The number of clips of about `seconds` that are shown, with `per_clip` frames each; 0 clips
    turn retrieval off. A SigLIP encodes the clip's frames, as the paper does (with
    LanguageBind); a BERT-type encoder encodes its transcript and captions.
    """

    clips: int = 0
    """Clips shown with each question, in place of see.frames; 0: off."""
    per_clip: int = 4
    """Frames of each clip."""
    seconds: float = 10.0
    """Length of a clip, seconds."""
    model: str = weights.MINILM
    """Model that ranks the clips: a text encoder by transcript and captions, a SigLIP by
    frames; folder or id."""
    revision: str | None = weights.revision_field()
    """Commit or tag of that model; null: the one in the cache."""

    def __post_init__(self) -> None:
        if self.clips < 0 or self.per_clip < 1 or self.seconds <= 0:
            raise UserError(
                f"rag: clips={self.clips!r}, per_clip={self.per_clip!r}, seconds="
                f"{self.seconds!r}: expected at least 0 clips, at least 1 frame, and seconds above "
                "0"
            )

    @property
    def on(self) -> bool:
        return self.clips > 0

    @property
    def sees(self) -> bool:
        """Whether the encoder encodes frames. Raises UserError where the model is missing."""
        file = weights.find_file(weights.find(self.model, self.revision), "config.json")
        return json.loads(file.read_text()).get("model_type") == "siglip"


@dataclass(frozen=True)
class RetrievedClip:
    """A clip with its cosine to the question, -1 to 1; None where nothing could be compared."""

    span: Span
    score: float | None


@dataclass(frozen=True)
class Encoders:
    """A loaded encoder of texts, and of JPEGs unless `images` is None, to vectors of length 1,
    `[n, width]`.
    """

    texts: Callable[[Sequence[str]], Floats]
    images: Callable[[Sequence[bytes]], Floats] | None


def load(rag: Rag) -> Encoders:
    """Load the encoder. Raises UserError for a model that is neither SigLIP nor BERT-type."""
    if rag.sees:
        from mustsee.nn.siglip import FrameEncoder, TextEncoder

        frames = FrameEncoder.load(rag.model, revision=rag.revision)
        return Encoders(TextEncoder.load(rag.model, revision=rag.revision).encode, frames.encode)
    from mustsee.nn.bert import Encoder

    return Encoders(Encoder.load(rag.model, revision=rag.revision).encode, None)


def words_in(span: Span, lines: Sequence[Line], captions: Sequence[Caption]) -> str:
    """Return the transcript and the captions of a clip."""
    spoken = [line.text for line in lines if line.start < span.end and line.end > span.start]
    return " ".join([*spoken, *(c.text for c in captions if span.start <= c.time < span.end)])


def by_words(
    texts: Sequence[str],
    questions: Sequence[str],
    spans: tuple[Span, ...],
    clips: int,
    encode: Callable[[Sequence[str]], Floats],
) -> list[tuple[RetrievedClip, ...]]:
    """Return for each question the clips with the nearest words. Where no clip has words: clips at
    equal distances, without a score.
    """
    if not any(text.strip() for text in texts):
        return [spread(spans, clips)] * len(questions)
    vectors = encode(texts)
    vectors[[not text.strip() for text in texts]] = 0.0  # a clip without words is near to nothing
    return [retrieve(spans, vectors, question, clips) for question in encode(questions)]


def spread(spans: tuple[Span, ...], clips: int) -> tuple[RetrievedClip, ...]:
    """Return `clips` clips at equal distances."""
    count = min(clips, len(spans))
    places = [int((i + 0.5) * len(spans) / count) for i in range(count)]
    return tuple(RetrievedClip(spans[place], None) for place in places)


def windows(duration: float, seconds: float) -> tuple[Span, ...]:
    """Split a video of `duration` seconds into equal clips of about `seconds`. Raises ValueError
    unless both are above 0.
    """
    if duration <= 0 or seconds <= 0:
        raise ValueError(f"duration={duration!r}, seconds={seconds!r}: expected above 0")
    count = max(1, round(duration / seconds))
    edges = np.linspace(0, duration, count + 1)
    return tuple(Span(float(a), float(b)) for a, b in pairwise(edges))


def times(span: Span, frames: int) -> tuple[float, ...]:
    """Return the times of a clip's frames: the middles of `frames` equal intervals, in seconds."""
    return tuple(span.start + (i + 0.5) * span.seconds / frames for i in range(frames))


def retrieve(
    spans: tuple[Span, ...], frame_vectors: Floats, question: Floats, clips: int
) -> tuple[RetrievedClip, ...]:
    """Return the `clips` best clips in order of time.

    `frame_vectors`: vectors of each clip's frames, (clips, frames, width), or one vector per clip,
    (clips, width). `question`: (width,), from the same model. Of equal clips the earlier is taken.
    """
    if len(frame_vectors) != len(spans):
        raise ValueError(f"{len(frame_vectors)} vectors for {len(spans)} clips")
    if frame_vectors.ndim == 3:
        frame_vectors = np.stack([unit(of_clip).mean(axis=0) for of_clip in frame_vectors])
    cosines = unit(frame_vectors) @ unit(question[None])[0]
    best = np.argsort(-cosines.round(6), kind="stable")[: max(1, clips)]
    return tuple(RetrievedClip(spans[i], float(cosines[i])) for i in sorted(best.tolist()))
