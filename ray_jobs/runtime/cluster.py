"""The Ray cluster of a job: the connection, the stages' worker pools, and whether they fit."""

from __future__ import annotations

import contextlib
import functools
import importlib
import logging
import os
import socket
import stat
import sys
import sysconfig
import threading
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from actors.engine.hardware import Hardware, ResourceDemand, lacking_resources
from actors.engine.stage import Stage
from actors.part import NamesModels, same_model_warnings
from mustsee.errors import MustseeError, UserError
from mustsee.run import outputs
from ray_jobs.runtime import local_ray
from ray_jobs.runtime.heartbeat import show_step
from ray_jobs.runtime.local_ray import last_words, without_collection
from ray_jobs.runtime.trials import walk_parts

ROOT = Path(__file__).resolve().parents[2]
MAX_STARTS = 3  # attempts to start a local Ray
DECISION = "decide"  # name of the stage that writes the decision of a barrier into the rows
MAX_LOG_FOLDERS = 5  # folders of Ray's logs that are kept on this machine
# Ray lets every user of the machine write into its folder, so it lies in a private one. Both names
# are short because the path of a socket has at most 107 bytes.
_PRIVATE = Path(f"/tmp/mustsee-{os.getuid()}")
_SESSIONS = _PRIVATE / "ray"


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """The hardware of each stage (`conf/cluster/*.yaml`)."""

    stages: Mapping[str, Hardware]
    """Resources of each stage; workers: a number, or {min, max}, scaled with the waiting
    rows."""
    shared: Sequence[Sequence[str]] = ()
    """Groups of consecutive stages that share their workers, where they take as many rows at once
    and a later one may have as many workers (`ray_jobs.runtime.cluster.pools`)."""
    autoscales: bool = False
    """Treat resources that do not fit yet as a warning: the launcher or KubeRay adds nodes."""
    reserved: Mapping[str, float] = field(default_factory=dict[str, float])
    """Resources to leave free, e.g. {GPU: 1} for a Serve replica of llm=serve."""


def local_cores() -> int:
    """The number of CPUs that a local Ray is started with."""
    return max(2, os.cpu_count() or 2)


@contextlib.contextmanager
def connect_ray() -> Generator[None]:
    """Connect to the Ray of `RAY_ADDRESS`, or start a local one, and shut it down at the end.

    Raises UserError where no cluster answers at the address.
    """
    import ray

    if ray.is_initialized():
        yield
        return
    address, cores = os.environ.get("RAY_ADDRESS"), local_cores()
    local: dict[str, Any] = (
        _cluster_options()
        if address
        else {"num_cpus": cores, "include_dashboard": False, "_temp_dir": str(_SESSIONS)}
    )
    if address and not answers(address):
        raise UserError(
            f"no Ray cluster answers at RAY_ADDRESS={address!r}: start one there (ray start "
            "--head), or unset RAY_ADDRESS to use only this machine"
        )
    action = (
        f"joining the Ray cluster at {address}" if address else f"starting Ray on {cores} cores"
    )
    if not address:
        make_private(_PRIVATE)
    print(f"mustsee: {action} ...", file=sys.stderr, flush=True)
    # Ray Data takes half a second to import, and `ray.init` only waits for processes.
    threading.Thread(target=importlib.import_module, args=["ray.data"], daemon=True).start()
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    path = None if address else os.pathsep.join(_import_path())
    with show_step(action), _python_path(path), without_collection():
        _start(action, 1 if address else MAX_STARTS, address=address or "local", **quiet, **local)
    with contextlib.ExitStack() as connection:
        connection.enter_context(last_words())
        connection.callback(ray.shutdown)
        if address:
            _start_autoscaling_coordinator()
        else:
            resources = ray.cluster_resources()
            connection.enter_context(local_ray.keep_data_in_driver(resources))
            _clean_sessions()
        context = ray.data.DataContext.get_current()
        context.enable_progress_bars = False
        context.execution_options.verbose_progress = False
        # A long video at a slow endpoint may take half an hour without a row, and calls have their
        # own timeouts. Older releases of Ray have no such limit.
        if hasattr(context, "execution_no_progress_timeout_s"):
            context.execution_no_progress_timeout_s = -1
        logging.getLogger("ray.data").setLevel(logging.CRITICAL)
        yield


def make_private(folder: Path) -> None:
    """Make a folder that only this user may enter. Raises UserError if it is not this user's."""
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        raise UserError(
            f"{str(folder)!r}, the folder of Ray's sessions, is not yours (its owner is user "
            f"{status.st_uid}): have it removed, or start a Ray yourself and set RAY_ADDRESS"
        )
    folder.chmod(0o700)


