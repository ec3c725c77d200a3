"""Checkpoints in Hugging Face's layout: finds them, and loads those that transformers
runs on torch. Weights are safetensors; code from a model's repository is never run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mustsee.errors import BadRow, UserError, need
from mustsee.nn import weights

SAFETENSORS = ("model.safetensors", "model.safetensors.index.json")
DTYPES = ("bfloat16", "float16", "float32")


def find(model: str, revision: str | None, *files: str) -> Path:
    """The folder of a model, by path or Hugging Face id, which holds `files` and safetensors.

    Raises UserError for what is missing, with the command that fetches it.
    """
    folder = weights.find(model, revision)
    for file in files:
        weights.find_file(folder, file)
    weights.find_file(folder, *SAFETENSORS)
    return folder


def load(
    group: str, model: str, revision: str | None, *, kind: str, reader: str, dtype: str, device: str
) -> tuple[Any, Any]:
    """A model ready to generate on `device`, and the processor or tokenizer that goes with it.

    `group` is what the configuration calls the part ("caption", "llm"); `kind` and `reader` are
    classes of transformers, such as AutoModelForImageTextToText and AutoProcessor. A `device` of
    "auto" is a GPU where there is one. Raises UserError for what cannot be loaded.
    """
    need(f"{group}=transformers", "mustsee[torch]", "torch")
    import torch
    import transformers

    folder = find(model, revision, "config.json")
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    here: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    try:
        reading = getattr(transformers, reader).from_pretrained(folder, **here)
        loaded = getattr(transformers, kind).from_pretrained(
            folder, dtype=getattr(torch, dtype), use_safetensors=True, **here
        )
    except (OSError, ValueError, ImportError, KeyError) as error:
        said = f"{type(error).__name__}: {error}".strip().splitlines()[0]
        raise UserError(
            f"{group}.model={model!r} cannot be loaded: {said}; expected what {kind} loads, in "
            f"safetensors, with its {reader.removeprefix('Auto').lower()}"
        ) from error
    getattr(reading, "tokenizer", reading).padding_side = "left"  # what is generated comes behind
    return loaded.to(device).eval(), reading


def pictures(jpegs: Sequence[bytes]) -> list[Any]:
    """Opened by Pillow, in RGB. Raises BadRow for what is no picture."""
    import io

    from PIL import Image

    found = list[Any]()
    for index, jpeg in enumerate(jpegs):
        try:
            found.append(Image.open(io.BytesIO(jpeg)).convert("RGB"))
        except OSError as error:
            raise BadRow(f"image {index} of {len(jpegs)} is not readable: {error}") from error
    return found
