"""Faults in released files are listed as findings."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mustsee.errors import UserError
from mustsee.layouts import read
from mustsee.recipes.cinepile import layout as cinepile
from mustsee.recipes.egoschema import layout as egoschema


def save(path: Path, rows: object) -> Path:
    path.write_text(json.dumps(rows))
    return path


def test_faults_of_neptune_files_are_findings(tmp_path: Path) -> None:
    row = {f"answer_choice_{i}": f"o{i}" for i in range(5)} | {
        "key": "k/1", "video_id": "https://www.youtube.com/watch?v=-9QGyHPv1v0", "question": "?",
        "answer": "o1", "answer_id": "1", "question type": "Counting",
    }  # fmt: skip
    rows = [
        row,
        row | {"key": "k/2", "answer_id": 2},
        row | {"key": "k/3", "answer_id": None, "answer": "other"},
        row | {"key": "k/4", "answer_id": 7},
        row | {"key": "k/4", "answer_id": None},
    ]
    got = read(save(tmp_path / "neptune_mmh.json", rows))
    assert got[0].video_id == "-9QGyHPv1v0"
    assert got[0].subsets == ("mmh",)
    assert [q.answer_index for q in got] == [1, None, None, 1, 1]
    assert [(f.row, f.what) for f in got.findings] == [
        (1, "answer number and answer text disagree"),
        (2, "answer is not an option"),
        (3, "answer is outside the options"),
        (4, "this id occurs again"),
    ]
    assert len({q.question_id for q in got}) == 5


def test_mlvu_answers_outside_their_candidates_are_findings(tmp_path: Path) -> None:
    good = {"video": "needle_1.mp4", "duration": 480.5, "question": "What?", "answer": "Two",
            "candidates": ["One", "Two", "Three", "Four"],
            "question_type": "findNeedle"}  # fmt: skip
    bad = good | {"video": "needle_4.mp4", "answer": "Catching a flying drone quadcopter"}
    save(tmp_path / "2_needle.json", [good, bad])
    scene = {"video": "a.mp4", "duration": 9, "question": "Say.", "answer": "He eats.",
             "question_type": "subPlot", "scoring_points": ["he", "eats"]}  # fmt: skip
    save(tmp_path / "8_sub_scene.json", [scene])
    got = read(tmp_path)
    assert [q.answer_index for q in got] == [1, None, None]
    assert got[1].answer == "Catching a flying drone quadcopter"
    assert got[2].scoring_points == ("he", "eats")
    assert [(f.file, f.row, f.what) for f in got.findings] == [
        ("2_needle.json", 1, "answer is not an option")
    ]
    assert {v.video_id: v.duration for v in got.videos}["needle_1"] == 480.5


def test_the_mlvu_mirror_has_letters_and_options_in_the_question(tmp_path: Path) -> None:
    row = {"video_name": "x.mp4", "question": "Who?\n(A) One\n(B) Two", "answer": "B",
           "task_type": "plotQA"}  # fmt: skip
    (got,) = read(save(tmp_path / "m.json", [row]))
    assert (got.question, got.options, got.answer_index) == ("Who?", ("One", "Two"), 1)


def test_candidates_of_a_csv_are_parsed_as_a_list(tmp_path: Path) -> None:
    file = tmp_path / "q.csv"
    file.write_text('video,question,answer,candidates\nx.mp4,Who?,Two,"[""One"", ""Two""]"\n')
    (got,) = read(file)
    assert (got.options, got.answer_index) == (("One", "Two"), 1)
    file.write_text("video,question,answer,candidates\nx.mp4,Who?,Two,One or Two\n")
    with pytest.raises(UserError, match="'One or Two'"):
        read(file)


def test_cinepile_flags_and_categories_are_parsed_and_written_as_released(tmp_path: Path) -> None:
    row = {"movie_name": "M", "year": 1999, "genre": ["a", "b"], "yt_clip_title": "T",
           "yt_clip_link": "https://youtu.be/abcdefghijk", "movie_scene": "S", "subtitles": "x\ny",
           "question": "?", "choices": ["a", "b", "c", "d", "e"], "answer_key": "b",
           "answer_key_position": 1, "question_category": "Narrative and\nPlot Analysis",
           "hard_split": "True", "visual_reliance": "maybe"}  # fmt: skip
    pq.write_table(pa.Table.from_pylist([row, row | {"answer_key": "z"}]), tmp_path / "t.parquet")
    got = read(tmp_path)
    assert got[0].question_type == "Narrative and Plot Analysis"
    assert got[0].metrics == {"hardness": 1.0}
    assert got[1].answer_index == 1
    assert [f.what for f in got.findings] == [
        "visual_reliance is neither true nor false",
        "answer is not an option",
        "visual_reliance is neither true nor false",
    ]
    (video,) = got.videos
    assert [line.text for line in video.lines or ()] == ["x", "y"]
    cinepile.write(got.questions, tmp_path / "out", got.videos)
    written = pq.read_table(tmp_path / "out/test.parquet")
    assert written["question_category"][0].as_py() == "Narrative and\nPlot Analysis"
    assert written["hard_split"][0].as_py() == "True"
    assert written["genre"][0].as_py() == ["a", "b"]
    assert written["movie_scene"][0].as_py() == "S"
    table = written.to_pandas()
    table.to_csv(tmp_path / "t.csv", index=False)
    assert read(tmp_path / "t.csv")[0].options == ("a", "b", "c", "d", "e")


def test_egoschema_answers_counted_from_one_and_missing_questions_are_findings(
    tmp_path: Path,
) -> None:
    row = {"google_drive_id": "", "question": "?"} | {f"option {i}": f"o{i}" for i in range(5)}
    save(tmp_path / "questions.json", [row | {"q_uid": "a"}, row | {"q_uid": "b"}])
    save(tmp_path / "subset_answers.json", {"a": 5, "c": 1})
    got = read(tmp_path)
    assert [q.answer_index for q in got] == [4, None]
    assert {f.what for f in got.findings} == {
        "answers are counted from 1", "an answer without its question"
    }  # fmt: skip
    egoschema.submission({"a": 4}, tmp_path / "s.csv")
    assert (tmp_path / "s.csv").read_text().splitlines() == ["q_uid,answer", "a,4"]


def test_the_egoschema_mirror_is_read(tmp_path: Path) -> None:
    row = {"question_idx": "0", "question": "?", "video_idx": "u", "answer": "2",
           "option": [f"{c}. o{c}" for c in "ABCDE"]}  # fmt: skip
    (tmp_path / "Subset").mkdir()
    pq.write_table(pa.Table.from_pylist([row]), tmp_path / "Subset/test.parquet")
    (got,) = read(tmp_path)
    assert (got.options[2], got.answer_index) == ("oC", 2)


def test_a_line_separator_inside_a_record_does_not_end_it(tmp_path: Path) -> None:
    row = {"question_id": "q", "video_id": "v", "recipe": "r", "question_type": "t",
           "question": "one\u2028two\x85", "options": ["a", "b"], "answer_index": 0}  # fmt: skip
    text = json.dumps(row, ensure_ascii=False)
    with_returns = text.replace(", ", ",\r", 1)  # white space in JSON, not the end of a line
    (tmp_path / "q.jsonl").write_text(f"{text}\n\n{with_returns}\n", encoding="utf-8")
    assert [q.question for q in read(tmp_path / "q.jsonl")] == [row["question"]] * 2


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        read(tmp_path / "none")
    with pytest.raises(UserError, match="no known layout"):
        read(save(tmp_path / "x.json", [{"a": 1}]))
    (tmp_path / "x.parquet").write_bytes(b"PAR1")
    with pytest.raises(UserError, match="cannot read questions"):
        read(tmp_path / "x.parquet")
    (tmp_path / "x.csv").write_text(f"yt_clip_link,movie_scene\nu,{'x' * 200_000}\n")
    with pytest.raises(UserError, match="field limit"):
        read(tmp_path / "x.csv")
    (tmp_path / "x.jsonl").write_text('["a"]\n')
    with pytest.raises(UserError, match="row 0"):
        read(tmp_path / "x.jsonl")
    ours_row = {"question_id": "q", "video_id": "v", "question": "?", "answer_index": 2,
                "options": ["a", "b"]}  # fmt: skip
    with pytest.raises(UserError, match="no question_type, recipe"):
        read(save(tmp_path / "y.json", [ours_row]))
    got = read(save(tmp_path / "y.json", [ours_row | {"question_type": "", "recipe": ""}]))
    assert [q.answer_index for q in got] == [None]  # an invalid index would break an export
    assert [f.what for f in got.findings] == ["answer is outside the options"]
    with pytest.raises(UserError, match="expected a list"):
        read(save(tmp_path / "y.json", {"a": 1}))
    (tmp_path / "z.json").write_text("{")
    with pytest.raises(UserError, match="cannot read"):
        read(tmp_path / "z.json")
