"""Checks, before any video is decoded, that the workers can reach their endpoints and the store.

One short task for each kind of worker (GPU, TPU, own environment) tries every endpoint that stages
of this kind use, and the store.
"""

from __future__ import annotations

import dataclasses
import json
import os
import socket
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from actors.calls.endpoint import Endpoint
from actors.calls.parameters import read
from actors.calls.trial import is_local_address, refusal
from actors.engine.stage import Stage
from actors.llm.offline import Offline, has_rules
from actors.part import Checkable, models_of
from mustsee.errors import UserError
from mustsee.files.store import Store, writable

START_TIMEOUT_S = 120.0  # seconds in which a worker of each kind must start, with its environment
LOCAL_TIMEOUT_S = 2.0  # seconds in which an address of this machine must answer


def walk_parts(part: Any) -> Iterator[Any]:
    """Yield a configured part and everything nested in its fields."""
    for item in part if isinstance(part, tuple | list) else [part]:
        yield item
        if dataclasses.is_dataclass(item):
            for each in dataclasses.fields(item):
                yield from walk_parts(getattr(item, each.name))
        elif isinstance(item, Mapping):
            yield from walk_parts(list(item.values()))


def check(part: Any, budget_usd: float | None, *, endpoints: bool = True) -> None:
    """Check that a part and its models can work; raises UserError. Does not start Ray.

    Rules must know the prompts, keys must be set, models found, prices known where there is a
    budget, and local addresses must answer. `endpoints`: False if no endpoint will be called.
    """
    for item in walk_parts(part):
        if isinstance(item, Endpoint) and not endpoints:
            continue
        _check_rules(item)
        if isinstance(item, Checkable):
            item.check(budget_usd)
        if isinstance(item, Endpoint):
            _check_local_address(item)


def _check_rules(part: Any) -> None:
    """Raise UserError where only rules are to answer prompts of which they know none."""
    if not hasattr(part, "prompt_names"):
        return
    models = models_of(part)
    if not models or not all(isinstance(model, Offline) for model in models):
        return
    for name in part.prompt_names:
        if not name.rpartition("/")[2].startswith("_") and not has_rules(name):
            raise UserError(
                f"the prompts of {name!r} are for a model, and llm=offline has no rules for them: "
                "set llm=openai (its key in OPENAI_API_KEY), a preset such as +experiment=gemini, "
                "or recorded replies (llm=replay llm.path=FILE)"
            )


def _check_local_address(endpoint: Endpoint) -> None:
    """Raise UserError where no server listens at an address of this machine.

    On a cluster the stages may run on other machines, so nothing is checked.
    """
    if "RAY_ADDRESS" in os.environ or not is_local_address(endpoint.base_url):
        return
    address = urlsplit(endpoint.base_url)
    port = address.port or (443 if address.scheme == "https" else 80)
    try:
        socket.create_connection((address.hostname or "", port), timeout=LOCAL_TIMEOUT_S).close()
    except OSError as error:
        raise UserError(
            f"{endpoint.place}: no server answers at port {port} "
            f"({(error.strerror or str(error)).lower()}); start the server, or check base_url="
        ) from error


def left_out(parts: Iterable[Any], store: Store) -> dict[str, dict[str, str]]:
    """What the endpoints of parts refuse, as the store knows it: by account, parameter -> the name
    under which its value is sent instead, or "" where it is left out.
    """
    endpoints = {e.account: e for part in parts for e in walk_parts(part)
                 if isinstance(e, Endpoint)}  # fmt: skip
    learned = {account: read(store, endpoint).changes for account, endpoint in endpoints.items()}
    return {account: changes for account, changes in learned.items() if changes}


def asks_only_rules(part: Any) -> bool:
    """Whether a part asks no model but the offline rules."""
    models = (
        item
        for item in walk_parts(part)
        if hasattr(item, "open") and hasattr(item, "identity") and not hasattr(item, "reads")
    )
    return all(isinstance(model, Offline) for model in models)


def check_here(part: Any, budget_usd: float | None = None, *, endpoints: bool = True) -> None:
    """Check a part as `check` does, and try its endpoints from this process, which calls them."""
    check(part, budget_usd, endpoints=endpoints)
    for item in walk_parts(part):
        if endpoints and isinstance(item, Endpoint) and (reason := refusal(item)):
            raise UserError(reason)


@dataclass(frozen=True, kw_only=True)
class WorkerKind:
    """A kind of worker. `environment`: Ray's runtime_env, as JSON."""

    gpu: bool
    tpus: int
    environment: str

    @classmethod
    def of(cls, stage: Stage) -> WorkerKind:
        hardware = stage.hardware
        environment = json.dumps(dict(hardware.runtime_env or {}), sort_keys=True, default=str)
        return cls(gpu=hardware.gpus > 0, tpus=hardware.tpus, environment=environment)

    def options(self, stage: Stage) -> dict[str, Any]:
        """The smallest Ray options that place a task where the stage runs. TPU chips are whole."""
        return {
            "num_cpus": 0,
            "num_gpus": 0.001 if self.gpu else 0,
            "resources": {"TPU": self.tpus} if self.tpus else {},
            "runtime_env": dict(stage.hardware.runtime_env or {}) or None,
            "max_retries": 0,
        }


def try_endpoints(
    stages: Sequence[Stage], store: Store, *, endpoints: bool = True, in_process: bool = False
) -> None:
    """Try the endpoints and the store from one worker of each kind, in the order of the stages, or
    the endpoints from this process if it runs the stages.

    Raises UserError for the first endpoint that refuses or a store that cannot be written. A worker
    that does not start in time only causes a warning.
    """
    first: dict[WorkerKind, Stage] = {}
    tried: dict[WorkerKind, dict[tuple[Any, ...], Endpoint]] = {}
    for stage in stages:
        kind = WorkerKind.of(stage)
        first.setdefault(kind, stage)
        used = [e for e in walk_parts(stage.part) if endpoints and isinstance(e, Endpoint)]
        tried.setdefault(kind, {}).update({(e.base_url, e.model, e.key_env): e for e in used})
    is_local = "RAY_ADDRESS" not in os.environ  # The driver has tried the store of this machine.
    wanted = {kind: stage for kind, stage in first.items() if tried[kind] or not is_local}
    if not wanted:
        return
    if in_process:
        for used in tried.values():
            if refusals := _refusals(list(used.values()), store.root):
                raise UserError(refusals[0])
        return
    import ray

    tasks = {
        kind: ray.remote(_refusals).options(**kind.options(stage)).remote(
            list(tried[kind].values()), store.root
        )
        for kind, stage in wanted.items()
    }  # fmt: skip
    done, _ = ray.wait(list(tasks.values()), num_returns=len(tasks), timeout=START_TIMEOUT_S)
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
    """A sentence for each endpoint that refuses, and for a store that cannot be written."""
    reason = writable(store)
    kept = None if reason else Store(store)
    reasons = [_without_key(e) or refusal(e, store=kept) for e in endpoints]
    if reason:
        reasons.append(
            f"store={store!r} cannot be written on the node {socket.gethostname()!r}: {reason}; a "
            "store= that all nodes share is a mounted folder, s3:// or gs://"
        )
    return [reason for reason in reasons if reason]


def _without_key(endpoint: Endpoint) -> str | None:
    name = endpoint.key_env
    if name is None or os.environ.get(name, "").strip():
        return None
    return (
        f"no key for {endpoint.base_url} on the workers: {name} is set where the job starts, not "
        f"there; start the job with ray job submit --runtime-env-json "
        f'\'{{"env_vars": {{"{name}": "..."}}}}\', or set it on every node before `ray start`'
    )
