"""Settings that a choice of conf/ leaves to its class.

A file of conf/ states only what differs from the defaults of the class that `_target_` names. The
fields of the class are keys nevertheless: they can be set, and `--help KEY` shows them with the
text behind the field in the class.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import itertools
import json
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import hydra
from omegaconf import DictConfig, OmegaConf

MISSING = dataclasses.MISSING
_REFERENCE = re.compile(r"\$\{(?:oc\.select:)?(\w+(?:\.\w+)+)")


def add_defaults(config: DictConfig, keys: Sequence[str]) -> list[str]:
    """Return the overrides that put the class defaults at `keys`, such as
    `ask.settings.select.options`, where the configuration leaves them to a class.
    """
    return [
        f"++{path}={json.dumps(value, ensure_ascii=False)}"
        for key in keys
        for path, value in _missing_values(_plain(config), key)
    ]


def put_references(config: DictConfig) -> None:
    """Put the class defaults into a configuration that its own values refer to, such as
    `${oc.select:ask.settings.spare,1}`.
    """
    for key in dict.fromkeys(_REFERENCE.findall(OmegaConf.to_yaml(config))):
        for path, value in _missing_values(_plain(config), key):
            OmegaConf.update(config, path, value, force_add=True)


def walk(node: Any, path: str = "", *, lists: bool = False) -> Iterator[tuple[str, Any]]:
    """Yield the path and the value of each key in a plain configuration, a part before its keys;
    with `lists`, also of what is in lists.
    """
    items = enumerate(node) if lists and isinstance(node, list) else ()
    for key, value in node.items() if isinstance(node, dict) else items:
        here = f"{path}.{key}".lstrip(".")
        yield here, value
        yield from walk(value, here, lists=lists)


def leaves(node: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return the path and the value of each key that holds no part, or an empty one."""
    return [(path, value) for path, value in walk(node) if not (value and isinstance(value, dict))]


def fill(node: Any) -> Any:
    """Return a plain configuration with the fields that each class would fill in itself."""
    if isinstance(node, list):
        return [fill(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {key: fill(value) for key, value in (read_defaults(node) | node).items()}


def read_defaults(node: Mapping[str, Any]) -> dict[str, Any]:
    """Return the default of each field of the class of a node, as plain configuration; of a node
    that names no dataclass, nothing.
    """
    kind = _kind(node)
    return {} if kind is None else _defaults(kind)


def find_keys(node: Mapping[str, Any], value: str) -> list[str]:
    """Return the fields of the class of a node that list a value as one of their choices."""
    kind = _kind(node)
    fields = () if kind is None else dataclasses.fields(kind)
    return [field.name for field in fields if repr(value) in str(field.type)]


def read_comments(node: Mapping[str, Any]) -> dict[str, str]:
    """Return the text behind each field of the class of a node."""
    kind = _kind(node)
    return {} if kind is None else _comments(kind)


def _kind(node: Mapping[str, Any]) -> type | None:
    target = node.get("_target_")
    kind = hydra.utils.get_object(target) if isinstance(target, str) else None
    return kind if isinstance(kind, type) and dataclasses.is_dataclass(kind) else None


@functools.cache
def _defaults(kind: type) -> dict[str, Any]:
    values = {field.name: _default(field) for field in dataclasses.fields(kind) if field.init}
    plain = {name: _to_plain(value) for name, value in values.items() if value is not MISSING}
    return {name: value for name, value in plain.items() if _is_plain(value)}


def _default(field: dataclasses.Field[Any]) -> Any:
    made = field.default_factory
    return field.default if made is MISSING else made()


def _to_plain(value: Any) -> Any:
    """Return a default as configuration: a dataclass by its `_target_` and what differs from its
    class.
    """
    if isinstance(value, Mapping):
        return {key: _to_plain(inner) for key, inner in value.items()}
    if isinstance(value, (tuple, list)):
        return [_to_plain(item) for item in value]
    kind = type(value)
    if not dataclasses.is_dataclass(kind):
        return value
    own = {f.name: _to_plain(getattr(value, f.name)) for f in dataclasses.fields(kind) if f.init}
    known = _defaults(kind)
    differs = {key: inner for key, inner in own.items() if key not in known or known[key] != inner}
    return {"_target_": f"{kind.__module__}.{kind.__qualname__}", **differs}


def _is_plain(value: Any) -> bool:
    """Whether a configuration can hold a value."""
    if isinstance(value, (dict, list)):
        return all(map(_is_plain, value.values() if isinstance(value, dict) else value))
    return value is None or isinstance(value, (str, int, float))


@functools.cache
def _comments(kind: type) -> dict[str, str]:
    texts = dict[str, str]()
    for one in reversed(kind.__mro__):
        if dataclasses.is_dataclass(one):
            (tree,) = ast.parse(textwrap.dedent(inspect.getsource(one))).body
            texts |= _field_texts(tree)
    return texts


def _field_texts(tree: ast.stmt) -> dict[str, str]:
    """The text behind each field of a class, on one line."""
    body = tree.body if isinstance(tree, ast.ClassDef) else []
    return {
        field.target.id: " ".join(str(text.value.value).split())
        for field, text in itertools.pairwise(body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
    }


def _plain(config: DictConfig) -> Any:
    return OmegaConf.to_container(config, resolve=False)


def _missing_values(node: Any, key: str) -> Iterator[tuple[str, Any]]:
    """Yield the path and the default of each value that a key needs and the configuration lacks."""
    path = list[str]()
    names = key.split(".")
    for name in names:
        if not isinstance(node, dict):
            return
        path.append(name)
        if name not in node:
            known = read_defaults(node)
            if name not in known:
                return
            node = {name: fill(known[name]) if path == names else known[name]}
            yield from leaves({".".join(path): node[name]})
        node = node[name]
