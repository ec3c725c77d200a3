"""The Ray cluster of a job: connecting to it, what its stages use, and whether all of it fits."""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import socket
import stat
import sys
import sysconfig
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from actors.engine.hardware import Hardware
from actors.engine.stage import Stage
from actors.part import NamesModels
from mustsee.errors import MustseeError, UserError
from mustsee.run import process_folders
from mustsee.run.preflight import ResourceDemand, lacking_resources, same_model_warnings
from ray_jobs.runtime import barrier
from ray_jobs.runtime.heartbeat import show_step

ROOT = Path(__file__).resolve().parents[2]
MAX_STARTS = 3
MAX_LOG_FOLDERS = 5  # folders of Ray's logs on this machine
# Ray lets every user of the machine write into its folder, so it is within one that only we enter.
# Both names are short: the path of a socket has at most 107 bytes.
_PRIVATE = Path(f"/tmp/mustsee-{os.getuid()}")
_SESSIONS = _PRIVATE / "ray"


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """`conf/cluster/*.yaml`: hardware by stage; what Serve needs beside; nodes that come later.

    `shared`: stages next to each other that share their workers, which have the more of what each
    asks for. `autoscales`: the cluster may grow, so that what does not fit now is only a warning.
    `reserved`: resources to leave free, e.g. for Serve replicas in the same cluster.
    """

    stages: Mapping[str, Hardware]
    shared: Sequence[Sequence[str]] = ()
    autoscales: bool = False
    reserved: Mapping[str, float] = field(default_factory=dict[str, float])


def local_cores() -> int:
    """CPUs that a Ray of this machine alone is started on."""
    return max(2, os.cpu_count() or 2)


@contextlib.contextmanager
def connect_ray() -> Generator[None]:
    """A connection to Ray, quiet but for a line that says so, closed at the end."""
    import ray

    if ray.is_initialized():
        yield
        return
    address, cores = os.environ.get("RAY_ADDRESS"), local_cores()
    local: dict[str, Any] = (
        _attached()
        if address
        else {"num_cpus": cores, "include_dashboard": False, "_temp_dir": str(_SESSIONS)}
    )
    if address and not answers(address):
        raise UserError(
            f"no Ray cluster answers at RAY_ADDRESS={address!r}: start one there (ray start "
            "--head), or unset RAY_ADDRESS to use this machine alone"
        )
    what = f"joining the Ray cluster at {address}" if address else f"starting Ray on {cores} cores"
    if not address:
        make_private(_PRIVATE)
    print(f"mustsee: {what} ...", file=sys.stderr, flush=True)
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    with show_step(what), _inherited(None if address else os.pathsep.join(_code())):
        _start(what, 1 if address else MAX_STARTS, address=address or "local", **quiet, **local)
    if not address:
        _tidy()
    _ahead()
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.execution_options.verbose_progress = False
    # Half an hour without a row is no fault: a long video at a slow endpoint takes that, and calls
    # have their own time limits. Older releases of Ray have no such limit.
    if hasattr(context, "execution_no_progress_timeout_s"):
        context.execution_no_progress_timeout_s = -1
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        ray.shutdown()


def make_private(folder: Path) -> None:
    """Make a folder that nobody else may enter. Raises UserError where something else is there."""
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise UserError(
            f"{str(folder)!r}, where Ray's sessions go, is not a folder of yours (its owner is "
            f"user {found.st_uid}): have it removed, or start a Ray of your own and set RAY_ADDRESS"
        )
    folder.chmod(0o700)


def show_judge_folder() -> None:
    """Print where `make judge` has its Ray: as private as those of jobs, and apart from them, who
    remove old sessions. Exits with 2 where the folder is somebody else's.
    """
    try:
        make_private(_PRIVATE)
    except UserError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    print(_PRIVATE / "judge")


def _start(what: str, tries: int, **options: Any) -> None:
    """Ray gives its own processes half a minute to start, which a busy machine may not keep."""
    import ray

    here = options["address"] == "local"
    logs = f" Its logs are in {_SESSIONS}/session_latest/logs." if here else ""
    for left in reversed(range(tries)):
        try:
            with _silence():
                ray.init(**options)
            return
        except Exception as error:  # Ray raises bare ones here
            ray.shutdown()
            reason = str(error).partition("\n")[0] or type(error).__name__
            if not left:
                raise MustseeError(f"{what} failed: {reason}{logs}") from None
            print(f"mustsee: {what} failed ({reason}); once more ...", file=sys.stderr)


def _ahead() -> None:
    """Start the actor that tells Ray Data what the cluster has: no row is handed out before it
    answers, and Ray Data would start it behind all workers of all stages. Where a release of Ray
    has it elsewhere, it is only later.
    """
    with contextlib.suppress(ImportError):
        from ray.data._internal.cluster_autoscaler import get_or_create_autoscaling_coordinator

        get_or_create_autoscaling_coordinator()


def _tidy() -> None:
    """Claim the folder of this process's Ray; of dead ones keep the logs of the last few."""
    sessions = sorted(p for p in _SESSIONS.glob("session_*") if not p.is_symlink())
    for own in sessions:
        if own.name.endswith(f"_{os.getpid()}"):
            with contextlib.suppress(OSError):
                process_folders.claim(own)
    process_folders.sweep(sessions[:-MAX_LOG_FOLDERS])