def show_judge_folder() -> None:
    """Print the folder in which `make judge` starts its Ray. Exits with 2 if it is not this user's.

    It is as private as that of jobs, and separate because jobs remove old sessions.
    """
    try:
        make_private(_PRIVATE)
    except UserError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    print(_PRIVATE / "judge")


def _start(action: str, tries: int, **options: Any) -> None:
    """Start Ray, up to `tries` times: on a busy machine its processes may miss their deadline of
    half a minute.
    """
    import ray

    is_local = options["address"] == "local"
    logs = f" Its logs are in {_SESSIONS}/session_latest/logs." if is_local else ""
    for left in reversed(range(tries)):
        try:
            with _silence(), local_ray.without_helpers():
                ray.init(**options)
            return
        except Exception as error:  # Ray raises plain exceptions here.
            ray.shutdown()
            reason = str(error).partition("\n")[0] or type(error).__name__
            if not left:
                raise MustseeError(f"{action} failed: {reason}{logs}") from None
            print(f"mustsee: {action} failed ({reason}); trying again ...", file=sys.stderr)


def _start_autoscaling_coordinator() -> None:
    """Start the actor that reports the cluster's resources to Ray Data.

    Ray Data hands out no row before it answers, and would start it after all workers of all stages.
    A release of Ray that has it elsewhere starts it later.
    """
    with contextlib.suppress(ImportError):
        from ray.data._internal.cluster_autoscaler import get_or_create_autoscaling_coordinator

        get_or_create_autoscaling_coordinator()


def _clean_sessions() -> None:
    """Claim the folder of this process's Ray, and remove dead ones except the last few."""
    sessions = sorted(p for p in _SESSIONS.glob("session_*") if not p.is_symlink())
    for own in sessions:
        if own.name.endswith(f"_{os.getpid()}"):
            with contextlib.suppress(OSError):
                outputs.claim(own)
    outputs.sweep(sessions[:-MAX_LOG_FOLDERS])


def answers(address: str) -> bool:
    """Whether a server listens at `host:port`. Other kinds of address (`auto`) count as yes.

    Ray itself would take minutes to find out, and then end the process.
    """
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not (host and port.isdigit()):
        return True
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
    except OSError:
        return False
    return True


def _import_path() -> list[str]:
    """The import path of this code: `sys.path` without the environment's own packages.

    Those would hide the packages of a stage that runs in another environment.
    """
    own = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    return [
        p for p in sys.path if os.path.isdir(p) and not any(Path(p).is_relative_to(o) for o in own)
    ]


@contextlib.contextmanager
def _python_path(path: str | None) -> Generator[None]:
    """Set PYTHONPATH for the processes that start meanwhile.

    A `runtime_env` of Ray would do the same, but the workers that Ray starts in advance would lack
    it and could not be used.
    """
    before = os.environ.get("PYTHONPATH")
    if path is not None:
        os.environ["PYTHONPATH"] = path
    try:
        yield
    finally:
        if path is not None:
            os.environ.pop("PYTHONPATH")
            if before is not None:
                os.environ["PYTHONPATH"] = before


def _cluster_options() -> dict[str, Any]:
    """Options for `ray.init` on a running cluster: the path of this code.

    Workers look for code in the caller's folder, so a job that runs in this checkout needs no path,
    and a submitted job has brought its code.
    """
    if Path.cwd() == ROOT or "RAY_JOB_CONFIG_JSON_ENV_VAR" in os.environ:
        return {}
    path = os.pathsep.join([str(ROOT), "${PYTHONPATH}"])
    return {"runtime_env": {"env_vars": {"PYTHONPATH": path}}}


