"""Which stages share workers, and what the preflight holds against the cluster."""

from collections.abc import Mapping
from typing import Any

import pytest

from actors.engine.hardware import Hardware
from actors.engine.stage import Stage
from mustsee.errors import UserError
from mustsee.run.decision import Decision
from ray_jobs.runtime.barrier import decision_stage
from ray_jobs.runtime.cluster import Cluster, demand, lacking_workers, pools, preflight

SHARED = (("probe", "look"), ("ask", "vet"))
PART: Any = None  # not asked for


def stage(name: str, **hardware: Any) -> Stage:
    return Stage(name=name, part=PART, hardware=Hardware(**hardware))


def named(*names: str) -> list[list[str]]:
    found = pools([stage(name) for name in names], SHARED)
    return [[each.name for each in pool] for pool in found]


def test_neighbours_that_are_told_to_share_do() -> None:
    every = named("probe", "look", "hear", "ask", "vet")
    assert every == [["probe", "look"], ["hear"], ["ask", "vet"]]
    assert named("probe", "hear", "ask") == [["probe"], ["hear"], ["ask"]]
    assert named("ask", "hear", "vet") == [["ask"], ["hear"], ["vet"]]


def test_workers_with_packages_of_their_own_are_not_shared() -> None:
    own = stage("look", runtime_env={"pip": ["one"]})
    assert len(pools([stage("probe"), own], SHARED)) == 2
    assert len(pools([stage("probe", runtime_env={"pip": ["one"]}), own], SHARED)) == 1


def test_what_a_barrier_decided_is_written_by_the_next_stages_workers() -> None:
    decided = Decision(clusters={}, drops={}, questions={})
    found = pools([decision_stage(decided), stage("ask"), stage("vet")], SHARED)
    assert [[each.name for each in pool] for pool in found] == [["sample", "ask", "vet"]]


def nodes(monkeypatch: pytest.MonkeyPatch, *free: Mapping[str, float]) -> None:
    monkeypatch.setattr("ray.nodes", lambda: [{"Alive": True, "Resources": f} for f in free])


def test_the_least_of_each_pool_must_fit_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes(monkeypatch, {"CPU": 2.0})
    look = stage("look", workers={"min": 1, "max": 8}, cpus=0.9)
    hear = stage("hear", workers={"min": 1, "max": 8}, cpus=1.0)
    cluster = Cluster(stages={}, shared=SHARED)
    preflight([[stage("probe", cpus=0.5), look, hear]], cluster)
    with pytest.raises(UserError, match="hear 2 x 1 CPU"):
        preflight([[look, stage("hear", workers={"min": 2, "max": 8}, cpus=1.0)]], cluster)
    with pytest.raises(UserError, match="probe 1 x"):  # apart, they no longer fit
        preflight([[stage("probe", cpus=0.5), look, hear]], Cluster(stages={}))


def test_workers_that_are_shared_have_the_more_of_each() -> None:
    asked = demand([stage("probe", workers=2, cpus=0.1), stage("look", cpus=0.6, gpus=0.5)])
    assert (asked.name, asked.count) == ("probe+look", 2)
    assert asked.resources == {"CPU": 0.6, "GPU": 0.5}


def test_what_a_pool_waits_for_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ray.cluster_resources", lambda: {"CPU": 2.0})
    monkeypatch.setattr("ray.available_resources", lambda: {"CPU": 0.5})
    found = [[stage("synth", cpus=1)], [stage("ask", cpus=0.1)]]
    assert lacking_workers(found, "synth") == "waits for 1 CPU: others hold 1.5 of 2"
    assert lacking_workers(found, "ask") == ""
    assert lacking_workers(found, "sample") == ""
