"""hear=whisperx with the package itself: `make test-whisperx`, which gives it an environment.

Real: Whisper tiny.en, and the segmentation of speakers in whisperx's wheel. Random: the aligner's
and the voices' weights, so words have times and lines have speakers, but not the right ones.
Nothing is fetched.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect
from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

import pytest

from actors.hear.whisperx import WhisperX
from mustsee.errors import UserError
from mustsee.nn import weights
from mustsee.records import Video
from tests.support import fake_whisperx, tiny_models, tiny_pyannote
from tests.support.hearing import INTERVIEW, english, nltk_tables, run_context, video

pytest.importorskip("whisperx", reason="whisperx is not installed here: `make test-whisperx`")
# Its packages warn of what is not needed here: torchcodec, versions, old names.
pytestmark = pytest.mark.filterwarnings("ignore")
SPOKEN = {"city", "library", "evening."}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    tiny_models.wav2vec2(folder)
    return folder


@pytest.fixture
def part(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WhisperX:
    """Whisper tiny.en (real) with a random aligner."""
    nltk_tables(tmp_path, monkeypatch)
    monkeypatch.delenv("PYANNOTE_METRICS_ENABLED", raising=False)  # which pyannote sets
    return WhisperX(
        model=english().model,
        aligner=str(folder / "wav2vec2"),
        language="en",
        compute_type="int8",
        beam_size=1,
        device="cpu",
        threads=2,
    )


def hear(part: WhisperX, counted: dict[str, int] | None = None) -> Video:
    row = part.open(run_context(counted))(video(INTERVIEW))
    assert isinstance(row, Video)
    return row


def check_words(row: Video) -> None:
    """Every aligned word lies within its line and after the one before it."""
    for line in row.lines or ():
        assert [w.word for w in line.words] in ([], line.text.split())
        times = [t for w in line.words for t in (w.start, w.end)]
        assert times == sorted(times)
        assert all(line.start <= t <= line.end for t in times)
        assert all(0 <= w.score <= 1 for w in line.words)


def test_the_version_is_the_one_that_is_written_down() -> None:
    assert importlib.metadata.version("whisperx") == fake_whisperx.VERSION


@pytest.mark.parametrize("place", fake_whisperx.api())
def test_the_fake_has_the_parameters_of_the_package(place: str) -> None:
    module, _, name = place.partition(":")
    theirs = reduce(getattr, name.split("."), importlib.import_module(module))
    assert parameters(fake_whisperx.api()[place]) == parameters(theirs)


def parameters(function: Callable[..., Any]) -> list[tuple[str, Any]]:
    return [(p.name, p.default) for p in inspect.signature(function).parameters.values()]


@pytest.mark.parametrize("name", ["DEFAULT_ALIGN_MODELS_TORCH", "DEFAULT_ALIGN_MODELS_HF"])
def test_the_fake_has_aligners_of_the_package(name: str) -> None:
    from whisperx import alignment

    ours = fake_whisperx.FakeWhisperX().modules()["whisperx.alignment"][name]
    assert ours.items() <= getattr(alignment, name).items()
    assert "mt" not in getattr(alignment, name), "the language without an aligner in the tests"


@pytest.mark.parametrize("vad", ["pyannote", "silero"])
def test_real_words_get_times(part: WhisperX, vad: str) -> None:
    counted: dict[str, int] = {}
    row = hear(replace(part, vad=vad), counted)
    assert {*" ".join(x.text.lower() for x in row.lines or ()).split()} >= SPOKEN
    check_words(row)
    unplaced = sum(not x.words for x in row.lines or ())
    assert unplaced < len(row.lines or ())
    assert counted == ({"hear.unaligned_lines": unplaced} if unplaced else {})


def test_lines_get_speakers_and_pyannote_reports_nothing(part: WhisperX, tmp_path: Path) -> None:
    from pyannote.audio.telemetry.metrics import is_metrics_enabled

    counted: dict[str, int] = {}
    diarizer = tiny_pyannote.diarizer(tmp_path)
    row = hear(replace(part, diarizer=str(diarizer), max_speakers=2), counted)
    check_words(row)
    speakers = {x.speaker for x in row.lines or ()} - {None}
    assert speakers
    assert speakers <= {"SPEAKER_00", "SPEAKER_01"}
    unnamed = sum(x.speaker is None for x in row.lines or ())
    assert counted.get("hear.lines_without_speaker", 0) == unnamed
    assert not is_metrics_enabled()


def test_a_pipeline_of_gated_models_names_the_token(part: WhisperX, tmp_path: Path) -> None:
    diarizer = tiny_pyannote.diarizer(tmp_path, segmentation="pyannote/segmentation-3.0")
    said = r"hear\.diarizer=.* pyannote/segmentation-3\.0\. .*HF_TOKEN"
    with pytest.raises(UserError, match=said):
        hear(replace(part, diarizer=str(diarizer)))


def test_a_diarizer_that_fails_is_named(part: WhisperX, tmp_path: Path) -> None:
    # This clustering must be told the number of speakers, which it learns while it runs.
    diarizer = tiny_pyannote.diarizer(tmp_path, clustering="KMeansClustering")
    with pytest.raises(RuntimeError, match=r"diarizer '.*' failed on seconds .*num_speakers"):
        hear(replace(part, diarizer=str(diarizer)))


def test_a_language_without_an_aligner_keeps_its_segments(part: WhisperX) -> None:
    counted: dict[str, int] = {}
    row = hear(replace(part, aligner=None, language="mt"), counted)
    assert row.lines
    assert not any(x.words for x in row.lines)
    assert "no aligner for 'mt'" in (row.transcribed_by or "")
    assert counted == {"hear.unaligned.mt": 1}


def test_the_english_aligner_of_torchaudio(part: WhisperX) -> None:
    torch = pytest.importorskip("torch")
    file = "wav2vec2_fairseq_base_ls960_asr_ls960.pth"
    if not (Path(torch.hub.get_dir()) / "checkpoints" / file).exists():
        pytest.skip(f"360 MB of the network: no {file} in torch's cache, which torchaudio fills")
    row = hear(replace(part, aligner=None))
    check_words(row)
    scores = [w.score for x in row.lines or () for w in x.words]
    assert sum(scores) / len(scores) > 0.5


def test_the_speakers_of_pyannote(part: WhisperX) -> None:
    name = "pyannote/speaker-diarization-community-1"
    try:
        weights.find(name)
    except UserError:
        pytest.skip(f"the network and a token: {name} is gated, and not in Hugging Face's cache")
    assert all(x.speaker for x in hear(replace(part, diarizer=name)).lines or ())
