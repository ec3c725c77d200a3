"""The contract of every speech recogniser, and what each promises besides."""

import wave
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from actors.calls.endpoint import Endpoint
from actors.hear.auto import Auto, MusicDetector, SubtitleTranscript, auto
from actors.hear.openai import OpenAIHearing, Transcriptions
from actors.hear.whisper import Whisper
from actors.hear.whisperx import WhisperX, _words
from actors.part import Opened, Part, RunContext
from loopback.endpoint import Loopback
from mustsee.errors import BadRow, UserError
from mustsee.files import schemas
from mustsee.files.store import Store, identity
from mustsee.media.sound import audio_chunks
from mustsee.media.speech import SAMPLE_RATE, speech_windows
from mustsee.records import Line, Video
from tests.support import tiny_models
from tests.support.contract import worker
from tests.support.hearing import (
    EXAMPLES,
    INTERVIEW,
    english,
    nltk_tables,
    run_context,
    video,
)
from tests.support.parts import backwards

NAMES = ["subtitles", "auto", "tiny", "whisper", "whisperx", "openai"]
# WhisperX and its packages warn of things that are not needed here (torchcodec, versions).
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings(
    "ignore::UserWarning:pyannote.*", "ignore::UserWarning:torch.*",
    "ignore::DeprecationWarning:pyannote.*", "ignore::FutureWarning",
)]  # fmt: skip
VIDEO = str(EXAMPLES / "birdhouse.mp4")


def silent_video(path: Path, seconds: float = 3.0) -> str:
    """A video with an audio track without speech."""
    with av.open(str(path), "w") as out:
        audio = out.add_stream("aac", rate=SAMPLE_RATE, layout="mono")
        noise = np.random.default_rng(0).normal(0, 30, (1, round(seconds * SAMPLE_RATE)))
        frame = av.AudioFrame.from_ndarray(noise.astype(np.int16), "s16", "mono")
        frame.rate, frame.pts, frame.time_base = SAMPLE_RATE, 0, Fraction(1, SAMPLE_RATE)
        out.mux(audio.encode(frame))
        out.mux(audio.encode(None))
    return str(path)


@pytest.fixture(scope="session")
def tiny_whisper(tmp_path_factory: pytest.TempPathFactory) -> str:
    pytest.importorskip("torch")
    return str(tiny_models.whisper(tmp_path_factory.mktemp("models")))


@pytest.fixture(scope="session")
def tiny_aligner(tmp_path_factory: pytest.TempPathFactory) -> str:
    pytest.importorskip("torch")
    return str(tiny_models.wav2vec2(tmp_path_factory.mktemp("models")))


