"""A killed Neptune run with calls in flight: their cost stays known, and a batch is paid once."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as pq
import pytest

from actors.calls.batches import KIND
from loopback.batches import Batches
from loopback.endpoint import Loopback
from loopback.replies import completion, content_hash, recorded_replies
from mustsee.calls.usage import Price
from mustsee.files.store import Store

ROOT = Path(__file__).parents[2]
VIDEO = ROOT / "examples/videos/birdhouse.mp4"
COLUMNS = ("question_id", "question", "options", "answer_index", "evidence", "metrics", "drop")
PRICE = Price(0.1, 0.5)  # the price of gpt-6-luna in the table of models
# The endpoint replies in lines. Which calls are sent with a schema before it is seen to ignore it
# depends on the time, so none are.
OPENAI = (
    "llm=openai", "llm.limits.tokens_per_minute=null", "llm.limits.requests_per_minute=null",
    "llm.structured=none",
)  # fmt: skip
pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(1800)]


def start(out: Path, store: Path, *overrides: str) -> subprocess.Popen[str]:
    command = [
        sys.executable, "-m", "ray_jobs.neptune", f"videos={VIDEO}", f"out={out}", f"store={store}",
        *overrides,
    ]  # fmt: skip
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT,
        env={**os.environ, "OPENAI_API_KEY": "sk-test"},
    )  # fmt: skip


def finish(out: Path, store: Path, *overrides: str) -> tuple[list[Any], dict[str, Any]]:
    """Return the questions, and the usage totals of `run.json`."""
    job = start(out, store, *overrides)
    output, _ = job.communicate()
    assert job.returncode == 0, output
    questions = pq.read_table(out / "questions.parquet").select(COLUMNS).to_pylist()
    return questions, json.loads((out / "run.json").read_text())["llm"]


def kill(job: subprocess.Popen[str], when: Callable[[], bool]) -> None:
    """Kill the driver and its processes once `when` is true."""
    deadline = time.monotonic() + 600
    while not when() and time.monotonic() < deadline:
        time.sleep(0.02)
    reached = when()
    everyone = [psutil.Process(job.pid), *psutil.Process(job.pid).children(recursive=True)]
    for process in everyone:
        process.kill()
    psutil.wait_procs(everyone, timeout=60)
    output, _ = job.communicate()
    assert reached, output


def cost(payloads: Sequence[Any], reply: Callable[[Any], str]) -> float:
    """The price of a call at the endpoint."""
    used = [completion(payload, reply)["usage"] for payload in payloads]
    return sum(PRICE.usd(u["prompt_tokens"], u["completion_tokens"]) for u in used)


@dataclass(frozen=True)
class Usual:
    """A store that lacks only the model's calls, their replies, and the questions and cost of an
    undisturbed run.
    """

    store: Path
    reply: Callable[[Any], str]
    request_counts: Counter[str]
    questions: list[Any]
    usage: dict[str, Any]


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> Usual:
    folder = tmp_path_factory.mktemp("usual")
    finish(
        folder / "rules", folder / "store", "llm=replay", f"llm.path={folder}/replies.jsonl",
        "llm.record={_target_: actors.llm.scripted.ScriptedModel}",
    )  # fmt: skip
    reply = recorded_replies(f"{folder}/replies.jsonl")
    shutil.copytree(folder / "store", folder / "plain-store")
    with Loopback(reply=reply, payloads=[]) as server:
        url = f"base_url={server.url}"
        final_questions, usage = finish(folder / "plain", folder / "plain-store", *OPENAI, url)
        request_counts = Counter(map(content_hash, server.payloads))
    assert final_questions
    assert usage["calls"] > 10
    return Usual(folder / "store", reply, request_counts, final_questions, usage)


def test_a_batch_that_a_killed_run_sent_is_paid_once(usual: Usual, tmp_path: Path) -> None:
    out, store = tmp_path / "out", shutil.copytree(usual.store, tmp_path / "store")
    batches = Batches(seconds=3600.0)
    with Loopback(reply=usual.reply, batches=batches, payloads=[]) as server:
        how = (
            *OPENAI, f"base_url={server.url}", "llm.batch=always", "llm.batches.quiet=1",
            "llm.batches.pauses=[0.1,0.5]",
        )  # fmt: skip
        kill(start(out, store, *how), lambda: bool(Store(str(store)).keys(KIND)))
        sent, batches.seconds = len(batches.batches), 0.0
        final_questions, usage = finish(out, store, *how)
        request_counts = Counter(map(content_hash, server.payloads))
    assert sent >= 1
    assert final_questions == usual.questions
    assert request_counts == usual.request_counts
    assert set(request_counts.values()) == {1}
    assert usage["calls"] == usage["batched"] == usual.usage["calls"]
    assert usage["usd"] == pytest.approx(usual.usage["usd"] / 2)
    everything = usage["all_runs"]
    assert (everything["calls"], everything["unknown"]) == (usage["calls"], 0)
    assert everything["usd"] == usage["usd"]
    print(f"\n{sent} batches sent, killed, {len(batches.batches)} in all; {usage['calls']} calls, "
          f"{usual.usage['usd']:.6f} and by batch {usage['usd']:.6f} USD")  # fmt: skip


def test_the_next_run_counts_the_cost_of_a_killed_run(usual: Usual, tmp_path: Path) -> None:
    out, store = tmp_path / "out", shutil.copytree(usual.store, tmp_path / "store")
    with Loopback(reply=usual.reply, payloads=[], latency=0.3) as server:
        how = (*OPENAI, f"base_url={server.url}", "budget_usd=1")
        kill(start(out, store, *how), lambda: len(server.payloads) >= 8)
        before = len(server.payloads)
        final_questions, usage = finish(out, store, *how)
        billed = cost(server.payloads, usual.reply)
        twice = len(server.payloads) - len(usual.request_counts)
    everything = usage["all_runs"]
    assert final_questions == usual.questions
    assert 0 < usage["calls"] < usual.usage["calls"]
    assert everything["runs"] == 2
    assert (
        everything["usd"] <= billed + 1e-9 <= everything["usd"] + everything["unknown_usd"] + 2e-9
    )
    assert everything["calls"] + everything["unknown"] >= before
    assert everything["unknown"] >= twice
    print(f"\n{before} sent, killed, {twice} paid twice; {usage['calls']} calls more, "
          f"billed {billed:.6f}: {everything}")  # fmt: skip
