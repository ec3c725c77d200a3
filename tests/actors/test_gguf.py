"""Messages about GGUF files that cannot be unpacked; `make test-real` unpacks two."""

from pathlib import Path

import pytest

from actors.gguf import unpack
from mustsee.errors import UserError


def test_invalid_gguf_files_are_named(tmp_path: Path) -> None:
    file = tmp_path / "model.gguf"
    with pytest.raises(UserError, match="no file at"):
        unpack(str(file), str(tmp_path / "out"), "bfloat16")
    file.write_bytes(b"GGUF but no more of it")
    with pytest.raises(UserError, match="int4"):
        unpack(str(file), str(tmp_path / "out"), "int4")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "config.json").write_text("{}")
    with pytest.raises(UserError, match="already contains a checkpoint"):
        unpack(str(file), str(tmp_path / "full"), "bfloat16")
    with pytest.raises(UserError, match="read"):
        unpack(str(file), str(tmp_path / "out"), "bfloat16")
