"""Files that appear whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    write_whole(path, json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def write_whole(path: Path, text: str) -> None:
    """Write a file that appears whole or not at all."""
    unfinished = path.with_name(f".{path.name}.unfinished")
    unfinished.write_text(text, "utf-8")
    unfinished.replace(path)
