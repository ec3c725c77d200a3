"""Tiny random image-text models with the processors of the real ones: a LLaVA, which has a chat
template, and a PaliGemma, which has none.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.tiny_gemma import tokenizer
from tests.support.tiny_paligemma import paligemma

TEMPLATE = (
    "{% for m in messages %}<start_of_turn>{{ 'model' if m.role == 'assistant' else m.role }}\n"
    "{% for c in m.content %}"
    "{% if c.type == 'image' %}<image>{% else %}{{ c.text }}{% endif %}{% endfor %}"
    "<end_of_turn>\n{% endfor %}{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}"
)


def llava(
    folder: Path, *, seed: int = 0, text: Mapping[str, Any] | None = None,
    vision: Mapping[str, Any] | None = None,
) -> Path:  # fmt: skip
    """Write a LLaVA (SigLIP tower, Gemma 2 decoder) with its processor to `folder`. `text`,
    `vision`: another shape of both.
    """
    torch = pytest.importorskip("torch")
    from transformers import (
        Gemma2Config,
        LlavaConfig,
        LlavaForConditionalGeneration,
        LlavaProcessor,
        SiglipVisionConfig,
    )

    tokens = _with_image_token(folder)
    decoder: dict[str, Any] = {
        "vocab_size": len(tokens), "hidden_size": 32, "intermediate_size": 48,
        "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8,
        "max_position_embeddings": 256, **(text or {}),
    }  # fmt: skip
    tower: dict[str, Any] = {
        "hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2,
        "num_attention_heads": 2, "image_size": 32, "patch_size": 8, **(vision or {}),
    }  # fmt: skip
    config = LlavaConfig(
        vision_config=SiglipVisionConfig(**tower), vision_feature_layer=-1,
        text_config=Gemma2Config(**decoder, tie_word_embeddings=False, pad_token_id=0,
                                 eos_token_id=1, bos_token_id=2),
        vision_feature_select_strategy="full",
        tie_word_embeddings=False,
        image_token_index=tokens.convert_tokens_to_ids("<image>"),
    )  # fmt: skip
    torch.manual_seed(seed)
    model = LlavaForConditionalGeneration(config).eval()
    for name, parameter in model.named_parameters():
        if "norm" in name:
            torch.nn.init.normal_(parameter, std=0.1)
        elif parameter.ndim > 1:
            torch.nn.init.normal_(parameter, std=0.25)
    model.save_pretrained(folder)
    LlavaProcessor(
        image_processor=_image_processor(tower["image_size"], tower["patch_size"]),
        tokenizer=tokens, patch_size=tower["patch_size"],
        vision_feature_select_strategy="full", chat_template=TEMPLATE,
    ).save_pretrained(folder)  # fmt: skip
    return folder


def paligemma_with_processor(folder: Path) -> Path:
    """Write a PaliGemma 2 that AutoProcessor can read, too."""
    from transformers import PaliGemmaProcessor

    paligemma(folder)
    tokens = _with_image_token(folder)
    PaliGemmaProcessor(_image_processor(), tokens).save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text())
    config["image_token_index"] = config["image_token_id"] = tokens.convert_tokens_to_ids("<image>")
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def _image_processor(side: int = 32, patch: int = 8) -> Any:
    from transformers import SiglipImageProcessor

    processor: Any = SiglipImageProcessor(size={"height": side, "width": side})
    processor.image_seq_length = (side // patch) ** 2
    return processor


def _with_image_token(folder: Path) -> Any:
    from transformers import AutoTokenizer

    tokenizer(folder)
    tokens = AutoTokenizer.from_pretrained(folder)
    tokens.add_special_tokens({"additional_special_tokens": ["<image>"]})
    return tokens
