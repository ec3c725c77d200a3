"""hear=openai: timed lines, by an OpenAI-compatible transcription endpoint.

The audio is sent in chunks below the endpoint's size limit, split where it is quiet. The times in a
chunk's transcript are shifted to the chunk's place in the video. A model that gives no times gets
short chunks, each of which becomes a line.
"""

from __future__ import annotations

import asyncio
import dataclasses
import io
import json
import math
import wave
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar

import numpy as np

from actors.calls.connection import connect
from actors.calls.endpoint import CallEstimate, Endpoint
from actors.calls.parameters import EndpointParameters
from actors.calls.reply_bodies import UNREADABLE, parse_transcription
from actors.part import Opened, RunContext
from mustsee.calls.endpoint_errors import MAX_MESSAGE_CHARACTERS
from mustsee.calls.llm import Llm, Message, Reply, Request
from mustsee.errors import Transient, UserError, hide_secrets
from mustsee.files.store import Store, hardware
from mustsee.media.sound import Sound, audio_chunks
from mustsee.media.speech import quiet_cuts
from mustsee.media.transcript import order_lines, with_transcript
from mustsee.media.transcript_quality import DoubtThresholds, RecognisedSpeech
from mustsee.records import Line, Video, Word

PROMPT = "hear"  # the name of these calls in the usage totals
SAMPLE_RATE = 16_000
WAV_HEADER_BYTES = 44  # bytes before the samples of a WAV file
INAUDIBLE_PEAK = 1e-3  # share of full scale; models make up speech for chunks below it


@dataclass(frozen=True, kw_only=True)
class Transcriptions:
    """A transcription model as a configured `Llm`. The request's only image is the audio (WAV),
    and the reply's text is the endpoint's JSON.
    """

    endpoint: Endpoint
    language: str | None = None
    """ISO code of the spoken language; null: detected by the model."""
    times: bool = True
    """Capability: the model gives the times of words (verbose_json)."""
    usd_per_minute: float | None = dataclasses.field(default=None, metadata={"identity": False})
    """Price of a minute of sound, USD; null: that of the table of models."""

    @property
    def identity(self) -> str:
        untimed = "" if self.times else " without times"
        return f"transcriptions {self.endpoint.identity} language={self.language}{untimed}"

    def usd(self, wav: bytes) -> float:
        known = self.endpoint.table_row
        per_minute = self.usd_per_minute
        if per_minute is None:
            per_minute = 60 * (known.usd_second or 0.0) if known else 0.0
        return duration(wav) / 60 * per_minute

    def estimate(self, request: Request) -> CallEstimate:
        return CallEstimate(usd=self.usd(request.messages[0].images[0]))

    def open(self) -> Llm:
        return TranscriptionsClient(self)


class TranscriptionsClient:
    """The connected model. Raises UserError without a key."""

    def __init__(self, config: Transcriptions) -> None:
        self._config, self._connection = config, connect(config.endpoint)
        self._parameters = EndpointParameters(
            config.endpoint, fixed=("response_format", "language")
        )

    @property
    def identity(self) -> str:
        return self._config.identity

    def remember(self, store: Store) -> None:
        """Keep what the endpoint refuses in a store."""
        self._parameters.remember(store)

    async def complete(self, request: Request) -> Reply:
        """Make one call, without retries. A reply without a text or with invalid times is
        Transient; an empty text is silence.
        """
        wav, config = request.messages[0].images[0], self._config
        fields = {
            "model": config.endpoint.model,
            "response_format": "verbose_json" if config.times else "json",
            "temperature": "0.0",
            **({} if config.language is None else {"language": config.language}),
        }
        transcription = await self._parameters.send(
            lambda body: self._post(body, wav), lambda: self._parameters.adapt(fields)
        )
        try:
            parsed = parse_transcription(transcription, duration(wav))
        except UNREADABLE as error:
            reason = f"{config.endpoint.place}: no transcription: {type(error).__name__}: {error}"
            raise Transient(reason[:MAX_MESSAGE_CHARACTERS]) from None
        text = hide_secrets(json.dumps(parsed, sort_keys=True))
        return Reply(text=text, model=config.endpoint.model, usd=config.usd(wav))

    async def _post(self, fields: Mapping[str, Any], wav: bytes) -> Mapping[str, Any]:
        from aiohttp import FormData

        form = FormData(fields)
        for each in ("word", "segment") if self._config.times else ():
            form.add_field("timestamp_granularities[]", each)
        form.add_field("file", io.BytesIO(wav), filename="sound.wav", content_type="audio/wav")
        route = "/audio/transcriptions"
        raw = await self._connection.request("POST", route, form, sent=fields)
        return await self._connection.parse(raw or b"", fields)


