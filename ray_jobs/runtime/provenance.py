"""The provenance of a result: source revision, package versions, prompt hashes."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np

from mustsee.prompts import ROOT, Prompts

PACKAGES = (
    "ray", "pyarrow", "av", "numpy", "ctranslate2", "faster-whisper", "faiss-cpu", "jax",
    "transformers",
)  # fmt: skip
# Settings that choose other kernels of CTranslate2 and OpenBLAS, and so other digits
KERNELS = ("CT2_USE_MKL", "CT2_FORCE_CPU_ISA", "OPENBLAS_CORETYPE")


def git_revision() -> str:
    """The revision of the running source, "-dirty" if it was changed; "" outside a checkout."""
    root = Path(__file__).resolve().parents[2]
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()


def versions() -> dict[str, str]:
    """The versions of Python and of the packages that decide results, by name, and the processor of
    this machine, on which recognised speech depends.
    """
    installed = {"python": sys.version.split()[0]}
    for name in ("mustsee", *PACKAGES):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            installed[name] = importlib.metadata.version(name)
    return {**installed, "processor": processor()}


def processor() -> str:
    """The processor's maker and instruction sets, and the kernels that the environment sets."""
    found = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    chosen = [f"{name}={os.environ[name]}" for name in KERNELS if name in os.environ]
    return " ".join((platform.machine(), *_maker(), *found, *chosen))


def _maker() -> list[str]:
    """The maker in Linux's list of processors; CTranslate2 has other kernels on Intel's."""
    with contextlib.suppress(OSError):
        for row in Path("/proc/cpuinfo").read_text().splitlines():
            if row.startswith("vendor_id"):
                return row.split(":", 1)[1].split()
    return []


def prompt_hashes() -> dict[str, str]:
    """The hash of each prompt file, by the prompt's name."""
    names = sorted(str(p.relative_to(ROOT).with_suffix("")) for p in ROOT.rglob("*.j2"))
    return {name: Prompts().digest(name) for name in names}
