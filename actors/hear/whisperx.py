"""hear=whisperx: batched Whisper, forced alignment to word times, and speakers if asked for (Bain
et al. 2023, WhisperX). Needs the extra `whisperx`; it pays only with a GPU.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

from actors.part import Opened, RunContext
from mustsee.errors import UserError, need
from mustsee.media import transcript
from mustsee.media.speech import SpeechWindow, speech_windows
from mustsee.nn import weights
from mustsee.records import Line, Video, Word
from mustsee.store import hardware


@dataclass(frozen=True, kw_only=True)
class WhisperX:
    """One line per aligned sentence, with word times and, with a `diarizer`, speakers.

    A language without an aligner keeps the times of its segments, which `transcribed_by` notes
    and the run counts. Speakers are distinguished within a window; their names contain its number
    from the second window on.
    """

    version: ClassVar[str] = "3"
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

    def check(self, budget_usd: float | None = None) -> None:
        """Raise UserError if the weights are missing."""
        weights.find_file(weights.find(self.model, self.revision), "model.bin")

    def open(self, run: RunContext) -> Opened:
        models = WhisperXModels(self)

        def hear(video: Video) -> Video:
            language, lines, aligned = self.language, list[Line](), True
            for number, window in enumerate(speech_windows(video, seconds=self.window)):
                language, new, aligned = models.transcribe_window(window, language, number)
                lines += new
            if not aligned:
                run.count(f"hear.unaligned.{language}", 1)
            by = f"whisperx ({self.model})"
            if not aligned:
                by += f", times of segments: no aligner for {language!r}"
            return transcript.with_transcript(
                video, transcript.order_lines(lines), by=by, language=language
            )

        return hear


class WhisperXModels:
    """The loaded models: Whisper, aligners by language, and the diarizer."""

    def __init__(self, config: WhisperX) -> None:
        need("hear=whisperx", "mustsee[whisperx]", "whisperx.alignment", "whisperx.asr", "nltk")
        config.check()
        import whisperx.asr  # pyright: ignore[reportMissingImports]

        self.config = config
        self._aligners: dict[str, tuple[Any, Any] | None] = {}
        self._vad = _silero() if config.vad == "silero" else None
        _sentence_splitter()
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

    @cached_property
    def _diarizer(self) -> Any:
        from whisperx.diarize import DiarizationPipeline  # pyright: ignore[reportMissingImports]

        folder = weights.find(str(self.config.diarizer))
        return DiarizationPipeline(model_name=str(folder), device=self.config.device)

    def _with_speakers(self, result: Any, window: SpeechWindow) -> Any:
        if self.config.diarizer is None or not result["segments"]:
            return result
        from whisperx.diarize import assign_word_speakers  # pyright: ignore[reportMissingImports]

        turns = self._diarizer(
            window.samples,
            min_speakers=self.config.min_speakers,
            max_speakers=self.config.max_speakers,
        )
        return assign_word_speakers(turns, result)


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
