"""The models that presets and choices name, as their composed configuration has them: the one place
where a preset's models, address and key are said is its file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from actors.calls.endpoint import Endpoint
from ray_jobs.cli.compose import CONF, compose_job
from ray_jobs.cli.presets import jobs_of_preset

CHECKED = re.compile(r"^# Last checked [^\n]*?(\d{4}-\d\d-\d\d)", re.MULTILINE)
WITH_MODELS = ("openai", "gemini", "openrouter", "vllm", "ollama")  # presets by provider or server


def preset_endpoints(name: str) -> list[Endpoint]:
    """The endpoints that a preset makes `mustsee make`, or the first job that takes it, ask."""
    jobs = jobs_of_preset(CONF, name)
    job = "make" if "make" in jobs else jobs[0]
    return _endpoints(job, [f"+experiment={name}"])


def choice_endpoints(group: str, choice: str) -> list[Endpoint]:
    """The endpoints of one choice of a group of `mustsee neptune`."""
    return _endpoints("neptune", [f"{group}={choice}"])


def _endpoints(job: str, overrides: list[str]) -> list[Endpoint]:
    config = compose_job(job, overrides)
    for key in config:
        if OmegaConf.is_missing(config, key):  # such as out=, to which other keys refer
            config[key] = "-"
    plain: Any = OmegaConf.to_container(config, resolve=True)
    found = {(e.model, e.base_url): e for e in _walk(plain)}
    return list(found.values())


def _walk(node: Any) -> Iterator[Endpoint]:
    if isinstance(node, Mapping):
        model = node.get("model")
        if isinstance(model, str) and model != "???" and {"base_url", "key_env"} <= node.keys():
            yield Endpoint(
                model=model, base_url=node["base_url"], key_env=node["key_env"],
                prices=node.get("prices") or {},
            )  # fmt: skip
        for value in node.values():
            yield from _walk(value)
    elif isinstance(node, list):
        for value in node:
            yield from _walk(value)


def last_checked(file: Path) -> str:
    """The day on which a preset's models were last looked up; "" if its file does not say."""
    match = CHECKED.search(file.read_text())
    return match[1] if match else ""
