"""Tiny random Gemma 2 and 3 checkpoints: the real architecture and a tokenizer with Gemma's control
tokens, small enough to run in milliseconds.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mustsee.judge.prompt import LABELS, OPENING, Triple, prompt_hash, render

CONTROLS = ["<pad>", "<eos>", "<bos>", "<unk>", "<start_of_turn>", "<end_of_turn>"]
WORDS = (
    "red blue green one two three four five cat dog bird house tree river car first then "
    "the a is was who what where when how many colour of in and not"
)


def tokenizer(folder: Path, *, whole_labels: bool = True) -> int:
    """Write a byte-level BPE that adds a BOS, as Gemma's does; return the size of its vocabulary.
    Without `whole_labels` TRUE and FALSE are several tokens.
    """
    from tokenizers import (
        AddedToken,
        Tokenizer,
        decoders,
        models,
        pre_tokenizers,
        processors,
        trainers,
    )
    from transformers import PreTrainedTokenizerFast

    bpe = Tokenizer(models.BPE(unk_token="<unk>"))
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=700,
        special_tokens=CONTROLS,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    labels = [f"{OPENING}{label}" for label in LABELS] if whole_labels else [OPENING]
    prompt = render(Triple(WORDS, WORDS, WORDS))
    if not whole_labels:
        prompt = prompt.replace("TRUE", "").replace("FALSE", "")
    bpe.train_from_iterator([prompt, *labels] * 20, trainer)
    bos = ("<bos>", bpe.token_to_id("<bos>"))
    bpe.post_processor = processors.TemplateProcessing(
        single="<bos> $A", pair="<bos> $A $B", special_tokens=[bos]
    )
    fast = PreTrainedTokenizerFast(
        tokenizer_object=bpe,
        bos_token="<bos>",
        eos_token="<eos>",
        pad_token="<pad>",
        unk_token="<unk>",
        additional_special_tokens=CONTROLS[4:],
    )
    # Every line of the instructions is one token: prompts are short and models train fast.
    lines = render(Triple("", "", "")).splitlines()
    fast.add_tokens(
        [AddedToken(t, normalized=False) for t in lines if len(t) > 30 or t[-1:] == ":"]
    )
    fast.save_pretrained(folder)
    return len(fast)


def checkpoint(
    folder: Path,
    *,
    attention: str | None = "causal",
    seed: int = 0,
    width: int = 32,
    layers: int = 2,
    whole_labels: bool = True,
    spread: float = 0.3,
    third: bool = False,
    window: int = 2048,
    **changed: Any,
) -> Path:
    """Write a checkpoint to `folder`, with a `judge.json` unless `attention` is None. `spread` is
    the deviation of the random weights: large enough for the scores of two items to differ.
    `third`: a Gemma 3, whose last layer sees all tokens and the others `window`. `changed`: other
    settings of its configuration.
    """
    torch = pytest.importorskip("torch")
    from transformers import Gemma2Config, Gemma2ForCausalLM, Gemma3ForCausalLM, Gemma3TextConfig

    from actors.judge.tokens import JudgeMetadata

    folder.mkdir(parents=True, exist_ok=True)
    size = tokenizer(folder, whole_labels=whole_labels)
    torch.manual_seed(seed)
    kinds = ["sliding_attention"] * (layers - 1) + ["full_attention"]
    config = (Gemma3TextConfig if third else Gemma2Config)(
        vocab_size=size,
        hidden_size=width,
        intermediate_size=2 * width,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=width // 4,
        query_pre_attn_scalar=width // 4,
        max_position_embeddings=2048,
        sliding_window=window,
        initializer_range=spread,
        pad_token_id=0,
        eos_token_id=1,
        bos_token_id=2,
        attn_implementation="eager",
        **({"layer_types": kinds} if third else {}),
        **changed,
    )
    model = (Gemma3ForCausalLM if third else Gemma2ForCausalLM)(config)
    with (
        torch.no_grad()
    ):  # All norms begin as zeros, with which a forgotten norm would go unnoticed.
        for name, weight in model.named_parameters():
            if "norm" in name:
                weight.normal_(std=0.2)
    model.save_pretrained(folder)
    if attention is not None:
        JudgeMetadata(attention=attention, prompt=prompt_hash(), dtype="float32").write(folder)
    return folder
