"""Frames of one video for many questions, each decoded once, those of several requests side by
side: the windows of a long video wait for their frames longer than for a model.
"""

from __future__ import annotations

import asyncio
import math
import os
import posixpath
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

import numpy as np

from mustsee.calls.llm import PreparesVideo, VideoClip, VideoInput
from mustsee.errors import BadRow
from mustsee.files.store import Store, digest, hardware, strip_options
from mustsee.media import clips
from mustsee.media.frames import encode
from mustsee.records import UNSEEN, Span, Video
from mustsee.verify.conditions.seen import (
    MIN_REST_S,
    Condition,
    FramePlan,
    lines_within,
    merge_spans,
    plan,
    video_span,
)

MAX_CACHED_FRAMES = 2048  # about 80 MB at 512 pixels
# Requests whose frames are decoded at the same time, each with buffers of its own.
DECODERS = min(4, os.cpu_count() or 1)

SHOWN_MARGIN_S = 1.0  # seconds around a span that are shown with it

Key = tuple[float, int, int]  # time, longer side, quality


class VideoFrames:
    """A cache of JPEGs of a row's video, for use in one event loop. `crop`: whether black bars are
    cut off, before a frame is sized.
    """

    def __init__(self, video: Video, *, crop: bool = True) -> None:
        self._video, self._crop = video, crop
        self._jpegs: OrderedDict[Key, bytes] = OrderedDict()
        self._pending: dict[Key, asyncio.Task[dict[Key, bytes]]] = {}
        self._room = asyncio.Semaphore(DECODERS)

    async def jpegs(self, times: Sequence[float], see: Condition) -> tuple[bytes, ...]:
        """Return the frames at `times` (seconds of the file), in that order, in `see`'s size.

        Raises BadRow for a video that is missing or cannot be decoded.
        """
        if not times:
            return ()
        if not self._video.uri or self._video.uri.startswith(UNSEEN):
            raise BadRow(f"no video for {self._video.video_id!r}: give its folder as videos=")
        keys = [(time, see.longest, see.quality) for time in times]
        frames = {key: self._jpegs[key] for key in keys if key in self._jpegs}
        if new := sorted({*keys} - frames.keys() - self._pending.keys()):
            self._pending |= dict.fromkeys(new, asyncio.create_task(self._decode_new(new, see)))
        for task in {self._pending[key] for key in keys if key in self._pending}:
            frames |= await asyncio.shield(task)
        return tuple(frames[key] for key in keys)

    async def _decode_new(self, keys: Sequence[Key], see: Condition) -> dict[Key, bytes]:
        try:
            async with self._room:
                jpegs = await asyncio.to_thread(self._decode, [key[0] for key in keys], see)
        finally:
            for key in keys:
                del self._pending[key]
        decoded = dict(zip(keys, jpegs, strict=True))
        self._jpegs.update(decoded)
        while len(self._jpegs) > MAX_CACHED_FRAMES:
            self._jpegs.popitem(last=False)
        return decoded

    def _decode(self, times: Sequence[float], see: Condition) -> list[bytes]:
        from mustsee.media.video import frames_at

        frames = frames_at(self._video.uri, times)
        return [f.jpeg(see.longest, see.quality, crop=self._crop) for f in frames]


