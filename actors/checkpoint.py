"""Finds checkpoints in Hugging Face's layout, and loads those that transformers runs on torch.

Weights are safetensors; code from a model's repository is never run.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mustsee.errors import BadRow, UserError, need
from mustsee.nn import weights

SAFETENSORS = ("model.safetensors", "model.safetensors.index.json")
DTYPES = ("bfloat16", "float16", "float32")


def find(model: str, revision: str | None, *files: str) -> Path:
    """The folder of a model, by path or Hugging Face id, with `files` and safetensors in it.

    Raises UserError for missing files, with the command that fetches them.
    """
    folder = weights.find(model, revision)
    for file in files:
        weights.find_file(folder, file)
    weights.find_file(folder, *SAFETENSORS)
    return folder


def load(
    group: str, model: str, revision: str | None, *, kind: str, reader: str, dtype: str, device: str
) -> tuple[Any, Any]:
    """Load a model ready to generate on `device`, and its processor or tokenizer.

    `group`: the part's name in the configuration ("caption", "llm"). `kind`, `reader`: classes of
    transformers, such as AutoModelForImageTextToText and AutoProcessor. `device`: "auto" is a GPU
    where there is one. Raises UserError for a model that cannot be loaded.
    """
    need(f"{group}=transformers", "mustsee[torch]", "torch")
    import torch
    import transformers

    folder = find(model, revision, "config.json")
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    here: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    try:
        processor = getattr(transformers, reader).from_pretrained(folder, **here)
        loaded = getattr(transformers, kind).from_pretrained(
            folder, dtype=getattr(torch, dtype), use_safetensors=True, **here
        )
    except (OSError, ValueError, ImportError, KeyError) as error:
        reason = f"{type(error).__name__}: {error}".strip().splitlines()[0]
        raise UserError(
            f"{group}.model={model!r} cannot be loaded: {reason}; expected a model of {kind}, in "
            f"safetensors, with its {reader.removeprefix('Auto').lower()}"
        ) from error
    # Padding is on the left, because generated tokens follow on the right.
    getattr(processor, "tokenizer", processor).padding_side = "left"
    return loaded.to(device).eval(), processor


def open_images(jpegs: Sequence[bytes]) -> list[Any]:
    """Open images with Pillow, in RGB. Raises BadRow for data that is not an image."""
    import io

    from PIL import Image

    images = list[Any]()
    for index, jpeg in enumerate(jpegs):
        try:
            images.append(Image.open(io.BytesIO(jpeg)).convert("RGB"))
        except OSError as error:
            raise BadRow(f"image {index} of {len(jpegs)} is not readable: {error}") from error
    return images
