"""The benchmark beside plain libraries: servers get the same requests, and what is missing is named
before any work (the four measures themselves: tests/ray_jobs/test_verify_gpu.py).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from actors.llm.openai import OpenAI
from actors.stages.look import Look
from benchmarks import gpu
from benchmarks.bench import compose_bench
from benchmarks.harness import NO_CALLS
from loopback.endpoint import Loopback
from mustsee.errors import UserError
from mustsee.records import Video
from ray_jobs.cli.build import build
from tests.support import tiny_gemma, tiny_llava

VIDEO = str(Path(__file__).parents[2] / "examples/videos/lighthouse.mkv")


def bench(*overrides: str) -> gpu.GpuBench:
    small = ["what=gpu", "what.questions=3", "what.frames=2", "what.repeats=1"]
    paths = ["what.judge.engine.path=/no/judge", f"what.video={VIDEO}"]
    return build(compose_bench([*small, *paths, *overrides])).what


def test_a_server_gets_the_same_requests_from_both_sides() -> None:
    one = bench()
    seen: Any = Look().open(NO_CALLS)(Video(video_id="v", uri=VIDEO, digest=VIDEO))
    requests = one._requests(9.0)  # pyright: ignore[reportPrivateUsage]
    payloads: list[Any] = []
    with Loopback(payloads=payloads, reply=lambda payload: "1. A tower.") as server:
        model = OpenAI(model="m", base_url=server.url, key_env=None)
        rows = one._server("vllm", model, seen, 9.0, requests)  # pyright: ignore[reportPrivateUsage]
    assert [row[0] for row in rows] == ["captions, vllm", "looks, vllm"]
    for _, model_name, _, ours, plain, ratio, same, _ in rows:
        assert (model_name, same) == ("m", 1.0)
        assert isinstance(ours, float)
        assert isinstance(plain, float)
        assert ratio == pytest.approx(ours / plain)
    bodies = [json.dumps(payload, sort_keys=True) for payload in payloads]
    # Each side sends each request once unmeasured and once measured.
    assert {bodies.count(body) for body in set(bodies)} == {4}
    assert len(set(bodies)) == len(seen.keyframes) + len(requests)


def test_what_is_missing_is_named_before_any_work(capsys: pytest.CaptureFixture[str]) -> None:
    assert gpu.main(["/no/model", "http://127.0.0.1:9/v1"]) == 2
    told = capsys.readouterr().err
    assert "no model folder at '/no/model'" in told
    assert "no answer from 'http://127.0.0.1:9/v1'" in told
    assert "start the server first" in told
    with pytest.raises(UserError, match=r"no model folder at '/no/vlm'.*no checkpoint at '/no/ju"):
        bench("what.caption.model=/no/vlm", "what.looks.model=/no/vlm")()
    with pytest.raises(UserError, match="expected gem or gem_jax"):
        build(compose_bench(["what=gpu", "judge@what.judge=mini"])).what()


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "faster_whisper", None)
    (lack,) = gpu.find_missing()
    assert "faster_whisper" in lack
    assert "mustsee[offline]" in lack


def test_weights_without_a_gpu_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if gpu.gpu_is_here():
        pytest.skip("there is a GPU")
    assert gpu.main([str(tmp_path)]) == 2
    assert "there is no GPU" in capsys.readouterr().err
    assert gpu.main([]) == 0


def test_a_gpu_that_a_library_does_not_see_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    if gpu.gpu_is_here():
        pytest.skip("there is a GPU")
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\necho GPU 0\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert [lack.partition(":")[0] for lack in gpu.find_missing()] == [
        "there is a GPU, but not for torch",
        "there is a GPU, but not for ctranslate2",
    ]


def test_plain_replies_are_those_of_the_parts(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    model, judge = tiny_llava.llava(tmp_path / "m"), tiny_gemma.checkpoint(tmp_path / "j")
    one = bench(
        f"what.looks.model={model}", "what.looks.dtype=float32", "what.look_tokens=6",
        f"what.judge.engine.path={judge}", "what.answers=40",
    )  # fmt: skip
    looks = one._looks(one._requests(9.0))  # pyright: ignore[reportPrivateUsage]
    verdicts = one._judge()  # pyright: ignore[reportPrivateUsage]
    assert (looks[0], looks[6]) == ("looks", 1.0)
    assert (verdicts[0], verdicts[6]) == ("judge", 1.0)
    assert gpu.same_items(["a", "b"], ["a", "c"]) == 0.5
    assert gpu.same_words("a b c x", "a b c d") == 0.75
