"""Checks, before anything starts, that all a job keeps running at once fits the cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Demand:
    """`count` workers of one kind, each with these resources; `key`: the setting behind it."""

    name: str
    key: str
    count: int
    resources: Mapping[str, float]


def unplaced(demands: Sequence[Demand], nodes: Sequence[Mapping[str, float]]) -> str | None:
    """None when all workers fit the nodes' free resources, else a sentence: what lacks, which key.

    First fit, the largest worker first; a worker never spans nodes. Packing is not optimal, so in
    rare cases a plan that would just fit is refused.
    """
    free = [dict(node) for node in nodes]
    each = [demand for demand in demands for _ in range(demand.count)]
    rare = {r: sum(n.get(r, 0.0) for n in nodes) or 1e-9 for d in each for r in d.resources}
    each.sort(key=lambda d: -max((a / rare[r] for r, a in d.resources.items()), default=0.0))
    for demand in each:
        for node in free:
            if all(node.get(r, 0.0) + 1e-9 >= amount for r, amount in demand.resources.items()):
                for resource, amount in demand.resources.items():
                    node[resource] = node.get(resource, 0.0) - amount
                break
        else:
            return _lacking(demand, demands, nodes)
    return None


def _lacking(
    demand: Demand, demands: Sequence[Demand], nodes: Sequence[Mapping[str, float]]
) -> str:
    lines: list[str] = []
    for resource, amount in demand.resources.items():
        wanted = sum(d.count * d.resources.get(resource, 0.0) for d in demands)
        there = sum(node.get(resource, 0.0) for node in nodes)
        largest = max((node.get(resource, 0.0) for node in nodes), default=0.0)
        if wanted > there + 1e-9:
            lines.append(f"{wanted:g} {resource} are asked for and {there:g} are free")
        elif amount > largest + 1e-9:
            lines.append(f"one worker asks for {amount:g} {resource}, no node has over {largest:g}")
    shares = ", ".join(
        f"{d.name} {d.count} x " + "+".join(f"{a:g} {r}" for r, a in d.resources.items())
        for d in demands
    )
    why = "; ".join(lines) or "the free resources are split over nodes so that it fits none"
    return (
        f"the stage {demand.name!r} does not fit the cluster: {why}. "
        f"Lower {demand.key} or add nodes. All stages: {shares}"
    )
