"""Hostile folders and tables of videos give a problem of a row or one line, never a traceback."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mustsee.errors import UserError
from mustsee.files.schemas import schema
from mustsee.layouts.reading import rows_of
from mustsee.records import Video
from mustsee.run.inputs import read_videos

DEEP = "[" * 100_000 + "]" * 100_000


def ids(source: object) -> list[str]:
    return read_videos(str(source))["video_id"].to_pylist()


def table(folder: Path, *rows: dict[str, Any]) -> str:
    file = folder / "t.jsonl"
    file.write_text("".join(json.dumps({"uri": "a.mp4", **row}) + "\n" for row in rows))
    return str(file)


def test_a_name_that_is_not_utf8_is_a_problem_of_its_row(tmp_path: Path) -> None:
    for name in (b"good.mp4", b"bad\xff\xfe.mp4", b"good.\xff.srt"):
        (tmp_path / os.fsdecode(name)).write_bytes(b"x")
    for source in (tmp_path, f"{tmp_path}/*"):
        rows = read_videos(str(source)).to_pylist()
        assert [r["video_id"] for r in rows] == ["bad\\xff\\xfe", "good"]
        assert "not UTF-8" in rows[0]["problem"]["message"]
        assert rows[1]["problem"] is None
        assert set(rows[0]) >= set(schema(Video).names) & {"uri", "drop", "problem"}


def test_a_folder_with_links_to_itself_is_searched_once(tmp_path: Path) -> None:
    (tmp_path / "a.mp4").write_bytes(b"one")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "b.mp4").write_bytes(b"two")
    for number in range(120):  # each link leads to all the others
        (tmp_path / f"again{number}").symlink_to(".")
    (tmp_path / "sub" / "up").symlink_to("..")
    assert ids(tmp_path) == ["a", "b"]
    assert ids(f"{tmp_path}/*.mp4") == ["a", "b"]
    assert read_videos(str(tmp_path))["uri"].to_pylist() == [
        str(tmp_path / "a.mp4"), str(tmp_path / "sub" / "b.mp4")
    ]  # fmt: skip


def test_a_file_with_several_links_is_one_video(tmp_path: Path) -> None:
    elsewhere, folder = tmp_path / "elsewhere", tmp_path / "videos"
    elsewhere.mkdir()
    folder.mkdir()
    (elsewhere / "z.mp4").write_bytes(b"z")
    (folder / "y.mp4").write_bytes(b"y")
    (folder / "a-link.mp4").symlink_to("y.mp4")
    os.link(folder / "y.mp4", folder / "z-hard.mp4")
    (folder / "broken.mp4").symlink_to("nowhere.mp4")
    (folder / "more").symlink_to(elsewhere)
    assert ids(folder) == ["y", "z"]
    assert ids(f"{folder}/*/z.mp4") == ["z"]
    assert ids(f"{folder}/a-*.mp4") == ["a-link"]


def test_control_characters_of_a_file_name_are_escaped_in_its_id(tmp_path: Path) -> None:
    (tmp_path / "x\x01\x1b[31m\u202ered.mp4").write_bytes(b"x")
    assert ids(tmp_path) == ["x\\x01\\x1b[31m\\u202ered"]


@pytest.mark.parametrize("row", [
    {"start": float("nan")}, {"end": float("inf")}, {"start": -5}, {"start": 5, "end": 4},
    {"start": 5, "end": 5}, {"start": "nan"}, {"start": True}, {"start": [1]}, {"start": 1e999},
    {"uri": ["a.mp4"]}, {"uri": 5}, {"uri": "a\0.mp4"}, {"video_id": "a\0"},
    {"video_id": "../../x"}, {"video_id": "/x"}, {"video_id": "a/../b"}, {"video_id": ".."},
    {"video_id": "a\x1b[31m"},
    {"video_id": ["x"]}, {"video_id": "\ud800"}, {"title": "\ud800"}, {"subtitles": "\0"},
    {"uri": ""}, {"views": float("inf")}, {"title": ["x"]}, {"year": 10**30},
])  # fmt: skip
def test_an_invalid_value_is_refused_with_its_row(tmp_path: Path, row: dict[str, Any]) -> None:
    (tmp_path / "a.mp4").write_bytes(b"x")
    with pytest.raises(UserError) as refused:
        read_videos(table(tmp_path, {}, row))
    message = str(refused.value)
    assert "\n" not in message
    assert "2" in message or "title" in message or "views" in message or "year" in message


def test_bytes_and_lists_in_parquet_are_not_addresses(tmp_path: Path) -> None:
    for value in (b"a.mp4", ["a.mp4"], {"a": "a.mp4"}):
        pq.write_table(pa.table({"uri": [value]}), tmp_path / "t.parquet")
        with pytest.raises(UserError, match="row 1: uri="):
            read_videos(str(tmp_path / "t.parquet"))


def test_other_columns_of_a_table_may_have_deep_and_large_values(tmp_path: Path) -> None:
    value: Any = 1
    for _ in range(200):
        value = [value]
    rows = read_videos(table(tmp_path, {"mine": value}, {"mine": 2**70, "uri": "b.mp4"}))
    out = tmp_path / "out.parquet"
    pq.write_table(rows, out)
    assert pq.read_table(out)["mine"].to_pylist()[1] == str(2**70)


@pytest.mark.parametrize("text", [f'{{"uri": "a.mp4", "x": {DEEP}}}', f'{{"x": {DEEP}}}', DEEP])
def test_deeply_nested_json_is_refused_with_one_line(tmp_path: Path, text: str) -> None:
    file = tmp_path / "t.jsonl"
    file.write_text('{"uri": "a.mp4"}\n' + text + "\n")
    for read in (read_videos, lambda path: rows_of(Path(path))):
        with pytest.raises(UserError, match=r"line 2: .*nested too deeply") as refused:
            read(str(file))
        assert len(str(refused.value)) < 500
    whole = tmp_path / "t.json"
    whole.write_text(DEEP)
    with pytest.raises(UserError, match="nested too deeply"):
        rows_of(whole)


def test_a_bad_address_in_a_list_is_refused_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "t.txt"
    file.write_bytes(b"a.mp4\nb\0.mp4\n")
    with pytest.raises(UserError, match="line 2"):
        read_videos(str(file))
    file.write_bytes(b"a.mp4\n\xff\n")
    with pytest.raises(UserError, match="cannot read the list"):
        read_videos(str(file))
    file.write_text("n" * 5000 + ".mp4\n")
    assert len(ids(file)) == 1
