"""The jobs from Python: the same keys, errors and files as the command line has."""

from pathlib import Path
from typing import Any

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import given
from hypothesis import strategies as st

import mustsee
from mustsee.errors import UserError
from ray_jobs.cli.compose import format_hydra_value

PLAIN = st.none() | st.booleans() | st.integers() | st.floats(-1e6, 1e6) | st.text(max_size=12)
NAMES = st.text("abcdef_", min_size=1)
VALUES = st.recursive(
    PLAIN, lambda v: st.lists(v, max_size=3) | st.dictionaries(NAMES, v, max_size=3)
)
VIDEO = Path(__file__).parents[2] / "examples" / "videos" / "seasons.webm"


def element(value: Any) -> Any:
    """A value as Hydra parsed it, in Python's types."""
    if isinstance(value, dict):
        return {str(k): element(v) for k, v in value.items()}
    if isinstance(value, list):
        return [element(v) for v in value]
    return getattr(value, "text", value)


@given(VALUES)
def test_hydra_reads_back_what_is_given(value: object) -> None:
    (override,) = OverridesParser.create().parse_overrides([f"key={format_hydra_value(value)}"])
    assert element(override.value()) == value


def test_wrong_keys_raise_before_any_work(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="vidoes"):
        mustsee.run_job("make", vidoes="x", out=str(tmp_path / "o"))
    with pytest.raises(UserError, match="nowhere"):
        _ = mustsee.Dataset(str(tmp_path / "nowhere")).questions
    assert not (tmp_path / "o").exists()


@pytest.mark.slow
def test_make_returns_what_the_run_wrote_and_a_second_call_computes_nothing(
    tmp_path: Path,
) -> None:
    out = str(tmp_path / "it's mine")
    made = mustsee.make(str(VIDEO), out=out)
    assert made.questions
    passed = {q.question_id for q in made.subset("mma")}
    assert passed
    assert passed <= {q.question_id for q in made.questions}
    assert made.report().read_text().startswith("<!doctype html>")
    rows = made.to_hf()
    assert rows["question"] == [q.question for q in made.questions]
    assert made.record["llm"]["calls"] > 0
    again = mustsee.make(str(VIDEO), out=out)
    assert set(again.record["computed"].values()) == {0}
    assert [q.question for q in again.questions] == [q.question for q in made.questions]
