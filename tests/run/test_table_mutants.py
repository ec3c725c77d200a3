"""Damaged and hostile tables and files of questions are read as a strict reader would, or refused
in a line. `python -m tests.support.table_mutants 300` tries more.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mustsee.errors import UserError
from mustsee.layouts import detect
from mustsee.run.inputs import read_videos
from tests.support import mutants, table_mutants

# what once went wrong, and how
KEPT = (
    "ours.jsonl/odd_value/14",  # a text where an object belongs: AttributeError
    "ours.jsonl/odd_value/90",  # a list as the answer's number: TypeError
    "ours.jsonl/odd_value/126",  # a list as an id: TypeError
    "mlvu.json/odd_value/82",  # a number where a list belongs: TypeError
    "plain.csv/repeated/79",  # more cells than columns: AttributeError
    "videos.txt/truncated/118",  # an address that names no file: an empty id
)


def test_tables_and_questions_are_read_strictly_or_refused(tmp_path: Path) -> None:
    found = table_mutants.read_all([*KEPT, *table_mutants.names(150)], tmp_path)
    assert [r for r in found if r.outcome in mutants.FAULTS] == []
    assert all(r.reason and "\n" not in r.reason for r in found if r.outcome == "problem")
    assert {r.outcome for r in found} == {"used", "problem"}


def test_a_sound_file_of_each_kind_is_used(tmp_path: Path) -> None:
    for name, data in table_mutants.sources(tmp_path).items():
        path = tmp_path / name
        path.write_bytes(data)
        table_mutants.through(path)


@pytest.mark.parametrize(("field", "value", "said"), [
    ("answer_index", "2", "expected a whole number"), ("options", "red", "expected a list of text"),
    ("evidence", [{"start": 1.0}], "expected a list of an object"), ("question", 5, "text"),
    ("evidence", [{"start": -1.0, "end": float("nan")}], "expected seconds"),
    ("metrics", {"x": "y"}, "expected an object"), ("question_id", "", "no question_id"),
    ("answer_index", True, "true"), ("options", [None], "expected a list of text"),
])  # fmt: skip
def test_a_value_of_another_type_is_named_with_its_row(
    tmp_path: Path, field: str, value: object, said: str
) -> None:
    made = table_mutants.sources(tmp_path)["ours.jsonl"].decode().splitlines()
    rows = [*made[:2], json.dumps({**json.loads(made[2]), field: value}), *made[3:]]
    file = tmp_path / "q.jsonl"
    file.write_text("\n".join(rows))
    for read in (detect.read, detect.open_streamed):
        with pytest.raises(UserError, match="row 2: ") as refused:
            read(file)
        assert said.lower() in str(refused.value).lower()


def test_a_row_with_more_cells_than_columns_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("uri,title\na.mp4,One,\nb.mp4,Two, and a half\n")
    with pytest.raises(UserError, match="row 2: more cells than columns"):
        read_videos(str(file))
