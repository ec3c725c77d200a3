"""hear=parakeet: NVIDIA Parakeet and other NeMo models by onnxruntime (onnx-asr), without torch."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from actors.part import Opened, RunContext
from mustsee.errors import need
from mustsee.files.store import hardware
from mustsee.media import transcript
from mustsee.media.speech import SAMPLE_RATE, SpeechWindow, VoiceDetection, speech_windows
from mustsee.nn import weights
from mustsee.records import Line, Span, Video, Word

VOCABULARY = "vocab.txt"  # a file of every NeMo model in this form
LAST_TOKEN_S = 0.24  # seconds that the last token of an utterance may last


@dataclass(frozen=True)
class ParakeetTranscript:
    """The transcript of a window."""

    lines: tuple[Line, ...]


@dataclass(frozen=True, kw_only=True)
class Parakeet:
    """Lines with word times and scores, of utterances found by voice activity detection."""

    version: ClassVar[str] = "1"
    reads: ClassVar[tuple[str, ...]] = ("digest", "start", "end")
    needs: ClassVar[tuple[str, ...]] = ("uri",)
    writes: ClassVar[tuple[str, ...]] = ("lines", "language", "transcribed_by")
    result: ClassVar[type] = ParakeetTranscript

    model: str
    """Folder, or Hugging Face id, of a NeMo model in ONNX form."""
    revision: str | None = weights.revision_field()
    """Commit or tag of the model; null: the one in the cache."""
    kind: str = "nemo-conformer-tdt"
    """Architecture of the model, as onnx-asr names it."""
    quantization: str | None = None
    """Form of the weights: int8; null: the files without one."""
    language: str | None = None
    """Spoken language, such as en; null: not known."""
    voice: VoiceDetection = field(default_factory=VoiceDetection)
    window: float = 300.0
    """Seconds of sound held in memory."""
    device: str = hardware("cpu")
    """Device: cpu, cuda (not part of the result's identity)."""

    def check(self, budget_usd: float | None = None) -> None:
        """Raise UserError if onnx-asr or the weights are missing."""
        need("hear=parakeet", "mustsee[parakeet]", "onnx_asr")
        weights.find_file(weights.find(self.model, self.revision), VOCABULARY)

    def open(self, run: RunContext) -> Opened:
        each = run.pieces(self)

        def hear(video: Video) -> Video:
            windows = speech_windows(video, seconds=self.window, voice=self.voice)
            lines = transcript.order_lines(
                line for result in each(windows) for line in result.lines
            )
            heard = transcript.with_transcript(
                video, lines, by=f"parakeet ({self.model})", language=self.language
            )
            return heard if lines else dataclasses.replace(heard, language=None)

        return hear

    def open_chunked(self) -> Callable[[SpeechWindow], ParakeetTranscript]:
        """Load the model. Raises UserError as `check`."""
        self.check()
        need("hear=parakeet", "mustsee[parakeet]", "onnx_asr")
        import onnx_asr  # pyright: ignore[reportMissingImports]  (an extra)

        provider = "CUDAExecutionProvider" if self.device == "cuda" else "CPUExecutionProvider"
        folder = weights.find(self.model, self.revision)
        model = onnx_asr.load_model(
            self.kind, str(folder), quantization=self.quantization, providers=[provider]
        ).with_timestamps()
        return lambda window: ParakeetTranscript(tuple(_lines(model, window)))


def _lines(model: Any, window: SpeechWindow) -> Iterator[Line]:
    for span in window.speech:
        said = model.recognize(window.cut(span), sample_rate=SAMPLE_RATE)
        tokens, times = said.tokens or (), said.timestamps or ()
        yield from transcript.sentences(join_tokens(tokens, times, said.logprobs or (), span))


def join_tokens(
    tokens: Sequence[str], times: Sequence[float], log_probs: Sequence[float], span: Span
) -> Iterator[Word]:
    """Yield the words of an utterance. A token that begins with a space begins a word; `times`:
    seconds from the utterance's start at which tokens begin. A word ends where the next token
    begins, and within its span. Its score is the least probability of its tokens.
    """
    begins = [min(span.start + t, span.end) for t in times]
    words: list[list[int]] = []
    for number, token in enumerate(tokens):
        if token.startswith(" ") or not words:
            words.append([])
        words[-1].append(number)
    for word in words:
        text = "".join(tokens[n] for n in word).strip()
        after = word[-1] + 1
        end = begins[after] if after < len(begins) else begins[word[-1]] + LAST_TOKEN_S
        end = min(end, begins[word[-1]] + LAST_TOKEN_S, span.end)
        least = min((log_probs[n] for n in word if n < len(log_probs)), default=0.0)
        if text:
            yield Word(begins[word[0]], max(end, begins[word[0]]), text, math.exp(min(least, 0.0)))
