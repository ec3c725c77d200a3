"""Video files of a dataset are included, or named with the folder where they belong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import mustsee
from mustsee.errors import UserError
from mustsee.layouts import chat, hugging_face, tasks, video_files
from mustsee.recipes.egoschema import layout as egoschema
from mustsee.recipes.mlvu import layout as mlvu
from mustsee.records import Question, Video


def questions_on(*videos: str) -> list[Question]:
    return [
        Question(question_id=f"{v}/1", video_id=v, recipe="neptune", question="What?",
                 question_type="plot", options=("a", "b"), answer_index=0)
        for v in videos
    ]  # fmt: skip


@pytest.fixture
def rows(tmp_path: Path) -> list[Video]:
    """Return two videos, a clip of the second, and a third video without questions."""
    for name in ("a.mp4", "b.webm", "unasked.mp4"):
        (tmp_path / name).write_bytes(name.encode())
    return [
        Video(video_id="a", uri=str(tmp_path / "a.mp4")),
        Video(video_id="b", uri=str(tmp_path / "b.webm")),
        Video(video_id="b_1", uri=str(tmp_path / "b.webm"), source="b", start=0.0, end=1.0),
        Video(video_id="unasked", uri=str(tmp_path / "unasked.mp4")),
    ]


@pytest.mark.parametrize("way", ["copy", "link"])
def test_a_dataset_includes_its_videos(tmp_path: Path, rows: list[Video], way: str) -> None:
    out = tmp_path / "out"
    line = hugging_face.write(questions_on("a", "b", "b_1"), out, rows, videos=way)
    assert line == f"the videos are in its videos/ (2, layout.videos={way})"
    assert {p.name: p.read_bytes() for p in (out / "videos").iterdir()} == {
        "a.mp4": b"a.mp4", "b.webm": b"b.webm"
    }  # fmt: skip
    linked = (out / "videos/a.mp4").stat().st_ino == (tmp_path / "a.mp4").stat().st_ino
    assert linked == (way == "link")
    assert "The video files are in this folder" in (out / "README.md").read_text()
    assert all(Path(v.uri).is_file() for v in mustsee.read(out).videos)
    # Written again from the folder itself, it loses no file.
    hugging_face.write(questions_on("a", "b"), out, mustsee.read(out).videos, videos=way)
    assert (out / "videos/a.mp4").read_bytes() == b"a.mp4"


def test_a_dataset_without_its_videos_says_where_they_belong(
    tmp_path: Path, rows: list[Video]
) -> None:
    line = hugging_face.write(questions_on("a", "b"), tmp_path / "out", rows)
    assert line == (
        "the videos are not copied (2): put a.mp4, b.webm into its videos/, or export with "
        "layout.videos=copy or link"
    )
    assert not (tmp_path / "out/videos").exists()
    readme = (tmp_path / "out/README.md").read_text()
    assert "**not** in this folder" in readme
    assert "- `videos/b.webm`" in readme
    assert "unasked" not in readme


@pytest.mark.parametrize("way", ["copy", "link"])
def test_the_folder_loads_with_datasets_with_and_without_videos(
    tmp_path: Path, rows: list[Video], way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "cache"))
    for name, included in (("with", way), ("without", "none")):
        hugging_face.write(questions_on("a", "b"), tmp_path / name, rows, videos=included)
        cache = str(tmp_path / f"cache-{name}")
        loaded = datasets.load_dataset(str(tmp_path / name), cache_dir=cache)
        assert loaded["test"]["video"][:] == ["a.mp4", "b.webm"]
        videos = datasets.load_dataset(str(tmp_path / name), "videos", cache_dir=cache)
        assert videos["videos"]["uri"][:] == ["videos/a.mp4", "videos/b.webm"]


def test_videos_that_cannot_be_included_are_refused_before_any_file_is_copied(
    tmp_path: Path, rows: list[Video]
) -> None:
    with pytest.raises(UserError, match=r"'move'.* copy, link, none"):
        video_files.include(rows, tmp_path / "out", "move")
    gone = Video(video_id="c", uri=str(tmp_path / "c.mp4"))
    site = Video(video_id="d", uri="https://example.org/d")
    with pytest.raises(UserError, match=r"2 of 5 video files are not there: .*c\.mp4"):
        video_files.include([*rows, gone, site], tmp_path / "out", "copy")
    (tmp_path / "else").mkdir()
    (tmp_path / "else/a.mp4").write_bytes(b"another")
    twin = Video(video_id="e", uri=str(tmp_path / "else/a.mp4"))
    with pytest.raises(UserError, match=r"would both be videos/a\.mp4"):
        video_files.include([*rows, twin], tmp_path / "out", "copy")
    assert not (tmp_path / "out").exists()
    assert video_files.include([*rows, gone, twin], tmp_path / "out", "none")


@pytest.mark.parametrize(
    ("write", "place"),
    [
        (tasks.write_lmms_eval, "put a.mp4, b.webm into its videos/, or name their folder in"),
        (tasks.write_inspect, "put a.mp4, b.webm into its videos/, or name their folder in"),
        (tasks.write_vlmevalkit, "put a.mp4, b.webm into its videos/, or name their folder in"),
        (mlvu.write, "put a.mp4, b.webm into its video/"),
        (mlvu.write_test, "put a.mp4, b.webm into its video/"),
        (egoschema.write, "into its videos/ as QUESTION_ID.mp4"),
        (chat.write, "records name each video by its uri, such as "),
        (chat.write_preference, "records name each video by its uri, such as "),
    ],
)
def test_every_layout_that_names_files_says_where_they_are(
    tmp_path: Path, rows: list[Video], write: Callable[..., str], place: str
) -> None:
    (tmp_path / "out").mkdir()
    assert place in write(questions_on("a", "b"), tmp_path / "out", rows)
