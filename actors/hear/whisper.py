"""hear=whisper: faster-whisper (CTranslate2) on CPU or a small GPU, without torch."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

from actors.part import Opened, RunContext, hardware
from mustsee.errors import UserError
from mustsee.media import transcript
from mustsee.media.speech import Voice, Window, spoken
from mustsee.nn import weights
from mustsee.records import Line, Video, Word


@dataclass(frozen=True, kw_only=True)
class Whisper:
    """Batched Whisper on utterances found by voice activity detection, with word times.

    `model`: a CTranslate2 folder or a Hugging Face id; `language`: null detects it in the first
    speech of each video; `window`: seconds of sound held at once; `max_new_tokens`: per 30 s, null
    for the model's own limit.
    """

    version: ClassVar[str] = "1"
    reads: ClassVar[tuple[str, ...]] = ("digest", "start", "end")
    needs: ClassVar[tuple[str, ...]] = ("uri",)
    writes: ClassVar[tuple[str, ...]] = ("lines", "language", "heard_by")

    model: str
    revision: str | None = weights.pinned()
    compute_type: str = "default"
    language: str | None = None
    beam_size: int = 5
    word_times: bool = True
    max_new_tokens: int | None = None
    voice: Voice = field(default_factory=Voice)
    window: float = 600.0
    device: str = hardware("auto")
    batch_size: int = hardware(8)
    threads: int = hardware(0)

    def check(self, budget_usd: float | None = None) -> None:
        """Said before any work: the weights are there. Raises UserError."""
        weights.find_file(weights.find(self.model, self.revision), "model.bin")

    def open(self, run: RunContext) -> Opened:
        self.check()
        try:
            from faster_whisper import BatchedInferencePipeline, WhisperModel
        except ImportError as error:
            raise UserError(
                "hear=whisper needs faster-whisper: pip install 'mustsee[offline]'"
            ) from error
        pipeline = BatchedInferencePipeline(
            WhisperModel(
                str(weights.find(self.model, self.revision)),
                device=self.device,
                compute_type=self.compute_type,
                cpu_threads=self.threads,
                local_files_only=True,
            )
        )

        def hear(video: Video) -> Video:
            language, lines = self.language, list[Line]()
            for window in spoken(video, seconds=self.window, voice=self.voice):
                language, found = self._transcribe(pipeline, window, language)
                lines += found
            return dataclasses.replace(
                video,
                lines=transcript.ordered(lines),
                language=language,
                heard_by=f"whisper ({self.model})",
            )

        return hear

    def _transcribe(
        self, pipeline: Any, window: Window, language: str | None
    ) -> tuple[str, list[Line]]:
        segments, info = pipeline.transcribe(
            window.samples,
            language=language,
            beam_size=self.beam_size,
            batch_size=self.batch_size,
            word_timestamps=self.word_times,
            without_timestamps=False,
            max_new_tokens=self.max_new_tokens,
            clip_timestamps=[
                {"start": s.start - window.start, "end": s.end - window.start}
                for s in window.speech
            ],
        )
        lines = transcript.within(_lines(segments, window.start), window.start, window.end)
        return info.language, list(lines)


def _lines(segments: Any, zero: float) -> Iterator[Line]:
    for segment in segments:
        words = tuple(
            Word(zero + float(w.start), zero + float(w.end), w.word.strip(), float(w.probability))
            for w in segment.words or ()
        )
        text = segment.text.strip()
        if text:
            start, end = zero + float(segment.start), zero + float(segment.end)
            yield Line(start=start, end=end, text=text, words=words)
