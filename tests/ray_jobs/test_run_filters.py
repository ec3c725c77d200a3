"""The filters of a run are read from its record, and nothing but filters is built of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf

from mustsee.errors import UserError
from mustsee.files.store import identity
from ray_jobs.add import read_filters
from ray_jobs.cli.class_defaults import fill
from ray_jobs.cli.compose import compose
from ray_jobs.cli.launch import build


def config_of(job: str, *overrides: str) -> dict[str, Any]:
    config = compose(job, ["videos=x", "out=y", *overrides])
    return fill(OmegaConf.to_container(config))  # type: ignore[return-value]


def save(folder: Path, config: Any) -> Path:
    (folder / "run.json").write_text(json.dumps({"recipe": "make", "config": config}))
    return folder


@pytest.mark.parametrize("job", ["make", "neptune"])
def test_filters_are_those_with_which_the_run_was_built(tmp_path: Path, job: str) -> None:
    overrides = ("vet.filters.sight.runs=5", "vet.filters.asr=null", "vet.subset=mine")
    read = read_filters(save(tmp_path, config_of(job, *overrides)))
    built = build(compose(job, ["videos=x", "out=y", *overrides])).vet
    assert identity(read.filters) == identity(built.filters)
    assert [*read.filters] == [*built.filters]
    assert read.filters["sight"].runs == 5  # type: ignore[union-attr]
    assert read.filters["asr"] is None
    assert (read.subset, read.order, read.watch) == ("mine", tuple(built.order), True)
    assert read.models["guesser"] == "offline"
    assert read.learned == (job == "make")


def test_models_are_named_by_the_record(tmp_path: Path) -> None:
    config = config_of("make", "llm=openai", "llm.model=gpt-x")
    assert read_filters(save(tmp_path, config)).models["verifier"] == "gpt-x"


@pytest.mark.parametrize(
    ("node", "part"),
    [
        ({"_target_": "os.system"}, "'os.system' is not a filter"),
        ({"_target_": "mustsee.verify.guess.counts.sweep"}, "is not a filter"),
        ({"_target_": "mustsee.verify.nowhere.Blind"}, "is not a filter"),
        ({"_target_": "mustsee.verify.sight.Sight", "colour": 1}, "not a filter of this version"),
        ({"_target_": "mustsee.verify.sight.Sight", "see": {"_target_": "os.system"}}, "os.system"),
    ],
)
def test_nothing_but_filters_of_this_version_is_built(tmp_path: Path, node: Any, part: str) -> None:
    with pytest.raises(UserError, match=r"vet\.filters\.x") as caught:
        read_filters(save(tmp_path, {"vet": {"filters": {"x": node}}}))
    assert part in str(caught.value)


def test_a_run_without_filters_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="not the record of a run"):
        read_filters(tmp_path)
    for config in ({}, {"vet": None}, {"vet": {"filters": None}}):
        with pytest.raises(UserError, match="has no filters"):
            read_filters(save(tmp_path, config))
