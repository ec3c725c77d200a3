"""Starts a Ray of one machine quickly, and says so if it dies.

Ray starts no process that a job has no use for. Each takes half a second or a whole one of CPU, and
the start of a job waits for it. Ray has no options for these. Where a release of Ray lacks a name
that is replaced here, it starts as usual. With Ray 2.60.0 a run on four seconds of video takes
10.1 s in place of 13.2; each of the two saves more than a second.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import inspect
import subprocess
import sys
from collections.abc import Generator, Mapping, Sequence
from typing import Any

LINE = (
    "mustsee: the run was ended from outside (killed, or its Ray died): everything that is "
    "finished is kept, and the same command goes on from here"
)
# Reads until the run has closed the pipe; one that ended by itself has written into it.
WATCH = "import sys; sys.stdin.buffer.read() or print(sys.argv[1], file=sys.stderr)"


@contextlib.contextmanager
def last_words() -> Generator[None]:
    """Have `LINE` written to stderr if this process ends inside the block without leaving it, as
    Ray ends it when its own process on this machine has died: no handler of Python runs then, so a
    small process of its own says it.
    """
    watch = [sys.executable, "-I", "-S", "-c", WATCH, LINE]
    with subprocess.Popen(
        watch, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True
    ) as watcher:
        try:
            yield
        finally:
            watcher.communicate(b"ended")


@contextlib.contextmanager
def without_helpers() -> Generator[None]:
    """Let `ray.init` start neither the dashboard's server nor the processes that grow clusters and
    pass on workers' output, and its agent at a free port and without the dashboard's parts.

    The agent tries one port, and where another Ray of this machine has it, `ray.init` takes four
    seconds more.
    """
    from ray._private import node, parameter, utils

    usual = parameter.RayParams
    settings = {"dashboard_agent_listen_port": 0, "no_monitor": True, "include_log_monitor": False}
    known = settings.keys() <= inspect.signature(usual).parameters.keys()
    with (
        _replaced(parameter, "RayParams", functools.partial(usual, **settings) if known else usual),
        _replaced(node.Node, "start_api_server", _do_nothing),
        _replaced(utils, "get_dashboard_dependency_error", lambda: ImportError("not needed")),
    ):
        yield


@contextlib.contextmanager
def _replaced(owner: Any, name: str, replacement: object) -> Generator[None]:
    """Replace an attribute meanwhile, where there is one."""
    if (usual := getattr(owner, name, None)) is None:
        yield
        return
    setattr(owner, name, replacement)
    try:
        yield
    finally:
        setattr(owner, name, usual)


@contextlib.contextmanager
def keep_data_in_driver(resources: Mapping[str, float]) -> Generator[None]:
    """Let Ray Data start no actors of its own on a Ray of one node: one collects statistics for the
    dashboard, one tells on which nodes workers are, one shares a cluster among datasets.

    `resources`: those of the node. Ray Data hands out no row before these actors answer.
    """
    pool = "execution.operators.actor_pool_map_operator"
    share = "cluster_autoscaler.rate_based_cluster_autoscaler"
    with contextlib.ExitStack() as replaced:
        for module, name, replacement in (
            ("stats", "get_or_create_stats_actor", NoActor),
            (pool, "get_or_create_actor_location_tracker", NoActor),
            (pool, "get_actor_locations", _no_locations),
            (share, "DefaultAutoscalingCoordinator", functools.partial(WholeNode, resources)),
        ):
            with contextlib.suppress(ImportError):
                owner = importlib.import_module(f"ray.data._internal.{module}")
                replaced.enter_context(_replaced(owner, name, replacement))
        yield


class NoActor:
    """Stands in for the handle of an actor whose messages nobody needs."""

    def __getattr__(self, name: str) -> NoActor:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def remote(self, *_: object, **__: object) -> None:
        return None


class WholeNode:
    """Reserves all resources of the node for every dataset: a local Ray runs one job."""

    def __init__(self, resources: Mapping[str, float], **_: object) -> None:
        self._resources = dict(resources)

    def request_resources(self, resources: Sequence[Mapping[str, float]], **_: object) -> None:
        """Do nothing: the node does not grow."""

    def cancel_request(self) -> None:
        """Do nothing: nothing was requested."""

    def get_reserved_resources(self) -> dict[str, dict[str, float]]:
        """The resources by the node's name."""
        return {"local": self._resources}


def _do_nothing(*_: object, **__: object) -> None:
    return None


def _no_locations(_: Sequence[str]) -> dict[str, str]:
    """Ray Data takes the node on which each worker was started."""
    return {}


@contextlib.contextmanager
def without_collection() -> Generator[None]:
    """Collect no garbage meanwhile, and never scan what is there at the end: what imports make
    stays, and to search it for garbage takes a tenth of a start.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
