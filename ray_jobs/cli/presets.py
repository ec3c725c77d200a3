"""Presets: `+experiment=NAME` sets the values of `conf/experiment/NAME.yaml` that a job has, or all
of `conf/experiment/NAME/JOB.yaml`.

The file is a Hydra file: choices as `override /GROUP: CHOICE` (of a role: `override /vet/guesser:
CHOICE`), and values. Hydra itself refuses it for a job that lacks one of its groups. Here a choice
applies if the job has the group, and a value if the job has its first key. Where the command line
chooses otherwise for a group, the preset does not touch that group. A value may set a key of a role
(`vet.guesser_2.model`), as the command line may.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from mustsee.errors import UserError
from ray_jobs.cli.class_defaults import leaves

_GIVEN = re.compile(r"\+{0,2}experiment=(.*)")


def expand(conf: Path, job: str, overrides: Sequence[str]) -> list[str]:
    """The overrides of a job, with each preset replaced by its own overrides at the front.

    Raises UserError for an unknown preset, or one that sets nothing for this job.
    """
    names = [m[1].strip("'\"") for o in overrides if (m := _GIVEN.fullmatch(o))]
    rest = [o for o in overrides if not _GIVEN.fullmatch(o)]
    chosen = {key: choice for key, _, choice in (o.lstrip("+~").partition("=") for o in rest)}
    return [*(o for name in names for o in _overrides(conf, job, name, chosen)), *rest]


def presets(conf: Path, job: str) -> list[str]:
    """The presets that apply to a job."""
    return [name for name in all_presets(conf) if _serves(conf, name, job)]


def all_presets(conf: Path) -> list[str]:
    """The names of all presets."""
    return sorted({path.stem for path in (conf / "experiment").iterdir()})


def jobs_of_preset(conf: Path, name: str) -> list[str]:
    """The jobs that a preset applies to."""
    jobs = (p.stem for p in sorted(conf.glob("*.yaml")) if re.search(r"(?m)^job:", p.read_text()))
    return [job for job in jobs if _serves(conf, name, job)]


def choices_of(conf: Path, name: str, job: str) -> dict[str, str]:
    """The choice of each group in a preset for a job."""
    return {
        key.removeprefix("override").strip().lstrip("/"): choice
        for item in _read(preset_file(conf, name, job)).get("defaults", [])
        if isinstance(item, Mapping)
        for key, choice in item.items()
    }


def _overrides(conf: Path, job: str, name: str, chosen: Mapping[str, str]) -> list[str]:
    if name not in all_presets(conf):
        listed = ", ".join(all_presets(conf))
        raise UserError(f"experiment={name!r} is not a choice; choices for experiment: {listed}")
    if not _serves(conf, name, job):
        raise UserError(
            f"+experiment={name} is not for {job!r}: it is for "
            f"{', '.join(jobs_of_preset(conf, name))}"
        )
    groups, keys = contents(conf, job)
    choices = {
        group: choice
        for group, choice in choices_of(conf, name, job).items()
        if group in groups or re.split("[@/]", group)[0] in (groups | keys) - {group}
    }
    others = {g for g, c in choices.items() if chosen.get(g, c) != c}
    values = leaves(_read(preset_file(conf, name, job)))
    return [f"{group}={choice}" for group, choice in choices.items() if group not in chosen] + [
        f"++{path}={json.dumps(value)}"
        for path, value in values
        if path.partition(".")[0] in (groups | keys) - others
        and not any(path.startswith(f"{key.replace('/', '.')}.") for key in chosen if "/" in key)
    ]


def _serves(conf: Path, name: str, job: str) -> bool:
    folder = conf / "experiment"
    if (folder / name).is_dir():
        return (folder / name / f"{job}.yaml").is_file()
    return bool(choices_of(conf, name, job).keys() & contents(conf, job)[0])


def preset_file(conf: Path, name: str, job: str) -> Path:
    """The file of a preset for a job."""
    folder = conf / "experiment"
    own = folder / name / f"{job}.yaml"
    return own if own.is_file() else folder / f"{name}.yaml"


def contents(conf: Path, job: str) -> tuple[set[str], set[str]]:
    """The groups and the keys of a job, including those of the files that it includes."""
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


@functools.cache  # `presets` reads every job's file.
def _read(path: Path) -> dict[str, Any]:
    plain: Any = OmegaConf.to_container(OmegaConf.load(path))
    return plain
