"""Before any video is decoded: whether what the stages will call and write can be reached from
where they will run.

One short task for each kind of worker (node with a GPU, with a TPU, environment of its own) tries
every endpoint that stages of this kind use, and the store.
"""

from __future__ import annotations

import dataclasses
import json
import os
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import ray

from actors.calls.endpoint import Endpoint
from actors.calls.trial import is_local_address, refusal
from actors.engine.stage import Stage
from actors.part import Checkable
from mustsee.errors import UserError
from mustsee.store import Store, writable

# seconds for a worker of each kind to start, with an environment of its own
START_TIMEOUT_S = 120.0
LOCAL_TIMEOUT_S = 2.0  # seconds for an address of this machine


def walk_parts(part: Any) -> Iterator[Any]:
    """A configured part, and all that it is configured with."""
    for item in part if isinstance(part, tuple | list) else [part]:
        yield item
        if dataclasses.is_dataclass(item):
            for each in dataclasses.fields(item):
                yield from walk_parts(getattr(item, each.name))
        elif isinstance(item, Mapping):
            yield from walk_parts(list(item.values()))


def check(part: Any, budget_usd: float | None, *, endpoints: bool = True) -> None:
    """Ask a part, and every model that it is configured with, whether it could work at all: the key
    is there, the model is found, its price is known where there is a budget; nothing is refused at
    an address of this machine. Raises UserError. Starts no Ray. `endpoints`: False where none will
    be asked.
    """
    for item in walk_parts(part):
        if isinstance(item, Endpoint) and not endpoints:
            continue
        if isinstance(item, Checkable):
            item.check(budget_usd)
        if isinstance(item, Endpoint):
            _check_near(item)


def _check_near(endpoint: Endpoint) -> None:
    """Whether anybody listens at an address of this machine, where the stages run on it too."""
    if "RAY_ADDRESS" in os.environ or not is_local_address(endpoint.base_url):
        return
    found = urlsplit(endpoint.base_url)
    port = found.port or (443 if found.scheme == "https" else 80)
    try:
        socket.create_connection((found.hostname or "", port), timeout=LOCAL_TIMEOUT_S).close()
    except OSError as error:
        raise UserError(
            f"{endpoint.place}: nobody answers at port {port} "
            f"({(error.strerror or str(error)).lower()}); start the server, or check base_url="
        ) from error


def check_here(part: Any, budget_usd: float | None = None, *, endpoints: bool = True) -> None:
    """As `check`, and every endpoint is tried from this process: of what a job itself asks."""
    check(part, budget_usd, endpoints=endpoints)
    for item in walk_parts(part):
        if endpoints and isinstance(item, Endpoint) and (said := refusal(item)):
            raise UserError(said)


@dataclass(frozen=True, kw_only=True)
class WorkerKind:
    """A kind of worker. `environment`: Ray's runtime_env, as JSON."""

    gpu: bool
    tpus: int
    environment: str

    @classmethod
    def of(cls, stage: Stage) -> WorkerKind:
        hard = stage.hardware
        environment = json.dumps(dict(hard.runtime_env or {}), sort_keys=True, default=str)
        return cls(gpu=hard.gpus > 0, tpus=hard.tpus, environment=environment)

    def options(self, stage: Stage) -> dict[str, Any]:
        """Ray's: the least that is placed where the stage is. Chips cannot be divided."""
        return {
            "num_cpus": 0,
            "num_gpus": 0.001 if self.gpu else 0,
            "resources": {"TPU": self.tpus} if self.tpus else {},
            "runtime_env": dict(stage.hardware.runtime_env or {}) or None,
            "max_retries": 0,
        }


def try_endpoints(stages: Sequence[Stage], store: Store, *, endpoints: bool = True) -> None:
    """Raises UserError for the first endpoint that refuses, and for a store that a worker cannot
    write, in the order of the stages. A worker that does not start in time is said, no more.
    """
    first: dict[WorkerKind, Stage] = {}
    asked: dict[WorkerKind, dict[tuple[Any, ...], Endpoint]] = {}
    for stage in stages:
        kind = WorkerKind.of(stage)
        first.setdefault(kind, stage)
        found = [e for e in walk_parts(stage.part) if endpoints and isinstance(e, Endpoint)]
        asked.setdefault(kind, {}).update({(e.base_url, e.model, e.key_env): e for e in found})
    alone = "RAY_ADDRESS" not in os.environ  # the driver has tried the store of this machine
    wanted = {kind: stage for kind, stage in first.items() if asked[kind] or not alone}
    tasks = {
        kind: ray.remote(_refusals).options(**kind.options(stage)).remote(
            list(asked[kind].values()), store.root
        )
        for kind, stage in wanted.items()
    }  # fmt: skip
    done, _ = (
        ray.wait(list(tasks.values()), num_returns=len(tasks), timeout=START_TIMEOUT_S)
        if tasks
        else ([], [])
    )
    for kind, task in tasks.items():
        if task not in done:
            print(
                f"stage {wanted[kind].name!r}: no worker has started in {START_TIMEOUT_S:g} s, so "
                "its endpoints were not tried",
                file=sys.stderr,
            )
        elif refusals := ray.get(task):
            raise UserError(refusals[0])


def _refusals(endpoints: Sequence[Endpoint], store: str) -> list[str]:
    """What a worker finds wrong, in sentences."""
    found = [_without_key(e) or refusal(e) for e in endpoints]
    if reason := writable(store):
        found.append(
            f"store={store!r} cannot be written on the node {socket.gethostname()!r}: {reason}; a "
            "store= that all nodes share is a mounted folder, s3:// or gs://"
        )
    return [said for said in found if said]


def _without_key(endpoint: Endpoint) -> str | None:
    name = endpoint.key_env
    if name is None or os.environ.get(name, "").strip():
        return None
    return (
        f"no key for {endpoint.base_url} on the workers: {name} is set where the job starts, but "
        f"not there; start it with ray job submit --runtime-env-json "
        f'\'{{"env_vars": {{"{name}": "..."}}}}\', or set it on every node before `ray start`'
    )
