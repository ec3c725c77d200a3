"""Which questions an export writes, what it says of the others, and what it removes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import mustsee
from mustsee.errors import UserError
from mustsee.files import schemas
from mustsee.layouts import hugging_face
from mustsee.layouts.card import Card, read_run
from mustsee.layouts.errata import Erratum, write_errata
from mustsee.recipes.neptune import layout as neptune
from mustsee.records import Question, Verdict, Video
from ray_jobs.export import Export
from tests.support.evaluation import questions

KEPT = [replace(question, subsets=("full",)) for question in questions(4)]
DROPPED = [replace(question, drop="sight: two fit") for question in KEPT]


@pytest.mark.parametrize(
    ("written", "subset", "message"),
    [
        ([], "all", "it has no questions$"),
        (DROPPED, "passed", "none of 4 questions is kept$"),
        ([*DROPPED[:3], KEPT[3]], "mma", r"none of 4 .* kept in subset=mma; kept in {'full': 1}$"),
    ],
)
def test_why_there_is_nothing_to_export(
    written: Sequence[Question], subset: str, message: str, tmp_path: Path
) -> None:
    pq.write_table(schemas.questions_table(written), tmp_path / "questions.parquet")
    job = Export(
        questions=str(tmp_path), out=str(tmp_path / "out"), format=None, subset=subset,
        layout=neptune.write,
    )  # fmt: skip
    with pytest.raises(UserError, match=message):
        job()
    assert not (tmp_path / "out").exists()


def export(source: Path, out: Path | str, **settings: Any) -> int:
    values: dict[str, Any] = {
        "format": None,
        "subset": "passed",
        "layout": hugging_face.write,
        **settings,
    }
    return Export(questions=str(source), out=str(out), **values)()


def save(path: Path, written: Sequence[Question], videos: Sequence[Video] = ()) -> Path:
    path.mkdir(exist_ok=True)
    pq.write_table(schemas.questions_table(written), path / "questions.parquet")
    pq.write_table(schemas.table(videos, Video), path / "videos.parquet")
    return path


def files(folder: Path) -> set[str]:
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}


GUESSED = [
    replace(KEPT[0], metrics={"blind_passed": 0.0, "asr_passed": 1.0}),
    replace(KEPT[1], metrics={"blind_passed": 1.0}),
    replace(KEPT[2], metrics={"blind_passed": 0.0, "asr_passed": 0.0}),
    DROPPED[3],
]


def test_what_a_filter_marked_is_left_out_and_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = save(tmp_path / "run", GUESSED)
    assert export(source, tmp_path / "passed") == 0
    said = capsys.readouterr().out
    assert "1 of 4 questions written" in said
    assert "2 more were guessed or failed another check (blind 2, asr 1)" in said
    assert "subset=all writes them" in said
    assert [q.question_id for q in mustsee.read(tmp_path / "passed")] == [KEPT[1].question_id]
    assert export(source, tmp_path / "all", subset="all") == 0
    assert "2 of these were guessed or failed another check" in capsys.readouterr().out
    assert len(mustsee.read(tmp_path / "all")) == 3
    with pytest.raises(UserError, match="none of 1 kept questions passed all filters: subset=all"):
        export(save(tmp_path / "poor", [GUESSED[0]]), tmp_path / "nothing")


def with_video(folder: Path, name: str) -> Path:
    (folder / name).write_bytes(name.encode())
    video = Video(video_id=KEPT[0].video_id, uri=str(folder / name))
    return save(folder / f"run-{name}", KEPT[:1], [video])


def test_a_second_export_removes_the_files_of_the_first_and_no_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    layout, out = partial(hugging_face.write, videos="copy"), tmp_path / "out"
    assert export(with_video(tmp_path, "album.mp4"), out, layout=layout) == 0
    assert {"videos/album.mp4", "data/test.parquet", "README.md"} < files(out)
    (out / "notes.txt").write_text("my own")
    assert export(with_video(tmp_path, "street.mp4"), out, layout=layout) == 0
    assert {p.name for p in (out / "videos").iterdir()} == {"street.mp4"}
    assert "1 file (notes.txt) in it are of no export" in capsys.readouterr().out
    assert (out / "notes.txt").read_text() == "my own"
    other = neptune.write
    assert export(tmp_path / "run-street.mp4", out, layout=other) == 0
    assert files(out) - {".mustsee-files"} == {"neptune_full.json", "notes.txt"}
    assert not (out / "videos").exists()


def test_a_folder_with_other_files_is_refused_unchanged(tmp_path: Path) -> None:
    out = tmp_path / "out"
    (out / "videos").mkdir(parents=True)
    (out / "videos" / "album.mp4").write_bytes(b"of an earlier checkout")
    with pytest.raises(UserError, match=r"holds 1 file \(videos/album.mp4\).* another out="):
        export(save(tmp_path / "run", KEPT), out)
    assert files(out) == {"videos/album.mp4"}


def test_a_table_with_columns_of_any_name_is_exported(tmp_path: Path) -> None:
    (tmp_path / "q.csv").write_text("Video File,Ask,one,two,Right (1-2)\nv.mp4,Who?,Tom,Ann,2\n")
    columns = {
        "video": "Video File", "question": "Ask", "options": ["one", "two"],
        "answer": "Right (1-2)", "answers": "number from 1",
    }  # fmt: skip
    assert export(tmp_path / "q.csv", tmp_path / "out", table=columns) == 0
    (got,) = mustsee.read(tmp_path / "out")
    assert (got.video_id, got.options, got.answer) == ("v", ("Tom", "Ann"), "Ann")


def test_open_questions_beside_ones_with_options_are_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    both = [replace(KEPT[0], subsets=("full", "open"), video_id="v"),
            replace(KEPT[1], subsets=("full", "choices"), video_id="v")]  # fmt: skip
    source = save(tmp_path / "made", both)
    assert export(source, tmp_path / "out") == 0
    said = capsys.readouterr().out
    assert "1 video has open questions beside ones with options" in said
    assert "(subset=open, subset=choices)" in said
    assert export(source, tmp_path / "open", subset="open") == 0
    assert "beside ones with options" not in capsys.readouterr().out
    assert [q.question_id for q in mustsee.read(tmp_path / "open")] == [both[0].question_id]


def test_errata_are_applied_before_the_subset_is_taken(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = KEPT[0], KEPT[1]
    new = first.options[0 if first.answer_index else 1]
    entries = [
        Erratum(id=first.question_id, old=first.answer, new=new, who="rule:audit votes"),
        Erratum(id=second.question_id, old=second.answer, new="bad", who="rater:ana"),
        Erratum(id="gone", old="x", new="bad"),
    ]
    write_errata(entries, tmp_path / "errata.jsonl")
    run = save(tmp_path / "run", KEPT)
    assert export(run, tmp_path / "out", errata=str(tmp_path / "errata.jsonl")) == 0
    shown = capsys.readouterr().out
    for part in (
        "3 of 4 questions written",
        "2 entries applied",
        "1 of those applied are proposals",
        "of no question: 1: gone",
    ):
        assert part in shown
    written = {q.question_id: q for q in mustsee.read(tmp_path / "out")}
    assert second.question_id not in written
    assert written[first.question_id].answer == new
    readme = (tmp_path / "out" / "README.md").read_text()
    assert "- 1 key corrected by errata: the column `repairs` says how" in readme
    assert export(run, tmp_path / "as_is") == 0
    assert "by errata" not in (tmp_path / "as_is" / "README.md").read_text()


def table_of(folder: Path, names: Sequence[str]) -> Path:
    lines = [f"{name},Who is {n}?,Tom,Ann,A" for n, name in enumerate(names)]
    file = folder / "q.csv"
    file.write_text("\n".join(["video,question,a0,a1,answer", *lines]) + "\n")
    return file


def test_the_files_of_a_table_s_videos_are_found_in_videos(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the id or the file's name, in a folder or a list."""
    (tmp_path / "films").mkdir()
    for name in ("one.mp4", "two.webm", "unasked.mp4"):
        (tmp_path / "films" / name).write_bytes(name.encode())
    (tmp_path / "list.csv").write_text("video_id,uri\nfirst,films/one.mp4\n")
    copied = partial(hugging_face.write, videos="copy")
    table, films = table_of(tmp_path, ["one.mp4", "two", "two"]), str(tmp_path / "films")
    assert export(table, tmp_path / "out", layout=copied, videos=films) == 0
    said = capsys.readouterr().out
    assert "the videos are in its videos/ (2, layout.videos=copy)\n" in said
    assert "has no file of" not in said
    written = {p.name: p.read_bytes() for p in (tmp_path / "out" / "videos").iterdir()}
    assert written == {"one.mp4": b"one.mp4", "two.webm": b"two.webm"}
    assert [Path(v.uri).name for v in mustsee.read(tmp_path / "out").videos] == list(written)
    listed = table_of(tmp_path, ["first", "third"])
    settings = {"layout": copied, "videos": str(tmp_path / "list.csv")}
    assert export(listed, tmp_path / "listed", **settings) == 0
    said = capsys.readouterr().out
    assert "(1, layout.videos=copy); no file is known of 1 video\n" in said
    assert "list.csv' has no file of 1 of 2 videos, with 1 of 2 questions\n" in said
    assert "no video has this id or file name: third (1 question)\n" in said
    assert (tmp_path / "listed" / "videos" / "one.mp4").read_bytes() == b"one.mp4"


