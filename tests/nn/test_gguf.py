"""GGUF files: metadata, tensors of every supported kind, and files that are not whole."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mustsee.errors import UserError
from mustsee.nn.gguf import read_gguf
from tests.support import tiny_gguf

SCALE, LEAST = np.float16(0.25), np.float16(-1.5)
NIBBLES = np.arange(32) * 7 % 16
BYTES = np.arange(32) * 8 - 124


def q4_1() -> bytes:
    packed = (NIBBLES[:16] | NIBBLES[16:] << 4).astype(np.uint8)
    return SCALE.tobytes() + LEAST.tobytes() + packed.tobytes()


def q8_0() -> bytes:
    return SCALE.tobytes() + BYTES.astype(np.int8).tobytes()


def test_metadata_and_tensors_are_read(tmp_path: Path) -> None:
    metadata = {
        "a": 3, "b": 0.5, "c": "ü | {%", "d": ["x", "", "long" * 99], "e": [1, 2], "f": True,
    }  # fmt: skip
    plain = np.arange(12, dtype=np.float32).reshape(3, 4)
    path = tiny_gguf.write(
        tmp_path / "m.gguf",
        metadata,
        {
            "plain": tiny_gguf.floats(plain),
            "half": ((2, 16), 1, np.arange(32).astype("<f2").tobytes()),
            "four": ((2, 32), 3, q4_1() * 2),
            "eight": ((1, 32), 8, q8_0()),
        },
    )
    file = read_gguf(path)
    assert file.metadata == metadata
    np.testing.assert_array_equal(file.tensors["plain"], plain)
    np.testing.assert_array_equal(file.tensors["half"], np.arange(32.0).reshape(2, 16))
    four = NIBBLES * 0.25 - 1.5
    np.testing.assert_array_equal(file.tensors["four"], np.stack([four, four]))
    np.testing.assert_array_equal(file.tensors["eight"], (BYTES * 0.25)[None])
    assert {tensor.dtype for tensor in file.tensors.values()} == {np.dtype("float32")}


@pytest.mark.parametrize("size", [0, 3, 10, 40, 90])
def test_a_file_that_is_cut_off_is_refused(size: int, tmp_path: Path) -> None:
    tensor = tiny_gguf.floats(np.ones((4, 8)))
    path = tiny_gguf.write(tmp_path / "m.gguf", {"key": "some text"}, {"weight": tensor})
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(UserError, match=r"m\.gguf.*GGUF"):
        read_gguf(path)


def test_unknown_kinds_and_other_files_are_refused(tmp_path: Path) -> None:
    path = tiny_gguf.write(tmp_path / "m.gguf", {"k": 1}, {"w": ((32,), 12, b"\0" * 32)})
    with pytest.raises(UserError, match="'w' has kind 12"):
        read_gguf(path)
    short = tiny_gguf.write(tmp_path / "s.gguf", {"k": 1}, {"w": ((64,), 8, q8_0())})
    with pytest.raises(UserError, match="truncated"):
        read_gguf(short)
    other = tmp_path / "other.gguf"
    other.write_bytes(b"PK\3\4" + b"\0" * 99)
    with pytest.raises(UserError, match="does not begin with GGUF"):
        read_gguf(other)
