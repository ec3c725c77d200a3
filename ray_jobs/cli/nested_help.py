"""`--help KEY`: the keys inside a key, such as `--help ask`, or `--help ask.settings.select`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from mustsee.errors import UserError
from ray_jobs.cli.class_defaults import fill, read_comments, read_defaults
from ray_jobs.cli.compose import CONF, choices, defaults, files, known_keys

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
        known = ", ".join(sorted(known_keys(job)))
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
    if not choices(top):
        found: dict[str, str] = {}
        for path in files(job):
            found |= _comments_of(path, "")
        return found
    chosen = {k: v for item in defaults(job) if isinstance(item, dict) for k, v in item.items()}
    chosen |= dict(o.split("=", 1) for o in overrides if o.startswith(f"{top}="))
    return _comments_of(CONF / top / f"{chosen[top]}.yaml", top)


def _comments_of(path: Path, prefix: str) -> dict[str, str]:
    """The comments of a file and of the files that it is made of, by the path of their key."""
    found: dict[str, str] = {}
    for item in defaults(str(path.relative_to(CONF).with_suffix(""))):
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
