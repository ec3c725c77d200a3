"""hear=whisper: faster-whisper (CTranslate2) on CPU or a small GPU, without torch."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, islice, pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from actors.part import Opened, RunContext
from mustsee.errors import UserError, need
from mustsee.files.store import hardware
from mustsee.media import transcript
from mustsee.media.sound import sound_language
from mustsee.media.speech import SpeechWindow, VoiceDetection, speech_windows
from mustsee.media.transcript_quality import DoubtThresholds, RecognisedSpeech, doubtful_reason
from mustsee.nn import weights
from mustsee.records import Line, Span, Video, Word


@dataclass(frozen=True)
class SoundWindow:
    """A window of a video's audio, and its language, if known."""

    window: SpeechWindow
    language: str | None


@dataclass(frozen=True, kw_only=True)
class WhisperTranscript:
    """The transcript of a window: its language, and the recognised speech of each span."""

    language: str
    guesses: tuple[RecognisedSpeech, ...]


@dataclass(frozen=True, kw_only=True)
class Whisper:
    """Batched Whisper on utterances found by voice activity detection, with word times. Speech that
    the model seems to have made up is left out.

    A model for English only gives no lines for audio that its container marks as another language
    (which becomes the row's language), nor where its confidence is too low for English. It sets the
    language "en" only if its lines are clear (`doubt.clear`).
    """

    version: ClassVar[str] = "5"
    reads: ClassVar[tuple[str, ...]] = ("digest", "start", "end")
    needs: ClassVar[tuple[str, ...]] = ("uri",)
    writes: ClassVar[tuple[str, ...]] = ("lines", "language", "transcribed_by", "unheard")
    result: ClassVar[type] = WhisperTranscript

    model: str
    """CTranslate2 folder, or Hugging Face id."""
    revision: str | None = weights.revision_field()
    """Commit or tag of the model; null: the one in the cache."""
    name: str | None = None
    """Name of the model in the results; null: the value of model."""
    compute_type: str = "default"
    """Numeric type: default, int8, int8_float16, float16, bfloat16, float32."""
    language: str | None = None
    """Spoken language, such as en; null: detected per video."""
    beam_size: int = 5
    """Width of the beam search."""
    word_times: bool = True
    """Compute the times of every word."""
    max_new_tokens: int | None = None
    """Output tokens per 30 seconds, at most; null: the model's own limit."""
    voice: VoiceDetection = field(default_factory=VoiceDetection)
    doubt: DoubtThresholds | None = field(default_factory=DoubtThresholds)
    """Rules that drop doubtful lines; null: keep all."""
    join: float = 2.0
    """Seconds between utterances below which they are decoded together."""
    window: float = 600.0
    """Seconds of sound held in memory."""
    device: str = hardware("auto")
    """Device: auto, cpu, cuda (changes speed, not the result's identity)."""
    batch_size: int = hardware(8)
    """Utterances decoded together."""
    threads: int = hardware(0)
    """CPU threads; 0: the library's choice."""

    def check(self, budget_usd: float | None = None) -> None:
        """Raise UserError if the weights are missing or do not support the language."""
        folder = weights.find(self.model, self.revision)
        weights.find_file(folder, "model.bin")
        if self.language not in (None, "en") and not multilingual(folder):
            raise UserError(
                f"hear.language={self.language!r}: {self.model!r} supports English only; "
                "choose hear=whisper with a model that supports it, or hear.language=en"
            )

    def open(self, run: RunContext) -> Opened:
        each = run.pieces(self)
        english_only = not multilingual(weights.find(self.model, self.revision))
        name = f"whisper ({self.name or self.model})"

        def hear(video: Video) -> Video:
            marked = sound_language(video.uri) if english_only else None
            if marked not in (None, "en"):
                run.count(f"hear.english_only.{marked}", 1)
                return dataclasses.replace(video, lines=(), language=marked, transcribed_by=None)
            language, speech = self.language, list[RecognisedSpeech]()
            windows = speech_windows(video, seconds=self.window, voice=self.voice)
            # The first window sets the language of the others.
            first = islice(windows, 1 if language is None else 0)
            for group in (first, windows):
                for result in each(SoundWindow(window, language) for window in group):
                    language = result.language
                    speech += result.guesses
            kept, doubtful = self._without_doubtful(speech, english_only)
            for reason, number in doubtful.items():
                run.count(f"hear.doubted.{reason}", number)
            if english_only and not (self.doubt and self.doubt.is_clear(kept)):
                language = None  # English lines are not evidence if the model writes nothing else
            lines = transcript.order_lines(
                line for each_speech in kept for line in each_speech.lines
            )
            heard = transcript.with_transcript(video, lines, by=name, language=language)
            left_out = sum(len(s.lines) for s in speech) - len(lines)
            is_doubtful = not lines and left_out > 0
            return dataclasses.replace(
                heard, unheard=doubtful_reason(left_out) if is_doubtful else None
            )

        return hear

    def open_chunked(self) -> Callable[[SoundWindow], WhisperTranscript]:
        """Load the model. Raises UserError if it is missing or has another hash."""
        pipeline = self._load()
        return lambda chunk: self._transcribe(pipeline, chunk.window, chunk.language)

    def _load(self) -> Any:
        """Load the model and its tokenizer. Raises UserError as `open_chunked`."""
        self.check()
        need("hear=whisper", "mustsee[offline]", "faster_whisper")
        from faster_whisper import BatchedInferencePipeline, WhisperModel

        folder = weights.find(self.model, self.revision)
        weights.check_known(self.model, folder / "model.bin")
        model = WhisperModel(
            str(folder),
            device=self.device,
            compute_type=self.compute_type,
            cpu_threads=self.threads,
            local_files_only=True,
        )
        extract = model.feature_extractor
        extract.mel_filters = extract.mel_filters.astype("float64")
        rounded: Any = RoundedFeatures(extract)
        model.feature_extractor = rounded
        return BatchedInferencePipeline(model)

    def _without_doubtful(
        self, speech: list[RecognisedSpeech], english_only: bool
    ) -> tuple[list[RecognisedSpeech], Counter[str]]:
        """The speech that is not doubtful, and the numbers of doubtful spans by reason."""
        if self.doubt is None:
            return speech, Counter()
        reasons = self.doubt.reasons(speech, one_language=english_only)
        kept = [s for s, reason in zip(speech, reasons, strict=True) if reason is None]
        return kept, Counter(reason for reason in reasons if reason)

    def _transcribe(
        self, pipeline: Any, window: SpeechWindow, language: str | None
    ) -> WhisperTranscript:
        segments, info = pipeline.transcribe(
            window.samples,
            language=language,
            beam_size=self.beam_size,
            batch_size=self.batch_size,
            word_timestamps=self.word_times,
            # With timestamps, the batched decoder drops the end of a span without a closing time.
            without_timestamps=self.word_times,
            max_new_tokens=self.max_new_tokens,
            clip_timestamps=[
                {"start": s.start - window.start, "end": s.end - window.start}
                for s in self._spans(window.speech)
            ],
        )
        return WhisperTranscript(language=info.language, guesses=tuple(_speech(segments, window)))

    def _spans(self, speech: Iterable[Span]) -> list[Span]:
        """The spans to decode: utterances joined if they are close, up to the greatest length."""
        spans: list[Span] = []
        for span in speech:
            last = spans[-1] if spans else None
            near = last is not None and span.start - last.end <= self.join
            if last is not None and near and span.end - last.start <= self.voice.longest:
                spans[-1] = Span(last.start, span.end)
            else:
                spans.append(span)
        return spans


