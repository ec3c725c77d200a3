"""WebDataset shards are read back here and by the library; clips are copied without re-encoding."""

from __future__ import annotations

import importlib.util
import json
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

import mustsee
from mustsee.errors import UserError
from mustsee.layouts import shards
from mustsee.media.video import facts
from mustsee.records import Question, Video
from tests.layouts.test_exports import made

VIDEO = Path(__file__).parents[2] / "examples" / "videos" / "birdhouse.mp4"
VIDEOS = [
    Video(video_id="v0", uri=str(VIDEO), license="CC0", duration=64.67),
    *(Video(video_id=f"v{n}", uri=str(VIDEO), source="birdhouse", start=5.0 * n, end=5.0 * n + 6)
      for n in range(1, 6)),
]  # fmt: skip


def members(folder: Path) -> dict[str, list[str]]:
    names = {}
    for path in sorted((folder / "data").glob("*.tar")):
        with tarfile.open(path) as tar:
            names[path.name] = tar.getnames()
    return names


def test_questions_and_videos_in_shards_are_read_back(tmp_path: Path) -> None:
    questions = made()
    shards.write(questions, tmp_path, VIDEOS)
    assert members(tmp_path) == {
        "test-000000.tar": ["000000.mp4", "000000.json", "000001.mp4", "000001.json"],
        "train-000000.tar": [f"00000{n}.{e}" for n in range(4) for e in ("mp4", "json")],
    }
    read_back = mustsee.read(tmp_path)
    assert read_back.layout == "webdataset"
    by_id = {q.question_id: q for q in read_back}
    assert by_id == {q.question_id: q for q in questions if q.drop is None}
    clips = {v.video_id: (v.source, v.start, v.end, v.license) for v in read_back.videos}
    assert clips["v0"] == (None, None, None, "CC0")
    assert clips["v3"] == ("birdhouse", 15.0, 21.0, None)
    (shard,) = [path for path in shards.shard_files(tmp_path) if path.name.startswith("test")]
    assert {q.question_id for q in mustsee.read(shard)} == {"q8", "q9", "q10"}


def test_the_same_input_gives_the_same_bytes_and_shards_are_split_by_size(tmp_path: Path) -> None:
    for name in "ab":
        shards.write(made(), tmp_path / name, VIDEOS, shard_mb=0.001)
    first, second = (
        {p.name: p.read_bytes() for p in (tmp_path / n / "data").iterdir()} for n in "ab"
    )
    assert first == second
    assert len(first) == 6  # one for each video
    assert len(mustsee.read(tmp_path / "a")) == 11


def test_a_clip_is_cut_and_a_whole_video_is_copied_unchanged(tmp_path: Path) -> None:
    shards.write(made(), tmp_path, VIDEOS)
    with tarfile.open(tmp_path / "data" / "train-000000.tar") as tar:
        whole = tar.extractfile("000000.mp4")
        clip, sample = (tar.extractfile(f"000003.{e}") for e in ("mp4", "json"))
        assert whole is not None
        assert clip is not None
        assert sample is not None
        assert whole.read() == VIDEO.read_bytes()
        (tmp_path / "clip.mp4").write_bytes(clip.read())
        start, end = json.load(sample)["shown"]
    assert start <= 15.0
    assert end >= 21.0 - 0.1
    clip_facts = facts(str(tmp_path / "clip.mp4"))
    assert clip_facts.duration == pytest.approx(end - start, abs=0.2)


@pytest.mark.parametrize(
    ("video", "message"),
    [
        (Video(video_id="v0", uri=""), "no video file for 'v0'"),
        (Video(video_id="v0", uri="/nowhere.mp4"), "no video file for 'v0' at '/nowhere.mp4'"),
        (Video(video_id="v0", uri=str(VIDEO.parent / "seasons.webm"), start=1.0, end=5.0),
         "cannot be copied"),
    ],
)  # fmt: skip
def test_missing_videos_and_clips_that_cannot_be_copied_are_refused(
    tmp_path: Path, video: Video, message: str
) -> None:
    with pytest.raises(UserError, match=message):
        shards.write(made(1), tmp_path, [video])
    (tmp_path / "torn.tar").write_bytes(b"no archive")
    with pytest.raises(UserError, match="cannot read the shard"):
        mustsee.read(tmp_path / "torn.tar")


# The library does not close its files.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_the_webdataset_library_reads_them(tmp_path: Path) -> None:
    if importlib.util.find_spec("webdataset") is None:
        pytest.skip("webdataset is not installed")
    import webdataset

    open_ended = replace(made(1)[0], question_id="open", options=(), answer_index=None, answer="x")
    questions: list[Question] = [*made(), open_ended]
    shards.write(questions, tmp_path, VIDEOS, shard_mb=0.2)
    option_counts: dict[str, int] = {}
    for path in shards.shard_files(tmp_path):
        for sample in webdataset.WebDataset(str(path), shardshuffle=False).decode():
            assert sample["mp4"][4:8] == b"ftyp"
            for question in sample["json"]["questions"]:
                option_counts[question["question_id"]] = len(question["options"])
    assert option_counts == {q.question_id: len(q.options) for q in questions if q.drop is None}
