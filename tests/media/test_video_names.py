"""A video is found by its id, its file's name or a path; what is not found is named."""

from __future__ import annotations

import pytest

from mustsee.media.video_names import (
    NONE,
    SEVERAL,
    VideoNames,
    describe_unmatched,
    name_apart,
    path_parts,
)
from mustsee.records import Video

VIDEOS = [
    Video(video_id="a-1", uri="/films/cuts/a.mp4"),
    Video(video_id="a-2", uri="s3://bucket/whole/a.mp4?region=R"),
    Video(video_id="kitchen.v1", uri="/films/kitchen.v1.mp4"),
    Video(video_id="first", uri="/films/one.rmvb"),
    Video(video_id="film/0", uri="/films/film.mkv", start=0.0, end=9.0),
    Video(video_id="film/1", uri="/films/film.mkv", start=9.0, end=18.0),
    Video(video_id="again", uri="/more/one.rmvb", drop="duplicate: the same video"),
    Video(video_id="kuche", uri="/films/Ku\u0308che.mp4"),  # as macOS stores it
]


@pytest.mark.parametrize(
    ("name", "written", "found"),
    [
        ("a-1", "", "a-1"),
        ("a", "cuts/a.mp4", "a-1"),
        ("a", r"D:\data\whole\a.MP4", "a-2"),
        ("whole/a", "", "a-2"),
        ("else/a", "", None),  # of files told apart by folders none lies in this one
        ("a", "", None),
        ("a", "/films/a.mp4", None),
        ("kitchen.v1", "moved/kitchen.v1.webm", "kitchen.v1"),
        ("kitchen", "", None),
        ("one", "", "first"),
        ("first", "elsewhere/first.mp4", "first"),
        ("film", "film.mkv", "film/0"),  # both clips have this file
        ("film/1", "", "film/1"),
        ("K\u00fcche", "K\u00fcche.mp4", "kuche"),
        ("", "", None),
    ],
)
def test_a_folder_decides_between_files_of_one_name_only(
    name: str, written: str, found: str | None
) -> None:
    video = VideoNames(VIDEOS).find(name, written)
    assert (video and video.video_id) == found


def test_the_reason_says_whether_none_or_several_fit() -> None:
    names = VideoNames(VIDEOS)
    assert names.reason("a", "/films/a.mp4") == SEVERAL
    assert names.reason("gone") == NONE


def test_paths_that_end_alike_are_one_video_and_others_are_told_apart() -> None:
    assert name_apart(["a.mp4", "x/clips/a.mp4", "clips/a.mp4", "./b.mov", "b"]) == {
        "a.mp4": "a", "x/clips/a.mp4": "a", "clips/a.mp4": "a", "./b.mov": "b", "b": "b",
    }  # fmt: skip
    assert name_apart(["s1/e1/v.mp4", "s2/e1/v.mp4", "/d/s1/e1/v.mp4", "v.mp4", ""]) == {
        "s1/e1/v.mp4": "s1/e1/v", "s2/e1/v.mp4": "s2/e1/v", "/d/s1/e1/v.mp4": "s1/e1/v",
        "v.mp4": "v", "": "",
    }  # fmt: skip
    assert path_parts("../x/./a.b.mp4") == ("x", "a.b")


def test_what_has_no_file_is_counted_and_named_by_reason() -> None:
    lost = {"gone": ("clips/gone.mp4", NONE), "a": ("a.mp4", SEVERAL), "b": ("b", NONE)}
    assert describe_unmatched("V", lost, {"gone": 2, "a": 1, "b": 1, "c": 5}) == [
        "videos='V' has no file of 3 of 4 videos, with 4 of 9 questions",
        f"{NONE}: clips/gone.mp4 (2 questions), b (1 question)",
        f"{SEVERAL}: a.mp4 (1 question)",
    ]
    assert describe_unmatched("V", {}, {"c": 5}) == []
    many = {str(n): (str(n), NONE) for n in range(12)}
    assert describe_unmatched("V", many, dict.fromkeys(many, 1))[1].endswith("and 2 more")
