"""Speakers of transcript lines, told apart by their voices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from mustsee.media.sound import audio_chunks, cut_spans
from mustsee.media.speakers import Floats, SpeakerRules, name_speakers
from mustsee.media.speech import SAMPLE_RATE
from mustsee.nn import weights
from mustsee.nn.campplus import FOLDER, load_encoder
from mustsee.records import Line, Span, Video

BY_VOICE = "speakers by voice"  # added to `transcribed_by`


@dataclass(frozen=True, kw_only=True)
class Speakers:
    """Names the speakers of lines that have none."""

    model: str = FOLDER
    """Folder of CAM++'s weights."""
    rules: SpeakerRules = field(default_factory=SpeakerRules)

    def load(self) -> Callable[[Video], Video]:
        """Return a function that names the speakers of a row. Raises UserError for missing or other
        weights.
        """
        encode = load_encoder(weights.find(self.model))

        def name(video: Video) -> Video:
            lines = video.lines or ()
            if any(line.speaker for line in lines):
                return video
            vectors: list[Floats | None] = [None] * len(lines)
            places = [
                i for i, line in enumerate(lines) if line.end - line.start >= self.rules.shortest
            ]
            sounds = audio_chunks(video.uri, SAMPLE_RATE, start=video.start or 0.0, end=video.end)
            pieces = cut_spans(sounds, (self._heard(lines[i]) for i in places), SAMPLE_RATE)
            for i, samples in zip(places, pieces, strict=True):
                if len(samples) >= self.rules.shortest * SAMPLE_RATE / 2 and samples.any():
                    vectors[i] = encode(samples)
            named = name_speakers(lines, vectors, self.rules)
            if named == lines:
                return video
            return replace(video, lines=named, transcribed_by=f"{video.transcribed_by}, {BY_VOICE}")

        return name

    def _heard(self, line: Line) -> Span:
        """The middle of a line, of at most `longest` seconds."""
        spare = max(0.0, line.end - line.start - self.rules.longest) / 2
        return Span(line.start + spare, line.end - spare)
