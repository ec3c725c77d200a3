"""A job under a budget that is killed, and whose endpoint bills far more than the estimate."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import psutil
import pytest

from loopback.endpoint import Loopback
from mustsee.calls.usage import Price
from tests.support.killing import MARK, kill, mark, processes, until

ROOT = Path(__file__).parents[2]
PRICE = Price(1.0, 2.0)  # the prices of tests.support.asking_job
SLOW_START_S = 600.0  # seconds for the start of a job on a busy machine
pytestmark = [pytest.mark.slow, pytest.mark.timeout(2400)]


def start(folder: Path, url: str, marked: str, budget: float) -> subprocess.Popen[str]:
    job = [sys.executable, "-m", "tests.support.asking_job", str(folder / "out")]
    return subprocess.Popen(
        [*job, str(folder / "store"), url, "1", str(budget)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT,
        env={**os.environ, MARK: marked},
    )  # fmt: skip


def reached(server: Loopback, answers: int, job: subprocess.Popen[str]) -> bool:
    return len(server.used) >= answers or job.poll() is not None


def bills(server: Loopback) -> list[float]:
    return [PRICE.usd(u["prompt_tokens"], u["completion_tokens"]) for u in server.used]


@pytest.mark.long
@pytest.mark.parametrize(
    "meter", [lambda n: 8.0, lambda n: 33.0, lambda n: 4 + 0.2 * n], ids=["8", "33", "rising"]
)
@pytest.mark.parametrize("whole", [False, True], ids=["driver killed", "all killed"])
def test_the_bill_exceeds_the_budget_by_at_most_one_call(
    meter: Callable[[int], float], whole: bool, tmp_path: Path
) -> None:
    budget, marked = 0.2, mark()
    with Loopback(meter=meter, latency=0.3) as server:
        for calls in (1, 4):  # The first call goes alone, because its cost is unknown.
            before = len(server.used)
            job = start(tmp_path, server.url, marked, budget)
            until(partial(reached, server, before + calls, job), SLOW_START_S)
            kill(*(processes(marked) if whole else [psutil.Process(job.pid)]))
            job.communicate()
            kill(
                *(
                    p
                    for p in processes(marked)
                    if "actors.calls.sending" not in " ".join(p.cmdline())
                )
            )
            until(lambda: not list(processes(marked)), SLOW_START_S)
        job = start(tmp_path, server.url, marked, budget)
        output, _ = job.communicate()
        billed = bills(server)
    assert sum(billed) <= budget + max(billed) + 1e-9
    print(f"\nbudget {budget}, billed {sum(billed):.4f} in {len(billed)} calls of up to "
          f"{max(billed):.4f}")  # fmt: skip
    assert output.splitlines()[-1].startswith(f"stopped: budget_usd={budget} reached (0."), output
    assert job.returncode == 3


def test_a_spent_budget_is_the_last_line_of_the_summary(tmp_path: Path) -> None:
    with Loopback(meter=lambda n: 8.0) as server:
        job = start(tmp_path, server.url, mark(), 0.05)
        output, _ = job.communicate()
        billed = bills(server)
    assert sum(billed) <= 0.05 + max(billed) + 1e-9
    *before, last = output.splitlines()
    assert last.startswith("stopped: budget_usd=0.05 reached (0.0")
    assert "higher budget_usd continues from here" in last
    assert not any("failed in ask" in line or "max_problem_share" in line for line in before)
    assert not any("workers busy" in line for line in before)
    assert job.returncode == 3
