"""The judge `roberta`: a classifier fine-tuned on answer equivalence (Li et al. 2024, "PEDANTS",
arXiv 2402.11161; zli12321/answer_equivalence_roberta, _roberta-large, _distilroberta, _bert, MIT).

Used as in its authors' qa_metrics: candidate, reference and question in one string with "[CLS]" and
"[SEP]" as text, the sigmoid of the second logit, and an exact match (lower case, no punctuation or
articles) without the model. Inputs that they truncate at 512 tokens are refused here.
"""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from dataclasses import dataclass

from actors.judge.checkpoint import LoadedCheckpoint, find_checkpoint
from mustsee.errors import UserError
from mustsee.judge.judge import Engine, ForwardPass, Identity, PreparedTriple, logit
from mustsee.judge.prompt import Triple
from mustsee.nn import weights
from mustsee.store import hardware

FORMAT = "[CLS] {candidate} [SEP] {reference} [SEP] {question} [SEP]"
EXACT_MATCH_LOGIT = logit(1 - 1e-6)  # logit of an exact match, which the authors score as 1


@dataclass(frozen=True, kw_only=True)
class Roberta:
    """The judge `roberta`."""

    model: str = "zli12321/answer_equivalence_roberta"
    """Folder or Hugging Face id; also -large, _distilroberta, _bert."""
    revision: str | None = weights.revision_field()
    """Commit or tag of the id."""
    device: str = hardware("auto")
    """Device: auto, cuda, cpu."""
    budget: int = hardware(4096)
    """Tokens in one forward pass."""

    def open(self) -> Engine:
        return RobertaEngine(self)


class RobertaEngine:
    """The loaded model. Raises UserError for a model without two classes."""

    limit = 512

    def __init__(self, config: Roberta) -> None:
        folder, digest = find_checkpoint(config.model, config.revision)
        kind = "AutoModelForSequenceClassification"
        self._loaded = LoadedCheckpoint(kind, folder, config.device, config.budget, "float32")
        classes = int(self._loaded.model.config.num_labels)
        if classes != 2:
            raise UserError(
                f"{config.model!r} has {classes} classes: an answer-equivalence judge has two"
            )
        self.identity = Identity(engine="roberta", weights=digest, prompt=FORMAT)

    def prepare(self, triple: Triple) -> PreparedTriple:
        ids = self._loaded.tokenizer(FORMAT.format(**vars(triple)))
        return PreparedTriple(triple, len(ids["input_ids"]), dict(ids))

    def score(self, prepared: Sequence[PreparedTriple]) -> list[ForwardPass]:
        same = [_plain(p.triple.candidate) == _plain(p.triple.reference) for p in prepared]
        inputs = [p.payload for p, exact in zip(prepared, same, strict=True) if not exact]
        logits = iter(self._loaded.logits(inputs))
        return [
            ForwardPass(EXACT_MATCH_LOGIT if exact else float(next(logits)[1])) for exact in same
        ]


def _plain(text: str) -> str:
    """The text in SQuAD's normal form."""
    bare = "".join(c for c in text.lower() if c not in string.punctuation)
    return " ".join(re.sub(r"\b(?:a|an|the)\b", " ", bare).split())
