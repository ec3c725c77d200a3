"""The judge `nli`: a natural-language-inference cross-encoder, such as
cross-encoder/nli-deberta-v3-base (Apache-2.0).

Question and answer stand together on both sides, and each must entail the other, as in semantic
entropy (Kuhn et al. 2023, Farquhar et al. 2024): premise "question candidate", hypothesis "question
reference", and the other way round; the less entailed way counts. With `both=false` the candidate
alone must entail the reference: it may say more. With `lexical` an answer that holds all words of
the reference, none of them denied or one of a choice, is TRUE without the model: such models are
seldom shown a bare name.
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
    """`model`: a folder or a Hugging Face id in the cache, one of whose labels is "entailment"."""

    model: str = "cross-encoder/nli-deberta-v3-base"
    revision: str | None = weights.revision_field()
    both: bool = True
    lexical: bool = True
    device: str = hardware("auto")
    budget: int = hardware(4096)

    def open(self) -> Engine:
        return NliEngine(self)


class NliEngine:
    limit = 512

    def __init__(self, config: Nli) -> None:
        folder, digest = find_checkpoint(config.model, config.revision)
        kind = "AutoModelForSequenceClassification"
        self._config = config
        self._loaded = LoadedCheckpoint(kind, folder, config.device, config.budget, "float32")
        named = {v.lower(): int(k) for k, v in self._loaded.model.config.id2label.items()}
        if "entailment" not in named:
            raise UserError(f"{config.model!r} has the labels {sorted(named)!r}, no entailment")
        self._entailment = named["entailment"]
        self.identity = Identity(
            engine=f"nli/{'both' if config.both else 'forward'}"
            + ("/lexical" if config.lexical else ""),
            weights=digest,
            prompt=FORMAT,
        )

    def prepare(self, triple: Triple) -> PreparedTriple:
        """The payload is one tokenised pair for each way; none where words decide."""
        if self._config.lexical and states_reference(triple):
            return PreparedTriple(triple, 0, ())
        sides = [
            FORMAT.format(question=triple.question, answer=answer)
            for answer in (triple.candidate, triple.reference)
        ]
        ways = (sides, sides[::-1]) if self._config.both else (sides,)
        pairs = tuple(dict(self._loaded.tokenizer(*way)) for way in ways)
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
    """The candidate has all words of the reference, and none of them is denied or in a choice."""
    found = dict(zip(FEATURES, features(triple), strict=True))
    return bool(found["contained"]) and not (found["denied"] or found["choice"])
