"""Two runs of one command at once: the second names the first and ends, or waits for it."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.killing import until

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def start(out: Path, *more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "ray_jobs.make", "videos=examples/videos/seasons.webm"]
    return subprocess.Popen(
        [*command, f"out={out}", *more], cwd=ROOT, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def test_a_second_run_of_an_output_folder_ends_or_waits(tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = start(out)
    until(lambda: bool(list(out.glob("lease/*.json"))))
    joining, second = start(out, "join=true"), start(out)
    output = second.communicate(timeout=120)[0]
    assert second.returncode == 2, output
    assert f"(process {first.pid} on " in output
    assert "mustsee make videos=examples/videos/seasons.webm" in output
    assert "joining" not in output  # It did not look for Ray.
    assert first.wait(timeout=300) == 0
    # Not run.json: the waiting run may have written its own before this process has ended.
    assert re.search(r"^[1-9]\d* model calls", first.communicate()[0], re.MULTILINE)
    output = joining.communicate(timeout=300)[0]
    assert joining.returncode == 0, output
    assert f"waiting for the end of the run that holds {str(out)!r}" in output
    again = json.loads((out / "run.json").read_text())
    assert again["llm"]["calls"] == 0
    assert sum(again["computed"].values()) == 0
    assert not (out / "lease").exists()
