"""The question filters of a finished run, from the configuration in its `run.json`."""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, is_dataclass
from pathlib import Path
from typing import Any, cast

from mustsee.errors import UserError
from mustsee.files.parquet import RECORD
from mustsee.verify.vetting import QuestionFilter

TARGET = "_target_"  # key that names the class of a node
FILTER_MODULES = "mustsee.verify."  # start of the modules of filters and of their settings
UNREAD = (TARGET, "_convert_")
# Keys of `vet` that a run shares with another one.
SETTINGS = ("filters", "order", "subset", "watch")


@dataclass(frozen=True, kw_only=True)
class RunFilters:
    """The filters of a run by name, None for one that is off, and its settings of `vet`. `models`:
    role -> the model that the run asked, as its configuration names it. `config`: the keys of its
    configuration that say so, for the record of a run that uses its filters.
    """

    filters: Mapping[str, QuestionFilter | None]
    order: tuple[str, ...]
    subset: str | None
    watch: bool
    models: Mapping[str, str]
    learned: bool
    config: Mapping[str, Any]

    def run_config(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Return the configuration of a run that uses these filters, in place of its own ones."""
        vet = {**(config.get("vet") or {}), **self.config["vet"]}
        return {**config, **self.config, "vet": vet}


def read_filters(folder: Path) -> RunFilters:
    """Read the filters of the run in `folder`. Raises UserError for a run without filters, and for
    one whose filters are not of this version.
    """
    path = folder / RECORD
    try:
        record: Any = json.loads(path.read_text(encoding="utf-8"))
        config: Mapping[str, Any] = record["config"]
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise UserError(f"{str(path)!r} is not the record of a run: {error}") from error
    vet: Any = config.get("vet")
    if not isinstance(vet, dict) or not isinstance(vet.get("filters"), dict):
        raise UserError(
            f"made={str(folder)!r}: this run of {record.get('recipe')!r} has no filters: give a "
            "run that makes questions"
        )
    nodes = cast(dict[str, Any], vet)
    filters = {
        name: None if node is None else _build(node, f"{path}: vet.filters.{name}")
        for name, node in nodes["filters"].items()
    }
    return RunFilters(
        filters=filters,
        order=tuple(nodes.get("order") or ()),
        subset=nodes.get("subset"),
        watch=nodes.get("watch", True),
        models={role: _model_name(node) for role, node in nodes.items() if _is_model(node)},
        learned=isinstance(config.get("learned"), dict),
        config={
            "vet": {key: nodes[key] for key in SETTINGS if key in nodes},
            **({"learned": config["learned"]} if config.get("learned") else {}),
        },
    )


def _build(node: Any, where: str) -> Any:
    """Build a value of a configuration. Only dataclasses of `FILTER_MODULES` are built, since a run
    may come from somebody else.
    """
    if isinstance(node, list):
        return [_build(item, where) for item in cast(list[Any], node)]
    if not isinstance(node, dict):
        return node
    keys = cast(dict[str, Any], node)
    if TARGET not in keys:
        return {name: _build(item, where) for name, item in keys.items()}
    module, _, name = str(keys[TARGET]).rpartition(".")
    kind: Any = None
    if keys[TARGET].startswith(FILTER_MODULES):
        try:
            kind = getattr(importlib.import_module(module), name, None)
        except ImportError:
            kind = None
    if not isinstance(kind, type) or not is_dataclass(kind):
        raise UserError(f"{where}: {keys[TARGET]!r} is not a filter of this version")
    values = {key: _build(item, where) for key, item in keys.items() if key not in UNREAD}
    try:
        return kind(**values)
    except (TypeError, ValueError) as error:
        raise UserError(f"{where}: not a filter of this version: {error}") from error


def _is_model(node: Any) -> bool:
    return isinstance(node, dict) and str(cast(Any, node).get(TARGET, "")).startswith("actors.llm")


def _model_name(node: Mapping[str, Any]) -> str:
    return str(node.get("model") or str(node[TARGET]).rpartition(".")[2].lower())
