"""The jobs of this checkout, or of an installed package."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def jobs(root: Path) -> dict[str, str]:
    """The first line of each job's `conf/NAME.yaml`, by job."""
    texts = {path.stem: path.read_text("utf-8") for path in sorted((root / "conf").glob("*.yaml"))}
    return {
        name: text.partition("\n")[0].lstrip("# ")
        for name, text in texts.items()
        if re.search(r"^job: ", text, re.MULTILINE)
    }
