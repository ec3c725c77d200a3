"""Presets: `+experiment=NAME` sets what `conf/experiment/NAME.yaml` holds for the job.

The file is one of Hydra's: choices as `override /GROUP: CHOICE`, and values. Hydra itself refuses
it for a job that lacks one of its groups. Here a choice counts where the job has the group, and a
value where the job has its first key; a group for which the command line has another choice takes
nothing of the preset. `jobs:` in the file names the only ones that it is for.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from mustsee.errors import UserError

_GIVEN = re.compile(r"\+{0,2}experiment=(.*)")


def expand(conf: Path, job: str, overrides: Sequence[str]) -> list[str]:
    """The overrides of a job with each preset among them replaced by what it sets, in front.

    Raises UserError for a preset that there is none of, or that sets nothing of this job.
    """
    names = [m[1].strip("'\"") for o in overrides if (m := _GIVEN.fullmatch(o))]
    rest = [o for o in overrides if not _GIVEN.fullmatch(o)]
    chosen = {key: choice for key, _, choice in (o.lstrip("+~").partition("=") for o in rest)}
    return [*(o for name in names for o in _overrides(conf, job, name, chosen)), *rest]


def presets(conf: Path, job: str) -> list[str]:
    """The presets that serve a job."""
    names = sorted(path.stem for path in (conf / "experiment").glob("*.yaml"))
    return [name for name in names if _serves(conf, name, job)]


def jobs_of_preset(conf: Path, name: str) -> list[str]:
    """The jobs that a preset serves."""
    jobs = (p.stem for p in sorted(conf.glob("*.yaml")) if re.search(r"(?m)^job:", p.read_text()))
    return [job for job in jobs if _serves(conf, name, job)]


def choices_of(conf: Path, name: str) -> dict[str, str]:
    """Group -> choice, as a preset has them."""
    return {
        key.removeprefix("override").strip().lstrip("/"): choice
        for item in _read(conf / "experiment" / f"{name}.yaml").get("defaults", [])
        if isinstance(item, Mapping)
        for key, choice in item.items()
    }


def _overrides(conf: Path, job: str, name: str, chosen: Mapping[str, str]) -> list[str]:
    if not (conf / "experiment" / f"{name}.yaml").is_file():
        listed = ", ".join(sorted(p.stem for p in (conf / "experiment").glob("*.yaml")))
        raise UserError(f"experiment={name!r} is not a choice; choices for experiment: {listed}")
    if not _serves(conf, name, job):
        raise UserError(
            f"+experiment={name} is not for {job!r}: it serves "
            f"{', '.join(jobs_of_preset(conf, name))}"
        )
    groups, keys = contents(conf, job)
    choices = {g: c for g, c in choices_of(conf, name).items() if g in groups}
    others = {g for g, c in choices.items() if chosen.get(g, c) != c}
    values = _values(_read(conf / "experiment" / f"{name}.yaml"))
    return [f"{group}={choice}" for group, choice in choices.items() if group not in chosen] + [
        f"++{path}={json.dumps(value)}"
        for path, value in values
        if path.partition(".")[0] in (groups | keys) - others
    ]


def _serves(conf: Path, name: str, job: str) -> bool:
    preset = _read(conf / "experiment" / f"{name}.yaml")
    if "jobs" in preset:
        return job in preset["jobs"]
    return not preset or bool(choices_of(conf, name).keys() & contents(conf, job)[0])


def contents(conf: Path, job: str) -> tuple[set[str], set[str]]:
    """The groups and the keys of a job, those of the files that it takes in among them."""
    groups, keys = set[str](), set[str]()
    text = _read(conf / f"{job}.yaml")
    keys |= text.keys() - {"defaults"}
    for item in text.get("defaults", []):
        if isinstance(item, Mapping):
            groups |= item.keys()
        elif item != "_self_":
            more = contents(conf, item)
            groups, keys = groups | more[0], keys | more[1]
    return groups, keys


def _values(preset: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in preset.items():
        if path or key not in ("defaults", "jobs"):
            if isinstance(value, Mapping) and value:
                yield from _values(value, f"{path}{key}.")
            else:
                yield f"{path}{key}", value


@functools.cache  # `served` reads every job's file
def _read(path: Path) -> dict[str, Any]:
    plain: Any = OmegaConf.to_container(OmegaConf.load(path))
    return plain
