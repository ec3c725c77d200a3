"""The whole job with tiny random checkpoints of the real architectures, given as folders like real
ones; and with every model behind one endpoint that fails at times.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from actors.stages.embed import texts
from loopback.endpoint import Faults, Loopback
from loopback.replies import THOUGHT, recorded_replies
from mustsee.files import schemas
from mustsee.nn.bert import Encoder
from mustsee.records import Video
from tests.support import tiny_models
from tests.support.tiny_llava import paligemma_with_processor

ROOT = Path(__file__).parents[2]
BIRDHOUSE, PANCAKES = ROOT / "examples/videos/birdhouse.mp4", ROOT / "examples/videos/pancakes.mp4"
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def neptune(
    out: Path, *overrides: str, video: Path = BIRDHOUSE, **environment: str
) -> tuple[Video, dict[str, Any]]:
    """Return the video's row and `run.json`."""
    command = [
        sys.executable,
        "-m",
        "ray_jobs.neptune",
        f"videos={video}",
        f"out={out}",
        *overrides,
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, env={**os.environ, **environment}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (row,) = pq.read_table(out / "videos.parquet").to_pylist()
    return schemas.load(Video, row), json.loads((out / "run.json").read_text())


def test_tiny_models_run_through_the_whole_job(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("faster_whisper")
    whisper, bert = tiny_models.whisper(tmp_path), tiny_models.bert(tmp_path)
    paligemma = paligemma_with_processor(tmp_path / "paligemma")
    shared = [
        "llm._target_=actors.llm.scripted.ScriptedModel", f"store={tmp_path}/store",
        "hear=whisper", f"hear.model={whisper}", "hear.language=en",
        "hear.compute_type=int8", "hear.beam_size=1", "hear.max_new_tokens=12",
        f"caption.model={paligemma}", "caption.dtype=float32", "caption.max_tokens=6",
    ]  # fmt: skip
    ours, record = neptune(
        tmp_path / "jax",
        *shared,
        "caption=jax",
        "caption.also=null",
        "embed=minilm",
        f"embed.model={bert}",
    )
    assert ours.problem is None
    assert ours.drop is None
    assert set(record["computed"].values()) == {1}
    assert record["counts"]["caption programs compiled"] == 1
    assert record["transcribed_by"] == {f"whisper ({whisper})": 1}
    assert ours.lines
    vocabulary = json.loads((whisper / "vocabulary.json").read_text())
    pieces = {token.strip("Ġ") for token in vocabulary}
    assert all(set(word) <= pieces or word in pieces for x in ours.lines for word in x.text.split())

    vectors = Encoder.load(str(bert)).encode(texts(ours))
    mean = vectors.mean(axis=0)
    assert ours.embedding == pytest.approx(tuple(mean / (mean @ mean) ** 0.5), abs=1e-5)

    theirs, record = neptune(
        tmp_path / "torch", *shared, "caption=transformers", "caption.prompt=caption en",
        "embed=siglip", f"embed.model={paligemma}",
    )  # fmt: skip
    assert record["reused"] | {"probe": 1, "look": 1, "hear": 1} == record["reused"]
    assert record["computed"]["caption"] == 1
    assert ours.captions
    assert theirs.captions == ours.captions  # two engines, the same weights
    width = json.loads((paligemma / "config.json").read_text())["vision_config"]["hidden_size"]
    assert len(theirs.embedding or ()) == width
    assert sum(x * x for x in theirs.embedding or ()) == pytest.approx(1.0, abs=1e-4)


def left(out: Path) -> Iterator[tuple[str, bytes]]:
    """The files of a run, with the tables unpacked."""
    for path in (p for p in out.rglob("*") if p.is_file()):
        content = path.read_bytes()
        if path.suffix == ".parquet":
            content = repr(pq.read_table(path).to_pylist()).encode()
        yield str(path), content


@pytest.mark.long
def test_endpoint_faults_thinking_and_schemas_change_no_question(
    tmp_path: Path,
) -> None:
    """A run of `+experiment=api` in which a fifth of all requests fail and each reply has thinking
    and JSON equals a run without these.
    """
    key, replies = {"OPENAI_API_KEY": "sk-test-0123456789abcdef"}, f"{tmp_path}/replies.jsonl"
    with Loopback() as server:
        before, _ = neptune(
            tmp_path / "before", "+experiment=api", f"base_url={server.url}",
            "llm=replay", f"llm.path={replies}",
            "llm.record={_target_: actors.llm.scripted.ScriptedModel}", video=PANCAKES, **key,
        )  # fmt: skip
    for stage in ("probe", "look"):  # These stages call no endpoint.
        shutil.copytree(tmp_path / "before/store" / stage, tmp_path / "after-store" / stage)
    kinds = (
        "429", "500", "503", "timeout", "slow", "truncated", "dropped", "empty", "refusal", "html",
    )  # fmt: skip
    faults = Faults(share=0.2, kinds=kinds, retry_after=0.3, hang=6.0)
    thinking = {
        "thinks": "tags",
        "schemas": "honoured",
        "faults": faults,
        "key": key["OPENAI_API_KEY"],
        "echoes": True,
    }
    with Loopback(reply=recorded_replies(replies), **thinking) as server:
        endpoints = ("llm", "caption.endpoint", "embed.model.endpoint", "hear.model.endpoint")
        after, record = neptune(
            tmp_path / "after", "+experiment=api", f"base_url={server.url}",
            f"store={tmp_path}/after-store", *(f"{name}.timeout=3" for name in endpoints),
            "llm.thought_tokens=2000", "caption.endpoint.thought_tokens=2000",
            "llm.limits.tokens_per_minute=null", "llm.limits.requests_per_minute=null",
            video=PANCAKES, **key,
        )  # fmt: skip
        met = {name: n for name, n in server.stats.items() if name.startswith("fault ")}
    assert len(met) >= 5, met
    assert [f for f in left(tmp_path / "after") if key["OPENAI_API_KEY"].encode() in f[1]] == []
    assert after.problem is None
    for name in ("lines", "captions", "embedding", "segments", "drop"):
        assert getattr(after, name) == getattr(before, name), name
    columns = ("question_id", "question", "options", "answer_index", "evidence", "metrics", "drop")
    actual, expected = (
        pq.read_table(tmp_path / run / "questions.parquet").select(columns).to_pylist()
        for run in ("after", "before")
    )
    assert actual == expected != []
    assert record["llm"]["retries"] + record["llm"]["asked_again"] >= sum(met.values())
    waits = met.get("fault 429", 0) + met.get("fault 503", 0)
    assert record["llm"]["retry_after_waits"] == waits > 0
    assert record["llm"]["retry_after_seconds"] == pytest.approx(0.3 * waits)
    assert record["llm"]["failed"] == 0
    whole = record["llm"]["calls"] - sum(met.values())  # the others may have lost their thoughts
    assert record["llm"]["tokens_thought"] > 0.9 * len(THOUGHT) / 4 * whole