def answers(address: str) -> bool:
    """Whether anybody listens at a `host:port`, of which Ray would take minutes to be sure, and
    then end the process. Other kinds of address (`auto`) are left to Ray.
    """
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not (host and port.isdigit()):
        return True
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
    except OSError:
        return False
    return True


def _code() -> list[str]:
    """Where our code is imported from: `sys.path` without this environment's own packages, which
    would hide those of a stage that runs in another environment.
    """
    own = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    return [
        p for p in sys.path if os.path.isdir(p) and not any(Path(p).is_relative_to(o) for o in own)
    ]


@contextlib.contextmanager
def _inherited(path: str | None) -> Generator[None]:
    """PYTHONPATH for the processes that are started here. In a `runtime_env` of Ray's it would do
    as well, but no worker that Ray starts ahead would have it: they would stand by for nothing.
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


def _attached() -> dict[str, Any]:
    """A running cluster's workers look for code in the caller's folder; where that is not ours they
    are told where ours is. A job that was submitted has brought its own.
    """
    if Path.cwd() == ROOT or "RAY_JOB_CONFIG_JSON_ENV_VAR" in os.environ:
        return {}
    path = os.pathsep.join([str(ROOT), "${PYTHONPATH}"])
    return {"runtime_env": {"env_vars": {"PYTHONPATH": path}}}


@contextlib.contextmanager
def _silence() -> Generator[None]:
    """Nothing on the terminal's error stream: Ray's core announces there that it will be quiet.
    What goes wrong comes as an exception.
    """
    sys.stderr.flush()
    kept = os.dup(2)
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def cores() -> float:
    """CPUs of the cluster."""
    import ray

    return ray.cluster_resources().get("CPU", 0.0)


def pools(stages: Sequence[Stage], shared: Sequence[Sequence[str]]) -> list[list[Stage]]:
    """The stages by the pool of workers that they are in."""
    found: list[list[Stage]] = []
    for stage in stages:
        if found and _together(found[-1][-1], stage, shared):
            found[-1].append(stage)
        else:
            found.append([stage])
    return found


def _together(before: Stage, stage: Stage, shared: Sequence[Sequence[str]]) -> bool:
    """Whether neighbours share workers, which have one `runtime_env`."""
    if before.name == barrier.NAME:
        return True
    named = any({before.name, stage.name} <= set(names) for names in shared)
    return named and before.hardware.runtime_env == stage.hardware.runtime_env


def preflight(phases: Sequence[Sequence[Stage]], cluster: Cluster) -> None:
    """Raises UserError unless the least workers of all stages of a phase fit the cluster at once,
    and for numbers or a `runtime_env` that Ray does not know.

    Where the cluster grows by itself it only says what does not fit yet. Says, too, where a model
    guesses at questions of its own.
    """
    import ray

    free = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    for phase in phases:
        for stage in phase:
            stage.hardware.check(f"cluster.stages.{stage.name}")
            _check_environment(stage)
        demands = [demand(pool) for pool in pools(phase, cluster.shared)]
        if cluster.reserved:
            demands.append(
                ResourceDemand(
                    name="reserved", key="cluster.reserved", count=1, resources=cluster.reserved
                )
            )
        lacking = lacking_resources(demands, free)
        if lacking and not cluster.autoscales:
            raise UserError(lacking)
        if lacking:
            print(f"not yet: {lacking}; waiting for the cluster to grow", file=sys.stderr)
    parts = [(s.name, s.part) for phase in phases for s in phase if isinstance(s.part, NamesModels)]
    models = {f"{n}.{key}": llm.identity for n, p in parts for key, llm in p.roles.items()}
    for line in same_model_warnings(models):
        print(line, file=sys.stderr)


def _check_environment(stage: Stage) -> None:
    from ray.runtime_env import RuntimeEnv

    wanted = dict(stage.hardware.runtime_env or {})
    reason = ""
    try:
        RuntimeEnv(**wanted)
        unknown = sorted(set(wanted) - RuntimeEnv.known_fields)
        reason = f"Ray knows no {unknown[0]!r}" if unknown else ""
    except (TypeError, ValueError) as error:
        reason = str(error).splitlines()[0]
    if reason:
        raise UserError(f"cluster.stages.{stage.name}.runtime_env={wanted!r}: {reason}")


def hardware(pool: Sequence[Stage]) -> Hardware:
    """What each worker of a pool has, and how many there are."""
    return functools.reduce(Hardware.merged_with, [stage.hardware for stage in pool])


def demand(pool: Sequence[Stage]) -> ResourceDemand:
    """What the least workers of a pool need."""
    hard = hardware(pool)
    return ResourceDemand(
        name="+".join(stage.name for stage in pool),
        key=f"cluster.stages.{pool[-1].name}.workers",
        count=hard.least,
        resources=hard.resources,
    )


def lacking_workers(found: Sequence[Sequence[Stage]], name: str) -> str:
    """What the workers of a stage lack, of these pools, while others hold it; nothing where they
    are starting.
    """
    import ray

    free, there = ray.available_resources(), ray.cluster_resources()
    pool = next((pool for pool in found if any(stage.name == name for stage in pool)), None)
    return "; ".join(
        f"waits for {amount:g} {r}: others hold {there.get(r, 0) - free.get(r, 0):g} of "
        f"{there.get(r, 0):g}"
        for r, amount in (demand(pool).resources if pool else {}).items()
        if free.get(r, 0.0) + 1e-9 < amount
    )
