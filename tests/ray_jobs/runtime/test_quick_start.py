"""What the start of a job leaves out: a search for garbage, and imports that it has no use for."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path

import pytest

from ray_jobs.cli.compose import CONF
from ray_jobs.runtime.quick_start import without_collection

HEAVY = ("av", "cv2", "jax", "matplotlib", "openai", "ray", "tokenizers", "torch", "transformers")


def run_python(code: str, *given: str) -> str:
    """Run code in a fresh process and return its last line."""
    done = subprocess.run(
        [sys.executable, "-c", code, *given],
        cwd=CONF.parent, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


def test_nothing_is_collected_meanwhile_and_what_is_there_is_never_scanned() -> None:
    kept: list[object] = []
    with without_collection():
        assert not gc.isenabled()
        assert any(scanned is kept for scanned in gc.get_objects())
    assert gc.isenabled()
    assert not any(scanned is kept for scanned in gc.get_objects())


def test_a_process_that_collects_nothing_stays_so() -> None:
    gc.disable()
    try:
        with without_collection():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.slow
def test_an_audit_of_a_table_loads_nothing_heavy(tmp_path: Path) -> None:
    table = tmp_path / "val.csv"
    lines = [f"v{n},What is lifted at {n}?,a box,a lid,a cup,{n % 3}" for n in range(6)]
    table.write_text("\n".join(["video,question,a0,a1,a2,answer", *lines]))
    code = f"""
import sys
from ray_jobs.cli.command import main
sys.argv[0] = "mustsee"
try:
    main()
except SystemExit as ended:
    print(ended.code, sorted({{*{HEAVY!r}}} & {{*sys.modules}}))
"""
    line = run_python(code, "audit", f"questions={table}", f"out={tmp_path / 'out'}")
    assert line == "0 []"


@pytest.mark.slow
def test_a_job_is_built_without_the_libraries_of_its_models(tmp_path: Path) -> None:
    """Its workers unpickle the same parts; each model is loaded with the first row for it."""
    code = f"""
import sys
from ray_jobs.cli.launch import build, compose
build(compose("make", sys.argv[1:]))
print(sorted({{"faster_whisper", "onnxruntime", *{HEAVY!r}}} & {{*sys.modules}}))
"""
    assert run_python(code, f"videos={tmp_path}", f"out={tmp_path / 'out'}") == "[]"
