"""Judges to compare with: `lexical`, word overlap with the reference, which ignores meaning, and
`bem`, BERT fine-tuned on answer equivalence (Bulian et al. 2022, arXiv 2202.07654), as in Neptune's
table of judges.

The released checkpoint of BEM is a TensorFlow SavedModel; this module reads the same network in
Hugging Face's format. Candidate, reference and question stand in this order, closed by "[SEP]"
each, the candidate as the first segment; the score is the softmax of the two logits. Inputs that
the authors truncate at 512 tokens are refused here.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mustsee.errors import UserError, need
from mustsee.files.store import hardware
from mustsee.judge import lexical
from mustsee.judge.judge import Engine, ForwardPass, Identity, PreparedTriple, hash_files, logit
from mustsee.judge.prompt import Triple
from mustsee.nn import weights
from mustsee.replies import overlap

FILES = ("*.safetensors", "config.json", "tokenizer*", "vocab.*", "merges.txt", "spm.model")
FORMAT = ("[CLS] {candidate} [SEP]", "{reference} [SEP] {question} [SEP]")
MIN_SCORE = 1e-6  # score without overlap, so that its logit is finite


@dataclass(frozen=True, kw_only=True)
class Bem:
    """The judge `bem`."""

    model: str
    """Folder or Hugging Face id."""
    revision: str | None = weights.revision_field()
    """Commit or tag of the id."""
    device: str = hardware("auto")
    """Device: auto, cuda, cpu."""
    budget: int = hardware(4096)
    """Tokens in one forward pass."""

    def open(self) -> Engine:
        return BemEngine(self)


class BemEngine:
    """The loaded model, in float32."""

    limit = 512

    def __init__(self, config: Bem) -> None:
        need("judge=bem", "mustsee[torch]", "torch")
        import torch
        from transformers import AutoModelForSequenceClassification, AutoTokenizer

        folder, digest = find_checkpoint(config.model, config.revision)
        self._torch, self._budget = torch, config.budget
        self._device = config.device
        if self._device == "auto":
            self._device = "cuda" if torch.cuda.is_available() else "cpu"
        self._tokenizer: Any = AutoTokenizer.from_pretrained(folder)
        loaded: Any = AutoModelForSequenceClassification.from_pretrained(
            folder, dtype=torch.float32
        )
        self._model = loaded.to(self._device).eval()
        classes = int(self._model.config.num_labels)
        if classes != 2:
            raise UserError(f"{config.model!r} has {classes} classes: BEM has two")
        self.identity = Identity(engine="bem", weights=digest, prompt="\n".join(FORMAT))

    def prepare(self, triple: Triple) -> PreparedTriple:
        first, second = (
            self._tokenizer(side.format(**vars(triple)), add_special_tokens=False).input_ids
            for side in FORMAT
        )
        ids = {
            "input_ids": [*first, *second],
            "token_type_ids": [0] * len(first) + [1] * len(second),
            "attention_mask": [1] * (len(first) + len(second)),
        }
        return PreparedTriple(triple, len(ids["input_ids"]), ids)

    def score(self, prepared: Sequence[PreparedTriple]) -> list[ForwardPass]:
        prompts = [p.payload for p in prepared]
        rows: list[Any] = [None] * len(prompts)
        for places in passes([p.length for p in prepared], self._budget):
            padded = self._tokenizer.pad(
                {k: [prompts[i][k] for i in places] for k in prompts[places[0]]},
                return_tensors="pt",
            ).to(self._device)
            with self._torch.inference_mode():
                logits = self._model(**padded).logits.float()
            for row, place in enumerate(places):
                rows[place] = logits[row]
        return [ForwardPass(float(pair[1] - pair[0])) for pair in rows]


def find_checkpoint(model: str, revision: str | None) -> tuple[Path, str]:
    """Return the folder of a checkpoint, and the SHA-256 of its weights and tokenizer. Raises
    UserError.
    """
    folder = weights.find(model, revision)
    files = [path for pattern in FILES for path in folder.glob(pattern)]
    if not any(path.suffix == ".safetensors" for path in files):
        raise UserError(f"{str(folder)!r} has no *.safetensors weights")
    return folder, hash_files(files)


def passes(lengths: Sequence[int], budget: int) -> list[list[int]]:
    """Return indices sorted by length, in passes of at most `budget` tokens with padding; a single
    longer input is a pass of its own.
    """
    batches: list[list[int]] = []
    for place in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        if batches and lengths[place] * (len(batches[-1]) + 1) <= budget:
            batches[-1].append(place)
        else:
            batches.append([place])
    return batches


@dataclass(frozen=True, kw_only=True)
class Lexical:
    """The judge `lexical`.

    The score is the measure itself.
    """

    measure: str = "token_recall"
    """Measure of overlap: rouge_l, token_f1, token_recall."""

    def open(self) -> Engine:
        if self.measure not in lexical.MEASURES:
            measures = ", ".join(lexical.MEASURES)
            raise UserError(f"measure {self.measure!r}: choose one of {measures}")
        return LexicalEngine(self.measure)


@dataclass(frozen=True)
class LexicalEngine:
    """A measure as an engine."""

    measure: str
    limit: int = 4096

    @property
    def identity(self) -> Identity:
        """The hash of the measure's code, which takes the place of weights."""
        sources = lexical.words, overlap
        code = "".join(map(inspect.getsource, sources))
        return Identity(
            engine=f"lexical/{self.measure}",
            weights=hashlib.sha256(code.encode()).hexdigest(),
            prompt="none",
        )

    def prepare(self, triple: Triple) -> PreparedTriple:
        return PreparedTriple(triple, sum(len(t.split()) for t in vars(triple).values()))

    def score(self, prepared: Sequence[PreparedTriple]) -> list[ForwardPass]:
        measure = lexical.MEASURES[self.measure]
        values = (measure(p.triple.candidate, p.triple.reference) for p in prepared)
        return [ForwardPass(logit(min(max(v, MIN_SCORE), 1 - MIN_SCORE))) for v in values]
