"""Whisper on a CPU: its transcripts, doubtful speech, and its windows."""

import tracemalloc
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from actors.hear.whisper import Whisper
from mustsee.errors import UserError
from mustsee.media import speech
from mustsee.media.sound import Sound, audio_chunks
from mustsee.media.speech import SAMPLE_RATE, VoiceDetection, windows
from mustsee.nn import weights
from mustsee.records import Video
from tests.support.hearing import INTERVIEW, english, run_context, video

pytestmark = pytest.mark.slow


def test_whisper_transcribes_most_words() -> None:
    row = english().open(run_context())(video(INTERVIEW))
    assert isinstance(row, Video)
    assert row.transcribed_by == "whisper (tiny.en)"
    texts = [x.text for x in row.lines or ()]
    assert texts[1] == "I have worked at the City Library for 11 years."
    assert "Children come in the morning and students come at night." in texts
    assert len(texts) == 7
    scores = [w.score for x in row.lines or () for w in x.words]
    assert 0.8 < sum(scores) / len(scores) < 1  # probabilities, not a constant
    assert min(scores) < 0.7


def sounds(path: Path, kind: str, language: str | None = None) -> str:
    """90 seconds of audio without speech, or of reversed speech."""
    seconds = np.arange(90 * SAMPLE_RATE) / SAMPLE_RATE
    rng = np.random.default_rng(0)
    if kind == "silence":
        samples = np.zeros(len(seconds))
    elif kind == "noise":
        samples = np.cumsum(rng.normal(0, 0.002, len(seconds)))
        samples -= np.convolve(samples, np.ones(400) / 400, "same")
    elif kind == "music":
        notes = (220.0, 277.2, 329.6)
        samples = sum(np.sin(2 * np.pi * f * seconds) for f in notes) * 0.2 * (seconds % 1 < 0.7)
    else:
        speech = np.concatenate([c.samples for c in audio_chunks(INTERVIEW, SAMPLE_RATE)])
        samples = speech[::-1] if kind == "backwards" else speech
    with av.open(str(path), "w") as out:
        stream = out.add_stream("pcm_s16le", rate=SAMPLE_RATE, layout="mono")
        if language:
            stream.metadata["language"] = language
        whole = (np.clip(samples, -1, 1) * 32767).astype(np.int16)[None]
        frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(whole), "s16", "mono")
        frame.rate, frame.pts, frame.time_base = SAMPLE_RATE, 0, Fraction(1, SAMPLE_RATE)
        out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
    return str(path)


@pytest.mark.parametrize("kind", ["silence", "noise", "music", "backwards"])
def test_made_up_speech_is_left_out(tmp_path: Path, kind: str) -> None:
    """Without voice activity detection only the doubt thresholds apply."""
    uri = sounds(tmp_path / "sound.mkv", kind)
    part = english(voice=VoiceDetection(threshold=0.0))
    believing = replace(part, doubt=None).open(run_context())(video(uri))
    counted: dict[str, int] = {}
    doubting = part.open(run_context(counted))(video(uri))
    assert isinstance(believing, Video)
    assert isinstance(doubting, Video)
    assert believing.lines, "the model makes up something for every sound"
    assert doubting.lines == ()
    assert "speech was heard, but" in (doubting.unheard or "")
    assert sum(counted.values()) >= 1
    assert part.open(run_context())(video(uri)) == doubting


def test_an_english_model_gives_no_lines_for_other_languages(tmp_path: Path) -> None:
    part = english()
    row = part.open(run_context())(video(sounds(tmp_path / "de.mkv", "speech", "deu"), end=9.0))
    assert isinstance(row, Video)
    assert (row.lines, row.language) == ((), "de")
    assert row.transcribed_by is None
    marked = video(sounds(tmp_path / "en.mkv", "speech", "eng"), end=9.0)
    row = part.open(run_context())(marked)
    assert isinstance(row, Video)
    assert row.lines
    assert row.unheard is None
    row = part.open(run_context())(video(sounds(tmp_path / "back.mkv", "backwards")))
    assert isinstance(row, Video)
    assert (row.lines, row.language) == ((), None)
    assert row.transcribed_by is None


