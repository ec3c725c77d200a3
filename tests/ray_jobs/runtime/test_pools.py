"""Stages that share workers, and the preflight check of the cluster."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ray.data import DataContext

from actors.engine.hardware import Hardware
from actors.engine.stage import Stage
from actors.judge.gem import Gem
from mustsee.errors import UserError
from mustsee.questions.decision import Decision
from ray_jobs.cli.launch import build, compose
from ray_jobs.runtime.cluster import (
    Cluster,
    check_stages,
    demand,
    lacking_workers,
    pools,
    preflight,
)
from ray_jobs.runtime.stream import decision_stage

SHARED = (("probe", "look"), ("ask", "vet"))
PART: Any = None  # a part that is never opened


def stage(name: str, **hardware: Any) -> Stage:
    return Stage(name=name, part=PART, hardware=Hardware(**hardware))


def named(*names: str) -> list[list[str]]:
    worker_pools = pools([stage(name) for name in names], SHARED)
    return [[each.name for each in pool] for pool in worker_pools]


def test_adjacent_stages_share_workers_if_configured() -> None:
    every = named("probe", "look", "hear", "ask", "vet")
    assert every == [["probe", "look"], ["hear"], ["ask", "vet"]]
    assert named("probe", "hear", "ask") == [["probe"], ["hear"], ["ask"]]
    assert named("ask", "hear", "vet") == [["ask"], ["hear"], ["vet"]]


def test_stages_with_different_environments_do_not_share_workers() -> None:
    own = stage("look", runtime_env={"pip": ["one"]})
    assert len(pools([stage("probe"), own], SHARED)) == 2
    assert len(pools([stage("probe", runtime_env={"pip": ["one"]}), own], SHARED)) == 1


@pytest.mark.parametrize(
    ("before", "after", "shares"),
    [
        ({"workers": {"min": 1, "max": 2}}, {"workers": {"min": 1, "max": 2}}, True),
        ({"workers": 1}, {"workers": {"min": 1, "max": 2}}, True),
        ({"workers": {"min": 1, "max": 2}}, {"workers": 1}, False),  # Its model may be large.
        ({}, {"concurrency": 32}, False),
        ({"concurrency": 32}, {"concurrency": 32}, True),
        ({"concurrency": 4}, {"concurrency": 32}, False),
        ({"concurrency": 4}, {}, False),
    ],
)
def test_a_pool_keeps_to_the_rows_and_workers_of_its_stages(
    before: Any, after: Any, shares: bool
) -> None:
    stages = [stage("probe", **before), stage("look", **after)]
    assert (len(pools(stages, SHARED)) == 1) is shares


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        ([], [["probe", "look", "hear"], ["caption", "ask", "vet"]]),
        (
            ["llm=openai", "llm.model=m"],
            [["probe", "look", "hear"], ["caption"], ["ask", "vet"]],
        ),
        (
            ["llm=openai", "llm.model=m", "caption=openai", "cluster.stages.hear.workers=1"],
            [["probe", "look"], ["hear"], ["caption"], ["ask", "vet"]],
        ),
    ],
)
def test_a_laptop_has_two_pools_or_one_more_for_calls(
    overrides: list[str], expected: list[list[str]], tmp_path: Path
) -> None:
    job = build(compose("make", ["videos=v", f"out={tmp_path}", *overrides]))
    names = ("probe", "look", "hear", "caption", "ask", "vet")
    hardware = {n: replace(h, workers=_two(h.workers)) for n, h in job.run.cluster.stages.items()}
    stages = [
        Stage(name=name, part=getattr(job, name), hardware=hardware[name]).sized_for(2)
        for name in names
    ]
    found = pools(stages, job.run.cluster.shared)
    assert [[each.name for each in pool] for pool in found] == expected


def _two(workers: Any) -> Any:
    """The workers of a stage on two cores."""
    return workers if isinstance(workers, int) else {"min": 1, "max": 2}


def test_a_decision_is_written_by_the_workers_of_the_next_stage() -> None:
    decided = Decision(clusters={}, drops={}, questions={})
    worker_pools = pools([decision_stage(decided), stage("ask"), stage("vet")], SHARED)
    assert [[each.name for each in pool] for pool in worker_pools] == [["decide", "ask", "vet"]]


def nodes(monkeypatch: pytest.MonkeyPatch, *free: Mapping[str, float]) -> None:
    monkeypatch.setattr("ray.nodes", lambda: [{"Alive": True, "Resources": f} for f in free])


def test_the_fewest_workers_of_all_pools_must_fit_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes(monkeypatch, {"CPU": 2.0})
    look = stage("look", workers={"min": 1, "max": 8}, cpus=0.9)
    hear = stage("hear", workers={"min": 1, "max": 8}, cpus=1.0)
    cluster = Cluster(stages={}, shared=SHARED)
    preflight([[stage("probe", cpus=0.5), look, hear]], cluster)
    with pytest.raises(UserError, match="hear 2 x 1 CPU"):
        preflight([[look, stage("hear", workers={"min": 2, "max": 8}, cpus=1.0)]], cluster)
    with pytest.raises(UserError, match="probe 1 x"):  # They no longer fit without shared workers.
        preflight([[stage("probe", cpus=0.5), look, hear]], Cluster(stages={}))


@pytest.mark.parametrize(
    ("cores", "autoscales", "keeps"), [(2.0, False, True), (1.5, False, False), (2.0, True, False)]
)
def test_pools_keep_their_workers_where_all_fit_at_once(
    cores: float, autoscales: bool, keeps: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes(monkeypatch, {"CPU": cores})
    stages = [stage(name, workers={"min": 1, "max": 2}, cpus=0.5) for name in ("look", "hear")]
    preflight([stages], Cluster(stages={}, autoscales=autoscales))
    config = DataContext.get_current().autoscaling_config
    assert (config.actor_pool_util_downscaling_threshold < 0) is keeps


def test_shared_workers_have_the_larger_of_each_resource() -> None:
    shared_demand = demand([stage("probe", workers=2, cpus=0.1), stage("look", cpus=0.6, gpus=0.5)])
    assert (shared_demand.name, shared_demand.count) == ("probe+look", 2)
    assert shared_demand.resources == {"CPU": 0.6, "GPU": 0.5}


def test_the_resources_that_a_pool_waits_for_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ray.cluster_resources", lambda: {"CPU": 2.0})
    monkeypatch.setattr("ray.available_resources", lambda: {"CPU": 0.5})
    worker_pools = [[stage("synth", cpus=1)], [stage("ask", cpus=0.1)]]
    assert lacking_workers(worker_pools, "synth") == "waits for 1 CPU: others hold 1.5 of 2"
    assert lacking_workers(worker_pools, "ask") == ""
    assert lacking_workers(worker_pools, "decide") == ""


def test_a_judge_of_billions_of_parameters_on_cpus_is_said(
    capsys: pytest.CaptureFixture[str],
) -> None:
    part: Any = (Gem(path="/models/gem"),)
    grade = Stage(name="grade", part=part, hardware=Hardware())
    check_stages([grade])
    assert "cluster.stages.grade.gpus=1" in capsys.readouterr().err
    check_stages([replace(grade, hardware=Hardware(gpus=1))])
    check_stages([stage("grade")])
    assert capsys.readouterr().err == ""
