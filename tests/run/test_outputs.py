"""The output folder appears whole, or not at all with a clear error."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mustsee.errors import MustseeError
from mustsee.files import schemas
from mustsee.records import Problem, Question, Verdict, Video
from mustsee.run.outputs import ScratchFile, publish, write_rows
from mustsee.run.record import FilterCounts
from mustsee.run.tables import Tables, funnel, question_counts, standing_questions, write_problems


def test_a_second_run_replaces_the_files_of_the_first(tmp_path: Path) -> None:
    def write(text: str, folder: Path) -> dict[str, str]:
        (folder / "export").mkdir()
        (folder / "export" / text).write_text(text)
        return {"run": text}

    for text in ("first", "second"):
        publish(str(tmp_path / "out"), lambda folder, text=text: write(text, folder))
    assert [p.name for p in (tmp_path / "out" / "export").iterdir()] == ["second"]
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["export", "run.json"]


def test_a_failure_leaves_the_old_output_and_names_its_cause(tmp_path: Path) -> None:
    out = tmp_path / "out"
    publish(str(out), lambda folder: {"run": 1})

    def full(folder: Path) -> dict[str, int]:
        (folder / "videos.parquet").write_bytes(b"half")
        raise OSError(28, "No space left on device")

    with pytest.raises(MustseeError, match=r"No space left on device.*out="):
        publish(str(out), full)
    assert [p.name for p in out.iterdir()] == ["run.json"]
    with pytest.raises(MustseeError, match="cannot write the output folder"):
        publish(str(out / "run.json" / "below"), lambda folder: {})


def test_an_incomplete_replacement_has_no_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(text: str, folder: Path) -> dict[str, str]:
        for name in ("a", "b"):
            (folder / name).write_text(text)
        return {"run": text}

    out = tmp_path / "out"
    publish(str(out), lambda folder: write("first", folder))
    move = os.replace

    def breaks(source: Path, target: Path) -> None:
        if target.name == "b":
            raise OSError(5, "Input/output error")
        move(source, target)

    monkeypatch.setattr("mustsee.run.outputs.os.replace", breaks)
    with pytest.raises(MustseeError, match="Input/output error"):
        publish(str(out), lambda folder: write("second", folder))
    assert {p.name: p.read_text() for p in out.iterdir()} == {"a": "second", "b": "first"}


def video_with_questions(name: str, **fate: object) -> Video:
    one = Question(
        question_id=name, video_id=name, recipe="mlvu", question="?", question_type="count"
    )
    other = replace(one, question_id=f"{name}-blind", drop="blind: right in 3 of 3 runs")
    return Video(video_id=name, uri="f.mp4", questions=(one, other), **fate)  # type: ignore[arg-type]


def test_questions_of_dropped_and_failed_rows_are_dropped(tmp_path: Path) -> None:
    """A dropped row has no file for its needle, and a failed one has unchecked questions."""

    lost = Problem(stage="vet", error="Transient", message="no answer within 60 s")
    table = schemas.table(
        [
            video_with_questions("a"),
            video_with_questions("b", drop="needle: it is there"),
            video_with_questions("c", problem=lost),
        ],
        Video,
    )
    rows = ScratchFile()
    rows.add(table)
    write_rows(rows, tmp_path)
    drops = {q.question_id: q.drop for q in Tables(tmp_path).questions()}
    blind = "blind: right in 3 of 3 runs"
    assert drops == {
        "a": None, "a-blind": blind, "b": "video: needle: it is there", "b-blind": blind,
        "c": "video: failed in vet: no answer within 60 s", "c-blind": blind,
    }  # fmt: skip
    write_rows(rows, tmp_path, drops_with_row=False)
    assert [q.drop for q in Tables(tmp_path).questions("drop")] == [None, blind] * 3
    assert [q.question_id for q in standing_questions(table)] == ["a", "a-blind"]
    rows.close()


def test_rows_come_back_in_the_order_of_their_ids_and_then_of_their_arrival() -> None:
    ids = ["b", "a", "\U0001d11e", "é", "\uffff", "z", "b", "Z"]
    rows = ScratchFile()
    for first in (0, 3):
        chosen = [Video(video_id=x, uri=str(n)) for n, x in enumerate(ids) if n // 3 * 3 == first]
        rows.add(schemas.table(chosen, Video))
    rows.add(schemas.table([Video(video_id="b", uri="6"), Video(video_id="Z", uri="7")], Video))
    stored = [(row["video_id"][0].as_py(), int(row["uri"][0].as_py())) for row in rows]
    assert stored == sorted((x, n) for n, x in enumerate(ids))
    rows.close()


def test_a_mapped_table_is_the_same_and_outlives_its_file() -> None:
    table = schemas.table([Video(video_id=x, uri="x", genre=("war",)) for x in "ab"], Video)
    table = table.append_column("channel", pa.array([{"n": 1}, None]))
    rows = ScratchFile()
    mapped = rows.map_table(table)
    rows.close()
    assert mapped.equals(table)


def test_videos_without_questions_are_told_from_their_neighbours(tmp_path: Path) -> None:
    rows = ScratchFile()
    questions = {
        name: replace(video_with_questions(name), questions=None) for name in ("a", "c", "e")
    }
    for name in "abcdef":
        rows.add(schemas.table([questions.get(name) or video_with_questions(name)], Video))
    write_rows(rows, tmp_path)
    rows.close()
    assert question_counts(Tables(tmp_path)).without == dict.fromkeys("ace", "none was made")


def test_counts_of_a_run_come_from_its_tables(tmp_path: Path) -> None:
    """Rows arrive in any order, in blocks with different columns; the tables are sorted by id."""

    def question(name: str, number: int, drop: str | None) -> Question:
        why = "prompt 'filters/sight': none of 3 replies of m could be parsed; the last one: no"
        unread = Verdict(
            filter="sight", model="m", detail=json.dumps({"unread": why, "replies": ["no"]})
        )
        return Question(
            question_id=f"{name}-{number}", video_id=name, recipe="r", question="?",
            question_type="odd" if number % 2 else "even", drop=drop, subsets=("small",),
            metrics={"blind_passed": float(not number), "sight_unverified": 1.0},
            verdicts=(unread,),
        )  # fmt: skip

    rows = ScratchFile()
    for name in ("c", "a", "b"):
        problem = Problem(stage="ask", error="BadRow", message="no") if name == "b" else None
        video = Video(
            video_id=name, uri=f"{name}.mp4", lineage={"look": "k"}, transcribed_by="subtitles",
            size=3, problem=problem, drop="dull: no" if name == "c" else None,
            questions=tuple(question(name, n, "blind: 3" if n == 2 else None) for n in range(3)),
        )  # fmt: skip
        own = pa.array([7 if name == "a" else None], pa.int64() if name == "a" else pa.null())
        rows.add(schemas.table([video], Video).append_column("channel", own))
    write_rows(rows, tmp_path)
    tables = Tables(tmp_path)
    stored = pq.read_table(tmp_path / "videos.parquet")
    assert stored["video_id"].to_pylist() == ["a", "b", "c"]
    assert stored["channel"].to_pylist() == [7, None, None]
    assert not {"questions", "size", "keyframes"} & set(stored.column_names)
    assert [q.question_id[0] for q in tables.questions("drop")] == [*"aaabbbccc"]
    assert next(tables.videos("transcribed_by")) == Video(
        video_id="a", uri="a.mp4", transcribed_by="subtitles"
    )
    assert [step.plain() for step in funnel(tables, ("look", "ask"))] == [
        {"stage": "read", "in": 3, "out": 3, "dropped": {}, "problems": 0},
        {"stage": "look", "in": 3, "out": 2, "dropped": {"dull": 1}, "problems": 0},
        {"stage": "ask", "in": 2, "out": 1, "dropped": {}, "problems": 1},
    ]
    counts = question_counts(tables)
    assert (counts.made, counts.kept) == (9, 2)
    assert counts.dropped == {"blind": 3, "video": 4}
    assert counts.filters == {
        "blind": FilterCounts(asked=9, dropped=3, marked=3, reason="3"),
        "sight": FilterCounts(
            asked=0,
            dropped=0,
            marked=0,
            unverified=9,
            unread={"filters/sight: no": 9},
            models=("m",),
        ),
    }
    assert (counts.failed, counts.without, counts.untested_note) == ({"blind": 1}, {}, "")
    assert (counts.types, counts.subsets) == ({"even": 1, "odd": 1}, {"small": 2})
    write_problems(tables, tmp_path / "problems.parquet")
    (failure,) = pq.read_table(tmp_path / "problems.parquet").to_pylist()
    assert failure == {
        "video_id": "b", "uri": "b.mp4", "stage": "ask", "error": "BadRow", "message": "no",
        "attempts": 1,
    }  # fmt: skip
    rows.close()


def test_an_account_in_an_address_is_not_published(tmp_path: Path) -> None:
    uri = "s3://AKIAEXAMPLE:a/b+c@bucket/v.mp4?region=here"
    rows = ScratchFile()
    rows.add(schemas.table([replace(video_with_questions("a"), uri=uri)], Video))
    write_rows(rows, tmp_path)
    rows.close()
    (video,) = Tables(tmp_path).videos()
    assert video.uri == "s3://bucket/v.mp4?region=here"
