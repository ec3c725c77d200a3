"""A run that is ended from outside leaves a last line of its own. The start of a job leaves out a
search for garbage, and imports that it has no use for.
"""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path

import pytest

from ray_jobs.cli.compose import CONF
from ray_jobs.runtime.local_ray import LINE, without_collection

ROOT = Path(__file__).parents[3]
BLOCK = "from ray_jobs.runtime.local_ray import last_words\nimport os, signal, sys\n"


def run(inside: str) -> tuple[int, list[str]]:
    """Run statements inside the block; return the exit code and the lines of stderr."""
    code = BLOCK + f"with last_words():\n    print('before', file=sys.stderr)\n    {inside}\n"
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, timeout=60
    )
    return ended.returncode, ended.stderr.splitlines()


@pytest.mark.parametrize(
    ("how", "status"),
    [("os.kill(os.getpid(), signal.SIGKILL)", -9), ("os._exit(1)", 1), ("os.abort()", -6)],
)
def test_the_last_line_says_that_the_same_command_goes_on(how, status):
    assert run(how) == (status, ["before", LINE])


def test_a_run_that_ends_by_itself_does_not_say_so():
    assert run("pass") == (0, ["before"])
    status, lines = run("sys.exit(3)")
    assert (status, lines) == (3, ["before"])
    status, lines = run("raise ValueError")
    assert (status, lines[-1]) == (1, "ValueError")


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
