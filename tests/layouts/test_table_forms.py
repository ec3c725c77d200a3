"""Plain tables in the forms of released datasets: options, keys, videos and quotation marks."""

import csv
import json
import shlex
import string
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import given
from hypothesis import strategies as st

import mustsee
from mustsee.errors import UserError
from mustsee.files.folders import without_media_suffix
from mustsee.layouts import QuestionFile, read
from mustsee.layouts.columns import TableColumns, columns_from, override

HEADER = ("video", "question", "A", "B", "answer")


def saved(path: Path, rows: Sequence[dict[str, Any]]) -> QuestionFile:
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(list(rows)), path)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    else:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    return mustsee.read(path)


def of_options(folder: Path, options: object, answer: object, kind: str = "jsonl") -> QuestionFile:
    row = {"video": "v.mp4", "question": "Which?", "options": options, "answer": answer}
    return saved(folder / f"q.{kind}", [row])


def read_options(got: QuestionFile) -> list[tuple[tuple[str, ...], str]]:
    return [(q.options, q.answer) for q in got]


@pytest.mark.parametrize(
    "style",
    ["{}. {}", "{}.{}", "({}) {}", "[{}] {}", "{}) {}", "{}: {}", "Option {}: {}", "{}、{}"],
)
@pytest.mark.parametrize("letters", ["ABC", "abc", "ＡＢＣ"])
def test_letters_that_options_carry_are_taken_off(style: str, letters: str, tmp_path: Path) -> None:
    texts = ["Red.", "Lime tree", "5"]
    options = [style.format(letter, t) for letter, t in zip(letters, texts, strict=True)]
    for answer in ("B", "b", "(B)", "B.", options[1], "Lime tree", "B. Lime tree"):
        got = of_options(tmp_path, options, answer)
        assert read_options(got) == [(tuple(texts), "Lime tree")], answer
        assert got.findings == ()


def test_the_full_width_marks_of_chinese_tables_are_letters_too(tmp_path: Path) -> None:
    for options in (
        ["Ａ．红", "Ｂ．绿", "Ｃ．蓝"],
        ["（A）红", "（B）绿", "（C）蓝"],
        ["A：红", "B：绿", "C：蓝"],
    ):
        assert read_options(of_options(tmp_path, options, "C")) == [(("红", "绿", "蓝"), "蓝")]


@pytest.mark.parametrize(
    "options",
    [
        ["A. Miller", "C. Reyes"],
        ["A. Miller", "C. Reyes", "D. Stone"],
        ["E. coli", "S. aureus", "B. subtilis"],
        ["(a)(b)(c)", "(b)(a)(c)", "(c)(b)(a)"],
        ["A.B.C", "B.A.C", "C.B.A"],
        ["A man", "B movie", "C major"],
        ["A. Red", "Lime", "C. Blue"],
    ],
)
def test_names_and_orders_keep_their_letters(options: list[str], tmp_path: Path) -> None:
    assert read_options(of_options(tmp_path, options, options[1])) == [(tuple(options), options[1])]


def test_letters_are_taken_off_in_the_rows_that_carry_them(tmp_path: Path) -> None:
    rows = [
        {"options": ["A. red", "B. blue", "C. lime"], "answer": "B"},
        {"options": ["Tom", "Ann", "Lee"], "answer": "C"},
        {"options": ["A. Miller", "C. Reyes", "D. Stone"], "answer": "A"},
        {"options": ["A. Miller", "B. Cole"], "answer": "B"},
    ]
    got = saved(
        tmp_path / "q.jsonl",
        [{"video": "v", "question": f"{n}?", **row} for n, row in enumerate(rows)],
    )
    assert read_options(got) == [
        (("red", "blue", "lime"), "blue"),
        (("Tom", "Ann", "Lee"), "Lee"),
        (("A. Miller", "C. Reyes", "D. Stone"), "A. Miller"),
        (("A. Miller", "B. Cole"), "B. Cole"),
    ]


