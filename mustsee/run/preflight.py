"""Checks before a job starts: whether its workers fit the cluster, and whether a model judges its
own work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mustsee.records import is_rules


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
    """Return None if all workers fit the nodes' free resources, else what is missing and which key.

    Workers are placed by first fit, the largest first; a worker never spans nodes. This packing is
    not optimal, so in rare cases a plan that would just fit is refused.
    """
    free = [dict(node) for node in nodes]
    workers = [demand for demand in demands for _ in range(demand.count)]
    total = {r: sum(n.get(r, 0.0) for n in nodes) or 1e-9 for d in workers for r in d.resources}
    workers.sort(key=lambda d: -max((a / total[r] for r, a in d.resources.items()), default=0.0))
    for demand in workers:
        for node in free:
            if all(node.get(r, 0.0) + 1e-9 >= amount for r, amount in demand.resources.items()):
                for resource, amount in demand.resources.items():
                    node[resource] = node.get(resource, 0.0) - amount
                break
        else:
            return _describe_lack(demand, demands, nodes)
    return None


def same_model_warnings(models: Mapping[str, str]) -> tuple[str, ...]:
    """Return warnings where a model guesses at its own questions, and where guessers are one model.

    `models`: configuration key ("ask.llm", "vet.guesser") -> identity. Rules are left out, because
    those that write and those that guess have nothing in common, and a recording, because it holds
    the replies of several models.
    """
    by_key = {
        key: name
        for key, name in models.items()
        if not is_rules(name) and not name.startswith("replay ")
    }
    guessers = {key: name for key, name in by_key.items() if key.startswith("vet.guesser")}
    writers = {name: key for key, name in reversed(by_key.items()) if key.startswith("ask.")}
    lines = [
        f"The same model writes and filters the questions ({writers[name]} and {', '.join(keys)}: "
        f"{name}), so the filter is too kind. Set another one: {keys[0].replace('.', '/')}=openai "
        f"{keys[0]}.model=..."
        for name, keys in _keys_by_model(guessers)
        if name in writers
    ]
    lines += [
        f"{', '.join(keys)} are one model ({name}), each with its own seeds and option orders: if "
        "they agree, one model agrees with itself"
        for name, keys in _keys_by_model(guessers)
        if len(keys) > 1
    ]
    return tuple(lines)


def _keys_by_model(models: Mapping[str, str]) -> list[tuple[str, list[str]]]:
    return [(n, [k for k, m in models.items() if m == n]) for n in dict.fromkeys(models.values())]


def _describe_lack(
    demand: ResourceDemand, demands: Sequence[ResourceDemand], nodes: Sequence[Mapping[str, float]]
) -> str:
    lines: list[str] = []
    for resource, amount in demand.resources.items():
        needed = sum(d.count * d.resources.get(resource, 0.0) for d in demands)
        free = sum(node.get(resource, 0.0) for node in nodes)
        largest = max((node.get(resource, 0.0) for node in nodes), default=0.0)
        if needed > free + 1e-9:
            lines.append(f"{needed:g} {resource} are needed and {free:g} are free")
        elif amount > largest + 1e-9:
            lines.append(f"one worker needs {amount:g} {resource}, no node has over {largest:g}")
    shares = ", ".join(
        f"{d.name} {d.count} x " + "+".join(f"{a:g} {r}" for r, a in d.resources.items())
        for d in demands
    )
    why = "; ".join(lines) or "the free resources are split over nodes so that it fits on none"
    return (
        f"the stage {demand.name!r} does not fit the cluster: {why}. "
        f"Lower {demand.key} or add nodes. All stages: {shares}"
    )
