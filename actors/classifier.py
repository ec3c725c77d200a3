"""Narration or dialogue: the classifiers behind `classifier=`, a logistic head on sentence
embeddings, and a fine-tuned BERT (CinePile, 2.1) in transformers and torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mustsee.align.sentences import Floats, LogisticHead, Sentence, features, fit
from mustsee.errors import need
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


def _torch() -> tuple[Any, Any]:
    need("the BERT of classifier=", "mustsee[torch]", "torch")
    import torch
    import transformers

    return torch, transformers


@dataclass(frozen=True, kw_only=True)
class BertTrainer:
    """Fine-tunes `base` with a binary head for 3 epochs, as in the paper. Writes a model folder
    (safetensors).
    """

    base: str = "google-bert/bert-base-uncased"
    """Folder, or Hugging Face id in the cache."""
    epochs: int = 3
    """Passes over the training set (the paper: 3)."""
    rate: float = 5e-5
    """Highest learning rate."""
    batch: int = 32
    """Sentences per step."""
    longest: int = 64
    """Tokens of a sentence that are read, at most."""
    device: str = "cpu"
    """Device: cpu or cuda."""

    def __call__(self, train: Sequence[Sentence], folder: str, seed: int) -> BertClassifier:
        torch, transformers = _torch()
        from mustsee.nn import weights

        base = str(weights.find(self.base))
        torch.manual_seed(seed)
        tokenizer = transformers.AutoTokenizer.from_pretrained(base)
        model = transformers.AutoModelForSequenceClassification.from_pretrained(base, num_labels=2)
        model.to(self.device).train()
        steps = max(1, self.epochs * -(-len(train) // self.batch))
        optimiser = torch.optim.AdamW(model.parameters(), lr=self.rate, weight_decay=0.01)
        schedule = transformers.get_linear_schedule_with_warmup(optimiser, steps // 10, steps)
        order = np.random.default_rng(seed)
        for _ in range(self.epochs):
            places = order.permutation(len(train))
            for at in range(0, len(train), self.batch):
                chosen = [train[i] for i in places[at : at + self.batch]]
                encoded = tokenizer([s.text for s in chosen], padding=True, truncation=True,
                                 max_length=self.longest, return_tensors="pt")  # fmt: skip
                labels = torch.tensor([int(s.visual) for s in chosen])
                inputs = {k: v.to(self.device) for k, v in encoded.items()}
                loss = model(**inputs, labels=labels.to(self.device)).loss
                loss.backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimiser.step()
                schedule.step()
                optimiser.zero_grad()
        model.eval().save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        return BertClassifier(folder, longest=self.longest, device=self.device)


class BertClassifier:
    """A fine-tuned model, loaded from its folder."""

    def __init__(self, folder: str, *, longest: int = 64, device: str = "cpu") -> None:
        self._torch, transformers = _torch()
        self._tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        self._model = transformers.AutoModelForSequenceClassification.from_pretrained(folder)
        self._model.to(device).eval()
        self._longest, self._device = longest, device

    def __call__(self, texts: Sequence[str]) -> Floats:
        """Probability that each text is visual, [n]."""
        batches: list[Floats] = []
        with self._torch.no_grad():
            for at in range(0, len(texts), 64):
                encoded = self._tokenizer(list(texts[at : at + 64]), padding=True, truncation=True,
                                       max_length=self._longest, return_tensors="pt")  # fmt: skip
                inputs = {k: v.to(self._device) for k, v in encoded.items()}
                batches.append(self._model(**inputs).logits.softmax(-1)[:, 1].cpu().numpy())
        return np.concatenate(batches).astype(np.float64) if batches else np.zeros(0)
