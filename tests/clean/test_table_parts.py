"""Tables are read in parts and written again row for row, in every format."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mustsee.clean.table_parts import join_pieces, plan_parts, read_part, write_part
from mustsee.errors import UserError

ROWS: list[dict[str, Any]] = [
    {
        "id": n,
        "question": f'Who, "{n}"?\nAnd, why — ü',
        "answer": "a, b" if n % 2 else "",
        "x": 1.50,
    }
    for n in range(11)
]


def write(file: Path, rows: Sequence[Mapping[str, Any]] = ROWS) -> Path:
    """Write a table in the format of the file's suffix."""
    if file.suffix == ".jsonl":
        file.write_text("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in rows), "utf-8")
    elif file.suffix == ".json":
        file.write_text(json.dumps(rows, indent=2), "utf-8")
    elif file.suffix == ".parquet":
        table = pa.Table.from_pylist([dict(r) for r in rows])
        pq.write_table(table.replace_schema_metadata({"huggingface": "{}", "own": "x"}), file)
    else:
        text = io.StringIO()
        dialect = "excel-tab" if file.suffix == ".tsv" else "excel"
        writer = csv.DictWriter(text, list(rows[0]), dialect=dialect, lineterminator="\r\n")
        writer.writeheader()
        cells = [{k: str(v).replace("\n", " ") for k, v in r.items()} for r in rows]
        writer.writerows(cells if file.suffix == ".tsv" else rows)
        file.write_text("\ufeff" + text.getvalue(), "utf-8", newline="")
    return file


def rewrite(
    file: Path, folder: Path, size: int, chosen: Sequence[int], columns: Mapping[str, Sequence[Any]]
) -> Path:
    """Write the chosen rows of all parts, with columns, as a run does."""
    parts = list(plan_parts(str(file), size, folder / "copies"))
    for part in parts:
        own = [n - part.first for n in chosen if part.first <= n < part.first + part.rows]
        added = {k: v[part.first : part.first + part.rows] for k, v in columns.items()}
        write_part(part, read_part(part), own, added, folder / f"{part.number}{file.suffix}")
    join_pieces(parts, lambda p: folder / f"{p.number}{file.suffix}", columns, folder / "out")
    return folder / "out" / file.name


def read_all(file: Path, size: int, folder: Path) -> list[dict[str, Any]]:
    parts = list(plan_parts(str(file), size, folder / "copies"))
    assert [p.first for p in parts] == [sum(q.rows for q in parts[:n]) for n in range(len(parts))]
    return [dict(row.values) for part in parts for row in read_part(part)]


@pytest.mark.parametrize("suffix", ["jsonl", "json", "csv", "tsv", "parquet"])
@pytest.mark.parametrize("size", [1, 3, 11, 50])
def test_parts_hold_each_row_once_and_in_order(suffix: str, size: int, tmp_path: Path) -> None:
    file = write(tmp_path / f"q.{suffix}")
    assert [str(r["id"]) for r in read_all(file, size, tmp_path)] == [str(n) for n in range(11)]
    assert read_all(file, size, tmp_path) == read_all(file, 100, tmp_path)


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "tsv"])
def test_rows_without_columns_keep_their_bytes(suffix: str, tmp_path: Path) -> None:
    file = write(tmp_path / f"q.{suffix}")
    again = rewrite(file, tmp_path, 3, range(11), {})
    assert again.read_bytes() == file.read_bytes().removeprefix(b"\xef\xbb\xbf")


@pytest.mark.parametrize("suffix", ["jsonl", "json", "csv", "tsv", "parquet"])
def test_columns_stand_behind_those_of_the_row(suffix: str, tmp_path: Path) -> None:
    file = write(tmp_path / f"q.{suffix}")
    added = {"clean_verdict": [f'is "{n}"' for n in range(11)], "clean_weight": [0.5] * 11}
    again = rewrite(file, tmp_path, 4, [0, 1, 9], added)
    before = read_all(file, 100, tmp_path)
    after = read_all(again, 100, tmp_path)
    assert len(after) == 3
    for n, row in zip((0, 1, 9), after, strict=True):
        assert list(row) == [*ROWS[0], "clean_verdict", "clean_weight"]
        assert {k: row[k] for k in ROWS[0]} == before[n]
        assert row["clean_verdict"] == f'is "{n}"'
        assert float(row["clean_weight"]) == 0.5
    # A second run replaces the columns of the first.
    twice = rewrite(again, tmp_path / "out", 2, [0, 1, 2], {"clean_verdict": ["new"] * 3})
    assert [r["clean_verdict"] for r in read_all(twice, 9, tmp_path)] == ["new"] * 3
    assert len(read_all(twice, 9, tmp_path)[0]) == len(ROWS[0]) + 2


