"""Video clips for models that take video: the spans that a condition shows.

For the whole video or its evidence, the coded video is copied if it can be cut closely enough.
Without the evidence, or without the control's spans, the video is encoded again, so that nothing of
the cut spans is seen or heard. Other conditions, and videos that exceed the model's limits, are
shown as frames.
"""

from __future__ import annotations

import math
import posixpath
from collections.abc import Sequence
from dataclasses import dataclass, replace
from urllib.parse import quote

from mustsee.calls.llm import PreparesVideo, VideoClip, VideoInput
from mustsee.errors import BadRow
from mustsee.files.store import Store, digest, hardware, strip_options
from mustsee.media import clips
from mustsee.records import Span, Video
from mustsee.verify.conditions.seen import MIN_REST_S, Condition, FramePlan

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
