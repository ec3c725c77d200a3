"""`videos=`: folders, globs, lists and tables become rows with unique ids."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from mustsee.errors import UserError
from mustsee.files import schemas
from mustsee.records import Caption, Video
from mustsee.run import inputs
from mustsee.run.inputs import read_videos, with_videos


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in" / "sub").mkdir(parents=True)
    (tmp_path / "in" / "a.mp4").write_bytes(b"first")
    (tmp_path / "in" / "b.mkv").write_bytes(b"second")
    (tmp_path / "in" / "notes.md").write_text("not a video")
    (tmp_path / "in" / ".hidden.mp4").write_bytes(b"no")
    return tmp_path / "in"


def test_a_folder(folder: Path) -> None:
    table = read_videos(str(folder))
    assert table["video_id"].to_pylist() == ["a", "b"]
    assert table["size"].to_pylist() == [5, 6]


def test_equal_stems_get_a_digest_and_equal_files_are_duplicates(folder: Path) -> None:
    (folder / "sub" / "a.mp4").write_bytes(b"another")
    ids = read_videos(str(folder))["video_id"].to_pylist()
    assert len(set(ids)) == 3
    assert all(name == "b" or name.startswith("a-") for name in ids)
    (folder / "sub" / "a.mp4").write_bytes(b"first")
    table = read_videos(str(folder))
    assert len(set(table["video_id"].to_pylist())) == 3
    assert next(filter(None, table["drop"].to_pylist())).startswith("duplicate:")


def test_ids_do_not_depend_on_the_place_of_the_folder(folder: Path, tmp_path: Path) -> None:
    (folder / "sub" / "a.mp4").write_bytes(b"another")
    first = read_videos(str(folder))["video_id"].to_pylist()
    folder.rename(tmp_path / "elsewhere")
    assert read_videos(str(tmp_path / "elsewhere"))["video_id"].to_pylist() == first


def test_a_glob_and_a_list(folder: Path) -> None:
    assert read_videos(f"{folder}/*.mp4")["video_id"].to_pylist() == ["a"]
    listing = folder / "list.txt"
    listing.write_text("# comment\na.mp4\n\nb.mkv\nabsent.mp4\n")
    table = read_videos(str(listing))
    assert table["video_id"].to_pylist() == ["a", "absent", "b"]
    assert table["size"].to_pylist() == [5, None, 6]


def test_a_table_keeps_other_columns_and_converts_known_ones(folder: Path) -> None:
    table = folder / "t.csv"
    table.write_text(
        "uri,video_id,views,tags,channel,license,source_url\n"
        'a.mp4,one,120,"x, y",news,cc-by-4.0,https://videos.example/a\nb.mkv,two,,,,,\n',
        "utf-8-sig",
    )
    rows = read_videos(str(table)).to_pylist()
    assert [r["views"] for r in rows] == [120, None]
    assert rows[0]["tags"] == ["x", "y"]
    assert rows[0]["channel"] == "news"
    assert [r["license"] for r in rows] == ["cc-by-4.0", None]
    assert rows[0]["source_url"] == "https://videos.example/a"
    table.write_text('uri;video_id;views;tags\na.mp4;one;120;"x, y"\nb.mkv;two;;\n', "utf-8-sig")
    rows = read_videos(str(table)).to_pylist()
    assert [(r["video_id"], r["views"]) for r in rows] == [("one", 120), ("two", None)]
    assert rows[0]["tags"] == ["x", "y"]
    lines = folder / "t.jsonl"
    movie = {"uri": "a.mp4", "year": 1999, "genre": ["war"], "actors": "Ann A, Ben B", "plot": "P."}
    lines.write_text(json.dumps(movie) + "\n")
    (row,) = read_videos(str(lines)).to_pylist()
    assert (row["genre"], row["actors"], row["plot"]) == (["war"], ["Ann A", "Ben B"], "P.")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", "path\na.mp4\n", "no 'uri'"),
        ("t.csv", "uri,views\na.mp4,many\n", "'many'"),
        ("t.jsonl", "{broken\n", "cannot read the table"),
        ("t.parquet", "not parquet", "cannot read the table"),
        ("t.doc", "x", "neither a folder"),
    ],
)
def test_a_bad_table_is_an_error_with_its_reason(
    folder: Path, name: str, content: str, message: str
) -> None:
    (folder / name).write_text(content)
    with pytest.raises(UserError, match=message):
        read_videos(str(folder / name))


def test_a_source_without_videos_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no videos"):
        read_videos(str(tmp_path))
    with pytest.raises(UserError, match="does not exist"):
        read_videos(str(tmp_path / "nowhere"))


def test_many_rows_are_read_as_few_are(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows are read a few at a time; columns may begin late, and repeated ids may be far apart."""
    rows = [
        {"uri": "a.mp4"},
        {"uri": "z.mp4", "year": 1999, "score": 1},
        {"uri": "b.mp4", "video_id": "z"},
        {"uri": "a.mp4", "score": 2.5},
        {"uri": "y.mp4", "genre": ["war"], "note": {"of": "y"}},
    ]
    lines = folder / "t.jsonl"
    lines.write_text("".join(json.dumps(row) + "\n" for row in rows))
    whole = read_videos(str(lines))
    monkeypatch.setattr(inputs, "ROWS_AT_ONCE", 2)
    assert read_videos(str(lines)).equals(whole)
    assert len(set(whole["video_id"].to_pylist())) == 5
    assert [d is not None for d in whole["drop"].to_pylist()] == [False, True, False, False, False]
    (scored,) = [row for row in whole.to_pylist() if row["score"] == 1.0]
    assert (scored["uri"], scored["year"]) == (f"{folder}/z.mp4", 1999)
    assert whole["video_id"].to_pylist() == sorted(whole["video_id"].to_pylist())


