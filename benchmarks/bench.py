"""Run one benchmark: ratios to a named alternative, measured in the same run.

python -m benchmarks.bench what=look [what.video=FILE] [json=FILE]
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from benchmarks.figures import BenchTable
from ray_jobs.cli.launch import launch

WIDTH = 140  # characters of a line where the output is not a terminal


@dataclass(frozen=True, kw_only=True)
class Bench:
    what: Callable[[], BenchTable]
    json: str | None = None

    def __call__(self) -> int:
        table = self.what()
        console = Console()
        if not console.is_terminal:
            console.width = WIDTH
        console.print(table.rich_table())
        if self.json is not None:
            path = Path(self.json)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(table.as_json(), indent=2) + "\n")
        return 0


if __name__ == "__main__":
    launch("bench")