def test_letters_in_another_order_are_the_labels_of_the_key_or_a_finding(tmp_path: Path) -> None:
    sure = of_options(tmp_path, ["(B) blue", "(A) red", "(C) lime"], "A")
    assert (read_options(sure), sure.findings) == ([(("blue", "red", "lime"), "red")], ())
    doubtful = of_options(tmp_path, ["B. blue", "A. red", "C. lime"], "A")
    assert [f.what for f in doubtful.findings] == [
        "options carry letters in another order, which are taken as text"
    ]


@pytest.mark.parametrize(
    ("options", "key", "texts", "answer"),
    [
        ({"B": "blue", "A": "red", "C": "lime"}, "B", ("red", "blue", "lime"), "blue"),
        ({"A": "red", "C": "blue", "D": "lime"}, "C", ("red", "blue", "lime"), "blue"),
        ({"c": "lime", "a": "red"}, "c", ("red", "lime"), "lime"),
        ({"option_b": "blue", "option_a": "red"}, "A", ("red", "blue"), "red"),
        ({"10": "ten", "2": "two", "1": "one"}, "10", ("one", "two", "ten"), "ten"),
        ({"0": "no", "2": "two", "1": "one"}, 1, ("no", "one", "two"), "one"),
        ({"A": "A. red", "B": "B. blue"}, "B", ("red", "blue"), "blue"),
        ({"text": ["Tom", "Ann"], "label": ["A", "B"]}, "B", ("Tom", "Ann"), "Ann"),
        ({"label": ["1", "2"], "text": ["Tom", "Ann"]}, "2", ("Tom", "Ann"), "Ann"),
        (
            [{"label": "B", "text": "Tom"}, {"label": "A", "text": "Ann"}],
            "A",
            ("Tom", "Ann"),
            "Ann",
        ),
        ([{"id": 1, "content": "Tom"}, {"id": 2, "content": "Ann"}], 2, ("Tom", "Ann"), "Ann"),
        ([{"A": "Tom"}, {"B": "Ann"}], "B", ("Tom", "Ann"), "Ann"),
        ({"A": "x", "B": None, "C": "y"}, "C", ("x", "y"), "y"),
        (["x", None, "y"], "C", ("x", "y"), "y"),
        (["x", "y", None], "y", ("x", "y"), "y"),
        (["x", "None", "y"], "None", ("x", "None", "y"), "None"),
    ],
)
@pytest.mark.parametrize("kind", ["jsonl", "parquet", "csv"])
def test_nested_options_are_read_by_label(
    options: Any, key: object, texts: tuple[str, ...], answer: str, kind: str, tmp_path: Path
) -> None:
    cell = repr(options) if kind == "csv" else options
    got = of_options(tmp_path, cell, key, kind)
    assert (read_options(got), got.findings) == ([(texts, answer)], ())


@pytest.mark.parametrize(
    "options",
    [
        {"text": "Tom", "label": "A"},
        {"text": ["Tom", "Ann"], "label": ["A"]},
        [{"bytes": "x", "path": None}, {"bytes": "y", "path": None}],
        [["Tom"], ["Ann"]],
        "Tom or Ann",
        "['Tom' 'Ann', 'Lee']",
    ],
)
def test_options_that_are_no_texts_are_refused(options: object, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="expected options: a list of texts"):
        of_options(tmp_path, options, "A")


def test_lists_as_numpy_and_pandas_print_them_are_read(tmp_path: Path) -> None:
    got = of_options(tmp_path, "['Tom' 'Ann'\n \"Lee's\"]", "Ann")
    assert read_options(got) == [(("Tom", "Ann", "Lee's"), "Ann")]
    text = "{'text': array(['Tom', 'Ann'], dtype=object), 'label': array(['A', 'B'], dtype=object)}"
    assert read_options(of_options(tmp_path, text, "B")) == [(("Tom", "Ann"), "Ann")]


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_a_null_option_in_a_column_is_none_and_the_text_none_is_one(
    kind: str, tmp_path: Path
) -> None:
    row = {"video": "v", "A": "x", "B": "y", "answer": "B"}
    rows = [row | {"question": "1?", "C": None}, row | {"question": "2?", "C": "None"}]
    got = saved(tmp_path / f"q.{kind}", rows)
    assert [q.options for q in got] == [("x", "y"), ("x", "y", "None")]
    assert got.findings == ()


