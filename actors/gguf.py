"""Conversion of a GGUF file into a checkpoint folder, for every part that takes a `model`.

Reading the file takes longer than loading the folder (19 CPU seconds against 1, for 135 million
weights), so a command converts it once, and workers load the folder.
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
    """The checkpoint that was written. `kind`: its architecture. `weights`: their number. `chat`:
    whether it has a chat template.
    """

    kind: str
    weights: int
    chat: bool


def unpack(gguf: str, out: str, dtype: str) -> UnpackedModel:
    """Write the dequantised weights, the tokenizer and the chat template of `gguf` to the folder
    `out`. Raises UserError for a file that is not GGUF, or of an unknown model.
    """
    path = Path(gguf).expanduser()
    if not path.is_file():
        raise UserError(f"no file at gguf={gguf!r}")
    if Path(out, "config.json").exists():
        raise UserError(f"out={out!r} already contains a checkpoint: choose another folder")
    if dtype not in checkpoint.DTYPES:
        raise UserError(f"dtype={dtype!r}: expected one of {', '.join(checkpoint.DTYPES)}")
    # transformers reads the file with the package gguf.
    need("reading a GGUF file", "mustsee[torch,gguf]", "torch", "gguf")
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    source: dict[str, Any] = {"gguf_file": path.name, "local_files_only": True}
    try:
        tokenizer: Any = AutoTokenizer.from_pretrained(path.parent, **source)
        model: Any = AutoModelForCausalLM.from_pretrained(
            path.parent,
            dtype=getattr(torch, dtype),
            quantization_config=GgufConfig(dequantize=True),
            **source,
        )
    except (OSError, ValueError, KeyError, struct.error) as error:
        reason = f"{type(error).__name__}: {error}".strip().splitlines()[0]
        raise UserError(f"gguf={gguf!r} cannot be read: {reason}") from error
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)
    return UnpackedModel(
        kind=str(model.config.model_type),
        weights=sum(p.numel() for p in model.parameters()),
        chat=bool(tokenizer.chat_template),
    )
