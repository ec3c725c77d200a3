"""Replies of a model from a file."""

import json
from pathlib import Path

import pytest

from mustsee.errors import UserError
from mustsee.evaluate.answers import read_predictions

REPLIES = {"q1": "B", "q2": 'The red one, since it is "new".'}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("p.json", json.dumps(REPLIES)),
        ("p.json", json.dumps([{"qid": k, "pred": v, "seen": 8} for k, v in REPLIES.items()])),
        ("p.jsonl", "\n".join(json.dumps({"id": k, "output": v}) for k, v in REPLIES.items())),
        ("p.csv", 'question_id,answer\nq1,B\nq2,"The red one, since it is ""new""."\nq3,\n'),
    ],
)
def test_replies_are_read_from_tables_and_objects(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    assert read_predictions(str(path)) == REPLIES


def test_columns_of_other_names_are_named(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("nr,words\n1,A\n")
    with pytest.raises(UserError, match=r"set answer\.id= to the column with the id.*nr, words"):
        read_predictions(str(path))
    assert read_predictions(str(path), id="nr", reply="words") == {"1": "A"}
    with pytest.raises(UserError, match="row 1 has no 'x'"):
        read_predictions(str(path), id="nr", reply="x")


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("p.csv", "id,answer\nq1,A\nq1,B\n", "'q1' comes twice"),
        ("p.json", "[1]", "expected an object"),
        ("p.json", "{", "p.json"),
        ("p.txt", "q1 A", "expected .json"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, name: str, text: str, said: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(UserError, match=said):
        read_predictions(str(path))


@pytest.mark.parametrize("delimiter", list(",;\t"))
def test_the_cells_of_a_file_may_be_apart_by_semicolons_or_tabs(
    delimiter: str, tmp_path: Path
) -> None:
    path = tmp_path / "p.csv"
    cells = [["Nr", "Antwort"], ["q1", "B"], ["q2", "Ja"]]
    path.write_text("".join(delimiter.join(row) + "\n" for row in cells), "utf-8-sig")
    replies = read_predictions(str(path), id="Nr", reply="Antwort")
    assert replies == {"q1": "B", "q2": "Ja"}


def test_a_file_that_is_not_utf_8_is_refused_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_bytes("id;reply\n1;Löwe\n".encode("cp1252"))
    with pytest.raises(UserError, match="save it as UTF-8"):
        read_predictions(str(tmp_path / "p.csv"))
