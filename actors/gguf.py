"""A GGUF file as an ordinary checkpoint folder, which every part that takes a `model` can read.

Reading the file takes longer than loading what came of it (of 135 million weights 19 CPU seconds
against 1), so it is done once, by a command, and not by every worker.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from actors import checkpoint
from mustsee.errors import UserError, need


@dataclass(frozen=True, kw_only=True)
class UnpackedModel:
    """What was written: the architecture, the weights, and how a chat is put to it."""

    kind: str
    weights: int
    chat: bool


def unpack(gguf: str, out: str, dtype: str) -> UnpackedModel:
    """Write the dequantised weights, the tokenizer and the chat template of `gguf` to the folder
    `out`. Raises UserError for what is no GGUF file, or one of a model that is not known.
    """
    path = Path(gguf).expanduser()
    if not path.is_file():
        raise UserError(f"no file at gguf={gguf!r}")
    if Path(out, "config.json").exists():
        raise UserError(f"out={out!r} holds a checkpoint already: choose another folder")
    if dtype not in checkpoint.DTYPES:
        raise UserError(f"dtype={dtype!r}: expected one of {', '.join(checkpoint.DTYPES)}")
    # transformers reads the file with gguf
    need("reading a GGUF file", "mustsee[torch,gguf]", "torch", "gguf")
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    read: dict[str, Any] = {"gguf_file": path.name, "local_files_only": True}
    try:
        tokenizer: Any = AutoTokenizer.from_pretrained(path.parent, **read)
        model: Any = AutoModelForCausalLM.from_pretrained(
            path.parent,
            dtype=getattr(torch, dtype),
            quantization_config=GgufConfig(dequantize=True),
            **read,
        )
    except (OSError, ValueError, KeyError, struct.error) as error:
        said = f"{type(error).__name__}: {error}".strip().splitlines()[0]
        raise UserError(f"gguf={gguf!r} cannot be read: {said}") from error
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)
    return UnpackedModel(
        kind=str(model.config.model_type),
        weights=sum(p.numel() for p in model.parameters()),
        chat=bool(tokenizer.chat_template),
    )
