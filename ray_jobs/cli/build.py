"""From a configuration to the job: every field of its dataclass is the key of the same name.

A field that no key names, such as `run`, is made likewise: its own fields are keys. Every value is
held against the type of the parameter that it is for, before anything is made of it.
"""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from collections.abc import Mapping
from typing import Any

import hydra
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError

from mustsee.errors import UserError
from ray_jobs.cli.renamed import check_keys


def build(config: DictConfig) -> Any:
    """The job object of a composed configuration. Raises UserError for a value of a wrong type."""
    keys: Any = OmegaConf.to_container(config)
    node = _filled(hydra.utils.get_class(keys["job"]), keys)
    try:
        return hydra.utils.instantiate(node)
    except (HydraException, OmegaConfBaseException) as error:
        cause = error.__cause__ or error
        if isinstance(cause, UserError):
            raise cause from error
        place = str(error).partition("full_key: ")[2]  # Hydra keeps it nowhere else
        where = f" (at {place})" if place else ""
        raise UserError(f"cannot configure this{where}: {str(cause).splitlines()[0]}") from error


def _filled(kind: type, keys: Mapping[str, Any]) -> dict[str, Any]:
    """The node that Hydra makes a `kind` of. Without `_convert_`, it would turn nested dataclasses
    back into configuration.
    """
    node: dict[str, Any] = {
        "_target_": f"{kind.__module__}.{kind.__qualname__}",
        "_convert_": "all",
    }
    for field in dataclasses.fields(kind):
        hint = _hints(kind).get(field.name, Any)
        if field.name in keys:
            node[field.name] = keys[field.name]
            _check(node[field.name], hint, field.name)
        elif dataclasses.is_dataclass(hint) and isinstance(hint, type):
            node[field.name] = _filled(hint, keys)
        elif field.default is field.default_factory:  # both missing
            raise UserError(f"{field.name}= is not set, and {kind.__name__} needs it")
    return node


def _check(value: Any, hint: Any, path: str) -> None:
    """Raise UserError where a value does not fit what it is for."""
    if isinstance(value, dict) and "_target_" in value:
        hints = _hints(value["_target_"])
        check_keys(path, (str(key) for key in value.keys() - hints.keys()))
        for key, inner in value.items():
            if not str(key).startswith("_"):
                _check(inner, hints.get(str(key), Any), f"{path}.{key}")
    elif _makes(value):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            _check(inner, _inside(hint), f"{path}.{key}")
    elif said := find_type_fault(value, hint):
        raise UserError(f"{path}={value!r}: {said}")


def _makes(value: Any) -> bool:
    """Whether something is made of what it holds."""
    held = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any((isinstance(v, dict) and "_target_" in v) or _makes(v) for v in held)


def _inside(hint: Any) -> Any:
    """The type of what a container of this type holds."""
    arms = typing.get_args(hint) if _is_union(hint) else (hint,)
    held = [a for arm in arms for a in typing.get_args(arm) if a is not ...]
    return held[-1] if held else Any


def find_type_fault(value: Any, hint: Any) -> str | None:
    """What is wrong with a plain value for a parameter of the type `hint`; None: nothing."""
    try:
        _adapter(hint).validate_python(_frozen(value), strict=True)
    except ValidationError as error:
        return " or ".join(dict.fromkeys(_said(e) for e in error.errors()))
    except PydanticUserError:  # a Protocol or a class of ours
        if _is_union(hint) and not all(
            find_type_fault(value, arm) for arm in typing.get_args(hint)
        ):
            return None
        name = getattr(hint, "__name__", hint)
        return f"expected a {name}: something with _target_, as the choices of conf/ are"
    return None


def _said(error: Any) -> str:
    place = "".join(f"[{item}]" for item in error["loc"] if isinstance(item, int))
    return f"{place} {error['msg'][0].lower()}{error['msg'][1:]}".strip()


@functools.cache
def _adapter(hint: Any) -> TypeAdapter[Any]:
    return TypeAdapter(hint)


def _frozen(value: Any) -> Any:
    """YAML knows no tuples, and a list where one is meant is right."""
    if isinstance(value, dict):
        return {key: _frozen(inner) for key, inner in value.items()}
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def _is_union(hint: Any) -> bool:
    return typing.get_origin(hint) in (typing.Union, types.UnionType)


def _hints(target: Any) -> dict[str, Any]:
    """The types of what a class or a function takes, as far as they are known."""
    try:
        made = hydra.utils.get_object(target) if isinstance(target, str) else target
        named = (
            made if dataclasses.is_dataclass(made) or not isinstance(made, type) else made.__init__
        )
        return typing.get_type_hints(named)
    except (ImportError, NameError, TypeError, ValueError):
        return {}


__all__ = ["build", "find_type_fault"]
