"""A tiny random checkpoint of BEM's architecture: its verdicts are noise, but prompts
and outputs have the real form.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

TEXTS = ("what colour is the red car", "it is red and not blue", "A: CORRECT B: INCORRECT")


def _tokenizer(folder: Path, special: dict[str, str], pair: str | None = None) -> Any:
    """Write a byte-level BPE; `pair`: the template that joins two texts."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    tokens = list(dict.fromkeys(special.values()))
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=tokens,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bpe.train_from_iterator(TEXTS, trainer)
    if pair is not None:
        single = f"{special['cls_token']} $A {special['sep_token']}"
        bpe.post_processor = processors.TemplateProcessing(
            single=single, pair=pair, special_tokens=[(t, bpe.token_to_id(t)) for t in tokens]
        )
    fast = PreTrainedTokenizerFast(tokenizer_object=bpe, **special)
    fast.save_pretrained(folder)
    return fast


def bert(folder: Path, *, classes: int = 2, seed: int = 0) -> Path:
    torch = pytest.importorskip("torch")
    from transformers import BertConfig, BertForSequenceClassification

    special = {"cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]"}
    tokens = _tokenizer(folder, special, "[CLS] $A [SEP] $B:1 [SEP]:1")
    torch.manual_seed(seed)
    settings: dict[str, Any] = dict(  # noqa: C408
        vocab_size=len(tokens), hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=64, max_position_embeddings=512, num_labels=classes, type_vocab_size=2,
        initializer_range=0.5, pad_token_id=tokens.pad_token_id,
    )  # fmt: skip
    BertForSequenceClassification(BertConfig(**settings)).save_pretrained(folder)
    return folder
