"""hear=whisperx against the API of whisperx 3.8.6 without its weights: words get times, lines
speakers, and what is missing or fails is said by name. Its weights: tests/real/test_whisperx.py.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from actors.engine.stage import problem_from_error
from actors.hear.whisperx import WhisperX
from mustsee.errors import UserError
from mustsee.media.speech import speech_windows
from mustsee.records import Video
from tests.support.fake_whisperx import SEGMENTS, FakeWhisperX
from tests.support.hearing import INTERVIEW, nltk_tables, run_context, video

# The extra `offline` brings the detector of speech.
pytest.importorskip("faster_whisper")
pytest.importorskip("nltk")


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeWhisperX:
    monkeypatch.delenv("PYANNOTE_METRICS_ENABLED", raising=False)
    return FakeWhisperX().install(monkeypatch)


@pytest.fixture
def part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WhisperX:
    """Folders in the place of weights: the fake loads none."""
    nltk_tables(tmp_path, monkeypatch)
    for name in ("whisper", "aligner", "diarizer"):
        (tmp_path / name).mkdir()
    (tmp_path / "whisper/model.bin").touch()
    (tmp_path / "diarizer/config.yaml").touch()
    return WhisperX(model=str(tmp_path / "whisper"), device="cpu", threads=1)


def with_speakers(part: WhisperX, **changed: Any) -> WhisperX:
    return replace(part, diarizer=str(Path(part.model).parent / "diarizer"), **changed)


def hear(part: WhisperX, counted: dict[str, int] | None = None, **fields: Any) -> Video:
    row = part.open(run_context(counted))(video(INTERVIEW, **({"end": 9.0} | fields)))
    assert isinstance(row, Video)
    return row


def test_words_get_times_and_lines_speakers(fake: FakeWhisperX, part: WhisperX) -> None:
    counted: dict[str, int] = {}
    part = with_speakers(part, min_speakers=1, max_speakers=3)
    row = hear(part, counted)
    assert [x.text for x in row.lines or ()] == [s["text"].strip() for s in SEGMENTS]
    assert [x.speaker for x in row.lines or ()] == ["SPEAKER_00", "SPEAKER_01"]
    first, second = row.lines or ()
    assert [(w.word, w.start, w.end, w.score) for w in first.words] == [
        ("Hello", 0.5, 1.5, 0.9),
        ("there.", 1.5, 2.5, 0.9),
    ]
    # The aligner has no digits: "7" lies between its neighbours.
    assert [(w.word, w.start, w.end, w.score) for w in second.words][2] == ("7", 4.0, 4.5, 0.0)
    assert all(type(w.start) is float for line in row.lines or () for w in line.words)
    assert (row.language, row.transcribed_by) == ("en", f"whisperx ({part.model})")
    assert not counted
    assert fake.calls["diarize"]["min_speakers"] == 1
    assert fake.calls["diarize"]["max_speakers"] == 3


def test_the_settings_reach_whisperx_and_nothing_is_fetched(
    fake: FakeWhisperX, part: WhisperX
) -> None:
    part = with_speakers(part, language="en", beam_size=3, compute_type="int8", batch_size=1)
    aligner = str(Path(part.model).parent / "aligner")
    hear(replace(part, aligner=aligner))
    loaded = fake.calls["load_model"]
    assert (loaded["whisper_arch"], loaded["device"], loaded["threads"]) == (part.model, "cpu", 1)
    assert (loaded["compute_type"], loaded["language"]) == ("int8", "en")
    assert loaded["asr_options"] == {"beam_size": 3}
    assert loaded["local_files_only"] is True
    assert (loaded["vad_model"], loaded["vad_method"]) == (None, "pyannote")
    assert fake.calls["transcribe"]["batch_size"] == 2
    assert fake.calls["load_align_model"]["language_code"] == "en"
    assert fake.calls["load_align_model"]["model_name"] == aligner
    assert fake.calls["load_diarizer"]["model_name"] == part.diarizer
    assert fake.calls["load_diarizer"]["device"] == "cpu"
    assert os.environ["PYANNOTE_METRICS_ENABLED"] == "0", "pyannote reports to its makers"


def test_our_detector_of_speech_takes_the_place_of_whisperx_own(
    fake: FakeWhisperX, part: WhisperX
) -> None:
    hear(replace(part, vad="silero"), start=3.0, end=12.0)
    spans = fake.calls["speech"]["spans"]
    assert spans
    assert all(0 <= start < end <= 9.0 for start, end in spans), "seconds of the window"


def test_later_windows_have_their_times_and_speakers_of_their_own(
    fake: FakeWhisperX, part: WhisperX
) -> None:
    part = with_speakers(part, window=7.0)
    first, second, *_ = speech_windows(video(INTERVIEW), seconds=part.window)
    lines = hear(part, end=None).lines or ()
    assert {x.speaker for x in lines if x.end <= first.end} == {"SPEAKER_00", "SPEAKER_01"}
    later = [x for x in lines if x.start >= second.start]
    assert (later[0].start, later[0].speaker) == (second.start + 0.5, "SPEAKER_00 (2)")
    assert later[0].words[0].start == second.start + 0.5
    assert fake.calls["transcribe"]["language"] == "en", "the first window's"


@pytest.mark.parametrize(
    ("changed", "said", "counter"),
    [
        ({"language": "mt"}, "times of segments: no aligner for 'mt'", "hear.unaligned.mt"),
        ({"aligner": "none"}, "times of segments: no aligner for 'en'", "hear.unaligned.en"),
    ],
)
def test_a_language_without_an_aligner_is_said(
    fake: FakeWhisperX, part: WhisperX, changed: dict[str, Any], said: str, counter: str
) -> None:
    counted: dict[str, int] = {}
    row = hear(replace(part, **changed), counted)
    assert len(row.lines or ()) == 2
    assert not any(x.words for x in row.lines or ())
    assert (row.transcribed_by or "").endswith(said)
    assert counted == {counter: 1}
    assert "align" not in fake.calls


def test_an_aligner_that_is_not_there_or_does_not_load_ends_the_run(
    fake: FakeWhisperX, part: WhisperX
) -> None:
    with pytest.raises(UserError, match="hf download comodoro/wav2vec2-xls-r-300m-cs-250"):
        hear(replace(part, language="cs"))
    fake.failure["load_align_model"] = ValueError("The chosen align_model could not be found")
    with pytest.raises(UserError, match=r"aligner for 'en'.*could not be found.*hear\.aligner="):
        hear(part)
    with pytest.raises(UserError, match="no model folder at '/no/aligner'"):
        replace(part, aligner="/no/aligner").check()


def test_lines_that_are_not_aligned_are_counted(fake: FakeWhisperX, part: WhisperX) -> None:
    counted: dict[str, int] = {}
    fake.unplaced = (str(SEGMENTS[1]["text"]),)
    row = hear(part, counted)
    assert (row.transcribed_by or "").endswith(", 1 of 2 lines not aligned")
    assert counted == {"hear.unaligned_lines": 1}


@pytest.mark.parametrize("turns", [(), ((0.0, 2.0, "SPEAKER_00"),)])
def test_lines_without_a_speaker_are_counted(
    fake: FakeWhisperX, part: WhisperX, turns: tuple[tuple[float, float, str], ...]
) -> None:
    counted: dict[str, int] = {}
    fake.turns, unnamed = turns, 2 - len(turns)
    row = hear(with_speakers(part), counted)
    assert sum(x.speaker is None for x in row.lines or ()) == unnamed
    assert (row.transcribed_by or "").endswith(f", {unnamed} of 2 lines without a speaker")
    assert counted == {"hear.lines_without_speaker": unnamed}


def test_a_missing_token_is_said_before_anything_is_transcribed(
    fake: FakeWhisperX, part: WhisperX
) -> None:
    fake.failure["load_diarizer"] = OSError("Check your connection,\nor the cache")
    said = r"hear\.diarizer='.*diarizer': Could .* pyannote/segmentation-3\.0\. OSError: .*HF_TOKEN"
    with pytest.raises(UserError, match=said) as caught:
        hear(with_speakers(part))
    assert "\n" not in str(caught.value)
    assert "transcribe" not in fake.calls


@pytest.mark.parametrize("name", ["pyannote/speaker-diarization-community-1", "aligner"])
def test_a_diarizer_that_is_not_there_is_said_before_any_work(part: WhisperX, name: str) -> None:
    place = name if "/" in name else str(Path(part.model).parent / name)  # a folder without a file
    with pytest.raises(UserError, match=rf"hear\.diarizer='.*{name}'.*HF_TOKEN"):
        replace(part, diarizer=place).check()


def test_a_failing_diarizer_is_the_problem_of_its_row(fake: FakeWhisperX, part: WhisperX) -> None:
    heard = with_speakers(part).open(run_context())
    fake.failure["diarize"] = ValueError("no frames")
    with pytest.raises(RuntimeError, match="seconds 0 to 9") as caught:
        heard(video(INTERVIEW, end=9.0))
    problem = problem_from_error("hear", caught.value)
    assert str(with_speakers(part).diarizer) in problem.message
    assert "ValueError: no frames" in problem.message
    del fake.failure["diarize"]
    again = heard(video(INTERVIEW, end=9.0))
    assert isinstance(again, Video)
    assert all(x.speaker for x in again.lines or ())


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"min_speakers": 2}, r"hear\.min_speakers=2.*hear\.diarizer="),
        ({"max_speakers": 0}, r"hear\.max_speakers=0.*hear\.diarizer="),
        ({"diarizer": "x", "min_speakers": 3, "max_speakers": 2}, "min_speakers=3 is more than"),
    ],
)
def test_speakers_that_no_diarizer_can_find_are_refused(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said):
        WhisperX(model="acme/tiny", **changed)