def test_a_null_before_other_columns_keeps_their_letters(tmp_path: Path) -> None:
    row = {"video": "v", "question": "1?", "A": "x", "B": None, "C": "y", "answer": "C"}
    got = saved(tmp_path / "q.parquet", [row, row | {"question": "2?", "B": "z"}])
    assert read_options(got) == [(("x", "y"), "y"), (("x", "z", "y"), "y")]


@pytest.mark.parametrize("count", [2, 10, 26])
@pytest.mark.parametrize(
    "name",
    ["{letter}", "option_{n}", "option{n}", "Choice {n}", "a{n}", "answer_{n}", "option_{small}"],
)
def test_every_column_of_an_option_is_read(name: str, count: int, tmp_path: Path) -> None:
    names = [
        name.format(n=n, letter=letter, small=letter.lower())
        for n, letter in enumerate(string.ascii_uppercase[:count])
    ]
    row = {
        "video": "v",
        "question": "?",
        **{n: f"in {n}" for n in names},
        "answer": f"in {names[-1]}",
    }
    (got,) = saved(tmp_path / "q.csv", [row])
    assert (got.options, got.answer_index) == (tuple(f"in {n}" for n in names), count - 1)


def test_columns_that_are_no_options_stay_out(tmp_path: Path) -> None:
    row = {"vid": "v", "q": "?", "a": "x", "b": "y", "d": "z", "x": 3, "answer": "B", "D": "w"}
    got = saved(tmp_path / "q.csv", [row])
    assert read_options(got) == [(("x", "y"), "y")]
    assert [(f.what, f.value) for f in got.findings] == [
        ("a column after a gap in the letters is not read as an option", "'D'")
    ]


@pytest.mark.parametrize(
    ("name", "stem"),
    [("street.mp4", "street"), ("e.MP4", "e"), ("kitchen.v1", "kitchen.v1"), (".mp4", ".mp4"),
     ("clip_10.50_20.75", "clip_10.50_20.75"), ("s01.e02.mkv", "s01.e02"), ("a.wav", "a"),
     ("1.0", "1.0"), ("", "")],
)  # fmt: skip
def test_only_the_suffix_of_a_media_file_is_cut_off(name: str, stem: str, tmp_path: Path) -> None:
    assert without_media_suffix(name) == stem
    if name:
        row = {"video": f"films/{name}", "question": "?", "A": "x", "B": "y", "answer": "B"}
        assert saved(tmp_path / "q.csv", [row])[0].video_id == stem


@pytest.mark.parametrize(
    "value",
    [{"path": "films/a.mp4", "bytes": None}, {"bytes": None, "path": "a.wav"}, ["films/a.mp4"]],
)
@pytest.mark.parametrize("kind", ["parquet", "jsonl", "csv"])
def test_structs_of_the_hub_name_their_file(value: Any, kind: str, tmp_path: Path) -> None:
    if kind == "csv" and isinstance(value, list):
        return
    row = {"video": value, "question": "?", "A": "x", "B": "y", "answer": "B"}
    assert [q.video_id for q in saved(tmp_path / f"q.{kind}", [row])] == ["a"]


def test_a_struct_without_a_path_is_no_video(tmp_path: Path) -> None:
    value = {"path": None, "bytes": b"\0" * 5000}
    row = {"video": value, "question": "?", "A": "x", "B": "y", "answer": "B"}
    got = saved(tmp_path / "q.parquet", [row])
    assert [(f.what, f.value, f.broken) for f in got.findings] == [
        ("no video", "'an object with path, bytes'", True)
    ]


def test_files_of_the_same_name_in_two_folders_are_two_videos(tmp_path: Path) -> None:
    row = {"question": "?", "A": "x", "B": "y", "answer": "B"}
    files = ("a/1.mp4", "b/1.mp4", "b/2.mp4", "c/b/2.mp4", "2")
    got = saved(tmp_path / "q.csv", [row | {"video": v} for v in files])
    assert [q.video_id for q in got] == ["a/1", "b/1", "2", "2", "2"]
    assert [q.question_id for q in got][:2] == ["a/1/0", "b/1/1"]
    assert got.video_paths == {"a/1": "a/1.mp4", "b/1": "b/1.mp4", "2": "c/b/2.mp4"}
    assert [f.value for f in got.findings] == ["['a/1', 'b/1']"]


