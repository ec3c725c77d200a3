"""Reads GGUF files (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md): the metadata, and
tensors in float32 or float16, or quantised as Q4_1 or Q8_0.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from mustsee.errors import UserError

Floats = NDArray[np.float32]
MAGIC = b"GGUF"
BLOCK = 32  # weights of a quantised block
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q",
            12: "d"}  # fmt: skip
_TEXT, _LIST = 8, 9  # types of values that are not numbers


@dataclass(frozen=True, kw_only=True)
class GgufFile:
    """`metadata`: by key, such as `llama.block_count`. `tensors`: by name, float32."""

    metadata: Mapping[str, Any]
    tensors: Mapping[str, Floats]


def read_gguf(path: Path) -> GgufFile:
    """Return the content of a file. Raises UserError for a file that is not GGUF, is truncated, or
    has tensors of another kind.
    """
    try:
        with path.open("rb") as file:
            return _read(file, path)
    except (struct.error, UnicodeDecodeError, KeyError, ValueError, MemoryError) as error:
        raise UserError(f"{str(path)!r} cannot be read as GGUF: {error}") from error


def _read(file: BinaryIO, path: Path) -> GgufFile:
    if file.read(4) != MAGIC:
        raise ValueError("it does not begin with GGUF")
    _, tensor_count, key_count = _unpack(file, "<IQQ")
    metadata: dict[str, Any] = {}
    for _ in range(key_count):
        key = _text(file)
        metadata[key] = _value(file, *_unpack(file, "<I"))
    places: list[tuple[str, tuple[int, ...], int, int]] = []
    for _ in range(tensor_count):
        name = _text(file)
        (dimensions,) = _unpack(file, "<I")
        shape = _unpack(file, f"<{dimensions}Q")[::-1]
        places.append((name, shape, *_unpack(file, "<IQ")))
    alignment = int(metadata.get("general.alignment", 32))
    begin = -(-file.tell() // alignment) * alignment
    raw = np.memmap(path, mode="r")
    tensors: dict[str, Floats] = {}
    for name, shape, kind, offset in places:
        if kind not in _KINDS:
            raise ValueError(f"tensor {name!r} has kind {kind}; {sorted(_KINDS)} are supported")
        size, expand = _KINDS[kind]
        count = int(np.prod(shape))
        taken = raw[begin + offset :][: count * size // BLOCK]
        if taken.size * BLOCK != count * size:
            raise ValueError(f"tensor {name!r} is truncated")
        tensors[name] = expand(taken).reshape(shape)
    return GgufFile(metadata=metadata, tensors=tensors)


def _unpack(file: BinaryIO, layout: str) -> tuple[Any, ...]:
    return struct.unpack(layout, file.read(struct.calcsize(layout)))


def _text(file: BinaryIO) -> str:
    (length,) = _unpack(file, "<Q")
    return file.read(length).decode("utf-8")


def _value(file: BinaryIO, kind: int) -> Any:
    if kind == _TEXT:
        return _text(file)
    if kind == _LIST:
        of, count = _unpack(file, "<IQ")
        return [_value(file, of) for _ in range(count)]
    return _unpack(file, f"<{_NUMBERS[kind]}")[0]


def _floats_of(dtype: str) -> Callable[[NDArray[np.uint8]], Floats]:
    return lambda raw: raw.view(dtype).astype(np.float32)


def _q4_1(raw: NDArray[np.uint8]) -> Floats:
    """A block: scale and least value in float16, then 32 numbers of four bits, of which the low
    halves of the bytes are the first sixteen.
    """
    blocks = raw.reshape(-1, 4 + BLOCK // 2)
    scale, least = blocks[:, :4].copy().view("<f2").astype(np.float32).T[:, :, None]
    packed = blocks[:, 4:]
    numbers = np.concatenate([packed & 15, packed >> 4], axis=1).astype(np.float32)
    return numbers * scale + least


def _q8_0(raw: NDArray[np.uint8]) -> Floats:
    """A block: scale in float16, then 32 signed bytes."""
    blocks = raw.reshape(-1, 2 + BLOCK)
    scale = blocks[:, :2].copy().view("<f2").astype(np.float32)
    return blocks[:, 2:].view(np.int8).astype(np.float32) * scale


# Kind of a tensor -> bytes of 32 weights, and what makes floats of them.
_KINDS: Mapping[int, tuple[int, Callable[[NDArray[np.uint8]], Floats]]] = {
    0: (4 * BLOCK, _floats_of("<f4")),
    1: (2 * BLOCK, _floats_of("<f2")),
    3: (4 + BLOCK // 2, _q4_1),
    8: (2 + BLOCK, _q8_0),
}
