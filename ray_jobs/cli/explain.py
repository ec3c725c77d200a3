"""`--help` of a job: its description, and the keys that people set with their choices.

`--help all`: every key with its value, every choice of each group, and the roles.
`--help KEY`: the keys inside a key, such as `--help ask`, or `--help ask.settings.select`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf
from rich.console import Console
from rich.table import Table
from rich.text import Text

from mustsee.errors import UserError
from ray_jobs.cli import compose, presets
from ray_jobs.cli.class_defaults import fill, read_comments, read_defaults
from ray_jobs.cli.compose import CONF

# Keys and groups that people set, besides a job's own inputs; the others are in `--help all`.
OFTEN = ("out", "budget_usd", "dry_run", "preview", "seed", "language")
OFTEN_GROUPS = (
    "llm", "hear", "caption", "ask", "answer", "judge", "layout", "form", "task", "what",
)  # fmt: skip


def job(name: str, overrides: Sequence[str] = (), *, every: bool = True) -> None:
    """Print the help of a job with the values that the overrides choose. `every`: with all keys."""
    config = compose.compose_job(name, overrides)
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
    if job_roles := compose.roles(config):
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
    for setting, comment in nested_rows(name, key, overrides, compose.compose_job(name, overrides)):
        table.add_row(Text(setting), Text(comment))
    Console().print(table)


def _table(title: str) -> Table:
    return Table(title=title, title_justify="left", box=None, title_style="bold")


def _keys(name: str, config: DictConfig, *, every: bool) -> Table:
    table = _table("keys")
    plain = OmegaConf.to_container(config, resolve=False)
    own = re.findall(r"(?m)^(\w+):", (CONF / f"{name}.yaml").read_text())
    for key, comment in compose.comments(name).items():
        if not every and key not in OFTEN and (key not in own or isinstance(plain[key], dict)):  # type: ignore[index,call-overload]
            continue
        value = plain[key]  # type: ignore[index,call-overload]
        short = key if isinstance(value, dict) else f"{key}={'' if value is None else value}"
        table.add_row(Text(short), Text(comment))
    return table


def _choices(name: str) -> Table:
    table = _table("choices")
    for group, chosen in _defaults(name):
        for option in compose.choices(group):
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
            options = [f"{o}*" if o == chosen else o for o in compose.choices(group)]
            table.add_row(Text(f"{group}="), Text(" | ".join(options)))
    if named := presets.presets(CONF, name):
        table.add_row(Text("+experiment="), Text(" | ".join(named)))
    return table


def _defaults(name: str) -> Iterator[tuple[str, str | None]]:
    """Yield the groups of a job with their default choices; None: none is chosen."""
    for item in compose.defaults(name):
        if isinstance(item, dict):
            yield from item.items()


def _about(path: Path) -> str:
    lines = path.read_text().splitlines()
    texts = (line.lstrip("# ") for line in lines if not line.startswith("# @package"))
    return next(texts, "")


LINE = re.compile(r"^(?P<indent> *)(?P<key>\w+):(?P<rest>.*)$")
MAX_SHOWN = 100  # characters of a node on one line
MAX_DEPTH = 2  # depth of the nodes inside the key whose keys are shown
COMMENT = re.compile(r"\s#\s*(.*)$")


def nested_rows(
    job: str, key: str, overrides: Sequence[str], config: DictConfig
) -> Iterator[tuple[str, str]]:
    """Yield (`KEY=VALUE`, comment) of each key inside `key`, as `overrides` choose it.

    Raises UserError for a key that does not exist, or that holds no others.
    """
    top = key.partition(".")[0]
    node: Any = fill(OmegaConf.to_container(config, resolve=False))
    for name in key.split("."):
        node = node.get(name) if isinstance(node, dict) else None
    if not isinstance(node, (dict, list)):
        known = ", ".join(sorted(compose.known_keys(job)))
        raise UserError(f"--help {key}: no key of that name holds others. Keys: {known}")
    yield from _rows(node, key, _comments(job, top, overrides))


def _rows(
    node: Any, path: str, comments: Mapping[str, str], depth: int = 1
) -> Iterator[tuple[str, str]]:
    """The rows of a node, and of the nodes inside it; of those inside these, one row each."""
    of_class = read_comments(node) if isinstance(node, dict) else {}
    for name, value in node.items() if isinstance(node, dict) else ():
        here = f"{path}.{name}"
        if name.startswith("_"):
            continue
        comment = comments.get(here, _as_comment(of_class.get(name, "")))
        holds = isinstance(value, dict) and (
            "_target_" in value or any(c.startswith(f"{here}.") for c in comments)
        )
        if holds and depth < MAX_DEPTH:
            if comment:
                yield here, comment
            yield from _rows(value, here, comments, depth + 1)
        elif holds and (read_comments(value) or "_target_" not in value):
            yield f"{here}={_short(value)}", f"{comment} (--help {here})".strip()
        else:
            yield f"{here}={_short(value)}", comment


def _as_comment(text: str) -> str:
    """The text behind a field of a class, written as a comment of conf/ is."""
    first = text[:1] if text[1:2].isupper() else text[:1].lower()
    return first + text[1:].removesuffix(".")


def _short(value: Any) -> str:
    if isinstance(value, dict):
        known = read_defaults(value)
        shown = {
            k: v for k, v in value.items() if str(k)[0] != "_" and not _is_default(known, k, v)
        }
        inner = ", ".join(f"{k}: {_short(v)}" for k, v in shown.items())
        return "{" + inner + "}" if inner and len(inner) < MAX_SHOWN else "on"
    if isinstance(value, list):
        return "[" + ", ".join(map(_short, value)) + "]"
    if value is None:
        return "null"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _is_default(known: Mapping[str, Any], key: str, value: Any) -> bool:
    return key in known and fill(known[key]) == value


def _comments(job: str, top: str, overrides: Sequence[str]) -> dict[str, str]:
    """The comments of the keys inside `top`, by path, from the file of its choice or the job's."""
    chosen = dict(_defaults(job))
    if chosen.get(top) is None:
        found: dict[str, str] = {}
        for path in compose.files(job):
            found |= _comments_of(path, "")
        return found
    chosen |= dict(o.split("=", 1) for o in overrides if o.startswith(f"{top}="))
    return _comments_of(CONF / top / f"{chosen[top]}.yaml", top)


