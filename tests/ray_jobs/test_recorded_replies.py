"""The recorded replies that `make demo` shows: on a video of the repository they answer every call,
and give the same questions each time, on whatever processor. They are skipped where a prompt has
changed since.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from actors.llm.replay import read
from loopback.endpoint import Loopback
from loopback.replies import Payload, canned_reply, recorded_replies
from mustsee.facts.settings import PointRules
from ray_jobs.cli.launch import build, compose

ROOT = Path(__file__).resolve().parents[2]
REPLIES = ROOT / "examples/replies/facts.jsonl"
NEPTUNE = ROOT / "examples/replies/neptune.jsonl"
STORY = ROOT / "examples/replies/story.jsonl"
TRANSCRIPTS = ROOT / "examples/replies/transcripts.jsonl"
# as conf/experiment/recorded/neptune.yaml
RECORDED = [
    "vet.filters.options=null",
    "hear@hear.engine=replay", f"hear.engine.path={TRANSCRIPTS}",
]  # fmt: skip
NOT_DEEP = ["ask.settings.deep=null", "vet.worth=null"]  # nothing of these was recorded
# what another processor and another number of threads compute with
KERNELS = (
    {"CT2_USE_MKL": "0", "OPENBLAS_CORETYPE": "Haswell", "OMP_NUM_THREADS": "1"},
    {"CT2_USE_MKL": "1", "OPENBLAS_CORETYPE": "Nehalem", "OMP_NUM_THREADS": "2"},
)
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def skip_stale(path: Path) -> None:
    """Skip the test if a prompt of the recording at `path` has changed since."""
    if stale := read(str(path)).stale():
        pytest.skip(f"prompts have changed since {path.name} was recorded: {stale}; make record")


@pytest.mark.timeout(900)
@pytest.mark.long  # The story, below, is tried with other kernels each time.
def test_recorded_replies_give_the_same_questions_with_other_kernels(tmp_path: Path) -> None:
    skip_stale(REPLIES)
    videos, tables = ROOT / "examples/videos/pancakes.mp4", list[bytes]()
    for number, kernels in enumerate(KERNELS):
        out = tmp_path / str(number)
        given = [f"videos={videos}", f"out={out}", "llm=replay", f"llm.path={REPLIES}", *RECORDED]
        given += NOT_DEEP
        subprocess.run(
            [sys.executable, "-m", "ray_jobs.make", *given],
            cwd=ROOT, env={**os.environ, **kernels}, check=True, timeout=400,
        )  # fmt: skip
        check_questions(out)
        tables.append((out / "questions.parquet").read_bytes())
    assert tables[0] == tables[1]


def check_questions(out: Path) -> None:
    """Check that a run found every reply, and its questions."""
    record = json.loads((out / "run.json").read_text())
    assert record["llm"]["failed"] == 0
    assert not any(request["unread"] for request in record["requests"])
    assert record["fact_funnel"]["total"]["drafted"] >= 40
    questions = pq.read_table(out / "questions.parquet").to_pylist()
    assert {(q["form"], q["answer"]) for q in questions} == {
        ("but_not_place", "a brown counter before a lavender wall"),
        ("but_not_place", "a white table from above on teal floor"),
        ("between", "three eggs appear on a bare counter"),
        ("before", "a brown pancake turns black"),
        ("before", "a grey whisk moves from side to side"),
        ("part", "white lumps disappear from yellow batter"),
        ("reads", "the words “TURN IT ONCE”"),
        ("while_place", "a brown counter before a lavender wall"),
        ("where_text", "a brown counter before a pale yellow wall"),
    }


def test_recorded_replies_give_the_open_questions_of_the_story(tmp_path: Path) -> None:
    skip_stale(STORY)
    videos, out = ROOT / "examples/videos/story.mp4", tmp_path / "out"
    given = [f"videos={videos}", f"out={out}", "llm=replay", f"llm.path={STORY}", "vet.worth=null"]
    subprocess.run(
        [sys.executable, "-m", "ray_jobs.make", *given],
        cwd=ROOT, env={**os.environ, **KERNELS[1]}, check=True, timeout=400,
    )  # fmt: skip
    record = json.loads((out / "run.json").read_text())
    assert record["llm"]["failed"] == 0
    total = record["fact_funnel"]["total"]
    assert (total["claims"], total["held"]) == (40, 37)
    kept = [q for q in pq.read_table(out / "questions.parquet").to_pylist() if q["drop"] is None]
    assert len(kept) == total["passed"] == 20
    assert len({q["skill"] for q in kept}) >= 6
    left = PointRules().left
    assert all(sum(p["state"] == "counted" for p in q["points"]) >= left for q in kept)
    assert not any(q["options"] for q in kept)


def test_recorded_replies_give_the_questions_of_neptune(tmp_path: Path) -> None:
    skip_stale(NEPTUNE)
    videos, out = ROOT / "examples/videos/pancakes.mp4", tmp_path / "out"
    given = [
        f"videos={videos}", f"out={out}", "+experiment=recorded", f"llm.path={NEPTUNE}",
        f"caption.endpoint.path={NEPTUNE}", f"hear.engine.path={TRANSCRIPTS}",
    ]  # fmt: skip
    assert build(compose("neptune", given))() == 0
    record = json.loads((out / "run.json").read_text())
    assert record["llm"]["failed"] == 0
    questions = pq.read_table(out / "questions.parquet").to_pylist()
    assert len(questions) == 23
    kept = [q["answer"] for q in questions if q["drop"] is None]
    assert len(kept) == 10
    assert "purple; dark blue-grey; dark green" in kept


def test_recorded_replies_give_the_questions_of_egoschema(tmp_path: Path) -> None:
    skip_stale(ROOT / "examples/replies/egoschema.jsonl")
    out = tmp_path / "out"
    given = ["narrations=examples/narrations.csv", f"out={out}", "+experiment=recorded"]
    subprocess.run(
        [sys.executable, "-m", "ray_jobs.egoschema", *given, f"store={tmp_path / 'store'}"],
        cwd=ROOT, check=True, timeout=400,
    )  # fmt: skip
    record = json.loads((out / "run.json").read_text())
    assert record["llm"]["failed"] == 0
    assert record["questions"]["made"] == 3
    assert len(json.loads((out / "export/egoschema/questions.json").read_text())) == 2


def test_the_bill_of_recorded_replies_is_within_a_quarter_of_the_estimate(tmp_path: Path) -> None:
    """The replies are those of strong readers, which the dry run has never seen."""
    skip_stale(REPLIES)
    unknown: list[Payload] = []

    def otherwise(payload: Payload) -> str:
        unknown.append(payload)
        return canned_reply(payload)

    videos, out = ROOT / "examples/videos/pancakes.mp4", tmp_path / "out"
    with Loopback(reply=recorded_replies(str(REPLIES), otherwise)) as server:
        address = [f"base_url={server.url}", "key_env=null"]
        given = [f"videos={videos}", f"out={out}", "llm=openai", *address, *RECORDED, *NOT_DEEP]
        assert build(compose("make", [*given, "dry_run=true"]))() == 0
        assert server.counts["chat"] == 0
        assert build(compose("make", given))() == 0
    if unknown:
        pytest.skip("another decoder makes other frames than those of the recorded requests")
    estimate = json.loads((out / "run.json").read_text())["estimate"]
    for name in ("calls", "tokens_in", "usd"):
        assert abs(estimate[name]["off"]) < 0.25, (name, estimate[name])
