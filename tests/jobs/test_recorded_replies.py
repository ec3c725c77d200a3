"""The recorded replies that `make demo` shows: on a video of the repository they answer every call,
and give the same questions each time. They are skipped where a prompt has changed since.
"""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from actors.llm.replay import read
from ray_jobs.cli.launch import build, compose

ROOT = Path(__file__).resolve().parents[2]
REPLIES = ROOT / "examples/replies/facts.jsonl"
UNASKED = ["vet.filters.options=null"]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def test_recorded_replies_give_the_questions_of_a_video(tmp_path: Path) -> None:
    if stale := read(str(REPLIES)).stale():
        pytest.skip(f"prompts have changed since the replies were recorded: {stale}; make record")
    videos, out = ROOT / "examples/videos/pancakes.mp4", tmp_path / "out"
    given = [f"videos={videos}", f"out={out}", "llm=replay", f"llm.path={REPLIES}", *UNASKED]
    assert build(compose("make", given))() == 0
    record = json.loads((out / "run.json").read_text())
    assert record["llm"]["failed"] == 0
    assert record["counts"].get("moments whose look could not be read", 0) == 0
    assert record["counts"].get("questions of exams that could not be read", 0) == 0
    assert record["counts"]["questions drafted"] >= 40
    questions = pq.read_table(out / "questions.parquet").to_pylist()
    assert {q["form"] for q in questions} == {"but_not", "longest", "said", "where"}
    assert len(questions) == 5
    longest = next(q for q in questions if q["form"] == "longest")
    assert longest["answer"] == "the words “FLOUR”"
