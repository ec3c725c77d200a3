"""Writes GGUF files: numbers, texts and lists as metadata; tensors as bytes of any kind."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

Tensors = Mapping[str, tuple[tuple[int, ...], int, bytes]]  # shape, kind, bytes


def floats(array: np.ndarray) -> tuple[tuple[int, ...], int, bytes]:
    return array.shape, 0, array.astype("<f4").tobytes()


def write(path: Path, metadata: Mapping[str, Any], tensors: Tensors) -> Path:
    """Write a file with an alignment of 32 bytes."""
    head = [b"GGUF", struct.pack("<IQQ", 3, len(tensors), len(metadata))]
    head += [_text(key) + _value(value, typed=True) for key, value in metadata.items()]
    body = b""
    for name, (shape, kind, content) in tensors.items():
        body += b"\0" * (-len(body) % 32)
        sizes = struct.pack(f"<I{len(shape)}Q", len(shape), *shape[::-1])
        head.append(_text(name) + sizes + struct.pack("<IQ", kind, len(body)))
        body += content
    start = b"".join(head)
    path.write_bytes(start + b"\0" * (-len(start) % 32) + body)
    return path


def _text(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()


def _value(value: Any, *, typed: bool) -> bytes:
    kind, content = _typed(value)
    return (struct.pack("<I", kind) if typed else b"") + content


def _typed(value: Any) -> tuple[int, bytes]:
    if isinstance(value, str):
        return 8, _text(value)
    if isinstance(value, bool):
        return 7, struct.pack("<?", value)
    if isinstance(value, int):
        return 5, struct.pack("<i", value)
    if isinstance(value, float):
        return 6, struct.pack("<f", value)
    items = [_typed(one) for one in value]
    content = b"".join(one for _, one in items)
    return 9, struct.pack("<IQ", items[0][0], len(items)) + content