@dataclass(frozen=True, kw_only=True)
class OpenAIHearing:
    """Timed lines by an endpoint."""

    version: ClassVar[str] = "5"
    reads: ClassVar[tuple[str, ...]] = ("digest", "has_audio", "start", "end")
    needs: ClassVar[tuple[str, ...]] = ("uri",)
    writes: ClassVar[tuple[str, ...]] = ("lines", "language", "transcribed_by")
    model: Transcriptions
    chunk: float = 600.0
    """Seconds of sound in one request; longer sound is split at quiet places (600 for a model
    that gives times)."""
    max_bytes: int = 24_000_000
    """Size of the largest file that the endpoint takes, bytes."""
    together: int = hardware(4)
    """Chunks of one video in flight."""

    def check(self, budget_usd: float | None = None) -> None:
        """Raise UserError for numbers with which no audio would be sent."""
        for name, value in (("chunk", self.chunk), ("together", self.together)):
            if value <= 0:
                raise UserError(f"hear.{name}={value!r}: must be more than 0")

    def open(self, run: RunContext) -> Opened:
        llm = run.llm(self.model)

        async def hear(video: Video) -> Video:
            lines: list[Line] = []
            languages: Counter[str] = Counter()
            chunks = self._chunks(video) if video.has_audio is not False else iter(())
            while now := await asyncio.to_thread(lambda: list(islice(chunks, self.together))):
                replies = await asyncio.gather(*(llm.complete(_request(c)) for c in now))
                for chunk, reply in zip(now, replies, strict=True):
                    body = json.loads(reply.text)
                    lines += shift_segments(body, chunk.start, len(chunk.samples) / SAMPLE_RATE)
                    languages[body.get("language") or ""] += len(body["text"])
            ordered = order_lines(lines)
            main_language = languages.most_common(1)[0][0] if ordered else ""
            return with_transcript(
                video,
                ordered,
                by=f"openai ({self.model.endpoint.model})",
                language=self.model.language or _code(main_language),
            )

        return hear

    def _chunks(self, video: Video) -> Iterator[Sound]:
        """The audible chunks, with times of the video."""
        longest = min(self.chunk, (self.max_bytes - WAV_HEADER_BYTES) / (2 * SAMPLE_RATE))
        sounds = audio_chunks(video.uri, SAMPLE_RATE, start=video.start or 0.0, end=video.end)
        for sound in quiet_cuts(sounds, SAMPLE_RATE, longest):
            if len(sound.samples) and float(np.abs(sound.samples).max()) > INAUDIBLE_PEAK:
                yield sound


def _request(sound: Sound) -> Request:
    return Request(prompt=PROMPT, digest="", messages=(Message("user", "", (wav(sound),)),))


def wav(sound: Sound) -> bytes:
    """The samples as a 16-bit WAV file."""
    samples = np.clip(sound.samples * 32767, -32768, 32767).astype("<i2")
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(SAMPLE_RATE)
        file.writeframes(samples.tobytes())
    return buffer.getvalue()


def duration(wav: bytes) -> float:
    """The duration of a WAV file in seconds."""
    return (len(wav) - WAV_HEADER_BYTES) / (2 * SAMPLE_RATE)


def shift_segments(body: dict[str, Any], start: float, seconds: float) -> list[Line]:
    """The lines of one chunk's verbose JSON, shifted by `start` seconds: one for each segment, with
    the words whose middle lies in it. Without segments it is one line with the span of the words,
    or of the chunk of `seconds`. Doubtful ones (`mustsee.media.transcript_quality`) are left out.
    """
    words = [
        (w["start"] + start, max(w["start"], w["end"]) + start, w["word"].strip())
        for w in body.get("words") or ()
    ]
    segments: Sequence[dict[str, Any]] = body.get("segments") or ()
    if not segments and body["text"].strip():
        within = (words[0][0] - start, words[-1][1] - start) if words else (0.0, seconds)
        segments = [{"start": within[0], "end": within[1], "text": body["text"]}]
    lines: list[Line] = []
    for i, segment in enumerate(segments):
        first = segment["start"] + start
        last = max(segment["start"], segment["end"]) + start
        after = segments[i + 1]["start"] + start if i + 1 < len(segments) else math.inf
        log_prob = segment.get("avg_logprob") or 0.0
        inside = [w for w in words if (first if i else -1) <= (w[0] + w[1]) / 2 < after]
        score = math.exp(min(log_prob, 0.0))
        line = Line(
            start=first,
            end=last,
            text=" ".join(segment["text"].split()),
            words=tuple(Word(begin, end, word, score) for begin, end, word in inside),
        )
        silence = segment.get("no_speech_prob") or 0.0
        speech = RecognisedSpeech(lines=(line,), log_prob=log_prob, no_speech=silence)
        if "avg_logprob" not in segment or DoubtThresholds().reason(speech) is None:
            lines.append(line)
    return lines


def _code(language: str) -> str | None:
    """ISO 639-1 code of a language that the endpoint gives by its English name or its code."""
    from transformers.models.whisper.tokenization_whisper import TO_LANGUAGE_CODE

    name = language.lower()
    return TO_LANGUAGE_CODE.get(name, name) or None
