"""Tiny random checkpoints of the judge pack's architectures: their verdicts are noise, but prompts
and outputs have the real form.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

TEXTS = ("what colour is the red car", "it is red and not blue", "A: CORRECT B: INCORRECT")
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


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


def roberta(folder: Path, *, classes: int = 2, seed: int = 0) -> Path:
    torch = pytest.importorskip("torch")
    from transformers import RobertaConfig, RobertaForSequenceClassification

    special = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>",
               "cls_token": "<s>", "sep_token": "</s>"}  # fmt: skip
    tokens = _tokenizer(folder, special, "<s> $A </s> </s> $B </s>")
    torch.manual_seed(seed)
    settings: dict[str, Any] = dict(  # noqa: C408
        vocab_size=len(tokens), hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=64, max_position_embeddings=514, num_labels=classes, type_vocab_size=1,
        initializer_range=0.5, pad_token_id=tokens.pad_token_id,
    )  # fmt: skip
    RobertaForSequenceClassification(RobertaConfig(**settings)).save_pretrained(folder)
    return folder


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


def deberta(folder: Path, labels: tuple[str, ...], *, seed: int = 0) -> Path:
    torch = pytest.importorskip("torch")
    from transformers import DebertaV2Config, DebertaV2ForSequenceClassification

    special = {"cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]"}
    tokens = _tokenizer(folder, special, "[CLS] $A [SEP] $B [SEP]")
    torch.manual_seed(seed)
    settings: dict[str, Any] = dict(  # noqa: C408
        vocab_size=len(tokens), hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=64, max_position_embeddings=512, relative_attention=True,
        position_buckets=32, pos_att_type=["p2c", "c2p"], type_vocab_size=0, initializer_range=0.5,
        id2label=dict(enumerate(labels)), label2id={n: i for i, n in enumerate(labels)},
        pad_token_id=tokens.pad_token_id,
    )  # fmt: skip
    DebertaV2ForSequenceClassification(DebertaV2Config(**settings)).save_pretrained(folder)
    return folder


def qwen(folder: Path, *, template: bool = True, seed: int = 0) -> Path:
    torch = pytest.importorskip("torch")
    from transformers import Qwen2Config, Qwen2ForCausalLM

    special = {"pad_token": "<|endoftext|>", "eos_token": "<|im_end|>", "bos_token": "<|im_start|>"}
    tokens = _tokenizer(folder, special)
    if template:
        tokens.chat_template = TEMPLATE
        tokens.save_pretrained(folder)
    torch.manual_seed(seed)
    config = Qwen2Config(
        vocab_size=len(tokens), hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, intermediate_size=64, initializer_range=0.3,
        pad_token_id=tokens.pad_token_id, eos_token_id=tokens.eos_token_id,
    )  # fmt: skip
    Qwen2ForCausalLM(config).save_pretrained(folder)
    return folder
