"""A folder is listed once for all of its videos, and again when it has changed. The addresses of
its files have its options.
"""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyarrow import fs

from actors.hear.auto import SubtitleTranscript
from loopback import s3
from mustsee.files import folders
from mustsee.files.folders import names_starting
from mustsee.files.store import address_of, in_folder
from mustsee.layouts import video_files
from mustsee.media.files import open_container
from mustsee.records import Video
from mustsee.run.inputs import read_videos

LOCAL = fs.LocalFileSystem()


def make_old(folder: Path) -> None:
    """Set the folder's time of change to a minute ago."""
    os.utime(folder, (time.time() - 60, time.time() - 60))


def test_names_start_with_the_whole_text(tmp_path: Path) -> None:
    for name in ("v1.srt", "v1.en.srt", "v10.srt", "w.srt", "é.srt"):
        (tmp_path / name).touch()
    (tmp_path / "v1.folder").mkdir()
    assert names_starting(LOCAL, str(tmp_path), "v1.") == ["v1.en.srt", "v1.srt"]
    assert names_starting(LOCAL, str(tmp_path), "é") == ["é.srt"]
    assert names_starting(LOCAL, str(tmp_path), "x") == []
    assert names_starting(LOCAL, str(tmp_path / "none"), "") == []


def test_a_local_folder_is_listed_again_when_it_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed: list[str] = []
    scan = os.scandir

    def counted(folder: str) -> Any:
        listed.append(folder)
        return scan(folder)

    monkeypatch.setattr(folders.os, "scandir", counted)
    (tmp_path / "a.srt").touch()
    make_old(tmp_path)
    for _ in range(3):
        assert names_starting(LOCAL, str(tmp_path), "a") == ["a.srt"]
    assert len(listed) == 1
    (tmp_path / "a.vtt").touch()
    assert names_starting(LOCAL, str(tmp_path), "a") == ["a.srt", "a.vtt"]
    (tmp_path / "a.ass").touch()  # within the time in which changes may look like one
    assert names_starting(LOCAL, str(tmp_path), "a") == ["a.ass", "a.srt", "a.vtt"]


def test_an_object_store_answers_many_requests_at_once_and_few_listings(tmp_path: Path) -> None:
    with s3.serve_objects(seconds=0.1) as (objects, address):
        names = [f"in/v{number:02}.mp4" for number in range(64)]
        objects.kept.update(dict.fromkeys(names, b"x"))
        (tmp_path / "list.txt").write_text("\n".join(map(address.format, names)))
        objects.kept["in/v07.srt"] = b"1\n00:00:01,000 --> 00:00:02,000\nHi\n"
        began = time.monotonic()
        rows = read_videos(str(tmp_path / "list.txt")).to_pylist()
        seconds = time.monotonic() - began
    with_subtitles = [row["uri"] for row in rows if row["subtitles_digest"]]
    assert with_subtitles == [address.format("in/v07.mp4")]
    assert {row["size"] for row in rows} == {1}
    assert objects.asked["GET"] < 16
    assert objects.asked["HEAD"] >= 64
    assert seconds < 64 * 0.1


def test_addresses_in_a_folder_keep_its_options() -> None:
    options = "scheme=http&endpoint_override=127.0.0.1%3A1"
    folder = f"s3://key:sec/ret@videos/in?{options}"
    assert in_folder(folder, "store") == f"s3://key:sec/ret@videos/in/store?{options}"
    assert in_folder("s3://videos/in/", "store") == "s3://videos/in/store"
    assert in_folder("runs/what?", "store") == "runs/what?/store"
    assert (
        address_of("videos/in/a@b.mp4", folder) == f"s3://key:sec/ret@videos/in/a@b.mp4?{options}"
    )
    assert address_of("videos/a@b.mp4", "s3://videos/a@b.mp4") == "s3://videos/a@b.mp4"
    assert address_of("/videos/a.mp4", "videos") == "/videos/a.mp4"


@pytest.mark.parametrize("place", ["in", "in/*.mp4", "in/a.mp4", "in/list.csv", "in/list.txt"])
def test_videos_in_an_object_store_with_options_are_found_and_opened(place: str) -> None:
    with s3.serve_objects() as (objects, address):
        with open("examples/videos/birdhouse.mp4", "rb") as file:
            objects.kept["in/a.mp4"] = file.read()
        objects.kept["in/a.en.srt"] = b"1\n00:00:01,000 --> 00:00:02,000\nHi\n"
        objects.kept["in/list.csv"] = b"uri,subtitles\na.mp4,a.en.srt\n"
        objects.kept["in/list.txt"] = b"a.mp4\n"
        (row,) = read_videos(address.format(place)).to_pylist()
        assert (row["video_id"], row["uri"]) == ("a", address.format("in/a.mp4"))
        video = Video(video_id="a", uri=row["uri"])
        for subtitles in (None, "a.en.srt"):
            heard = SubtitleTranscript().hear(replace(video, subtitles=subtitles))
            assert [line.text for line in heard.lines or ()] == ["Hi"]
        with open_container(video.uri) as container:
            assert container.streams.video
        assert video_files.file_name(video) == "a.mp4"
