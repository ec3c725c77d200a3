"""Finds mistakes in a command before the job is imported, because the imports take seconds.

Types are read from the source text of the job's class and of `JobSettings`. `build` checks every
value against the real types once they are imported.
"""

from __future__ import annotations

import ast
import difflib
import functools
import operator
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hydra
from omegaconf import DictConfig, OmegaConf

from mustsee.errors import UserError
from mustsee.files.store import resolve
from ray_jobs.cli.build import find_type_fault
from ray_jobs.cli.compose import CONF, INPUTS

KINDS: dict[str, Any] = {"int": int, "float": float, "bool": bool, "str": str, "None": None}
# classes with the settings of all jobs, by module of ray_jobs/runtime
SHARED = {"run": "JobSettings", "dry_run": "DryRun"}
ALWAYS_CALLED = ("ask", "answer", "verifier")  # parts whose models every run calls


def check(config: DictConfig) -> None:
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
    if isinstance(node, dict):
        if node.get("_target_") == "actors.llm.openai.OpenAI" and node.get("key_env"):
            yield node
        else:
            for value in node.values():
                yield from _models(value)
    elif isinstance(node, list):
        for value in node:
            yield from _models(value)