@contextlib.contextmanager
def _silence() -> Generator[None]:
    """Discard the error stream: Ray's core prints a notice there. Errors come as exceptions."""
    sys.stderr.flush()
    stderr_copy = os.dup(2)
    with open(os.devnull, "w") as null_device:
        os.dup2(null_device.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(stderr_copy, 2)
        os.close(stderr_copy)


def cores() -> float:
    """The number of CPUs of the cluster."""
    import ray

    return ray.cluster_resources().get("CPU", 0.0)


def pools(stages: Sequence[Stage], shared: Sequence[Sequence[str]]) -> list[list[Stage]]:
    """The stages, grouped by the pool of workers that they share."""
    groups: list[list[Stage]] = []
    for stage in stages:
        if groups and _share_workers(groups[-1], stage, shared):
            groups[-1].append(stage)
        else:
            groups.append([stage])
    return groups


def _share_workers(pool: Sequence[Stage], stage: Stage, shared: Sequence[Sequence[str]]) -> bool:
    """Whether a stage shares the workers of the pool before it. It needs the same `runtime_env`,
    as many rows at once, and, where it computes, as many workers.
    """
    before, own, others = pool[-1], stage.hardware, hardware(pool)
    if before.name == DECISION:
        return True
    is_listed = any({before.name, stage.name} <= set(names) for names in shared)
    if not is_listed or before.hardware.runtime_env != own.runtime_env:
        return False
    if own.concurrency != others.concurrency:
        return False
    return own.concurrency > 1 or own.max_workers >= others.max_workers


def check_stages(stages: Sequence[Stage]) -> None:
    """Raise UserError for impossible numbers of a stage's hardware. Print warnings that name models
    that guess at their own questions, and stages whose model has no accelerator. Starts no Ray.
    """
    for stage in stages:
        stage.hardware.check(f"cluster.stages.{stage.name}")
        if not stage.hardware.gpus and not stage.hardware.tpus and _wants_accelerator(stage.part):
            print(
                f"stage {stage.name!r}: its judge runs on CPUs; cluster.stages.{stage.name}.gpus=1 "
                "gives it a GPU, tpus=4 gives judge=gem_jax four TPU chips, and judge=serve asks "
                "one that is served (docs/judge.md)",
                file=sys.stderr,
            )
    parts = [(s.name, s.part) for s in stages if isinstance(s.part, NamesModels)]
    models = {f"{n}.{key}": llm.identity for n, p in parts for key, llm in p.roles.items()}
    for line in same_model_warnings(models):
        print(line, file=sys.stderr)


def _wants_accelerator(part: object) -> bool:
    return any(getattr(item, "wants_accelerator", False) for item in walk_parts(part))


def preflight(phases: Sequence[Sequence[Stage]], cluster: Cluster) -> None:
    """Check that the stages of each phase fit the cluster at once with their fewest workers. Where
    they fit with their most, too, let pools keep workers that find no row for a while.

    Raises UserError if they do not, and for a `runtime_env` that Ray does not accept. A cluster
    that autoscales only gets a warning.
    """
    import ray

    free = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    reserved: list[ResourceDemand] = []
    if cluster.reserved:
        reserved.append(
            ResourceDemand(
                name="reserved", key="cluster.reserved", count=1, resources=cluster.reserved
            )
        )
    pools_fit = not cluster.autoscales
    for phase in phases:
        for stage in phase:
            _check_environment(stage)
        groups = pools(phase, cluster.shared)
        lacking = lacking_resources([*map(demand, groups), *reserved], free)
        if lacking and not cluster.autoscales:
            raise UserError(lacking)
        if lacking:
            print(f"waiting for the cluster to grow: {lacking}", file=sys.stderr)
        most = [replace(demand(pool), count=hardware(pool).max_workers) for pool in groups]
        pools_fit = pools_fit and lacking_resources([*most, *reserved], free) is None
    _keep_idle_workers(pools_fit)


def _keep_idle_workers(keep: bool) -> None:
    """Tell Ray Data whether a pool that has grown keeps its workers until its rows end. It would
    end one when no row waits for a moment, and start another for the next rows.
    """
    from ray.data.context import AutoscalingConfig, DataContext

    config = AutoscalingConfig()
    if keep:
        config.actor_pool_util_downscaling_threshold = -1.0  # No pool is used less than that.
    DataContext.get_current().autoscaling_config = config


def _check_environment(stage: Stage) -> None:
    from ray.runtime_env import RuntimeEnv

    settings = dict(stage.hardware.runtime_env or {})
    reason = ""
    try:
        RuntimeEnv(**settings)
        unknown = sorted(set(settings) - RuntimeEnv.known_fields)
        reason = f"Ray has no field {unknown[0]!r}" if unknown else ""
    except (TypeError, ValueError) as error:
        reason = str(error).splitlines()[0]
    if reason:
        raise UserError(f"cluster.stages.{stage.name}.runtime_env={settings!r}: {reason}")


def hardware(pool: Sequence[Stage]) -> Hardware:
    """The hardware of a pool's workers, and their number."""
    return functools.reduce(Hardware.merged_with, [stage.hardware for stage in pool])


def demand(pool: Sequence[Stage]) -> ResourceDemand:
    """The resources of a pool with its fewest workers."""
    merged = hardware(pool)
    return ResourceDemand(
        name="+".join(stage.name for stage in pool),
        key=f"cluster.stages.{pool[-1].name}.workers",
        count=merged.least,
        resources=merged.resources,
    )


def lacking_workers(worker_pools: Sequence[Sequence[Stage]], name: str) -> str:
    """The resources that the workers of stage `name` wait for; empty if they are starting."""
    pool = next((pool for pool in worker_pools if any(s.name == name for s in pool)), None)
    if pool is None:
        return ""
    import ray

    free, total = ray.available_resources(), ray.cluster_resources()
    return "; ".join(
        f"waits for {amount:g} {r}: others hold {total.get(r, 0) - free.get(r, 0):g} of "
        f"{total.get(r, 0):g}"
        for r, amount in demand(pool).resources.items()
        if free.get(r, 0.0) + 1e-9 < amount
    )
