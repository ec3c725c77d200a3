"""Hostile ids, types and subsets never lead to files outside the output folder, in any layout."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from mustsee.files.folders import file_name
from mustsee.layouts import ours, task_scoring
from mustsee.records import WHEN, Question, Span, Verdict, Video
from ray_jobs.cli.launch import build, compose

LAYOUTS = sorted(p.stem for p in (Path(__file__).parents[2] / "conf" / "layout").glob("*.yaml"))
NAMES = ("../../outside", "/tmp/mustsee-outside", "a\0b", "", "..", ".", "x/../../../y", "n" * 300,
         "\x1b[31m", "a\\..\\b", "CON", "-rf", "$(id)", "a\nb", "neptune_../../x")  # fmt: skip


def questions() -> list[Question]:
    when = Question(
        question_id="when", video_id=NAMES[0], recipe="facts", question="When?",
        question_type="other", evidence=(Span(0.0, 1.0),), answer="0.0 to 1.0 s", form=WHEN,
    )  # fmt: skip
    return [
        when,
        *(_question(name, i) for i, name in enumerate(NAMES)),
    ]


def _question(name: str, number: int) -> Question:
    options = ("red", "green", "blue", "grey", "none")
    verdict = Verdict(filter="sight", model="m", reply="B", correct=False)
    return Question(
        question_id=f"{name}{number}", video_id=name, recipe="neptune", question="What?",
        question_type=name or "other", options=options,
        answer_index=number % 5, answer=options[number % 5],
        subsets=(name,), evidence=(Span(0.0, 1.0),), verdicts=(verdict,),
    )  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_export_writes_into_its_folder_only(tmp_path: Path, layout: str) -> None:
    video = tmp_path / "video.mp4"
    video.write_bytes(b"video")
    source, out = tmp_path / "source", tmp_path / "a" / "b" / "c" / "out"
    videos = [Video(video_id=name, uri=str(video), title=name) for name in NAMES]
    ours.write(questions(), source, videos)
    before = {p for p in tmp_path.rglob("*") if out not in (p, *p.parents)}
    elsewhere = Path("/tmp/mustsee-outside")
    assert not elsewhere.exists()
    job = build(compose("export", [f"questions={source}", f"layout={layout}", f"out={out}"]))
    assert job() == 0
    after = {p for p in tmp_path.rglob("*") if out not in (p, *p.parents)}
    assert after - before <= {out.parent, out.parent.parent, out.parent.parent.parent}
    assert not elsewhere.exists()
    written = [p for p in out.rglob("*") if p.is_file()]
    assert written
    for shard in (p for p in written if p.suffix == ".tar"):
        with tarfile.open(shard) as tar:
            assert not [n for n in tar.getnames() if n.startswith("/") or ".." in n.split("/")]


@pytest.mark.parametrize("text", NAMES)
def test_any_text_becomes_the_unique_name_of_one_file(tmp_path: Path, text: str) -> None:
    name = file_name(text)
    (tmp_path / f"{name}.json").write_text("x")
    assert [p.name for p in tmp_path.rglob("*")] == [f"{name}.json"]
    assert len({file_name(n) for n in NAMES}) == len(NAMES)
    assert file_name("Ünïcode name_7.x") == "Ünïcode name_7.x"


def test_a_task_looks_for_videos_in_its_folder_only(tmp_path: Path) -> None:
    (tmp_path / "secret.mp4").write_bytes(b"x")
    (tmp_path / "videos").mkdir()
    row = {"video_id": "../secret", "video": "../secret.mp4", "start": None}
    with pytest.raises(FileNotFoundError):
        task_scoring.video_path(row, tmp_path)
    clip = {**row, "video_id": "a$(id)", "video": "b;id.mp4", "start": 1, "end": 2}
    with pytest.raises(FileNotFoundError, match=r"-i 'b;id\.mp4' -c copy 'a\$\(id\)\.mp4'"):
        task_scoring.video_path(clip, tmp_path)
