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


def test_pyarrow_makes_arrays_without_pandas_and_still_hands_tables_to_it() -> None:
    code = """
import sys, pyarrow as pa
from ray_jobs.runtime.quick_start import keep_pandas_out
keep_pandas_out()
table = pa.Table.from_pylist([{"number": 1.0}, {"number": None}]).take([1, 0])
early = "pandas" in sys.modules
frame = table.to_pandas()
print(early, frame["number"].isna().tolist(), pa.array(frame["number"]).null_count)
"""
    assert run_python(code) == "False [True, False] 1"


def test_where_pandas_is_loaded_pyarrow_knows_its_series() -> None:
    code = """
import pandas, pyarrow as pa
from ray_jobs.runtime.quick_start import keep_pandas_out
keep_pandas_out()
print(pa.array(pandas.Series([1.0, float("nan")])).null_count)
"""
    assert run_python(code) == "1"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("more", "loaded"),
    [([], []), (["+own._target_=fractions.Fraction"], ["pandas"])],
)
def test_an_audit_of_a_table_loads_nothing_heavy(
    more: list[str], loaded: list[str], tmp_path: Path
) -> None:
    """A part of your own, in the second case, may make arrays of series."""
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
    print(ended.code, sorted({{"pandas", *{HEAVY!r}}} & {{*sys.modules}}))
"""
    line = run_python(code, "audit", f"questions={table}", f"out={tmp_path / 'out'}", *more)
    assert line == f"0 {loaded}"


@pytest.mark.slow
def test_a_job_is_built_without_the_libraries_of_its_models(tmp_path: Path) -> None:
    """Its workers unpickle the same parts; each model is loaded with the first row for it."""
    code = f"""
import sys
from ray_jobs.cli.launch import build, compose
build(compose("make", sys.argv[1:]))
print(sorted({{"faster_whisper", "onnxruntime", "pandas", *{HEAVY!r}}} & {{*sys.modules}}))
"""
    assert run_python(code, f"videos={tmp_path}", f"out={tmp_path / 'out'}") == "[]"
