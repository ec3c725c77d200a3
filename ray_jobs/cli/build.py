"""Builds a job from its configuration: each field of its dataclass takes the key of the same name.

A field without a key, such as `run`, is built in the same way from its own fields. Every value is
checked against its parameter's type before anything is built. Before the job is even imported,
which takes seconds, `check_values` finds mistakes by the types in the source text of its class and
of `JobSettings`.
"""

from __future__ import annotations

import ast
import dataclasses
import difflib
import functools
import operator
import os
import re
import types
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import hydra
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError

from mustsee.errors import UserError
from ray_jobs.cli.class_defaults import fill, walk
from ray_jobs.cli.compose import CONF, INPUTS

KINDS: dict[str, Any] = {"int": int, "float": float, "bool": bool, "str": str, "None": None}
# classes with the settings of all jobs, by module of ray_jobs/runtime
SHARED = {"run": "JobSettings", "dry_run": "DryRun"}
ALWAYS_CALLED = ("ask", "answer", "verifier")  # parts whose models every run calls


def build(config: DictConfig) -> Any:
    """Build the job of a composed configuration, which its run record will hold with the defaults
    of all classes. Raises UserError for a value of a wrong type.
    """
    keys: Any = OmegaConf.to_container(config)
    node = _filled(hydra.utils.get_class(keys["job"]), keys)
    try:
        job = hydra.utils.instantiate(node)
    except (HydraException, OmegaConfBaseException) as error:
        cause = error.__cause__ or error
        if isinstance(cause, UserError):
            raise cause from error
        place = str(error).partition("full_key: ")[2]  # Hydra has it only in the text.
        where = f" (at {place})" if place else ""
        raise UserError(f"cannot configure this{where}: {str(cause).splitlines()[0]}") from error
    if hasattr(job, "run"):
        recorded = {key: value for key, value in fill(keys).items() if key != "job"}
        job = dataclasses.replace(job, run=dataclasses.replace(job.run, config=recorded))
    return job


