"""Three in ten requests fail in any way, some of them billed: the run ends as without, and its
books hold what was billed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from loopback.endpoint import KINDS, Faults, Loopback
from loopback.replies import recorded_replies

ROOT = Path(__file__).parents[2]
FOOTAGE, REPLIES = ROOT / "examples/footage", ROOT / "examples/replies/facts.jsonl"
# A refusal and a reply in another form are replies. What they take is named, and asked for again
# by `retry_problems=true` (`tests/ray_jobs/test_lost_replies.py`).
FAULTS = tuple(kind for kind in KINDS if kind not in ("refusal", "wrong_format"))
PRICE = 0.4e-6, 1.6e-6  # dollars of a token in and out
pytestmark = [
    pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(1800),
    pytest.mark.skipif(
        not (FOOTAGE / "album.mp4").exists(), reason="make demo makes examples/footage"
    ),
]  # fmt: skip


def make(out: Path, url: str) -> dict[str, Any]:
    """Run the job and return its `run.json`."""
    done = subprocess.run(
        [
            sys.executable, "-m", "ray_jobs.make", f"videos={FOOTAGE}", f"out={out}", "llm=openai",
            f"base_url={url}", "llm.timeout=2", "llm.limits.search=false",
            "ask.settings.deep=null", "vet.worth=null",
        ],
        capture_output=True, text=True, cwd=ROOT, env={**os.environ, "OPENAI_API_KEY": "sk-none"},
    )  # fmt: skip
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    return json.loads((out / "run.json").read_text())


def questions(out: Path) -> list[dict[str, Any]]:
    columns = ["question", "options", "answer_index"]
    return pq.read_table(out / "questions.parquet", columns=columns).to_pylist()


def test_three_failures_in_ten_change_no_question(tmp_path: Path) -> None:
    reply = recorded_replies(str(REPLIES))
    with Loopback(reply=reply, latency=0.05) as server:
        make(tmp_path / "whole", server.url)
    for kind in ("probe", "look", "hear"):  # what was seen and heard needs no model
        found = tmp_path / "whole" / "store" / kind
        if found.exists():
            shutil.copytree(found, tmp_path / "faulty" / "store" / kind)
    faults = Faults(share=0.3, kinds=FAULTS, hang=2.5, seed=3)
    with Loopback(reply=reply, latency=0.05, faults=faults, port=server.port) as server:
        record = make(tmp_path / "faulty", server.url)
        met = {kind for kind in FAULTS if server.stats.get(f"fault {kind}")}
        billed = sum(
            PRICE[0] * used["prompt_tokens"] + PRICE[1] * used["completion_tokens"]
            for used in server.used
        )
    assert len(set(FAULTS) - met) <= 1  # drawn by chance, some 80 times
    assert questions(tmp_path / "faulty") == questions(tmp_path / "whole") != []
    spent = record["llm"]["all_runs"]
    assert spent["unanswered"] > 0
    # Refused requests (429, 500, 503, a web page) are counted by the server, and billed by nobody.
    assert spent["usd"] < billed
    assert spent["usd"] + spent["unanswered_usd"] >= 0.9 * billed