@pytest.mark.parametrize("words", [51864, 51865])
def test_a_model_without_the_language_is_refused_before_the_job(words: int, tmp_path: Path) -> None:
    (tmp_path / "model.bin").touch()
    (tmp_path / "vocabulary.txt").write_text("".join(f"{n}\n" for n in range(words)))
    part = Whisper(model=str(tmp_path), language="de")
    if words == 51864:
        with pytest.raises(UserError, match=r"hear\.language='de'.*English only"):
            part.check()
        replace(part, language="en").check()
        replace(part, language=None).check()
    else:
        part.check()


def test_other_weights_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    part = english()
    known = weights.KNOWN_SHA256[part.model]
    monkeypatch.setitem(weights.KNOWN_SHA256, str(tmp_path), known)
    folder = weights.find(part.model)
    for file in folder.iterdir():
        (tmp_path / file.name).symlink_to(file)
    same = replace(part, model=str(tmp_path))
    assert callable(same.open(run_context()))
    (tmp_path / "model.bin").unlink()
    (tmp_path / "model.bin").write_bytes((folder / "model.bin").read_bytes()[:-1] + b"!")
    with pytest.raises(UserError, match=r"model\.bin' is not the expected file: its SHA-256 is"):
        same.open(run_context())


@pytest.mark.parametrize("seconds", [4.0, 11.0, 300.0])
def test_windows_tile_the_audio_and_split_in_pauses(seconds: float) -> None:
    pytest.importorskip("faster_whisper")
    sounds = list(audio_chunks(INTERVIEW, SAMPLE_RATE, 3.0))
    whole = np.concatenate([s.samples for s in sounds])
    window_list = list(windows(sounds, seconds=seconds))
    assert np.array_equal(np.concatenate([w.samples for w in window_list]), whole)
    assert all(len(w.samples) <= seconds * SAMPLE_RATE for w in window_list)
    for window in window_list:
        end = window.start + len(window.samples) / SAMPLE_RATE
        assert all(window.start <= s.start < s.end <= end + 1e-6 for s in window.speech)
    utterances = [s for w in window_list for s in w.speech]
    assert len(utterances) == 7


def test_a_gap_in_the_audio_ends_a_window() -> None:
    pytest.importorskip("faster_whisper")
    quiet = np.zeros(SAMPLE_RATE, np.float32)
    sounds = [Sound(0.0, quiet), Sound(1.0, quiet), Sound(9.0, quiet)]
    assert [(w.start, len(w.samples)) for w in windows(sounds)] == [
        (0.0, 2 * SAMPLE_RATE),
        (9.0, SAMPLE_RATE),
    ]


def test_the_sound_of_a_video_is_held_once_and_a_window_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Bytes in memory: of one window, and of the chunks that were read last."""
    chunk_bytes, window_bytes = 30 * SAMPLE_RATE * 4, 120 * SAMPLE_RATE * 4
    monkeypatch.setattr(speech, "_speech", lambda samples, voice: [])
    sounds = (Sound(30.0 * n, np.zeros(30 * SAMPLE_RATE, np.float32)) for n in range(20))
    lengths: list[int] = []
    tracemalloc.start()
    try:
        for window in windows(sounds, seconds=120.0):
            lengths.append(len(window.samples))
            del window
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert lengths == [120 * SAMPLE_RATE] * 5
    assert window_bytes < peak < window_bytes + 2.5 * chunk_bytes


def test_the_detector_of_speech_gets_few_frames_at_once_and_finds_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    vad = pytest.importorskip("faster_whisper.vad")
    chunks = audio_chunks(INTERVIEW, SAMPLE_RATE, 30.0)
    samples = np.tile(np.concatenate([s.samples for s in chunks]), 4)
    known = vad.get_vad_model()
    session, taken = getattr(known, "session", None) or known._session, list[int]()
    bare = vad.SileroVADModel.__new__(vad.SileroVADModel)
    bare.session = session

    class Watched:
        def run(self, names: None, inputs: dict[str, Any]) -> Any:
            taken.append(len(inputs["input"]))
            return session.run(names, inputs)

    frames = len(samples) // 512
    whole = samples[: frames * 512]
    in_blocks = speech.DetectorInBlocks(Watched())
    assert np.array_equal(in_blocks(whole.copy()), bare(whole.copy()))
    assert sum(taken) == frames > 3000
    assert max(taken) == 1000

    taken.clear()
    bare.session = Watched()
    monkeypatch.setattr(vad, "get_vad_model", lambda: bare)
    (window,) = windows([Sound(0.0, samples)], voice=VoiceDetection())
    assert len(window.speech) == 4 * 7
    assert max(taken) == 1000
