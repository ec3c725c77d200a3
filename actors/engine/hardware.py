"""`Hardware`: resources of a stage's workers (`conf/cluster/*.yaml`)."""

from __future__ import annotations

from collections.abc import Mapping
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
