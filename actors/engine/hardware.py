"""`Hardware`: what the workers of a stage may use (`conf/cluster/*.yaml`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from mustsee.errors import UserError

MIN_RESOURCES = {"concurrency": 1, "cpus": 0, "gpus": 0, "tpus": 0}


@dataclass(frozen=True, kw_only=True)
class Hardware:
    """What one stage may use. `workers`: how many, or `{min, max}`: more where rows wait, and fewer
    where none do. `concurrency`: rows at once in one worker, of a part that waits for others (an
    endpoint); of one that computes by itself, rows at once in as many workers. `limit`: seconds
    that a row may take, `{row: 1800, video: 10}`: so many, and for each second of its video so many
    more. `runtime_env`: Ray's, for the workers of this stage alone, such as packages of their own.
    """

    workers: int | Mapping[str, int] = 1
    cpus: float = 1.0
    gpus: float = 0.0
    tpus: int = 0
    concurrency: int = 1
    limit: Mapping[str, float] | None = None
    runtime_env: Mapping[str, Any] | None = None

    @property
    def least(self) -> int:
        """Workers that there are from the first row to the last."""
        return self.workers if isinstance(self.workers, int) else self.workers.get("min", 1)

    @property
    def max_workers(self) -> int:
        """Workers that there may be at once."""
        return self.workers if isinstance(self.workers, int) else self.workers.get("max", 1)

    @property
    def resources(self) -> Mapping[str, float]:
        """What one worker holds, by Ray's names."""
        wanted = {"CPU": self.cpus, "GPU": self.gpus, "TPU": float(self.tpus)}
        return {name: amount for name, amount in wanted.items() if amount}

    def seconds(self, video: float | None) -> float | None:
        """What a row with a video of that length may take."""
        if self.limit is None:
            return None
        return self.limit["row"] + self.limit["video"] * (video or 0.0)

    def one_row_per_worker(self, cores: float) -> Hardware:
        """For a part that computes: a row at a time, and for as many rows as there were places more
        workers, one for each of the `cores` at most.
        """
        most = max(self.max_workers, min(self.max_workers * self.concurrency, int(cores)))
        workers = self.workers if most == self.max_workers else {"min": self.least, "max": most}
        return replace(self, workers=workers, concurrency=1)

    def merged_with(self, other: Hardware) -> Hardware:
        """What workers use that do the work of another stage as well: the more of each."""
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
        """Raises UserError, naming the key in conf, for numbers that no pool can have."""
        for name, least in MIN_RESOURCES.items():
            if (value := getattr(self, name)) < least:
                raise UserError(f"{key}.{name}={value!r}: at least {least}")
        given = self.workers if isinstance(self.workers, int) else dict(self.workers)
        said = f"{key}.workers={given!r}"
        if isinstance(given, dict) and set(given) != {"min", "max"}:
            raise UserError(f"{said}: a number, or {{min: 1, max: 8}}")
        if self.limit and (set(self.limit) != {"row", "video"} or min(self.limit.values()) < 0):
            raise UserError(
                f"{key}.limit={dict(self.limit)!r}: null, or seconds as in {{row: 1800, video: 10}}"
            )
        if self.least < 1:
            raise UserError(f"{said}: at least 1")
        if self.max_workers < self.least:
            raise UserError(f"{said}: max is less than min")
        if self.tpus and self.max_workers > self.least:
            raise UserError(
                f"{said}: a pool of TPU workers has a fixed size, for Ray Data counts no TPUs when "
                "it grows a pool; give one number"
            )
