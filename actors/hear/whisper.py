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

from actors.part import Opened, RunContext
from mustsee.errors import UserError, need
from mustsee.media import transcript
from mustsee.media.doubt import DoubtThresholds, RecognisedSpeech
from mustsee.media.sound import sound_language
from mustsee.media.speech import SpeechWindow, VoiceDetection, speech_windows
from mustsee.nn import weights
from mustsee.records import Line, Span, Video, Word
from mustsee.store import hardware


@dataclass(frozen=True)
class SoundWindow:
    """A window of a video's sound, and the language that is spoken, if that is known."""

    window: SpeechWindow
    language: str | None


@dataclass(frozen=True, kw_only=True)
class WhisperTranscript:
    """What was made of a piece: its language, and a guess for each stretch of speech."""

    language: str
    guesses: tuple[RecognisedSpeech, ...]


@dataclass(frozen=True, kw_only=True)
class Whisper:
    """Batched Whisper on utterances found by voice activity detection, with word times; what it
    seems to have made up is left out.

    `model`: a CTranslate2 folder, a Hugging Face id, or `package:NAME/FOLDER`; `sha256`: what its
    model.bin must hash to; `name`: what results call it, null for `model`; `language`: null detects
    it in the first speech of each video; `doubt`: what is not believed, null believes all;
    `join`: seconds between utterances that are still decoded in one piece, which costs the same for
    1 s as for 30; `window`: seconds of sound held at once; `max_new_tokens`: per 30 s, null for the
    model's own limit.

    A model that knows English only gives nothing for sound that its container marks as another
    language (the row's language is then that one), and nothing where it is too unsure for English
    to be spoken. It names "en" only where its lines are clear (`doubt.clear`).
    """

    version: ClassVar[str] = "3"
    reads: ClassVar[tuple[str, ...]] = ("digest", "start", "end")
    needs: ClassVar[tuple[str, ...]] = ("uri",)
    writes: ClassVar[tuple[str, ...]] = ("lines", "language", "transcribed_by")
    result: ClassVar[type] = WhisperTranscript

    model: str
    revision: str | None = weights.revision_field()
    sha256: str | None = None
    name: str | None = None
    compute_type: str = "default"
    language: str | None = None
    beam_size: int = 5
    word_times: bool = True
    max_new_tokens: int | None = None
    voice: VoiceDetection = field(default_factory=VoiceDetection)
    doubt: DoubtThresholds | None = field(default_factory=DoubtThresholds)
    join: float = 2.0
    window: float = 600.0
    device: str = hardware("auto")
    batch_size: int = hardware(8)
    threads: int = hardware(0)

    def check(self, budget_usd: float | None = None) -> None:
        """Said before any work: the weights are there, and know the language. Raises UserError."""
        folder = weights.find(self.model, self.revision)
        weights.find_file(folder, "model.bin")
        if self.language not in (None, "en") and not multilingual(folder):
            raise UserError(
                f"hear.language={self.language!r}: {self.model!r} knows English only; "
                "choose hear=whisper with a model that knows it, or hear.language=en"
            )

    def open(self, run: RunContext) -> Opened:
        each = run.pieces(self)
        one_language = not multilingual(weights.find(self.model, self.revision))
        called = f"whisper ({self.name or self.model})"

        def hear(video: Video) -> Video:
            marked = sound_language(video.uri) if one_language else None
            if marked not in (None, "en"):
                run.count(f"hear.english_only.{marked}", 1)
                return dataclasses.replace(video, lines=(), language=marked, transcribed_by=None)
            language, guesses = self.language, list[RecognisedSpeech]()
            windows = speech_windows(video, seconds=self.window, voice=self.voice)
            first = islice(windows, 1 if language is None else 0)  # it tells the others' language
            for some in (first, windows):
                for heard in each(SoundWindow(window, language) for window in some):
                    language = heard.language
                    guesses += heard.guesses
            believed, doubted = self._believed(guesses, one_language)
            for why, number in doubted.items():
                run.count(f"hear.doubted.{why}", number)
            if one_language and not (self.doubt and self.doubt.is_clear(believed)):
                language = None  # its only language is no evidence of what is spoken
            lines = transcript.order_lines(line for guess in believed for line in guess.lines)
            return transcript.with_transcript(video, lines, by=called, language=language)

        return hear

    def open_chunked(self) -> Callable[[SoundWindow], WhisperTranscript]:
        """Loads the model. Raises UserError where it is not, or is another."""
        pipeline = self._load()
        return lambda piece: self._transcribe(pipeline, piece.window, piece.language)

    def _load(self) -> Any:
        """The model and its tokenizer. Raises UserError where they are not, or are others."""
        self.check()
        need("hear=whisper", "mustsee[offline]", "faster_whisper")
        from faster_whisper import BatchedInferencePipeline, WhisperModel

        folder = weights.find(self.model, self.revision)
        if self.sha256 is not None:
            weights.check(folder / "model.bin", self.sha256)
        return BatchedInferencePipeline(
            WhisperModel(
                str(folder),
                device=self.device,
                compute_type=self.compute_type,
                cpu_threads=self.threads,
                local_files_only=True,
            )
        )

    def _believed(
        self, guesses: list[RecognisedSpeech], one_language: bool
    ) -> tuple[list[RecognisedSpeech], Counter[str]]:
        """The guesses that are believed, and how many are not, by reason."""
        if self.doubt is None:
            return guesses, Counter()
        reasons = self.doubt.reasons(guesses, one_language=one_language)
        kept = [g for g, why in zip(guesses, reasons, strict=True) if why is None]
        return kept, Counter(why for why in reasons if why)

    def _transcribe(
        self, pipeline: Any, window: SpeechWindow, language: str | None
    ) -> WhisperTranscript:
        segments, info = pipeline.transcribe(
            window.samples,
            language=language,
            beam_size=self.beam_size,
            batch_size=self.batch_size,
            word_timestamps=self.word_times,
            # with them, the batched decoder drops the end of a stretch that has no closing time
            without_timestamps=self.word_times,
            max_new_tokens=self.max_new_tokens,
            clip_timestamps=[
                {"start": s.start - window.start, "end": s.end - window.start}
                for s in self._stretches(window.speech)
            ],
        )
        return WhisperTranscript(language=info.language, guesses=tuple(_guesses(segments, window)))

    def _stretches(self, speech: Iterable[Span]) -> list[Span]:
        """Utterances that follow each other closely as one, as far as a stretch may last."""
        found: list[Span] = []
        for span in speech:
            last = found[-1] if found else None
            near = last is not None and span.start - last.end <= self.join
            if last is not None and near and span.end - last.start <= self.voice.longest:
                found[-1] = Span(last.start, span.end)
            else:
                found.append(span)
        return found


