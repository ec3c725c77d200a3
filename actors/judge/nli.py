"""The judge `nli`: a natural-language-inference cross-encoder, such as
cross-encoder/nli-deberta-v3-base (Apache-2.0).

Premise and hypothesis are "question candidate" and "question reference", and each must entail the
other, as in semantic entropy (Kuhn et al. 2023, Farquhar et al. 2024); the less entailed direction
counts. With `both=false` only the candidate must entail the reference, so it may contain more. With
`lexical` an answer that contains all words of the reference, none of them denied or among several
choices, is TRUE without the model, because such models are seldom trained on bare names.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from actors.judge.checkpoint import LoadedCheckpoint, find_checkpoint
from mustsee.errors import UserError
from mustsee.judge.judge import Engine, ForwardPass, Identity, PreparedTriple, logit
from mustsee.judge.lexical import FEATURES, features
from mustsee.judge.prompt import Triple
from mustsee.nn import weights
from mustsee.store import hardware

FORMAT = "{question} {answer}"
MAX_LOGIT = logit(1 - 1e-6)


@dataclass(frozen=True, kw_only=True)
class Nli:
    """The judge `nli`."""

    model: str = "cross-encoder/nli-deberta-v3-base"
    """Folder or Hugging Face id of a model with a label "entailment" ."""
    revision: str | None = weights.revision_field()
    """Commit or tag of the id."""
    both: bool = True
    """Require entailment in both directions; false: the answer must entail the reference and
    may say more."""
    lexical: bool = True
    """Grade an answer with all words of the reference as TRUE without the model."""
    device: str = hardware("auto")
    """Device: auto, cuda, cpu."""
    budget: int = hardware(4096)
    """Tokens in one forward pass."""

    def open(self) -> Engine:
        return NliEngine(self)


class NliEngine:
    """The loaded model. Raises UserError for a model without the label "entailment"."""

    limit = 512

    def __init__(self, config: Nli) -> None:
        folder, digest = find_checkpoint(config.model, config.revision)
        kind = "AutoModelForSequenceClassification"
        self._config = config
        self._loaded = LoadedCheckpoint(kind, folder, config.device, config.budget, "float32")
        labels = {v.lower(): int(k) for k, v in self._loaded.model.config.id2label.items()}
        if "entailment" not in labels:
            names = sorted(labels)
            raise UserError(f"{config.model!r} has the labels {names!r}, without entailment")
        self._entailment = labels["entailment"]
        self.identity = Identity(
            engine=f"nli/{'both' if config.both else 'forward'}"
            + ("/lexical" if config.lexical else ""),
            weights=digest,
            prompt=FORMAT,
        )

    def prepare(self, triple: Triple) -> PreparedTriple:
        """Tokenise a pair for each direction; the payload is empty where words decide."""
        if self._config.lexical and states_reference(triple):
            return PreparedTriple(triple, 0, ())
        sides = [
            FORMAT.format(question=triple.question, answer=answer)
            for answer in (triple.candidate, triple.reference)
        ]
        directions = (sides, sides[::-1]) if self._config.both else (sides,)
        pairs = tuple(dict(self._loaded.tokenizer(*direction)) for direction in directions)
        return PreparedTriple(triple, max(len(p["input_ids"]) for p in pairs), pairs)

    def score(self, prepared: Sequence[PreparedTriple]) -> list[ForwardPass]:
        logits = iter(self._loaded.logits([pair for p in prepared for pair in p.payload]))
        return [
            ForwardPass(min((self._entailed(next(logits)) for _ in p.payload), default=MAX_LOGIT))
            for p in prepared
        ]

    def _entailed(self, logits: Any) -> float:
        """The logit of the probability of entailment among the labels."""
        others = [x for i, x in enumerate(logits.tolist()) if i != self._entailment]
        top = max(others)
        return (
            float(logits[self._entailment]) - top - math.log(sum(math.exp(x - top) for x in others))
        )


def states_reference(triple: Triple) -> bool:
    """Whether the candidate has all words of the reference, none of them denied or in a choice."""
    feature = dict(zip(FEATURES, features(triple), strict=True))
    return bool(feature["contained"]) and not (feature["denied"] or feature["choice"])