def test_subtitles_beside_a_video_are_in_its_digest(folder: Path) -> None:
    def digests() -> list[str | None]:
        return read_videos(str(folder))["subtitles_digest"].to_pylist()

    assert digests() == [None, None]
    (folder / "a.en.srt").write_text("1\n00:00:00,000 --> 00:00:01,000\nHi.\n")
    first = digests()
    assert first[0] is not None
    assert first[1] is None
    (folder / "a.en.srt").write_text("1\n00:00:00,000 --> 00:00:01,000\nHo.\n")
    assert digests()[0] != first[0]


def test_file_names_may_have_brackets_spaces_and_other_scripts(folder: Path) -> None:
    place = folder / "Videos [2020] é"
    place.mkdir()
    (folder / "a.mp4").rename(place / "one [x1].mp4")
    for source in (place, f"{place}/one [x1].mp4", f"file://{place}", f"file://{folder}/*é/*.mp4"):
        (row,) = read_videos(str(source)).to_pylist()
        assert row["video_id"] == "one [x1]"
        assert row["size"] == 5


def test_a_glob_without_an_extension_finds_videos_only(folder: Path) -> None:
    (folder / "a.srt").write_text("no video")
    assert read_videos(f"{folder}/*")["video_id"].to_pylist() == ["a", "b"]
    (folder / "c.dat").write_bytes(b"third")
    assert read_videos(f"{folder}/*.dat")["video_id"].to_pylist() == ["c"]


def test_a_line_separator_does_not_end_a_row(folder: Path) -> None:
    lines = folder / "t.jsonl"
    lines.write_text('{"uri": "a.mp4", "title": "one\u2028two"}\r\n{"uri": "b.mkv"}\n', "utf-8")
    assert read_videos(str(lines))["title"].to_pylist() == ["one\u2028two", None]


def test_a_table_cannot_set_columns_that_stages_compute(folder: Path) -> None:
    """Columns with these names and other types once ended the run with a traceback."""
    table = folder / "t.csv"
    table.write_text(
        "uri,duration,captions,problem,drop,size,source,channel,views\n"
        "a.mp4,PT1M,some,none,no,1 MB,youtube,news,120.0\n"
    )
    rows = read_videos(str(table))
    assert rows.to_pylist()[0] | {"uri": ""} == rows.to_pylist()[0] | {
        "uri": "", "size": 5, "drop": None, "channel": "news", "views": 120
    }  # fmt: skip
    assert not {"duration", "captions", "problem", "source"} & set(rows.column_names)


def test_subtitles_given_by_address_are_in_the_digest(folder: Path) -> None:
    subtitles, table = folder / "sub" / "x.srt", folder / "t.csv"
    table.write_text(f"uri,subtitles\na.mp4,file://{subtitles}\n")
    digests = set()
    for text in ("Hi.", "Ho."):
        subtitles.write_text(text)
        digests |= set(read_videos(str(table))["subtitles_digest"].to_pylist())
    assert len(digests) == 2


def test_a_run_s_videos_are_found_where_they_were_moved(tmp_path: Path) -> None:
    """By the id, or by the file's name, which an id of the user's own does not have."""
    for name in ("x/a.mp4", "y/a.mp4", "clip7.mp4", "k.mp4"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(name.encode())
    uris = {"one": "/old/y/a.mp4", "clip7": "/old/film.mp4", "k/0": "/old/k.mp4", "z": "/old/z.mp4"}
    videos = {name: Video(video_id=name, uri=uri) for name, uri in uris.items()}
    placed = with_videos(videos, str(tmp_path))
    assert {name: v.uri.removeprefix(f"{tmp_path}/") for name, v in placed.items()} == {
        "one": "y/a.mp4", "clip7": "clip7.mp4", "k/0": "k.mp4", "z": "/old/z.mp4",
    }  # fmt: skip
    assert with_videos(videos, None) == videos


def test_the_folder_of_a_run_stands_for_its_videos(folder: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    seen = (Caption(1.0, "C sits"),)
    rows = [Video(video_id="mine", uri=str(folder / "a.mp4"), captions=seen)]
    pq.write_table(schemas.table(rows, Video), run / "videos.parquet")
    (row,) = read_videos(str(run), keep=("captions",)).to_pylist()
    assert (row["video_id"], row["uri"]) == ("mine", str(folder / "a.mp4"))
    assert row["captions"] == [{"time": 1.0, "text": "C sits"}]
    (run / "b.mp4").write_bytes(b"b")  # an export with its videos
    assert read_videos(str(run))["video_id"].to_pylist() == ["b"]
