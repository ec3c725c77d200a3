"""Tables with broken rows: each is a finding with its line, and the other rows are read."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mustsee
from mustsee.errors import UserError
from mustsee.layouts import read, table, tempcompass
from mustsee.layouts.columns import TableColumns
from tests.support.material import material

ODD = """\
vid,q,a,b,c,d,key
kitchen.mp4,What is poured?,milk,water,oil,juice,A
kitchen.mp4,What is poured?,milk,water,oil,juice,A
garden.mp4,"What does the
man dig with?",a spade,a fork,his hands,a hoe,B

garden.mp4,Which tree is first?,the apple,the pear,the plum,the cherry,E
kitchen.mp4,Where is the pan?,stove,sink,shelf,floor,2
street.mp4,,a bus,a car,a tram,a bike,C
street.mp4,Where do they meet?,kitchen,kitchen,station,park,D
street.mp4,What is bought?,bread,,apples,cheese,A
,Who enters last?,the woman,the boy,the dog,nobody,B
beach.mp4,What is built?,a castle,a wall,a boat,a tower,
beach.mp4,What is lost?,a shoe,a hat,a ball,a key,B,too many
beach.mp4,What colour is it?,red,blue,green,white,C
"""
FINDINGS = [
    ("line 3", "identical to line 2", "", False),
    ("line 14", "more cells than columns", "['too many']", True),
    ("line 7", "answer is outside the options", "'E'", True),
    ("line 8", "answer is outside the options", "'2'", True),
    ("line 9", "no question", "", True),
    ("line 10", "two options are the same", "['kitchen', 'kitchen', 'station', 'park']", True),
    ("line 11", "an empty option", "['bread', '', 'apples', 'cheese']", True),
    ("line 12", "no video", "", True),
    ("line 13", "no answer", "", False),
]


def test_each_odd_row_is_a_finding_with_its_line_and_value(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text(ODD)
    got = mustsee.read(tmp_path / "mine.csv")
    assert [(f.place, f.what, f.value, f.broken) for f in got.findings] == FINDINGS
    assert [q.answer_index for q in got] == [0, 0, 1, None, None, 2, 3, 0, 1, None, 1, 2]
    assert [q.question_id for q in got if q.question_id in got.unusable_reasons] == [
        "garden/3", "kitchen/4", "street/5", "street/6", "street/7", "/8", "beach/10"
    ]  # fmt: skip


def test_kept_rows_are_written_back_with_all_their_cells(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text(ODD)
    table.write(mustsee.read(tmp_path / "mine.csv").questions, tmp_path / "all",
                source=tmp_path / "mine.csv")  # fmt: skip
    assert (tmp_path / "all" / "mine.csv").read_text() == ODD.replace("\n\n", "\n")


def test_findings_have_the_line_in_jsonl_and_the_row_in_other_files(tmp_path: Path) -> None:
    row = {"video": "v", "question": "q", "options": ["yes", "no"], "answer": "yes"}
    rows = [row, row | {"question": "r"}, row | {"question": ""}]
    lines = [json.dumps(r) for r in rows]
    (tmp_path / "q.jsonl").write_text("\n".join([lines[0], "", *lines[1:]]) + "\n")
    (tmp_path / "q.json").write_text(json.dumps(rows))
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "q.parquet")
    for ending, place in (("jsonl", "line 4"), ("json", "row 3"), ("parquet", "row 3")):
        (finding,) = read(tmp_path / f"q.{ending}", "table").findings
        assert (finding.place, finding.what) == (place, "no question")


@pytest.mark.parametrize(
    ("answers", "indices"),
    [
        (["A", "b", "C", "2"], [0, 1, 2, None]),
        ([1, 2, 3, 4, 4, 3, 4, 9], [0, 1, 2, 3, 3, 2, 3, None]),  # the 4s are not numbers from 0
        (["o0 of 0", "o1 of 1", "o2 of 2", "none"], [0, 1, 2, None]),
    ],
)
def test_an_odd_answer_is_a_finding_and_the_others_are_read(
    answers: list[object], indices: list[int | None], tmp_path: Path
) -> None:
    rows = [
        {
            "video": "v",
            "question": f"{n}?",
            "answer": answer,
            "options": [f"o{k} of {n}" for k in range(4)],
        }
        for n, answer in enumerate(answers)
    ]
    (tmp_path / "q.json").write_text(json.dumps(rows))
    got = read(tmp_path / "q.json", "table")
    assert [q.answer_index for q in got] == indices
    assert [f.value for f in got.findings] == [repr(str(answers[-1]))]


def test_a_table_without_a_clear_kind_of_answers_is_refused(tmp_path: Path) -> None:
    rows = [
        {"video": "v", "question": f"{n}?", "answer": a, "options": ["w", "x", "y", "z"]}
        for n, a in enumerate([1, 2, 3, 4, 9])  # from 1 except for the 9, from 0 except for 4 and 9
    ]
    (tmp_path / "q.json").write_text(json.dumps(rows))
    with pytest.raises(UserError, match=r"'number from 1', except for 1 of 5: '9'.*table\.answers"):
        read(tmp_path / "q.json", "table")


def test_evidence_may_start_at_zero_and_invalid_times_are_findings(tmp_path: Path) -> None:
    row = {"clip": "v", "ask": "q", "a": "x", "b": "y", "key": "A", "s": 0, "e": 2.5}
    (tmp_path / "q.json").write_text(json.dumps([row, row | {"ask": "r", "e": "later"}]))
    columns = TableColumns(
        video="clip", question="ask", options=("a", "b"), answer="key", start="s", end="e"
    )
    got = read(tmp_path / "q.json", columns=columns)
    assert [len(q.evidence) for q in got] == [1, 0]
    assert [(f.place, f.what) for f in got.findings] == [("row 2", "start and end are not seconds")]


def test_the_error_for_an_unknown_table_has_the_override_to_write(tmp_path: Path) -> None:
    file = tmp_path / "q.csv"
    file.write_text("clip,q,a,b,right\nv,who,x,y,0\n")
    with pytest.raises(UserError) as caught:
        mustsee.read(file)
    assert "hold the video, the right answer among clip, q, a, b, right" in str(caught.value)
    assert "table={video: V, question: q, options: [a, b], answer: K}" in str(caught.value)
    file.write_text("clip,q,a,b,right\n")
    with pytest.raises(UserError, match="has no rows"):
        mustsee.read(file)


@pytest.mark.parametrize(("name", "count"), [("multi-choice", 1580), ("caption_matching", 1503)])
def test_the_lists_of_tempcompass_are_read_and_written_back(
    name: str, count: int, tmp_path: Path
) -> None:
    file = material(f"qa/llyx97+TempCompass/questions/{name}.json")
    got = mustsee.read(file)
    assert (got.layout, len(got), got.findings) == ("tempcompass", count, ())
    assert all(q.answer_index is not None for q in got)
    assert not any(
        o[:2] in ("A.", "B.") or o.startswith("Sentence A") for q in got for o in q.options
    )
    tempcompass.write(got.questions, tmp_path, source=file)
    assert json.loads((tmp_path / file.name).read_text()) == json.loads(file.read_text())
