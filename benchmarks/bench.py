"""Run one benchmark: ratios to a named alternative, measured in the same run.

python -m benchmarks.bench what=look [what.video=FILE] [json=FILE]

Its configuration is in `benchmarks/conf`, and takes choices such as `hear=tiny` from the jobs'.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from omegaconf import DictConfig, OmegaConf
from rich.console import Console

from benchmarks.figures import BenchTable
from mustsee.errors import UserError
from ray_jobs.cli.build import build
from ray_jobs.cli.compose import CONF as JOBS
from ray_jobs.cli.compose import compose_by_hydra, readable

CONF = Path(__file__).parent / "conf"

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


def compose_bench(overrides: Sequence[str]) -> DictConfig:
    """Return the configuration of a benchmark. Raises UserError naming the key or the choice."""
    place = f"hydra.searchpath=[file://{JOBS}]"
    config = compose_by_hydra("bench", [*overrides, place], CONF)
    with readable(overrides):
        OmegaConf.resolve(config)
    return config


def main(arguments: Sequence[str]) -> int:
    if {"-h", "--help"} & set(arguments):
        names = sorted(path.stem for path in (CONF / "what").glob("*.yaml"))
        print(f"{__doc__}\nwhat: {', '.join(names)}")
        return 0
    try:
        return build(compose_bench(arguments))()
    except UserError as error:
        print(f"mustsee: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
