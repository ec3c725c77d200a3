"""The frames that an answerer is shown of a video, by its condition, or of the clips that each
question is about (Video RAG). A video is decoded once for all its questions.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from mustsee.calls.llm import Reply, Request, VideoClip
from mustsee.errors import BadRow
from mustsee.evaluate import rag
from mustsee.evaluate.rag import Rag, RetrievedClip
from mustsee.records import Question, Span, Video
from mustsee.verify.conditions.seen import SPANS, Condition, FramePlan, plan, video_span
from mustsee.verify.conditions.video_frames import VideoPreparer, plan_for_model


@dataclass(frozen=True)
class AnswererFrames:
    """Frames as JPEGs. `clips`: the clips that they are from (Video RAG). `spans`: the spans shown;
    empty: the whole video. `cuts`: the spans left out. `videos`: clips in place of frames. `times`:
    of the frames, in seconds of the file.
    """

    images: tuple[bytes, ...] = ()
    clips: tuple[RetrievedClip, ...] = ()
    spans: tuple[Span, ...] = ()
    cuts: tuple[Span, ...] = ()
    videos: tuple[VideoClip, ...] = ()
    times: tuple[float, ...] = ()


class FrameAnswerer:
    """Selects frames by the condition `see`, or for Video RAG by `clips`. `watch`: prepares clips
    for a model that takes videos; None: it is shown frames. The encoder is loaded with the first
    video. Raises BadRow for a video that is missing or cannot be decoded.
    """

    def __init__(self, see: Condition, clips: Rag, watch: VideoPreparer | None = None) -> None:
        self._see, self._rag, self._watch = see, clips, watch
        self._encoders: rag.Encoders | None = None
        self._turn = threading.Lock()  # one encoder, one call at a time

    def __call__(
        self, video: Video, questions: Sequence[Question], seed: int = 0
    ) -> list[AnswererFrames | None]:
        """The frames for each question; None if its condition leaves nothing to show."""
        whole = self._see.condition not in SPANS
        if (not (self._see.looks or self._rag.on) and whole) or not questions:
            return [AnswererFrames()] * len(questions)
        if not video.uri and (self._see.looks or self._rag.on):
            raise BadRow(
                f"no video for {video.video_id!r}: give its folder as videos=, or answer without "
                "frames"
            )
        extent = video_span(video)
        if not self._rag.on:
            return self._frames_by_plan(video, extent, questions, seed)
        return list(self._frames_by_retrieval(video, extent, questions))

    def _frames_by_plan(
        self, video: Video, extent: Span, questions: Sequence[Question], seed: int
    ) -> list[AnswererFrames | None]:
        plans = [
            plan(self._see, extent, q.evidence, seed=f"{seed}/{q.question_id}") for q in questions
        ]
        fitted = {
            p: plan_for_model(self._watch, video, p, self._see) for p in plans if p is not None
        }
        times = sorted({t for p, _ in fitted.values() for t in p.times})
        jpegs = dict(zip(times, self._jpegs(video.uri, times) if times else (), strict=True))
        cut = self._see.condition in SPANS

        def show_plan(plan: FramePlan) -> AnswererFrames:
            for_model, videos = fitted[plan]
            images = tuple(jpegs[t] for t in for_model.times)
            return AnswererFrames(
                images,
                spans=for_model.spans if cut else (),
                cuts=for_model.cuts,
                videos=videos,
                times=for_model.times,
            )

        return [p and show_plan(p) for p in plans]

    def _frames_by_retrieval(
        self, video: Video, extent: Span, questions: Sequence[Question]
    ) -> list[AnswererFrames]:
        start, end = extent.start, extent.end
        spans = rag.windows(end - start, self._rag.seconds)
        texts_of_questions = [question.question for question in questions]
        with self._turn:
            encoders = self._encoders = self._encoders or rag.load(self._rag)
            if encoders.images is None:
                lines, captions = video.lines or (), video.captions or ()
                spans_of_video = [Span(start + s.start, start + s.end) for s in spans]
                texts = [rag.words_in(span, lines, captions) for span in spans_of_video]
                chosen = rag.by_words(
                    texts, texts_of_questions, spans, self._rag.clips, encoders.texts
                )
                return self._of_clips(video.uri, start, chosen)
            times = [start + t for span in spans for t in self._times(span)]
            images = self._jpegs(video.uri, times)
            vectors = encoders.images(images).reshape(len(spans), self._rag.per_clip, -1)
            query_vectors = encoders.texts(texts_of_questions)
        place = {span: i * self._rag.per_clip for i, span in enumerate(spans)}
        return [
            AnswererFrames(
                tuple(
                    image
                    for one in clips
                    for image in images[place[one.span] : place[one.span] + self._rag.per_clip]
                ),
                clips,
                times=self._times_in_file(start, clips),
            )
            for clips in (rag.retrieve(spans, vectors, q, self._rag.clips) for q in query_vectors)
        ]

    def _of_clips(
        self, uri: str, start: float, chosen: Sequence[tuple[RetrievedClip, ...]]
    ) -> list[AnswererFrames]:
        """The frames of clips that were chosen without decoding the video."""
        times = sorted({t for clips in chosen for one in clips for t in self._times(one.span)})
        jpegs = dict(zip(times, self._jpegs(uri, [start + t for t in times]), strict=True))
        return [
            AnswererFrames(
                tuple(jpegs[t] for one in clips for t in self._times(one.span)),
                clips,
                times=self._times_in_file(start, clips),
            )
            for clips in chosen
        ]

    def _times(self, span: Span) -> tuple[float, ...]:
        return rag.times(span, self._rag.per_clip)

    def _times_in_file(self, start: float, clips: Sequence[RetrievedClip]) -> tuple[float, ...]:
        return tuple(start + t for one in clips for t in self._times(one.span))

    def _jpegs(self, uri: str, times: Sequence[float]) -> tuple[bytes, ...]:
        return _decoded(uri, tuple(times), self._see.longest, self._see.quality)


@lru_cache(maxsize=32)
def _decoded(uri: str, times: tuple[float, ...], longest: int, quality: int) -> tuple[bytes, ...]:
    """Frames as JPEGs. The last results are cached, since an audit shows the same frames in order,
    out of order, and with the transcript.
    """
    from mustsee.media.video import frames_at

    return tuple(p.jpeg(longest, quality) for p in frames_at(uri, times))


HASH_DIGITS = 8  # digits of each frame's hash
TEXT_DIGITS = 16  # digits of the prompt's hash


def describe_sent(request: Request, seen: AnswererFrames, reply: Reply) -> dict[str, Any]:
    """Return what `sent` in a verdict's detail holds.

    `text`: hash of the messages' roles and texts. `tokens`: of the request and of the reply.
    `frames`: times in seconds of the file, hashes of the JPEGs, decoder. `videos`: start, end and
    digest of each clip.
    """
    texts = json.dumps([[m.role, m.text] for m in request.messages], ensure_ascii=False)
    sent: dict[str, Any] = {
        "text": hashlib.sha256(texts.encode(errors="surrogatepass")).hexdigest()[:TEXT_DIGITS],
        "tokens": [reply.tokens_in, reply.tokens_out],
    }
    if seen.images:
        sent["frames"] = {
            "times": [round(time, 3) for time in seen.times],
            "hashes": [hashlib.sha256(jpeg).hexdigest()[:HASH_DIGITS] for jpeg in seen.images],
            "decoder": decoder(),
        }
    if seen.videos:
        sent["videos"] = [[c.span.start, c.span.end, c.digest] for c in seen.videos]
    return sent


@lru_cache
def decoder() -> str:
    """Return name and version of the decoder."""
    return f"PyAV {importlib.metadata.version('av')}"
