"""Plain tables are read with the right kind of answers, or refused."""

import csv
from dataclasses import replace
from pathlib import Path

import pytest

import mustsee
from mustsee.errors import UserError
from mustsee.files.tables import find_delimiter
from mustsee.layouts import read, table
from mustsee.layouts.columns import TableColumns, known_columns
from mustsee.records import Span
from tests.support.material import material


def save(path: Path, rows: list[dict[str, object]]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(
            file, list(rows[0]), dialect="excel-tab" if path.suffix == ".tsv" else "excel"
        )
        writer.writeheader()
        writer.writerows(rows)
    return path


def nextqa(answers: list[object], ids: list[int] | None = None) -> list[dict[str, object]]:
    return [
        {"video": f"{n // 2}.mp4", "question": f"why {n}", "answer": a,
         "qid": ids[n] if ids else n, "type": "CW",
         **{f"a{k}": f"option {k} of {n}" for k in range(5)}}
        for n, a in enumerate(answers)
    ]  # fmt: skip


def test_nextqa_s_columns_and_answers_are_recognised(tmp_path: Path) -> None:
    got = mustsee.read(save(tmp_path / "val.csv", nextqa([0, 3, 2, 1], ids=[1, 2, 1, 2])))
    assert got.layout == "table"
    assert [q.answer_index for q in got] == [0, 3, 2, 1]
    assert [q.question_id for q in got] == ["0/1", "0/2", "1/1", "1/2"]  # ids are unique per video
    assert (got[1].answer, got[1].question_type, got[1].video_id) == ("option 3 of 1", "CW", "0")
    assert got.findings == ()


@pytest.mark.parametrize(
    ("answers", "indices"),
    [(["A", "e", "B"], [0, 4, 1]), ([1, 5, 2], [0, 4, 1]), ([0, 4, 1], [0, 4, 1]),
     (["option 0 of 0", "option 4 of 1", "option 1 of 2"], [0, 4, 1])],
)  # fmt: skip
def test_the_kind_of_answers_is_inferred_from_all_rows(
    answers: list[object], indices: list[int], tmp_path: Path
) -> None:
    got = mustsee.read(save(tmp_path / "q.tsv", nextqa(answers)))
    assert [q.answer_index for q in got] == indices


@pytest.mark.parametrize("answers", [[1, 2, 3], ["x", "y"], [0, 5]])
def test_a_table_with_an_ambiguous_kind_of_answers_is_refused(
    answers: list[object], tmp_path: Path
) -> None:
    file = save(tmp_path / "val.csv", nextqa(answers))
    with pytest.raises(UserError, match=r"table\.answers"):
        mustsee.read(file)
    columns = known_columns(nextqa(answers)[0])
    assert columns is not None
    if answers == [1, 2, 3]:
        got = read(file, columns=replace(columns, answers="number from 1"))
        assert [q.answer_index for q in got] == [0, 1, 2]


def test_columns_of_any_name_can_be_named(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"clip": "a/b.mp4", "ask": "who", "w": "x", "z": "y", "key": "y", "from": 2, "to": 4.5}
    ]
    file = save(tmp_path / "q.csv", rows)
    with pytest.raises(UserError, match="no known layout"):
        mustsee.read(file)
    columns = TableColumns(
        video="clip", question="ask", options=("w", "z"), answer="key", start="from", end="to"
    )
    (got,) = read(file, columns=columns)
    assert (got.video_id, got.options, got.answer_index) == ("b", ("x", "y"), 1)
    assert got.evidence == (Span(2.0, 4.5),)
    with pytest.raises(UserError, match="no column"):
        read(file, columns=replace(columns, answer="answer"))


def test_rows_may_have_fewer_options_or_a_list_in_one_column(tmp_path: Path) -> None:
    rows = nextqa(["A", "C"])
    rows[0] |= {"a3": "", "a4": ""}
    got = mustsee.read(save(tmp_path / "q.csv", rows))
    assert [len(q.options) for q in got] == [3, 5]
    listed: list[dict[str, object]] = [
        {"video": "v", "question": "q", "options": "['One', 'Two']", "answer": "Two"}
    ]
    (one,) = mustsee.read(save(tmp_path / "l.csv", listed))
    assert (one.options, one.answer_index) == (("One", "Two"), 1)


