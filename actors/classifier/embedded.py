"""Visual sentences or dialogue, by a logistic head on sentence embeddings; trains in seconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mustsee.align.sentences import Floats, LogisticHead, Sentence, features, fit
from mustsee.nn.weights import MINILM


@dataclass(frozen=True, kw_only=True)
class HeadTrainer:
    """Fits a head on vectors of `encoder`, writes `head.npz`."""

    encoder: str = MINILM
    """Folder, package or Hugging Face id of a BERT-type encoder."""
    strength: float = 1.0
    """Weight of the L2 penalty."""

    def __call__(self, train: Sequence[Sentence], folder: str, seed: int) -> HeadClassifier:
        from mustsee.nn.bert import Encoder

        texts = [s.text for s in train]
        vectors = features(texts, Encoder.load(self.encoder).encode(texts))
        head = fit(vectors, [s.visual for s in train], strength=self.strength, encoder=self.encoder)
        head.save(Path(folder) / "head.npz")
        return HeadClassifier(str(Path(folder) / "head.npz"))


class HeadClassifier:
    """A head file with its encoder loaded."""

    def __init__(self, path: str) -> None:
        from mustsee.nn.bert import Encoder

        self._head = LogisticHead.load(path)
        self._encoder = Encoder.load(self._head.encoder)

    def __call__(self, texts: Sequence[str]) -> Floats:
        """Probability that each text is visual, [n]."""
        return self._head.probabilities(features(texts, self._encoder.encode(list(texts))))