@pytest.fixture(scope="session")
def sentence_tables(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        nltk_tables(tmp_path_factory.mktemp("nltk"), patch)
        yield


@dataclass(frozen=True)
class Case:
    part: Part
    opened: Opened
    video: str
    listens: bool


def tiny(model: str) -> Whisper:
    return Whisper(
        model=model,
        language="en",
        compute_type="int8",
        beam_size=1,
        max_new_tokens=12,
        doubt=None,  # random weights have no confidence
        device="cpu",
        threads=2,
    )


@pytest.fixture(scope="session", params=NAMES)
def case(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Case]:
    name, video = request.param, INTERVIEW
    if name == "openai":
        with Loopback() as server:
            endpoint = Endpoint(model="whisper-1", base_url=server.url, key_env=None)
            part = OpenAIHearing(model=Transcriptions(endpoint=endpoint))
            run, _ = worker(part, Store(str(tmp_path_factory.mktemp("store"))))
            yield Case(part, lambda row: first(run(row)), video, True)
        return
    if name == "subtitles":
        part, video = SubtitleTranscript(), VIDEO
    elif name == "tiny":
        part = english()
    elif name == "whisper":
        part = tiny(request.getfixturevalue("tiny_whisper"))
    elif name == "whisperx":
        pytest.importorskip("whisperx", reason="the extra `whisperx` is not installed")
        request.getfixturevalue("sentence_tables")
        part = WhisperX(
            model=request.getfixturevalue("tiny_whisper"),
            aligner=request.getfixturevalue("tiny_aligner"),
            language="en",
            compute_type="int8",
            beam_size=1,
            device="cpu",
            vad="silero",
        )
    else:
        part = Auto(engine=english())
    yield Case(part, part.open(run_context()), video, name != "subtitles")


def first(found: list[Any]) -> Video:
    if isinstance(found[0], Exception):
        raise found[0]
    return found[0]


def hear(case: Case, row: Video) -> Video:
    transcribed = case.opened(row)
    assert isinstance(transcribed, Video)
    return transcribed


def check(row: Video, case: Case) -> tuple[Line, ...]:
    """Check a transcript: schema, order, times within the video, words within lines."""
    assert row.lines is not None
    assert bool(row.transcribed_by) == bool(row.lines)
    assert row.lines or row.language is None
    assert set(case.part.writes) >= {"lines", "language", "transcribed_by"}
    for name in case.part.writes:
        column = schemas.column(name, [getattr(row, name)])
        assert column.type == schemas.schema(Video).field(name).type
    assert all(0 <= x.start <= x.end and x.text.strip() for x in row.lines)
    assert all(a.end <= b.start for a, b in pairwise(row.lines))
    for line in row.lines:
        assert all(line.start <= w.start <= w.end <= line.end for w in line.words)
        assert all(type(w.start) is float and 0 <= w.score <= 1 for w in line.words)
    return row.lines


def test_speech_becomes_timed_lines(case: Case) -> None:
    row = hear(case, video(case.video, end=9.0))
    lines = check(row, case)
    assert lines
    assert lines[-1].end <= 9.0
    assert row.title is None
    assert (row.video_id, row.uri) == ("v", case.video)
    if case.listens:
        # An engine for English only, without confidence scores, sets no language.
        guessed = getattr(case.part, "doubt", 0) is None
        assert row.language == (None if guessed else "en")
        # The random Whisper writes more in 9 s than the random aligner can place.
        assert any(line.words for line in lines) or isinstance(case.part, WhisperX)
    assert hear(case, video(case.video, end=9.0)) == row


def test_whisperx_aligns_or_notes_that_it_did_not(
    request: pytest.FixtureRequest,
) -> None:
    pytest.importorskip("whisperx", reason="the extra `whisperx` is not installed")
    request.getfixturevalue("sentence_tables")
    counted: dict[str, int] = {}
    part = WhisperX(
        model=request.getfixturevalue("tiny_whisper"),
        aligner=request.getfixturevalue("tiny_aligner"),
        language="en",
        compute_type="int8",
        beam_size=1,
        device="cpu",
    )
    row = part.open(run_context(counted))(video(INTERVIEW))
    assert isinstance(row, Video)
    assert any(line.words for line in row.lines or ())
    assert "no aligner" not in (row.transcribed_by or "")
    assert not counted
    maltese = replace(part, aligner=None, language="mt")
    row = maltese.open(run_context(counted))(video(INTERVIEW, end=9.0))
    assert isinstance(row, Video)
    assert row.lines
    assert not any(line.words for line in row.lines)
    assert "no aligner for 'mt'" in (row.transcribed_by or "")
    assert counted == {"hear.unaligned.mt": 1}


def test_a_clip_keeps_the_times_of_the_video(case: Case) -> None:
    lines = check(hear(case, video(case.video, start=13.5, end=17.5)), case)
    assert lines
    assert all(x.start >= 13.4 and x.end <= 17.6 for x in lines)


def test_silence_is_an_empty_transcript(case: Case, tmp_path: Path) -> None:
    for uri in (str(EXAMPLES / "seasons.webm"), silent_video(tmp_path / "silent.mp4")):
        assert check(hear(case, video(uri)), case) == ()


@pytest.mark.parametrize("uri", [str(EXAMPLES / "broken.mp4"), "/no/such/video.mp4"])
def test_a_bad_row_beside_good_ones(case: Case, uri: str) -> None:
    with pytest.raises(BadRow, match=r"broken|video"):
        hear(case, video(uri))
    assert hear(case, video(case.video, end=3.0)).lines


def test_hardware_is_not_part_of_the_key(tmp_path: Path) -> None:
    part = Whisper(model=str(tmp_path))
    assert identity(replace(part, device="cuda", batch_size=64, threads=4)) == identity(part)
    assert identity(replace(part, compute_type="int8")) != identity(part)
    assert identity(Auto(engine=part)) != identity(Auto(engine=replace(part, beam_size=1)))


def test_auto_uses_the_engine_if_it_is_installed() -> None:
    part = english()
    missing = replace(part, model="package:no_such_wheel/model")
    others = {
        "subtitles": SubtitleTranscript(),
        "music": MusicDetector(model="package:no_such_wheel/model"),
    }
    chosen = auto(engine=part, **others)
    assert (chosen.engine, chosen.music) == (part, None)
    opened = auto(engine=missing, **others).open(run_context())
    row = opened(video(VIDEO))
    assert isinstance(row, Video)
    assert row.transcribed_by == "subtitles (file)", "they need none"
    with pytest.raises(BadRow, match=r"no speech recogniser is installed \(.*no_such_wheel"):
        opened(video(INTERVIEW))
    # A missing model that was set by name is an error.
    with pytest.raises(UserError, match="hf download acme/tiny"):
        auto(engine=Whisper(model="acme/tiny"), **others)


def test_subtitles_come_first() -> None:
    class Unused:
        def open(self, run: RunContext) -> Opened:
            def hear(row: Video) -> Video:
                raise AssertionError("subtitles are there")

            return hear

    engine: Any = Unused()
    row = Auto(engine=engine).open(run_context())(video(VIDEO))
    assert isinstance(row, Video)
    assert len(row.lines or ()) == 15
    assert row.transcribed_by == "subtitles (file)"


@dataclass(frozen=True)
class Deaf:
    """A recogniser that gives no lines, and what it knows of the reason."""

    unheard: str | None = None
    language: str | None = None

    def open(self, run: RunContext) -> Opened:
        return lambda row: replace(row, lines=(), unheard=self.unheard, language=self.language)


@pytest.mark.parametrize(
    ("level", "shares", "engine", "reason"),
    [
        (0.0, (0, 0, 1), Deaf(unheard="1 line is doubtful"), "no speech: silent"),
        (0.3, (0, 0, 1), Deaf(unheard="1 line is doubtful"), "no speech: music"),
        (0.3, (1, 0, 0), Deaf(unheard="1 line is doubtful"), "1 line is doubtful"),
        (0.3, (0, 0, 0), Deaf(), "sound without recognised speech (music or noise)"),
        (0.3, (0, 0, 0), Deaf(language="de"), None),
    ],
)
def test_a_video_without_lines_says_why(
    level: float,
    shares: tuple[int, int, int],
    engine: Any,
    reason: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        "actors.hear.auto.load_detector",
        lambda folder: lambda samples: np.tile(np.float32(shares), (len(samples) // 160, 1)),
    )
    path = str(tmp_path / "sound.wav")
    with wave.open(path, "wb") as out:
        out.setparams((1, 2, SAMPLE_RATE, 0, "NONE", ""))
        samples = np.random.default_rng(0).uniform(-level, level, 2 * SAMPLE_RATE)
        out.writeframes((samples * 32767).astype("<i2").tobytes())
    part = Auto(engine=engine, music=MusicDetector(model=str(tmp_path)))
    row = part.open(run_context())(video(path))
    assert isinstance(row, Video)
    assert (row.lines, row.unheard) == ((), reason)


@dataclass(frozen=True)
class DeafOnce:
    """A recogniser that decodes the sound, gives no lines and removes the file."""

    def open(self, run: RunContext) -> Opened:
        def hear(row: Video) -> Video:
            assert list(audio_chunks(row.uri))
            Path(row.uri).unlink()
            return replace(row, lines=())

        return hear


def test_the_reason_needs_no_second_decoding(tmp_path: Path) -> None:
    path = tmp_path / "sound.wav"
    with wave.open(str(path), "wb") as out:
        out.setparams((1, 2, SAMPLE_RATE, 0, "NONE", ""))
        out.writeframes(bytes(4 * SAMPLE_RATE))
    engine: Any = DeafOnce()
    part: Any = Auto(engine=engine)
    assert part.open(run_context())(video(str(path))).unheard == "no speech: silent"


def test_a_named_subtitle_file_counts_from_the_video(tmp_path: Path) -> None:
    (tmp_path / "words.de.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\nHallo\n")
    opened = SubtitleTranscript().open(run_context())
    row = opened(video(str(tmp_path / "video.mp4"), subtitles="words.de.srt"))
    assert isinstance(row, Video)
    assert (row.language, [x.text for x in row.lines or ()]) == ("de", ["Hallo"])
    with pytest.raises(BadRow, match=r"none\.srt"):
        opened(video(str(tmp_path / "video.mp4"), subtitles="none.srt"))


@pytest.mark.parametrize(("name", "seconds"), [("tiny", 8.0), ("any", 5.0)])
def test_a_video_is_transcribed_in_chunks_as_in_one(
    name: str, seconds: float, request: pytest.FixtureRequest
) -> None:
    """Windows are split before an utterance that would cross their border."""
    if name == "tiny":
        part: Any = english(window=seconds)
    else:  # a multilingual engine uses the first window's language for all
        model = request.getfixturevalue("tiny_whisper")
        part = replace(tiny(model), window=seconds, language=None)
    cut = [w.end for w in speech_windows(video(INTERVIEW), seconds=seconds, voice=part.voice)]
    assert len(cut) >= 3
    assert any(end % seconds for end in cut[:-1]), "no utterance goes on over a border"
    counted: tuple[dict[str, int], dict[str, int]] = ({}, {})
    one = part.open(run_context(counted[0]))(video(INTERVIEW))
    many = part.open(replace(run_context(counted[1]), pieces=backwards))(video(INTERVIEW))
    assert one.lines
    assert many == one
    assert counted[0] == counted[1]


def test_unaligned_words_lie_between_their_neighbours() -> None:
    raw = [
        {"word": "In"},
        {"word": "the", "start": 1.0, "end": 2.0, "score": 0.9},
        {"word": "1990"},
        {"word": "s"},
        {"word": "we", "start": 4.0, "end": 5.0, "score": 0.5},
    ]
    words = _words(raw, 10.0, 10.5, 16.0)
    assert [(w.word, w.start, w.end) for w in words] == [
        ("In", 10.5, 11.0),
        ("the", 11.0, 12.0),
        ("1990", 12.0, 13.0),
        ("s", 13.0, 14.0),
        ("we", 14.0, 15.0),
    ]


def test_a_missing_model_is_named_with_the_command_that_fetches_it() -> None:
    whisper, aligned = Whisper(model="acme/tiny"), WhisperX(model="acme/tiny")
    for when in (whisper.check, lambda: whisper.open(run_context()), aligned.check):
        with pytest.raises(UserError, match=r"'acme/tiny'.*cache '.*hf download acme/tiny"):
            when()
    with pytest.raises(UserError, match=r"hear\.vad='webrtc'"):
        WhisperX(model="acme/tiny", vad="webrtc")