def multilingual(folder: Path) -> bool:
    """As CTranslate2 tells: the names of 99 languages make Whisper's vocabulary longer."""
    file = weights.find_file(folder, "vocabulary.json", "vocabulary.txt")
    text = file.read_text(encoding="utf-8")
    tokens = json.loads(text) if file.suffix == ".json" else text.rstrip("\n").split("\n")
    return len(tokens) >= 51865


def _guesses(segments: Iterable[Any], window: SpeechWindow) -> Iterator[RecognisedSpeech]:
    """What was made of each stretch: its segments share a `seek` and their figures."""
    pauses = [(a.end + b.start) / 2 for a, b in pairwise(window.speech)]
    for _, together in groupby(segments, key=lambda segment: segment.seek):
        found = list(together)
        lines = transcript.lines_between(
            _lines(found, window.start, pauses), window.start, window.end
        )
        if lines:
            first = found[0]
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


def _words(pieces: Iterable[Any], zero: float) -> Iterator[Word]:
    """Whole words: a piece without a space before it ("-" and "7" of "3-7") belongs to the last."""
    last: Word | None = None
    for piece in pieces:
        start, end, sure = zero + float(piece.start), zero + float(piece.end), piece.probability
        if last and not piece.word.startswith(" "):
            last = Word(last.start, end, last.word + piece.word, min(last.score, float(sure)))
            continue
        if last:
            yield last
        last = Word(start, end, piece.word.strip(), float(sure))
    if last:
        yield last
