"""What is said before anything starts: whether all that a job keeps running at once fits the
cluster, and where a model is to judge its own work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mustsee.calls.llm import is_rules


@dataclass(frozen=True, kw_only=True)
class ResourceDemand:
    """`count` workers of one kind, each with these resources; `key`: the setting behind it."""

    name: str
    key: str
    count: int
    resources: Mapping[str, float]


def lacking_resources(
    demands: Sequence[ResourceDemand], nodes: Sequence[Mapping[str, float]]
) -> str | None:
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


def same_model_warnings(models: Mapping[str, str]) -> tuple[str, ...]:
    """A line where a model guesses at questions of its own, and one where several guessers are one
    model. `models`: key in conf ("ask.llm", "vet.guesser") -> what it is. The rules are not meant:
    those that write and those that guess have nothing in common.
    """
    asked = {key: name for key, name in models.items() if not is_rules(name)}
    guessers = {key: name for key, name in asked.items() if ".guesser" in key}
    writers = {name: key for key, name in asked.items() if key.startswith("ask.")}
    lines = [
        f"The same model writes and filters the questions ({writers[name]} and {', '.join(keys)}: "
        f"{name}), so the filter is too kind. Give another one: {keys[0].replace('.', '/')}=openai "
        f"{keys[0]}.model=..."
        for name, keys in _alike(guessers)
        if name in writers
    ]
    lines += [
        f"{', '.join(keys)} are one model ({name}), each with seeds and orders of its own: where "
        "they agree, one model agrees with itself"
        for name, keys in _alike(guessers)
        if len(keys) > 1
    ]
    return tuple(lines)


def _alike(models: Mapping[str, str]) -> list[tuple[str, list[str]]]:
    """Each model with its keys."""
    return [(n, [k for k, m in models.items() if m == n]) for n in dict.fromkeys(models.values())]


def _lacking(
    demand: ResourceDemand, demands: Sequence[ResourceDemand], nodes: Sequence[Mapping[str, float]]
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
