"""`Hardware`: resources of a stage's workers (`conf/cluster/*.yaml`), and whether the workers of a
job fit the cluster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mustsee.errors import UserError

# The least value of each number.
MIN_RESOURCES = {"concurrency": 1, "cpus": 0, "gpus": 0, "tpus": 0}


@dataclass(frozen=True, kw_only=True)
class Hardware:
    """Resources of one stage. `workers`: their number, or `{min, max}`: the pool grows to `max`
    while rows wait, and shrinks otherwise. `concurrency`: rows at once in one worker, for a part
    that waits for an endpoint; for a part that computes in the worker, further workers. `limit`:
    timeout of a row, `{row: 1800, video: 10}`: 1800 seconds, and 10 for each second of its video.
    `runtime_env`: Ray's runtime environment for this stage, such as additional packages.
    """

    workers: int | Mapping[str, int] = 1
    cpus: float = 1
    gpus: float = 0.0
    tpus: int = 0
    concurrency: int = 1
    limit: Mapping[str, float] | None = None
    runtime_env: Mapping[str, Any] | None = None

    @property
    def least(self) -> int:
        """The least number of workers."""
        return self.workers if isinstance(self.workers, int) else self.workers.get("min", 1)

    @property
    def max_workers(self) -> int:
        """The greatest number of workers."""
        return self.workers if isinstance(self.workers, int) else self.workers.get("max", 1)

    @property
    def resources(self) -> Mapping[str, float]:
        """Resources of one worker, by Ray's names."""
        amounts = {"CPU": self.cpus, "GPU": self.gpus, "TPU": float(self.tpus)}
        return {name: amount for name, amount in amounts.items() if amount}

    def seconds(self, video: float | None) -> float | None:
        """The timeout of a row whose video has `video` seconds; None: no timeout."""
        if self.limit is None:
            return None
        return self.limit["row"] + self.limit["video"] * (video or 0.0)

    def one_row_per_worker(self, cores: float) -> Hardware:
        """Return these resources with `concurrency` turned into further workers, at most one for
        each of the `cores`: rows that compute in one worker only wait for each other. A pool of
        TPU workers keeps its size.
        """
        rows = self.max_workers * (1 if self.tpus else self.concurrency)
        most = max(self.max_workers, min(rows, int(cores)))
        workers = self.workers if most == self.max_workers else {"min": self.least, "max": most}
        return replace(self, workers=workers, concurrency=1)

    def merged_with(self, other: Hardware) -> Hardware:
        """Return the resources of workers that run two stages: the greater of each."""
        return Hardware(
            workers={
                "min": max(self.least, other.least),
                "max": max(self.max_workers, other.max_workers),
            },
            cpus=max(self.cpus, other.cpus),
            gpus=max(self.gpus, other.gpus),
            tpus=max(self.tpus, other.tpus),
            concurrency=max(self.concurrency, other.concurrency),
            runtime_env=self.runtime_env or other.runtime_env,
        )

    def check(self, key: str) -> None:
        """Raise UserError, naming the key, for impossible numbers."""
        for name, least in MIN_RESOURCES.items():
            if (value := getattr(self, name)) < least:
                raise UserError(f"{key}.{name}={value!r}: must be at least {least}")
        workers = self.workers if isinstance(self.workers, int) else dict(self.workers)
        setting = f"{key}.workers={workers!r}"
        if isinstance(workers, dict) and set(workers) != {"min", "max"}:
            raise UserError(f"{setting}: must be a number, or {{min: 1, max: 8}}")
        if self.limit and (set(self.limit) != {"row", "video"} or min(self.limit.values()) < 0):
            raise UserError(
                f"{key}.limit={dict(self.limit)!r}: must be null, or seconds as in "
                "{row: 1800, video: 10}"
            )
        if self.least < 1:
            raise UserError(f"{setting}: must be at least 1")
        if self.max_workers < self.least:
            raise UserError(f"{setting}: max is less than min")
        if self.tpus and self.max_workers > self.least:
            raise UserError(
                f"{setting}: a pool of TPU workers has a fixed size, because Ray Data ignores TPUs "
                "when it grows a pool; give one number"
            )


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
