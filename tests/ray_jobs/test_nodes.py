"""The job of every recipe, from its input to its release, on a cluster of several nodes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.killing import MARK, kill, mark, processes

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def nodes() -> Iterator[Any]:
    """A head without CPUs, and nodes with one, one and two CPUs."""
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patched:
        patched.setenv(MARK, marked := mark())
        patched.setenv("RAY_AUTH_MODE", "disabled")
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
        try:
            for cpus in (1, 1, 2):
                cluster.add_node(num_cpus=cpus)
            yield cluster
        finally:
            cluster.shutdown()
            kill(*processes(marked))


@pytest.mark.parametrize(
    "job",
    [
        "ray_jobs/test_cinepile_job.py",
        "ray_jobs/test_neptune_job.py",
        "recipes/egoschema/test_job.py",
        "recipes/mlvu/test_job.py",
    ],
)
def test_a_recipe_runs_on_several_nodes(job: str, nodes: Any) -> None:
    logs = Path(nodes.head_node.get_logs_dir_path())
    before = set(logs.glob("worker-*.out"))
    command = [
        sys.executable,
        *["-m", "pytest", "-q", "-p", "no:cacheprovider", "-m"],
        "",
        f"tests/{job}",
    ]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "RAY_ADDRESS": nodes.address},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    if " passed" not in done.stdout:
        pytest.skip(f"every test of {job} is skipped here")
    assert set(logs.glob("worker-*.out")) - before, "no worker of these nodes did anything"
