"""hear=whisperx: batched Whisper, forced alignment to word times, and speakers if asked for (Bain
et al. 2023, WhisperX). Needs the extra `whisperx`; it pays only with a GPU.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

from actors.part import Opened, RunContext
from mustsee.errors import UserError, need
from mustsee.files.store import hardware
from mustsee.media import transcript
from mustsee.media.speech import SpeechWindow, speech_windows
from mustsee.nn import weights
from mustsee.records import Line, Video, Word

_GATED = (
    "pyannote's own models are gated: accept the conditions on their pages at huggingface.co, set "
    "HF_TOKEN, and fetch them with `hf download`"
)


@dataclass(frozen=True, kw_only=True)
class WhisperX:
    """One line per aligned sentence, with word times and, with a `diarizer`, speakers.

    A language without an aligner keeps the times of its segments, and so do lines that the aligner
    cannot place; the diarizer may leave lines without a speaker. `transcribed_by` notes all three
    and the run counts them. Speakers are distinguished within a window; their names contain its
    number from the second window on. A diarizer that fails on a window is the row's problem.
    """

    version: ClassVar[str] = "4"
    reads: ClassVar[tuple[str, ...]] = ("digest", "start", "end")
    needs: ClassVar[tuple[str, ...]] = ("uri",)
    writes: ClassVar[tuple[str, ...]] = ("lines", "language", "transcribed_by")

    model: str
    """CTranslate2 folder, or Hugging Face id."""
    revision: str | None = weights.revision_field()
    """Commit or tag of the model; null: the one in the cache."""
    compute_type: str = "float16"
    """Numeric type: float16, bfloat16, int8_float16, int8, float32."""
    language: str | None = None
    """Spoken language, such as en; null: detected per video."""
    beam_size: int = 5
    """Width of the beam search."""
    vad: str = "pyannote"
    """Speech detection: pyannote (in whisperx's wheel) or silero."""
    aligner: str | None = None
    """Wav2vec2 folder or id for word times; null: WhisperX's choice per language; none: no word
    times."""
    diarizer: str | None = None
    """Pyannote pipeline folder or id, for speaker tags; null: no speaker tags."""
    min_speakers: int | None = None
    """Fewest speakers, where known."""
    max_speakers: int | None = None
    """Most speakers, where known."""
    window: float = 1800.0
    """Seconds of sound held in memory; speakers are distinguished within a window."""
    device: str = hardware("cuda")
    """Device: cuda or cpu (not part of the result's identity)."""
    batch_size: int = hardware(16)
    """Speech segments decoded together."""
    threads: int = hardware(4)
    """CPU threads per worker."""

    def __post_init__(self) -> None:
        if self.vad not in ("pyannote", "silero"):
            raise UserError(f"hear.vad={self.vad!r}: expected 'pyannote' or 'silero'")
        fewest, most = self.min_speakers, self.max_speakers
        if self.diarizer is None and (fewest is not None or most is not None):
            raise UserError(
                f"hear.min_speakers={fewest}, hear.max_speakers={most}: they need a diarizer; set "
                "hear.diarizer= too, or leave them out"
            )
        if fewest is not None and most is not None and fewest > most:
            raise UserError(
                f"hear.min_speakers={fewest} is more than hear.max_speakers={most}: swap them"
            )

    def check(self, budget_usd: float | None = None) -> None:
        """Raise UserError if the weights of the model, a named aligner or diarizer are missing."""
        weights.find_file(weights.find(self.model, self.revision), "model.bin")
        if self.aligner not in (None, "none"):
            weights.find(self.aligner)
        if self.diarizer is not None:
            _find_diarizer(self.diarizer)

    def open(self, run: RunContext) -> Opened:
        models = WhisperXModels(self)

        def hear(video: Video) -> Video:
            language, lines, aligned = self.language, list[Line](), True
            for number, window in enumerate(speech_windows(video, seconds=self.window)):
                language, new, aligned = models.transcribe_window(window, language, number)
                lines += new
            ordered = transcript.order_lines(lines)
            by = f"whisperx ({self.model})"
            if not aligned:
                run.count(f"hear.unaligned.{language}", 1)
                by += f", times of segments: no aligner for {language!r}"
            elif unplaced := sum(not line.words for line in ordered):
                run.count("hear.unaligned_lines", unplaced)
                by += f", {unplaced} of {len(ordered)} lines not aligned"
            if self.diarizer and (unnamed := sum(not line.speaker for line in ordered)):
                run.count("hear.lines_without_speaker", unnamed)
                by += f", {unnamed} of {len(ordered)} lines without a speaker"
            return transcript.with_transcript(video, ordered, by=by, language=language)

        return hear


class WhisperXModels:
    """The loaded models: Whisper, aligners by language, and the diarizer."""

    def __init__(self, config: WhisperX) -> None:
        # pyannote, which whisperx imports, would report each use to its makers.
        os.environ.setdefault("PYANNOTE_METRICS_ENABLED", "0")
        need("hear=whisperx", "mustsee[whisperx]", "whisperx.alignment", "whisperx.asr", "nltk")
        config.check()
        import whisperx.asr  # pyright: ignore[reportMissingImports]

        self.config = config
        self._aligners: dict[str, tuple[Any, Any] | None] = {}
        self._vad = _silero() if config.vad == "silero" else None
        _sentence_splitter()
        self._diarizer = _load_diarizer(config.diarizer, config.device) if config.diarizer else None
        self._asr = whisperx.asr.load_model(
            str(weights.find(config.model, config.revision)),
            config.device,
            compute_type=config.compute_type,
            asr_options={"beam_size": config.beam_size},
            language=config.language,
            vad_model=self._vad,
            vad_method="pyannote",
            local_files_only=True,
            threads=config.threads,
        )

    def transcribe_window(
        self, window: SpeechWindow, language: str | None, number: int
    ) -> tuple[str, list[Line], bool]:
        """The language of a window, its lines, and whether they are aligned."""
        if self._vad is not None:
            self._vad.speech = [
                (s.start - window.start, s.end - window.start) for s in window.speech
            ]
        result = self._asr.transcribe(
            window.samples, batch_size=max(2, self.config.batch_size), language=language
        )
        spoken = str(result["language"])
        aligner = self._aligner(spoken)
        if aligner and result["segments"]:
            from whisperx.alignment import align  # pyright: ignore[reportMissingImports]

            model, metadata = aligner
            result = align(result["segments"], model, metadata, window.samples, self.config.device)
        result = self._with_speakers(result, window)
        lines = _lines(result["segments"], window.start, number)
        return (
            spoken,
            list(transcript.lines_between(lines, window.start, window.end)),
            bool(aligner),
        )

    def _aligner(self, language: str) -> tuple[Any, Any] | None:
        if language not in self._aligners:
            self._aligners[language] = self._load_aligner(language)
        return self._aligners[language]

    def _load_aligner(self, language: str) -> tuple[Any, Any] | None:
        from whisperx import alignment  # pyright: ignore[reportAttributeAccessIssue]

        if self.config.aligner == "none":
            return None
        name = self.config.aligner or alignment.DEFAULT_ALIGN_MODELS_HF.get(language)
        if name is not None:
            name = str(weights.find(name))
        elif language not in alignment.DEFAULT_ALIGN_MODELS_TORCH:
            return None
        try:
            return alignment.load_align_model(language, self.config.device, model_name=name)
        except (OSError, ValueError) as error:
            raise UserError(
                f"cannot load the aligner for {language!r}: {error}; give a wav2vec2 folder or id "
                "as hear.aligner="
            ) from error

    def _with_speakers(self, result: Any, window: SpeechWindow) -> Any:
        if self._diarizer is None or not result["segments"]:
            return result
        from whisperx.diarize import assign_word_speakers  # pyright: ignore[reportMissingImports]

        try:
            turns = self._diarizer(
                window.samples,
                min_speakers=self.config.min_speakers,
                max_speakers=self.config.max_speakers,
            )
        except Exception as error:  # pyannote has no exception of its own
            raise RuntimeError(
                f"the diarizer {self.config.diarizer!r} failed on seconds {window.start:.0f} to "
                f"{window.end:.0f}: {type(error).__name__}: {error}; without hear.diarizer the "
                "video is transcribed without speakers"
            ) from error
        return assign_word_speakers(turns, result)


def _find_diarizer(path_or_id: str) -> Path:
    """Return the folder of a pyannote pipeline. Raises UserError, which names the token."""
    try:
        folder = weights.find(path_or_id)
        weights.find_file(folder, "config.yaml")
    except UserError as error:
        raise UserError(f"hear.diarizer={path_or_id!r}: {error}; {_GATED}") from error
    return folder


def _load_diarizer(path_or_id: str, device: str) -> Any:
    """Return whisperx's pipeline. Raises UserError for whatever keeps it from loading, such as a
    pipeline that names gated models, for which there is no token.
    """
    from whisperx.diarize import DiarizationPipeline  # pyright: ignore[reportMissingImports]

    folder, printed = _find_diarizer(path_or_id), io.StringIO()
    try:
        with redirect_stdout(printed):  # pyannote prints the name of a model that it cannot have
            return DiarizationPipeline(model_name=str(folder), device=device)
    except Exception as error:  # of the hub, torch, yaml or pyannote
        reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
        missing = [x for x in printed.getvalue().splitlines() if x.startswith("Could not download")]
        raise UserError(
            f"cannot load hear.diarizer={path_or_id!r}: {' '.join((*missing, reason))}; {_GATED}"
        ) from error


def _silero() -> Any:
    """A voice activity detector for whisperx that returns the speech of `mustsee.media.speech`."""
    from whisperx.diarize import Segment  # pyright: ignore[reportMissingImports]
    from whisperx.vads.vad import Vad  # pyright: ignore[reportMissingImports]

    class DetectedSpeech(Vad):  # pyright: ignore[reportUntypedBaseClass]
        speech: Sequence[tuple[float, float]] = ()

        def __call__(self, audio: Any, **options: Any) -> list[Any]:
            return [Segment(start, end, "UNKNOWN") for start, end in self.speech]

        @staticmethod
        def preprocess_audio(audio: Any) -> Any:
            return audio

        @staticmethod
        def merge_chunks(
            segments: Any, chunk_size: float, onset: float, offset: float | None
        ) -> list[Any]:
            return Vad.merge_chunks(segments, chunk_size, onset, offset) if segments else []

    return DetectedSpeech(0.5)


def _sentence_splitter() -> None:
    """Fetch NLTK's punkt tables, with which whisperx splits sentences. Raises UserError at the
    start instead of failing at the first sentence.
    """
    import nltk

    try:
        nltk.data.find("tokenizers/punkt_tab/english/")
    except LookupError:
        if not nltk.download("punkt_tab", quiet=True):
            raise UserError(
                "hear=whisperx needs NLTK's sentence tables: python -m nltk.downloader punkt_tab"
            ) from None


def _lines(segments: Sequence[Any], zero: float, number: int) -> Iterator[Line]:
    for segment in segments:
        text = str(segment["text"]).strip()
        if not text:
            continue
        speaker = segment.get("speaker")
        if speaker and number:
            speaker = f"{speaker} ({number + 1})"
        start, end = zero + float(segment["start"]), zero + float(segment["end"])
        words = _words(segment.get("words", ()), zero, start, end)
        yield Line(start=start, end=end, text=text, speaker=speaker, words=words)


def _words(raw: Sequence[Any], zero: float, start: float, end: float) -> tuple[Word, ...]:
    """Word times; words that the aligner could not place (numbers, foreign letters) lie between
    their neighbours, with score 0.
    """
    placed = [i for i, w in enumerate(raw) if "start" in w and "end" in w]
    if not placed:
        return ()
    words: dict[int, Word] = {}
    for i in placed:
        w = raw[i]
        first, last = zero + float(w["start"]), zero + float(w["end"])
        words[i] = Word(first, last, str(w["word"]), float(w.get("score", 0.0)))
    for left, right in pairwise((-1, *placed, len(raw))):
        low = words[left].end if left in words else start
        high = max(low, words[right].start if right in words else end)
        missing = range(left + 1, right)
        step = (high - low) / max(1, len(missing))
        for k, i in enumerate(missing):
            words[i] = Word(low + k * step, low + (k + 1) * step, str(raw[i]["word"]), 0.0)
    return tuple(words[i] for i in range(len(raw)))
