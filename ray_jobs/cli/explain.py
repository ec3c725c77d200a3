"""`--help` of a job: its description, and the keys that people set with their choices.

`--help all`: every key with its value, every choice of each group, and the roles.
`--help KEY`: the keys inside a key, such as `--help ask`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from omegaconf import DictConfig, OmegaConf
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ray_jobs.cli import presets
from ray_jobs.cli.compose import CONF, choices, comments, compose_job, defaults, roles
from ray_jobs.cli.nested_help import nested_rows

# Keys and groups that people set, besides a job's own inputs; the others are in `--help all`.
OFTEN = ("out", "budget_usd", "dry_run", "preview", "seed", "language")
OFTEN_GROUPS = (
    "llm",
    "hear",
    "caption",
    "ask",
    "answer",
    "judge",
    "layout",
    "form",
    "task",
    "what",
)


def job(name: str, overrides: Sequence[str] = (), *, every: bool = True) -> None:
    """Print the help of a job with the values that the overrides choose. `every`: with all keys."""
    config = compose_job(name, overrides)
    console = Console()
    for line in (CONF / f"{name}.yaml").read_text().splitlines():
        if not line.startswith("#"):
            break
        console.print(Text(line.lstrip("# ")))
    console.print(_keys(name, config, every=every))
    if not every:
        console.print(_short_choices(name))
        console.print(
            Text(
                f"* = the default. All keys and choices: mustsee {name} --help all; the keys "
                f"inside one: mustsee {name} --help KEY"
            )
        )
        return
    console.print(_choices(name))
    if job_roles := roles(config):
        table = _table("roles")
        for role, group in job_roles.items():
            default = "none" if OmegaConf.select(config, role) is None else f"the run's {group}"
            table.add_row(Text(role.replace(".", "/")), Text(f"default: {default}"))
        console.print(table)
        role = next(iter(job_roles))
        console.print(
            Text(f"A role is set as a group is: {role.replace('.', '/')}=CHOICE {role}.KEY=...")
        )
    console.print(Text("* = the default. Any key inside a choice can be set too: hear.model=..."))


def inside(name: str, key: str, overrides: Sequence[str] = ()) -> None:
    """Print the keys inside a key of a job. Raises UserError for a key that holds none."""
    table = _table(f"keys inside {key}")
    table.show_header = False
    table.add_column(overflow="fold")
    table.add_column()
    for setting, comment in nested_rows(name, key, overrides, compose_job(name, overrides)):
        table.add_row(Text(setting), Text(comment))
    Console().print(table)


def _table(title: str) -> Table:
    return Table(title=title, title_justify="left", box=None, title_style="bold")


def _keys(name: str, config: DictConfig, *, every: bool) -> Table:
    table = _table("keys")
    plain = OmegaConf.to_container(config, resolve=False)
    own = re.findall(r"(?m)^(\w+):", (CONF / f"{name}.yaml").read_text())
    for key, comment in comments(name).items():
        if not every and key not in OFTEN and (key not in own or isinstance(plain[key], dict)):  # type: ignore[index,call-overload]
            continue
        value = plain[key]  # type: ignore[index,call-overload]
        short = key if isinstance(value, dict) else f"{key}={'' if value is None else value}"
        table.add_row(Text(short), Text(comment))
    return table


def _choices(name: str) -> Table:
    table = _table("choices")
    for group, chosen in _defaults(name):
        for option in choices(group, name):
            mark = "*" if option == chosen else " "
            table.add_row(
                Text(f"{mark} {group}={option}"), Text(_about(CONF / group / f"{option}.yaml"))
            )
    for option in presets.presets(CONF, name):
        table.add_row(
            Text(f"  +experiment={option}"), Text(_about(presets.preset_file(CONF, option, name)))
        )
    return table


def _short_choices(name: str) -> Table:
    table = _table("choices")
    for group, chosen in _defaults(name):
        if group in OFTEN_GROUPS:
            options = [f"{o}*" if o == chosen else o for o in choices(group, name)]
            table.add_row(Text(f"{group}="), Text(" | ".join(options)))
    if named := presets.presets(CONF, name):
        table.add_row(Text("+experiment="), Text(" | ".join(named)))
    return table


def _defaults(name: str) -> Iterator[tuple[str, str]]:
    """Yield the groups of a job with their default choices."""
    for item in defaults(name):
        if isinstance(item, dict):
            yield from item.items()


def _about(path: Path) -> str:
    lines = path.read_text().splitlines()
    texts = (line.lstrip("# ") for line in lines if not line.startswith("# @package"))
    return next(texts, "")
