"""The output folder appears whole, or not at all with a clear word."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from mustsee import schemas
from mustsee.errors import MustseeError
from mustsee.records import Problem, Question, Video
from mustsee.run.outputs import Scratch, publish
from ray_jobs.running.run import standing


def test_a_second_run_replaces_what_the_first_wrote(tmp_path: Path) -> None:
    def write(text: str, folder: Path) -> dict[str, str]:
        (folder / "export").mkdir()
        (folder / "export" / text).write_text(text)
        return {"run": text}

    for text in ("first", "second"):
        publish(str(tmp_path / "out"), lambda folder, text=text: write(text, folder))
    assert [p.name for p in (tmp_path / "out" / "export").iterdir()] == ["second"]
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["export", "run.json"]


def test_a_failure_leaves_the_old_output_and_says_why(tmp_path: Path) -> None:
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


def test_half_a_replacement_has_no_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_questions_of_dropped_and_failed_rows_fall_with_them() -> None:
    """A needle that is in its background too has no file; a clip whose filters failed is unseen."""

    def asked(name: str, **fate: object) -> Video:
        one = Question(
            question_id=name, video_id=name, recipe="mlvu", question="?", question_type="count"
        )
        other = replace(one, question_id=f"{name}-blind", drop="blind: right in 3 of 3 runs")
        return Video(video_id=name, uri="f.mp4", questions=(one, other), **fate)  # type: ignore[arg-type]

    lost = Problem(stage="vet", error="Transient", message="no answer within 60 s")
    table = schemas.table(
        [asked("a"), asked("b", drop="needle: it is there"), asked("c", problem=lost)], Video
    )
    rows = Scratch()
    rows.add(table)
    found = {q.question_id: q.drop for q in rows.questions()}
    blind = "blind: right in 3 of 3 runs"
    assert found == {
        "a": None, "a-blind": blind, "b": "video: needle: it is there", "b-blind": blind,
        "c": "video: failed in vet: no answer within 60 s", "c-blind": blind,
    }  # fmt: skip
    assert [q.drop for q in rows.asked()] == [None, blind] * 3
    assert [q.question_id for q in standing(table)] == ["a", "a-blind"]
    rows.close()