@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_a_table_is_written_back_with_all_its_columns(ending: str, tmp_path: Path) -> None:
    rows = [{**row, "frames": n} for n, row in enumerate(nextqa([0, 3, 2, 4]))]
    file = save(tmp_path / f"val.{ending}", rows)
    got = mustsee.read(file)
    kept = [replace(q, drop="gone" if n == 1 else None) for n, q in enumerate(got)]
    table.write(kept, tmp_path / "clean", source=file)
    read_back = mustsee.read(tmp_path / "clean" / f"val.{ending}")
    assert [q.question for q in read_back] == ["why 0", "why 2", "why 3"]
    assert (tmp_path / "clean" / f"val.{ending}").read_text().splitlines()[0].endswith("frames")


def test_a_folder_with_one_table_is_read_as_that_table(tmp_path: Path) -> None:
    save(tmp_path / "val.csv", nextqa([0, 3, 2, 1]))
    assert len(table.read(tmp_path)) == 4
    save(tmp_path / "train.csv", nextqa([0, 3, 2, 1]))
    with pytest.raises(UserError, match=r"'train.csv', 'val.csv'.*give its path"):
        table.read(tmp_path)


def test_all_of_nextqa_is_read() -> None:
    got = mustsee.read(material("qa/doc-doc+NExT-QA/dataset/nextqa/val.csv"))
    assert len(got) == 4996
    assert len({q.question_id for q in got}) == 4996
    assert all(len(q.options) == 5 and q.answer_index is not None for q in got)
    assert {f.what for f in got.findings} == {"two options are the same"}


ROWS = [
    ["clip", "Frage, lang", "a0", "a1", "Lösung"],
    ["u.mp4", "Was; wo, wann?", 'ein "Auto", rot', "1,5", "A"],
    ["v.mp4", "Eine\nZeile?", "x\ty", "; z", "B"],
]


@pytest.mark.parametrize("suffix", ["csv", "tsv"])
@pytest.mark.parametrize("delimiter", list(",;\t"))
def test_the_header_says_what_is_between_the_cells(
    delimiter: str, suffix: str, tmp_path: Path
) -> None:
    file = tmp_path / f"fragen.{suffix}"
    line_break = " " if suffix == "tsv" else "\n"  # The cells of a .tsv have none.
    rows = [[cell.replace("\n", line_break) for cell in row] for row in ROWS]
    with file.open("w", newline="", encoding="utf-8-sig") as out:
        csv.writer(out, delimiter=delimiter).writerows(rows)
    columns = TableColumns(
        video="clip", question="Frage, lang", options=("a0", "a1"), answer="Lösung"
    )
    got = read(file, columns=columns)
    assert [(q.question, *q.options, q.answer_index) for q in got] == [
        (*row[1:4], n) for n, row in enumerate(rows[1:])
    ]
    dropped = [replace(q, drop="x" if n else None) for n, q in enumerate(got)]
    table.write(dropped, tmp_path / "kept", source=file, given=columns)
    with (tmp_path / "kept" / file.name).open(newline="", encoding="utf-8") as kept:
        assert list(csv.reader(kept, delimiter=delimiter)) == rows[:2]


@pytest.mark.parametrize(
    ("header", "suffix", "delimiter"),
    [
        ("question", ".csv", ","), ("question", ".tsv", "\t"), ("a;b;c,d", ".csv", ";"),
        ('"a;b;c",d', ".csv", ","), ('a,"b;""c"";d"', ".csv", ","), ('"a,b";"c,d"', ".csv", ";"),
        ('"a\n,,";b', ".csv", ";"), ("a, b, c, d\te", ".tsv", "\t"), ("a,b;c", ".csv", ","),
    ],
)  # fmt: skip
def test_quoted_marks_of_a_header_do_not_count(header: str, suffix: str, delimiter: str) -> None:
    assert find_delimiter(header, suffix) == delimiter


def test_a_table_that_is_not_utf_8_is_refused_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "q.csv").write_bytes(
        "video;question;a0;a1;answer\nv;Löst?;x;y;A\n".encode("cp1252")
    )
    with pytest.raises(UserError, match=r"not UTF-8 \(byte 0xf6\): save it as UTF-8"):
        mustsee.read(tmp_path / "q.csv")
