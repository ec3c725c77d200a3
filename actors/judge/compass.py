"""The judge `compass`: CompassVerifier (Liu et al. 2025, arXiv 2508.03686), a Qwen2.5 that grades
an answer A (correct), B (incorrect) or C (invalid).

Its own prompt is put into its own chat template. One forward pass gives the probability of A
against B and C together as the next token. The authors decode the letter and allow B and C to be
both taken as wrong: the sign of the logit difference is nearly that verdict, and its size is needed
for a threshold.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from actors.judge.checkpoint import LoadedCheckpoint, find_checkpoint, libraries
from mustsee.errors import UserError
from mustsee.judge.judge import Engine, ForwardPass, Identity, PreparedTriple
from mustsee.judge.prompt import Triple
from mustsee.nn import weights
from mustsee.prompts import Prompts
from mustsee.store import hardware

PROMPT = "judge/compass"
LETTERS = ("A", "B", "C")


@dataclass(frozen=True, kw_only=True)
class Compass:
    """The judge `compass`."""

    model: str = "opencompass/CompassVerifier-3B"
    """Folder or Hugging Face id; also -7B, -32B."""
    revision: str | None = weights.revision_field()
    """Commit or tag of the id."""
    dtype: str = "auto"
    """Numeric type: auto (as saved), float32, bfloat16, float16."""
    limit: int = 4096
    """Tokens of the longest prompt."""
    device: str = hardware("auto")
    """Device: auto, cuda, cpu."""
    budget: int = hardware(16384)
    """Tokens in one forward pass."""

    def open(self) -> Engine:
        return CompassEngine(self)


class CompassEngine:
    """The loaded model. Raises UserError for a model of another kind."""

    def __init__(self, config: Compass) -> None:
        folder, digest = find_checkpoint(config.model, config.revision)
        self._loaded = LoadedCheckpoint(
            "AutoModelForCausalLM", folder, config.device, config.budget, config.dtype
        )
        tokenizer = self._loaded.tokenizer
        tokenizer.padding_side = "left"  # so that every prompt ends at the last position
        if not tokenizer.chat_template:
            raise UserError(f"the tokenizer of {config.model!r} has no chat template")
        ids = [tokenizer.encode(letter, add_special_tokens=False) for letter in LETTERS]
        if any(len(i) != 1 for i in ids):
            raise UserError(f"A, B and C are not one token each in {config.model!r}: {ids!r}")
        self._letters = [i[0] for i in ids]
        self._prompts, self.limit = Prompts(), config.limit
        text = self._prompt_text(Triple("{question}", "{candidate}", "{reference}"))
        self.identity = Identity(
            engine="compass",
            weights=digest,
            prompt=hashlib.sha256(text.encode()).hexdigest(),
            attention="causal",
            dtype=str(self._loaded.model.dtype).removeprefix("torch."),
        )

    def _prompt_text(self, triple: Triple) -> str:
        prompt = self._prompts.render(PROMPT, **asdict(triple)).user
        messages = [{"role": "user", "content": f"\n{prompt}\n"}]
        return self._loaded.tokenizer.apply_chat_template(
            messages, add_generation_prompt=True, tokenize=False
        )

    def prepare(self, triple: Triple) -> PreparedTriple:
        """Tokenise the prompt. `neutral` breaks control tokens in the triple, so it cannot open a
        turn.
        """
        ids = self._loaded.tokenizer(self._prompt_text(triple), add_special_tokens=False)
        kept = {k: ids[k] for k in ("input_ids", "attention_mask")}
        return PreparedTriple(triple, len(kept["input_ids"]), kept)

    def score(self, prepared: Sequence[PreparedTriple]) -> list[ForwardPass]:
        torch, _ = libraries()
        last = torch.tensor([-1])  # logits of 152,000 tokens at every position would take 10 GB
        inputs = [p.payload for p in prepared]
        logits = self._loaded.logits(inputs, use_cache=False, logits_to_keep=last)
        return [self._read(row) for row in logits]

    def _read(self, logits: Any) -> ForwardPass:
        torch, _ = libraries()
        three = logits[self._letters]
        mass = (torch.logsumexp(three, 0) - torch.logsumexp(logits, 0)).exp().clamp(max=1)
        return ForwardPass(float(three[0] - torch.logsumexp(three[1:], 0)), float(mass))
