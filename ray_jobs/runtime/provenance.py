"""The provenance of a result: source revision, package versions, prompt hashes."""

from __future__ import annotations

import contextlib
import importlib.metadata
import subprocess
import sys
from pathlib import Path

from mustsee.prompts import ROOT, Prompts

PACKAGES = ("ray", "pyarrow", "av", "faiss-cpu", "jax", "transformers", "openai")


def git_revision() -> str:
    """The revision of the source that runs, "-dirty" when it was changed; "" outside a checkout."""
    root = Path(__file__).resolve().parents[2]
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()


def versions() -> dict[str, str]:
    known = {"python": sys.version.split()[0]}
    for name in ("mustsee", *PACKAGES):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            known[name] = importlib.metadata.version(name)
    return known


def prompt_hashes() -> dict[str, str]:
    """Prompt name -> hash of its file."""
    names = sorted(str(p.relative_to(ROOT).with_suffix("")) for p in ROOT.rglob("*.j2"))
    return {name: Prompts().digest(name) for name in names}
