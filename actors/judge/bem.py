"""The judge `bem`: BERT fine-tuned on answer equivalence (Bulian et al. 2022, arXiv 2202.07654), as
in Neptune's table of judges.

The released checkpoint is a TensorFlow SavedModel; this module reads the same network in Hugging
Face's format. Candidate, reference and question stand in this order, closed by "[SEP]" each, the
candidate as the first segment; the score is the softmax of the two logits. Inputs that the authors
truncate at 512 tokens are refused here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from actors.judge.checkpoint import LoadedCheckpoint, find_checkpoint
from mustsee.errors import UserError
from mustsee.judge.judge import Engine, ForwardPass, Identity, PreparedTriple
from mustsee.judge.prompt import Triple
from mustsee.nn import weights
from mustsee.store import hardware

FORMAT = ("[CLS] {candidate} [SEP]", "{reference} [SEP] {question} [SEP]")


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
    """The loaded model."""

    limit = 512

    def __init__(self, config: Bem) -> None:
        folder, digest = find_checkpoint(config.model, config.revision)
        kind = "AutoModelForSequenceClassification"
        self._loaded = LoadedCheckpoint(kind, folder, config.device, config.budget, "float32")
        classes = int(self._loaded.model.config.num_labels)
        if classes != 2:
            raise UserError(f"{config.model!r} has {classes} classes: BEM has two")
        self.identity = Identity(engine="bem", weights=digest, prompt="\n".join(FORMAT))

    def prepare(self, triple: Triple) -> PreparedTriple:
        first, second = (
            self._loaded.tokenizer(side.format(**vars(triple)), add_special_tokens=False).input_ids
            for side in FORMAT
        )
        ids = {
            "input_ids": [*first, *second],
            "token_type_ids": [0] * len(first) + [1] * len(second),
            "attention_mask": [1] * (len(first) + len(second)),
        }
        return PreparedTriple(triple, len(ids["input_ids"]), ids)

    def score(self, prepared: Sequence[PreparedTriple]) -> list[ForwardPass]:
        logits = self._loaded.logits([p.payload for p in prepared])
        return [ForwardPass(float(pair[1] - pair[0])) for pair in logits]