def _filled(kind: type, keys: Mapping[str, Any]) -> dict[str, Any]:
    """The node from which Hydra builds a `kind`.

    Without `_convert_`, Hydra would turn nested dataclasses back into configuration.
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
        elif field.default is field.default_factory:  # Both are MISSING.
            raise UserError(f"{field.name}= is not set: {kind.__name__} needs it")
    return node


def _check(value: Any, hint: Any, path: str) -> None:
    """Raise UserError where a value does not fit the type of its parameter."""
    if isinstance(value, dict) and "_target_" in value:
        hints = _hints(value["_target_"])
        for key, inner in value.items():
            if not str(key).startswith("_"):
                _check(inner, hints.get(str(key), Any), f"{path}.{key}")
    elif _holds_targets(value):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            _check(inner, _item_type(hint), f"{path}.{key}")
    elif fault := find_type_fault(value, hint):
        raise UserError(f"{path}={value!r}: {fault}")


def _holds_targets(value: Any) -> bool:
    """Whether a container holds a `_target_` at any depth."""
    values = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any((isinstance(v, dict) and "_target_" in v) or _holds_targets(v) for v in values)


def _item_type(hint: Any) -> Any:
    """The type of the items (or values) of a container type."""
    members = typing.get_args(hint) if _is_union(hint) else (hint,)
    arguments = [a for member in members for a in typing.get_args(member) if a is not ...]
    return arguments[-1] if arguments else Any


def find_type_fault(value: Any, hint: Any) -> str | None:
    """The fault of a plain value for a parameter of type `hint`; None if it fits."""
    try:
        _adapter(hint).validate_python(_frozen(value), strict=True)
    except ValidationError as error:
        return " or ".join(dict.fromkeys(_fault_text(e) for e in error.errors()))
    except PydanticUserError:  # Pydantic cannot check a Protocol or an arbitrary class.
        if isinstance(value, dict) and typing.get_origin(hint) in (Mapping, dict):
            item = _item_type(hint)
            return next((f for v in value.values() if (f := find_type_fault(v, item))), None)
        if _is_union(hint) and not all(
            find_type_fault(value, member) for member in typing.get_args(hint)
        ):
            return None
        name = getattr(hint, "__name__", hint)
        return f"expected a {name}: a mapping with _target_, as in the choices of conf/"
    return None


def _fault_text(error: Any) -> str:
    place = "".join(f"[{item}]" for item in error["loc"] if isinstance(item, int))
    return f"{place} {error['msg'][0].lower()}{error['msg'][1:]}".strip()


@functools.cache
def _adapter(hint: Any) -> TypeAdapter[Any]:
    return TypeAdapter(hint)


def _frozen(value: Any) -> Any:
    """The value with lists as tuples: YAML has no tuples, so a list stands for one."""
    if isinstance(value, dict):
        return {key: _frozen(inner) for key, inner in value.items()}
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def _is_union(hint: Any) -> bool:
    return typing.get_origin(hint) in (typing.Union, types.UnionType)


def _hints(target: Any) -> dict[str, Any]:
    """The types of the parameters of a class or function; empty if they cannot be read."""
    try:
        target = hydra.utils.get_object(target) if isinstance(target, str) else target
        is_plain_class = isinstance(target, type) and not dataclasses.is_dataclass(target)
        return typing.get_type_hints(target.__init__ if is_plain_class else target)
    except (ImportError, NameError, TypeError, ValueError):
        return {}


def check_values(config: DictConfig) -> None:
    """Raise UserError for a value of a wrong type, a missing input, or a model without its key."""
    plain: Any = OmegaConf.to_container(config)
    for key, hint in kinds(plain["job"]).items():
        if key in plain and (fault := find_type_fault(plain[key], hint)):
            raise UserError(f"{key}={plain[key]!r}: {fault}")
    for key in INPUTS:
        if isinstance(plain.get(key), str):
            _check_input(key, plain[key])
    if not (plain.get("dry_run") and not plain.get("dry_run_usd")) and not plain.get(
        "guessers_only"
    ):
        for model in (m for key in ALWAYS_CALLED for m in _models(plain.get(key))):
            if not os.environ.get(model["key_env"], "").strip():
                hydra.utils.instantiate(model, _convert_="all").key()


def kinds(target: str) -> dict[str, Any]:
    """The plain types of a job's keys: "ray_jobs.neptune.Neptune" -> {"seed": int}."""
    module, _, name = target.rpartition(".")
    annotations = _annotations(CONF.parent / (module.replace(".", "/") + ".py"), name)
    for file, kind in SHARED.items() if annotations.get("run") == "JobSettings" else ():
        annotations |= _annotations(CONF.parent / f"ray_jobs/runtime/{file}.py", kind)
    texts = {key: text.split(" | ") for key, text in annotations.items()}
    return {
        key: functools.reduce(operator.or_, (KINDS[part] for part in parts))
        for key, parts in texts.items()
        if KINDS.keys() >= set(parts)
    }


def _annotations(path: Path, name: str) -> dict[str, str]:
    """The annotation of each field of a class, as source text."""
    body = next(
        node.body
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef) and node.name == name
    )
    fields = (node for node in body if isinstance(node, ast.AnnAssign))
    return {ast.unparse(node.target): ast.unparse(node.annotation) for node in fields}


def _check_input(key: str, source: str) -> None:
    if "://" in source or re.search(r"[*?\[]", source):
        return
    from mustsee.files.store import resolve  # imports pyarrow, which --help does not need

    path = resolve(source)[1]
    if not os.path.exists(path):
        folder, name = os.path.split(path.rstrip("/"))
        names = os.listdir(folder) if os.path.isdir(folder) and os.access(folder, os.R_OK) else []
        near = difflib.get_close_matches(name, names, n=1)
        meant = os.path.join(os.path.dirname(source.rstrip("/")), near[0]) if near else ""
        raise UserError(
            f"{key}={source!r} does not exist"
            + (f"; did you mean {meant!r}?" if meant else f" (looked for {path})")
        )


def _models(node: Any) -> Iterator[dict[str, Any]]:
    """Yield the models in a part whose endpoint needs a key."""
    for _, model in walk({"part": node}, lists=True):
        if (
            isinstance(model, dict)
            and model.get("_target_") == "actors.llm.openai.OpenAI"
            and model.get("key_env")
        ):
            yield model
