"""Tiny random PaliGemma checkpoints: the real architecture and a tokenizer with Gemma's control
tokens, small enough to run in milliseconds.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.tiny_gemma import tokenizer


def paligemma(folder: Path, *, second: bool = True, seed: int = 0) -> Path:
    """Write a PaliGemma 2 (not `second`: a PaliGemma with a Gemma 1 decoder) to `folder`."""
    torch = pytest.importorskip("torch")
    from transformers import (
        Gemma2Config,
        GemmaConfig,
        PaliGemmaConfig,
        PaliGemmaForConditionalGeneration,
        SiglipVisionConfig,
    )

    vocabulary = tokenizer(folder)
    text = (Gemma2Config if second else GemmaConfig)(
        vocab_size=vocabulary + 8, hidden_size=32, intermediate_size=48, num_hidden_layers=3,
        num_attention_heads=4, num_key_value_heads=2, head_dim=16, max_position_embeddings=256,
        pad_token_id=0, eos_token_id=1, bos_token_id=2,
        **({"sliding_window": 8, "query_pre_attn_scalar": 24} if second else {}),
    )  # fmt: skip
    vision = SiglipVisionConfig(
        hidden_size=24, intermediate_size=40, num_hidden_layers=2, num_attention_heads=2,
        image_size=32, patch_size=8, projection_dim=32, vision_use_head=False,
    )  # fmt: skip
    config = PaliGemmaConfig(
        vision_config=vision, text_config=text, image_token_index=vocabulary + 1,
        projection_dim=32, hidden_size=32,
    )  # fmt: skip
    torch.manual_seed(seed)
    model = PaliGemmaForConditionalGeneration(config).eval()
    for name, parameter in model.named_parameters():
        if "norm" in name and parameter.ndim == 1:
            torch.nn.init.normal_(parameter, std=0.1)
        elif parameter.ndim > 1:
            torch.nn.init.normal_(parameter, std=0.25)
    model.save_pretrained(folder)
    return folder
