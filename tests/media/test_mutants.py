"""Damaged videos and subtitles are used, or become a problem with a reason. None crashes, hangs or
fills the memory. `python -m tests.support.mutants 1000` tries more.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from mustsee.errors import BadRow
from mustsee.media import subtitles
from tests.support import mutants

# Mutants that failed once, with the fault.
ONCE_FAILED = (
    "1e+09.mkv/sound/0",  # a frame 32 years late closed one segment of 4 s after another
    "1e+12.mkv/sound/0",
    "png.mov/huge/3",  # a frame of 8,000 x 30,000: FFmpeg's error escaped
    "h264.mkv/repeated/687",  # 524 frames in two seconds, each taken for a cut
    "h264.mkv/lying/694",  # a text stream that FFmpeg has no decoder for
    "plain.srt/bomb/twice",  # two cues of 500,000 rows, each row compared with each
    "h264.mp4/swapped/7375",  # a frame of sound that the resampler refused
    "plain.vtt/bomb/6313",  # a million rows: 7 s
    "plain.vtt/bomb/7066",  # 400,000 speakers in a row: 9 s
)


@pytest.mark.slow
def test_mutants_are_used_or_become_problems_with_reasons(tmp_path: Path) -> None:
    results = mutants.read_all([*ONCE_FAILED, *mutants.names(160)], tmp_path)
    assert [r for r in results if r.outcome in mutants.FAULTS] == []
    assert all(r.reason for r in results if r.outcome == "problem")
    assert {r.outcome for r in results} == {"used", "problem"}


@pytest.mark.slow
def test_an_undamaged_file_of_each_kind_is_used(tmp_path: Path) -> None:
    sources = [*mutants.VIDEOS, *mutants.TEXTS]
    results = mutants.read_all([f"{source}/sound/0" for source in sources], tmp_path)
    assert {r.name: r.outcome for r in results} == {f"{s}/sound/0": "used" for s in sources}


@pytest.mark.slow
def test_a_reader_that_dies_or_hangs_is_restarted(tmp_path: Path) -> None:
    pipe = tmp_path / "endless.srt"
    os.mkfifo(pipe)  # It is refused: opening it would wait for a writer.
    reader = mutants.Reader(seconds=4)
    try:
        fine = tmp_path / "fine.srt"
        fine.write_text(mutants.TEXTS["plain.srt"])
        assert reader.read("fine", fine).outcome == "used"
        assert reader.read("endless", pipe).outcome == "problem"
        os.kill(reader.child.pid, signal.SIGSTOP)
        assert reader.read("stopped", fine).outcome == "too long"
        assert reader.read("fine", fine).outcome == "used"
    finally:
        reader.close()


def test_a_mutant_depends_only_on_its_name() -> None:
    originals = {name: text.encode() for name, text in mutants.TEXTS.items()}
    for name in ("plain.srt/bomb/1", "plain.vtt/flipped/2", "plain.ass/lying/3"):
        assert mutants.mutant(name, originals) == mutants.mutant(name, originals)
        assert mutants.mutant(name, originals) != originals[name.split("/")[0]]


def test_subtitles_above_the_size_limit_are_a_bad_row(tmp_path: Path) -> None:
    path = tmp_path / "video.srt"
    path.write_bytes(b"x" * (subtitles.MAX_FILE_BYTES + 1))
    with pytest.raises(BadRow, match="16,000,000 bytes"):
        subtitles.read(str(path))


def test_subtitles_above_the_row_limits_are_a_bad_row(tmp_path: Path) -> None:
    path = tmp_path / "video.srt"
    for text, message in (
        ("a\n" * 500_000, "500,007 line breaks, more than 500,000"),
        ("- a." + " - a." * 160_000, "160,004 rows of text, more than 150,000"),
    ):
        path.write_text(mutants.TEXTS["plain.srt"].rstrip("\n") + f"\n{text}")
        with pytest.raises(BadRow, match=message):
            subtitles.read(str(path))