class CountedFrames(VideoFrames):
    """One frame in the place of each, or a grey one where the row has no video: for a dry run, in
    which frames are counted and nobody looks at them.
    """

    _time: float | None = None  # of the frame, in seconds

    async def jpegs(self, times: Sequence[float], see: Condition) -> tuple[bytes, ...]:
        """Return a frame in `see`'s size for each of the `times`. Raises BadRow for a video that is
        missing or cannot be decoded.
        """
        if not times:
            return ()
        if not self._video.uri:
            grey = np.full((see.longest * 9 // 16, see.longest, 3), 128, np.uint8)
            return (encode(grey, see.quality),) * len(times)
        self._time = times[0] if self._time is None else self._time
        return await super().jpegs((self._time,), see) * len(times)


async def show_spans(
    video: Video, spans: Sequence[Span], see: Condition, frames: VideoFrames, *, spoken: float
) -> dict[str, Any]:
    """Return what a request shows of some spans of a video, with a second around each: its
    `images`, and the `video`, `spans`, `frames` and `lines` of its prompt. `spoken`: seconds around
    what is shown of which lines are, too.
    """
    full = video_span(video)
    wide = [Span(s.start - SHOWN_MARGIN_S, s.end + SHOWN_MARGIN_S) for s in spans]
    planned = plan(see, full, wide)
    times = planned.times if planned else ()
    shown = planned.spans if planned else (full,)
    heard = merge_spans([Span(s.start - spoken, s.end + spoken) for s in shown], full)
    return {
        "images": await frames.jpegs(times, see),
        "video": full,
        "spans": shown,
        "frames": times,
        "lines": lines_within(video.lines or (), heard),
    }


KIND = "clips"  # the store's folder of encoded clips
WATCHED = ("whole", "evidence", "without_evidence", "control")  # conditions shown as clips
EXACT = ("without_evidence", "control")  # conditions that need exact cuts
MB = 1_000_000


@dataclass(frozen=True)
class VideoPreparer:
    """Prepares clips for a model. `video`: the input that it takes. `store`: of encoded clips."""

    video: VideoInput
    store: Store | None = hardware(None)

    def clips(
        self, video: Video, spans: Sequence[Span], *, sound: bool, exact: bool
    ) -> tuple[VideoClip, ...] | None:
        """Return a clip for each span of the row's video; None if they exceed the model's limits.

        Unless `exact`, a clip may begin half a second early and end a few frames late. Raises
        BadRow for a video that is missing or cannot be decoded.
        """
        if any(span.seconds < MIN_REST_S for span in spans) or len(spans) > self.video.max_parts:
            return None
        seconds = math.fsum(span.seconds for span in spans)
        if not spans or seconds > self.video.max_seconds:
            return None
        if not video.uri:
            raise BadRow(f"no video for {video.video_id!r}: give its folder as videos=")
        prepared: list[VideoClip] = []
        for span in spans:
            max_bytes = round(self.video.max_mb * MB * span.seconds / seconds)
            clip = self._clip(video, span, sound, exact, max_bytes)
            if clip is None:
                return None
            prepared.append(clip)
        return tuple(prepared)

    def _clip(
        self, video: Video, span: Span, sound: bool, exact: bool, max_bytes: int
    ) -> VideoClip | None:
        take, video_digest = self.video, video.digest or video.uri
        if take.address is not None and sound and span == Span(0.0, video.duration or 0.0):
            name = quote(posixpath.basename(strip_options(video.uri)))
            return VideoClip(
                span=span, digest=video_digest, address=f"{take.address.rstrip('/')}/{name}"
            )
        if not exact:
            copy = clips.copy_span(video.uri, span, sound=sound, max_bytes=max_bytes, plain=True)
            if copy is not None:
                key = digest([KIND, video_digest, [copy.span.start, copy.span.end], sound])
                return VideoClip(span=copy.span, digest=key, mp4=copy.mp4)
        edges = [span.start, span.end]
        key = digest([KIND, video_digest, edges, sound, take.fps, take.longest, max_bytes])
        mp4 = self.store.get(KIND, key) if self.store is not None else None
        if mp4 is None:
            encoded = clips.encode_span(video.uri, span, take, sound=sound, max_bytes=max_bytes)
            if encoded is None:
                return None
            mp4 = encoded.mp4
            if self.store is not None:
                self.store.put(KIND, key, mp4)
        return VideoClip(span=span, digest=key, mp4=mp4)


def plan_for_model(
    watch: PreparesVideo | None, video: Video, planned: FramePlan, see: Condition
) -> tuple[FramePlan, tuple[VideoClip, ...]]:
    """Return the plan with clips in place of frames, and the clips.

    If the model takes no video, the condition is not shown as clips, or the clips exceed the
    model's limits, return the plan as it is and no clips.
    """
    if watch is None or not see.looks or see.condition not in WATCHED:
        return planned, ()
    exact = see.condition in EXACT
    prepared = watch.clips(video, planned.spans, sound=see.listens, exact=exact)
    if not prepared:
        return planned, ()
    spans = tuple(clip.span for clip in prepared)
    return replace(planned, spans=spans, times=(), clips=spans), prepared