def test_numbers_of_json_keep_their_digits(tmp_path: Path) -> None:
    file = tmp_path / "q.jsonl"
    file.write_text('{"question": "Why?", "x": 1.50, "big": 1e400}\n')
    text = rewrite(file, tmp_path, 1, [0], {"clean_verdict": ["known"]}).read_text()
    assert text == '{"question": "Why?", "x": 1.50, "big": 1e400, "clean_verdict": "known"}\n'


def test_a_parquet_of_one_row_group_is_read_in_parts_of_bounded_size(tmp_path: Path) -> None:
    rows = [{"id": n, "question": "q"} for n in range(1000)]
    file = write(tmp_path / "q.parquet", rows)
    parts = list(plan_parts(str(file), 100, tmp_path / "copies"))
    assert [p.rows for p in parts] == [100] * 10
    assert [r.values["id"] for r in read_part(parts[7])] == list(range(700, 800))
    schema = pq.read_schema(
        rewrite(file, tmp_path, 100, range(1000), {"clean_verdict": ["x"] * 1000})
    )
    assert schema.metadata[b"own"] == b"x"
    assert b"huggingface" not in schema.metadata  # It names the old columns.


def test_a_folder_of_shards_is_one_table(tmp_path: Path) -> None:
    shards = tmp_path / "shards" / "train"
    shards.mkdir(parents=True)
    for n in range(3):
        write(shards / f"{n}.jsonl", ROWS[n : n + 2])
    parts = list(plan_parts(str(tmp_path / "shards"), 100, tmp_path))
    assert [(p.number, p.name, p.rows) for p in parts] == [
        (n, f"train/{n}.jsonl", 2) for n in range(3)
    ]


def test_a_row_that_is_no_object_or_has_too_many_cells_has_a_fault(tmp_path: Path) -> None:
    (tmp_path / "q.jsonl").write_text('{"question": "a"}\n[1]\n{"question"\n')
    faults = [
        r.fault for p in plan_parts(str(tmp_path / "q.jsonl"), 9, tmp_path) for r in read_part(p)
    ]
    assert faults == ["", "not an object", "not valid JSON"]
    (tmp_path / "q.csv").write_text("question,answer\na,b\nc,d,e\nf\n")
    again = rewrite(tmp_path / "q.csv", tmp_path, 9, [0, 1, 2], {"clean_verdict": ["x", "y", "z"]})
    assert again.read_text() == "question,answer,clean_verdict\na,b,x\nc,d,y,e\nf,,z\n"


def test_a_table_keeps_what_is_between_its_cells(tmp_path: Path) -> None:
    (tmp_path / "q.csv").write_text('question;answer\n"a;b";c, d\ne;f;g\nh\n')
    added = {"clean_verdict": ["x;y", "y", "z"]}
    again = rewrite(tmp_path / "q.csv", tmp_path, 1, [0, 1, 2], added)
    assert again.read_text() == ('question;answer;clean_verdict\n"a;b";c, d;"x;y"\ne;f;y;g\nh;;z\n')


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("q.json", '{"a": 1}', "expected a list"),
        ("q.json", "[{}, 3]", "row 2: expected an object"),
        ("q.json", '[{"a": 1}, {"b"', "row 2 is not valid JSON"),
        ("q.jsonl", "\n\n", "has no rows"),
        ("q.txt", "x", "expected one of"),
        ("q.parquet", "no parquet", "cannot read .*q.parquet"),
        ("q.csv.gz", "x", "unpack it"),
    ],
)
def test_what_is_not_read_is_named(name: str, text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(UserError, match=message):
        list(plan_parts(str(tmp_path / name), 9, tmp_path))


@given(
    st.lists(st.dictionaries(st.sampled_from("abc"), st.text(max_size=9), min_size=1), min_size=1),
    st.integers(1, 4), st.booleans(),
)  # fmt: skip
def test_any_list_of_json_is_read_as_json_reads_it(
    rows: list[dict[str, str]], size: int, is_plain: bool
) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "q.json")
        file.write_text(json.dumps(rows, ensure_ascii=is_plain), "utf-8", errors="surrogatepass")
        parts = list(plan_parts(str(file), size, Path(folder)))
        assert [dict(r.values) for p in parts for r in read_part(p)] == rows