def _comments_of(path: Path, prefix: str) -> dict[str, str]:
    """The comments of a file and of the files that it is made of, by the path of their key."""
    found: dict[str, str] = {}
    for item in compose.defaults(str(path.relative_to(CONF).with_suffix(""))):
        file, package = _included(path, item)
        if file.exists():
            found |= _comments_of(file, ".".join(filter(None, (prefix, package))))
    stack: list[tuple[int, str]] = []
    for line in path.read_text().splitlines():
        if not (match := LINE.match(line)):
            continue
        indent = len(match["indent"])
        stack = [(n, name) for n, name in stack if n < indent] + [(indent, match["key"])]
        if comment := COMMENT.search(match["rest"]):
            found[".".join([*filter(None, [prefix]), *(name for _, name in stack)])] = comment[1]
    return found


def _included(path: Path, item: Any) -> tuple[Path, str]:
    """The file that an item of a defaults list names, such as `whole`, `/endpoint/openai@model` or
    `{/hear@engine: tiny}`, and the key that it goes to.
    """
    pairs = item.items() if isinstance(item, dict) else [(item, None)]
    ((name, choice),) = pairs
    group, _, package = str(name).partition("@")
    folder = CONF if group.startswith("/") else path.parent
    file = f"{group.lstrip('/')}/{choice}" if choice else group.lstrip("/")
    return folder / f"{file}.yaml", "" if package == "_here_" else package
