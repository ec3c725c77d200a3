"""Damaged and hostile tables and files of questions are parsed strictly, or refused with one line.

`python -m tests.support.table_mutants 300` tries more.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mustsee.errors import UserError
from mustsee.layouts import detect
from mustsee.run.inputs import read_videos
from tests.support import mutants, table_mutants

# Mutants that once failed, with their errors.
KEPT = (
    "ours.jsonl/odd_value/14",  # a text in place of an object: AttributeError
    "ours.jsonl/odd_value/90",  # a list as the answer's index: TypeError
    "ours.jsonl/odd_value/126",  # a list as an id: TypeError
    "mlvu.json/odd_value/82",  # a number in place of a list: TypeError
    "plain.csv/repeated/79",  # more cells than columns: AttributeError
    "videos.txt/truncated/118",  # an address without a file name: an empty id
)


def test_mutated_tables_are_parsed_strictly_or_refused(tmp_path: Path) -> None:
    results = table_mutants.read_all([*KEPT, *table_mutants.names(150)], tmp_path)
    assert [r for r in results if r.outcome in mutants.FAULTS] == []
    assert all(r.reason and "\n" not in r.reason for r in results if r.outcome == "problem")
    assert {r.outcome for r in results} == {"used", "problem"}


def test_a_valid_file_of_each_kind_is_used(tmp_path: Path) -> None:
    for name, data in table_mutants.sources(tmp_path).items():
        path = tmp_path / name
        path.write_bytes(data)
        table_mutants.through(path)


@pytest.mark.parametrize(("field", "value", "reason"), [
    ("answer_index", "2", "expected a whole number"), ("options", "red", "expected a list of text"),
    ("evidence", [{"start": 1.0}], "expected a list of an object"), ("question", 5, "text"),
    ("evidence", [{"start": -1.0, "end": float("nan")}], "expected seconds"),
    ("metrics", {"x": "y"}, "expected an object"), ("question_id", "", "no question_id"),
    ("answer_index", True, "true"), ("options", [None], "expected a list of text"),
])  # fmt: skip
def test_a_value_of_another_type_is_named_with_its_row(
    tmp_path: Path, field: str, value: object, reason: str
) -> None:
    lines = table_mutants.sources(tmp_path)["ours.jsonl"].decode().splitlines()
    rows = [*lines[:2], json.dumps({**json.loads(lines[2]), field: value}), *lines[3:]]
    file = tmp_path / "q.jsonl"
    file.write_text("\n".join(rows))
    for read in (detect.read, detect.open_streamed):
        with pytest.raises(UserError, match="row 2: ") as refused:
            read(file)
        assert reason.lower() in str(refused.value).lower()


def test_a_row_with_more_cells_than_columns_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("uri,title\na.mp4,One,\nb.mp4,Two, and a half\n")
    with pytest.raises(UserError, match="row 2: more cells than columns"):
        read_videos(str(file))