@pytest.mark.parametrize("way", ["copy", "link"])
def test_no_file_to_copy_is_an_error(way: str, tmp_path: Path) -> None:
    table = table_of(tmp_path, ["one", "two"])
    layout = partial(hugging_face.write, videos=way)
    with pytest.raises(UserError, match=rf"layout.videos={way}: no video file .* in videos=$"):
        export(table, tmp_path / "out", layout=layout)
    (tmp_path / "other.mp4").write_bytes(b"other")
    with pytest.raises(UserError, match=r"has no video for any .* as one, two; it has other$"):
        export(table, tmp_path / "out", layout=layout, videos=str(tmp_path / "other.mp4"))
    assert not (tmp_path / "out" / "README.md").exists()


def test_replies_of_an_evaluation_are_not_exported(tmp_path: Path) -> None:
    """Nor are the stages and prompts of its run."""
    asked = [
        replace(q, verdicts=(Verdict(filter="blind", model="m", reply="B"),
                             Verdict(filter="answer", model="model_good", reply="B"),
                             Verdict(filter="grade", model="model_judge", reply="right")))
        for q in KEPT
    ]  # fmt: skip
    source = save(tmp_path / "run", asked)
    run = {"recipe": "evaluate", "prompts": {"filters/blind": "p1"},
           "funnel": [{"stage": "answer", "in": 2, "out": 2}]}  # fmt: skip
    (source / "run.json").write_text(json.dumps(run))
    layout = partial(hugging_face.write, card=Card(run=read_run(source)))
    assert export(source, tmp_path / "out", layout=layout) == 0
    verdicts = [v for q in mustsee.read(tmp_path / "out") for v in q.verdicts]
    assert [(v.filter, v.model) for v in verdicts] == [("blind", "m")] * len(KEPT)
    readme = (tmp_path / "out" / "README.md").read_text()
    assert "- 4 verdicts of `blind` by `m`" in readme
    for other in ("model_good", "model_judge", "p1", "answer: 2 in"):
        assert other not in readme
