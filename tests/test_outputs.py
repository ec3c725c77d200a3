"""The output folder appears whole, or not at all with a clear word."""

from pathlib import Path

import pytest

from longshot.errors import LongshotError
from longshot.outputs import publish


def test_a_second_run_replaces_what_the_first_wrote(tmp_path: Path) -> None:
    def write(text: str, folder: Path) -> dict[str, str]:
        (folder / "export").mkdir()
        (folder / "export" / text).write_text(text)
        return {"run": text}

    for text in ("first", "second"):
        publish(str(tmp_path / "out"), lambda folder, text=text: write(text, folder))
    assert [p.name for p in (tmp_path / "out" / "export").iterdir()] == ["second"]
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["export", "run.json"]


def test_a_failure_leaves_the_old_output_and_says_why(tmp_path: Path) -> None:
    out = tmp_path / "out"
    publish(str(out), lambda folder: {"run": 1})

    def full(folder: Path) -> dict[str, int]:
        (folder / "videos.parquet").write_bytes(b"half")
        raise OSError(28, "No space left on device")

    with pytest.raises(LongshotError, match=r"No space left on device.*out="):
        publish(str(out), full)
    assert [p.name for p in out.iterdir()] == ["run.json"]
    with pytest.raises(LongshotError, match="cannot write the output folder"):
        publish(str(out / "run.json" / "below"), lambda folder: {})