class RoundedFeatures:
    """The mel spectrogram of a feature extractor, computed with double precision and rounded: in
    single precision its last digits depend on the processor and on the number of threads.
    """

    def __init__(self, extract: Any) -> None:
        self._extract = extract

    def __call__(self, *args: Any, **options: Any) -> NDArray[np.float32]:
        return self._extract(*args, **options).astype(np.float32)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._extract, name)


def multilingual(folder: Path) -> bool:
    """Whether a model supports several languages, which make its vocabulary longer."""
    file = weights.find_file(folder, "vocabulary.json", "vocabulary.txt")
    text = file.read_text(encoding="utf-8")
    tokens = json.loads(text) if file.suffix == ".json" else text.rstrip("\n").split("\n")
    return len(tokens) >= 51865


def _speech(segments: Iterable[Any], window: SpeechWindow) -> Iterator[RecognisedSpeech]:
    """The recognised speech of each span. Segments of one span have the same `seek` and scores."""
    pauses = [(a.end + b.start) / 2 for a, b in pairwise(window.speech)]
    for _, together in groupby(segments, key=lambda segment: segment.seek):
        span_segments = list(together)
        lines = transcript.lines_between(
            _lines(span_segments, window.start, pauses), window.start, window.end
        )
        if lines:
            first = span_segments[0]
            yield RecognisedSpeech(
                lines=lines, log_prob=first.avg_logprob, no_speech=first.no_speech_prob
            )


def _lines(segments: Iterable[Any], zero: float, pauses: Sequence[float]) -> Iterator[Line]:
    for segment in segments:
        text = segment.text.strip()
        if segment.words:
            yield from transcript.sentences(_words(segment.words, zero), pauses)
        elif any(c.isalnum() for c in text):
            yield Line(start=zero + float(segment.start), end=zero + float(segment.end), text=text)


def _words(tokens: Iterable[Any], zero: float) -> Iterator[Word]:
    """Whole words: a token without a space before it ("-", "7" of "3-7") extends the last word."""
    last: Word | None = None
    for token in tokens:
        start, end, score = zero + float(token.start), zero + float(token.end), token.probability
        if last and not token.word.startswith(" "):
            last = Word(last.start, end, last.word + token.word, min(last.score, float(score)))
            continue
        if last:
            yield last
        last = Word(start, end, token.word.strip(), float(score))
    if last:
        yield last