def test_the_parquet_of_video_mme_is_read_with_the_names_of_its_files(tmp_path: Path) -> None:
    rows = [
        {
            "video_id": "001", "duration": "short", "domain": "Knowledge", "sub_category": "Law",
            "url": "https://www.youtube.com/watch?v=abcdefghijk", "videoID": "abcdefghijk",
            "question_id": f"001-{n}", "task_type": "Counting Problem", "question": f"How {n}?",
            "options": ["A. Two.", "B. Three.", "C. Four.", "D. Five."], "answer": letter,
        }
        for n, letter in enumerate("CAD")
    ]  # fmt: skip
    got = saved(tmp_path / "test-00000-of-00001.parquet", rows)
    assert [q.answer for q in got] == ["Four.", "Two.", "Five."]
    assert {(q.video_id, q.question_type) for q in got} == {("abcdefghijk", "Counting Problem")}
    assert (got[0].question_id, got.findings) == ("001-0", ())


def text_file(path: Path, rows: Sequence[Sequence[str]]) -> QuestionFile:
    """Write cells as they are, without quoting any."""
    mark = "\t" if path.suffix == ".tsv" else ","
    path.write_text("".join(mark.join(cells) + "\n" for cells in (HEADER, *rows)), encoding="utf-8")
    return mustsee.read(path)


@pytest.mark.parametrize("kind", ["tsv", "csv"])
@pytest.mark.parametrize(
    "questions",
    [
        ['"Hi" is said by whom?', '"Who comes in?', 'Who says "bye"?', "What is built?"],
        ["Who?", '"Who comes in?', "What is built?", "And then?"],
        ["Who?", '"Who comes in?', '"What is built?', "And then?"],
        ["Who?", "What is built?", "And then?", '"Who comes in?'],
    ],
)
def test_a_stray_quotation_mark_takes_no_other_row(
    kind: str, questions: list[str], tmp_path: Path
) -> None:
    rows = [("v", question, "x", f"y{n}", "B") for n, question in enumerate(questions)]
    got = text_file(tmp_path / f"q.{kind}", rows)
    assert [q.question for q in got] == questions
    assert [q.options[1] for q in got] == ["y0", "y1", "y2", "y3"]
    assert got.findings == ()


def test_a_mark_that_closes_on_a_later_row_is_read_or_a_finding(tmp_path: Path) -> None:
    rows = [("v", '"Which screen?', "x", "y", "B"), ("v", 'Which is of 5"', "x", "y", "A")]
    assert len(text_file(tmp_path / "q.tsv", rows)) == 2
    (finding,) = text_file(tmp_path / "q.csv", rows).findings
    assert (finding.place, finding.what) == (
        "line 2", "a cell with line breaks may hold other rows: a quotation mark may not close"
    )  # fmt: skip


def test_a_quotation_mark_before_a_very_long_file_takes_none_of_it(tmp_path: Path) -> None:
    rows = [("v", f"Question {n} about the {'long ' * 9}film?", "x", "y", "B") for n in range(3000)]
    rows[4] = ("v", '"Who?', "x", "y", "A")
    got = text_file(tmp_path / "q.csv", rows)
    assert (len(got), got[4].question, got[5].answer) == (3000, '"Who?', "y")


@pytest.mark.parametrize("kind", ["csv", "tsv"])
def test_a_quoted_cell_keeps_its_marks_and_line_breaks(kind: str, tmp_path: Path) -> None:
    question = 'He said "well" and\nran away?'
    with (tmp_path / f"q.{kind}").open("w", newline="") as file:
        writer = csv.writer(file, "excel-tab" if kind == "tsv" else "excel")
        writer.writerows([HEADER, ("v", question, "x", "y", "B"), ("v", "Who?", "x", "y", "A")])
    got = mustsee.read(tmp_path / f"q.{kind}")
    assert ([q.question for q in got], got.findings) == ([question, "Who?"], ())


