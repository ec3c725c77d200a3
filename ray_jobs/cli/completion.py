"""Completion by the Tab key: jobs, a job's keys, and the choices of its groups.

    mustsee completion words neptune llm=op        llm=openai

It reads `conf/` only; nothing is composed and Ray is not imported.
"""

from __future__ import annotations

from collections.abc import Sequence

from ray_jobs.cli import presets
from ray_jobs.cli.command import SCRIPTS, jobs
from ray_jobs.cli.compose import CONF, choices, comments, defaults


def words(typed: Sequence[str]) -> list[str]:
    """The completions of the last word in `typed`; none for a path or a free value."""
    all_jobs, last = jobs(CONF.parent), typed[-1] if typed else ""
    if len(typed) < 2:
        offered = [*all_jobs, "completion", "--help", "--version"]
    elif typed[0] == "completion":
        offered = list(SCRIPTS)
    elif typed[0] in all_jobs:
        offered = _keys(typed[0], last)
    else:
        offered = []
    return sorted(word for word in offered if word.startswith(last))


def _keys(job: str, last: str) -> list[str]:
    groups = [g for item in defaults(job) if isinstance(item, dict) for g in item]
    groups = [group for group in groups if choices(group)]
    if last.startswith("+"):
        return [f"+experiment={name}" for name in presets.presets(CONF, job)]
    key, given, _ = last.partition("=")
    if given:
        return [f"{key}={choice}" for choice in (choices(key) if key in groups else [])]
    return [*(f"{name}=" for name in {*groups, *comments(job)}), "--help", "--cfg", "-m"]
