"""What an answerer is shown of a film: pictures at equal distances over the whole of it, or of the
clips that each question is about (Video RAG). A film is decoded once for all its questions.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass

from mustsee.errors import BadRow
from mustsee.evaluate import rag
from mustsee.evaluate.answers import Seen, stretch
from mustsee.evaluate.rag import Chosen, Rag
from mustsee.records import Question, Span, Video


@dataclass(frozen=True)
class Shown:
    """Pictures as JPEGs in order of time, and the clips that they are of (none: the whole film)."""

    images: tuple[bytes, ...] = ()
    clips: tuple[Chosen, ...] = ()


class Looker:
    """Looks at films as `see` says, and for Video RAG as `clips` says. The encoder is loaded with
    the first film. Raises BadRow for a film that is missing or cannot be decoded.
    """

    def __init__(self, see: Seen, clips: Rag) -> None:
        self._see, self._rag = see, clips
        self._encoders: rag.Encoders | None = None
        self._turn = threading.Lock()  # one encoder, one call at a time

    def __call__(self, video: Video, questions: Sequence[Question]) -> list[Shown]:
        """What is shown with each question."""
        if not (self._see.looks or self._rag.on) or not questions:
            return [Shown()] * len(questions)
        if not video.uri:
            raise BadRow(
                f"no film for {video.video_id!r}: give its folder as videos=, or answer without "
                "frames"
            )
        start, end = stretch(video)
        if not self._rag.on:
            return [Shown(self._jpegs(video.uri, self._see.times(start, end)))] * len(questions)
        spans = rag.windows(end - start, self._rag.seconds)
        asked = [question.question for question in questions]
        with self._turn:
            encoders = self._encoders = self._encoders or rag.load(self._rag)
            if encoders.pictures is None:
                lines, captions = video.lines or (), video.captions or ()
                films = [Span(start + s.start, start + s.end) for s in spans]
                texts = [rag.words_in(span, lines, captions) for span in films]
                chosen = rag.by_words(texts, asked, spans, self._rag.clips, encoders.texts)
                return self._of_clips(video.uri, start, chosen)
            times = [start + t for span in spans for t in self._times(span)]
            images = self._jpegs(video.uri, times)
            vectors = encoders.pictures(images).reshape(len(spans), self._rag.per_clip, -1)
            found = encoders.texts(asked)
        place = {span: i * self._rag.per_clip for i, span in enumerate(spans)}
        return [
            Shown(
                tuple(
                    image
                    for one in clips
                    for image in images[place[one.span] : place[one.span] + self._rag.per_clip]
                ),
                clips,
            )
            for clips in (rag.retrieve(spans, vectors, q, self._rag.clips) for q in found)
        ]

    def _of_clips(
        self, uri: str, start: float, chosen: Sequence[tuple[Chosen, ...]]
    ) -> list[Shown]:
        """The pictures of clips that were chosen before anything was decoded."""
        wanted = sorted({t for clips in chosen for one in clips for t in self._times(one.span)})
        seen = dict(zip(wanted, self._jpegs(uri, [start + t for t in wanted]), strict=True))
        return [
            Shown(tuple(seen[t] for one in clips for t in self._times(one.span)), clips)
            for clips in chosen
        ]

    def _times(self, span: Span) -> tuple[float, ...]:
        return rag.times(span, self._rag.per_clip)

    def _jpegs(self, uri: str, times: Sequence[float]) -> tuple[bytes, ...]:
        from mustsee.media.video import frames_at

        return tuple(p.jpeg(self._see.longest, self._see.quality) for p in frames_at(uri, times))