@pytest.mark.parametrize(("name", "cause"), [("q.csv.gz", "compressed"), ("q.xlsx", "spreadsheet")])
def test_files_of_another_kind_are_refused_with_the_cause(
    name: str, cause: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(b"PK\x03\x04")
    with pytest.raises(UserError, match=cause):
        mustsee.read(tmp_path / name)


def test_a_table_without_a_video_column_has_a_video_for_each_question(tmp_path: Path) -> None:
    row = {"A": "x", "B": "y", "answer": "B"}
    got = saved(tmp_path / "q.csv", [row | {"question": q} for q in ("1?", "2?")])
    assert len({q.video_id for q in got}) == 2
    assert [(f.what, f.broken) for f in got.findings] == [
        (
            "no column is known to hold the video: each question counts as of a video of its own",
            False,
        )
    ]


def test_a_key_that_two_kinds_read_alike_is_not_ambiguous(tmp_path: Path) -> None:
    assert read_options(of_options(tmp_path, ["A", "B", "C"], "B")) == [(("A", "B", "C"), "B")]


@given(
    st.lists(
        st.text(
            st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zl", "Zp")), min_size=1
        )
        .filter(lambda name: "${" not in name),
        min_size=5, max_size=5, unique=True,
    )
)  # fmt: skip
def test_the_override_that_a_message_prints_parses_to_the_same_names(names: list[str]) -> None:
    video, question, first, second, answer = names
    named = TableColumns(
        video=video, question=question, options=(first, second), answer=answer,
        answers="number from 1",
    )  # fmt: skip
    (word,) = shlex.split(override(named))
    parsed = OverridesParser.create().parse_override(word)
    value: Any = parsed.value()
    settings = {str(key): item for key, item in value.items()}
    assert columns_from(settings) == replace(named, options=[first, second])


def test_the_hint_of_an_ambiguous_key_can_be_pasted_and_fits_its_column(tmp_path: Path) -> None:
    rows = [
        {"Video File": "v.mp4", "The question's text": f"{n}?", "options": "['w', 'x', 'y', 'z']",
         "Correct (1-4)": n} for n in (1, 2, 3)
    ]  # fmt: skip
    with pytest.raises(UserError) as unknown:
        saved(tmp_path / "q.csv", rows)
    columns = columns_of_hint(str(unknown.value).replace("video: V", 'video: "Video File"')
                              .replace("question: Q", 'question: "The question\'"\'"\'s text"')
                              .replace("answer: K", 'answer: "Correct (1-4)"'))  # fmt: skip
    with pytest.raises(UserError, match="number from 0' or 'number from 1'") as ambiguous:
        read(tmp_path / "q.csv", columns=columns)
    columns = columns_of_hint(str(ambiguous.value))
    assert columns is not None
    assert columns.answers == "number from 1"
    given = replace(columns, answers=None, question_id="Video File", start="Correct (1-4)")
    with pytest.raises(UserError, match="number from 0' or 'number from 1'") as ambiguous:
        read(tmp_path / "q.csv", columns=given)
    assert columns_of_hint(str(ambiguous.value)) == replace(given, answers="number from 1")
    assert [q.answer for q in read(tmp_path / "q.csv", columns=columns)] == ["w", "x", "y"]


def columns_of_hint(message: str) -> TableColumns | None:
    """Return the columns of the override in a message, read as a shell and the job read it."""
    word = next(
        w for w in shlex.split(message[message.index("'table=") :]) if w.startswith("table=")
    )
    value: Any = OverridesParser.create().parse_override(word).value()
    return columns_from(value)


def test_settings_of_a_table_that_are_wrong_are_refused() -> None:
    good = {"video": None, "question": "q", "options": "choices"}
    assert columns_from(good) == TableColumns(video=None, question="q", options=["choices"])
    for wrong in (good | {"clip": "c"}, {"question": "q"}, good | {"answers": "lettr"}):
        with pytest.raises(UserError, match="table: "):
            columns_from(wrong)


def test_a_list_of_open_questions_keeps_its_ids(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("id,video,question,answer\nq7,a,What is it?,A boat.\nq9,a,Why?,It sank.\n")
    assert [q.question_id for q in read(path).questions] == ["q7", "q9"]
