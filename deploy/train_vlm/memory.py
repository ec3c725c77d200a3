"""What a training needs of memory, and what is free."""

from __future__ import annotations

from typing import Any

import psutil

GB = 1e9


def estimate_memory(model: Any, trained: int, tokens: int, answer_tokens: int) -> dict[str, float]:
    """Return the GB that a training of `trained` parameters needs, by use: weights; adapters with
    gradients and AdamW's two moments, in float32; activations, kept once a layer and recomputed
    (gradient checkpointing), with those of one layer; the scores of the answer's tokens.
    """
    text = model.config.get_text_config()
    size = next(model.parameters()).element_size()
    wide = getattr(text, "intermediate_size", 4 * text.hidden_size)
    layer = tokens * (8 * text.hidden_size + 4 * wide) * size
    return {
        "weights": sum(p.numel() * p.element_size() for p in model.parameters()) / GB,
        "adapters": trained * 16 / GB,
        "activations": (tokens * text.hidden_size * size * text.num_hidden_layers + layer) / GB,
        "scores": answer_tokens * text.vocab_size * 12 / GB,
    }


def free_memory(device: str, weights: float) -> float:
    """Return the GB that are free on a device for a model of `weights` GB, which is in the
    machine's memory.
    """
    import torch

    if device == "cuda":
        return torch.cuda.mem_get_info()[0] / GB
    return psutil.virtual_memory().available / GB + weights
