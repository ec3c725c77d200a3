"""The provenance of a result: source revision, package versions, prompt hashes."""

from __future__ import annotations

import contextlib
import importlib.metadata
import subprocess
import sys
from pathlib import Path

from mustsee.prompts import ROOT, Prompts

PACKAGES = ("ray", "pyarrow", "av", "faiss-cpu", "jax", "transformers", "aiohttp")


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
    """The versions of Python and of the packages that decide results, by name."""
    installed = {"python": sys.version.split()[0]}
    for name in ("mustsee", *PACKAGES):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            installed[name] = importlib.metadata.version(name)
    return installed


def prompt_hashes() -> dict[str, str]:
    """The hash of each prompt file, by the prompt's name."""
    names = sorted(str(p.relative_to(ROOT).with_suffix("")) for p in ROOT.rglob("*.j2"))
    return {name: Prompts().digest(name) for name in names}
