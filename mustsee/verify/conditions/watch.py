"""What a model that watches is given of a video: clips of the stretches that a condition shows.

A model that is shown the whole video, or its evidence, gets the video as it is coded where it can
be cut near enough. Without its evidence, and without other cuts, a video is coded anew, so that
nothing of what was cut is seen or heard. All other conditions are pictures, and so is what is more
than the model takes.
"""

from __future__ import annotations

import math
import posixpath
from collections.abc import Sequence
from dataclasses import dataclass, replace
from urllib.parse import quote

from mustsee.calls.llm import PreparesVideo, VideoClip, VideoInput
from mustsee.errors import BadRow
from mustsee.media import clips
from mustsee.records import Span, Video
from mustsee.store import Store, digest, hardware
from mustsee.verify.conditions.seen import MIN_REST_S, Condition, FramePlan

KIND = "clips"  # the store's folder of what was coded anew
WATCHED = ("whole", "evidence", "without_evidence", "control")
EXACT = ("without_evidence", "control")
MB = 1_000_000


@dataclass(frozen=True)
class VideoPreparer:
    """`video`: what the model takes. What is coded anew is kept in the `store`."""

    video: VideoInput
    store: Store | None = hardware(None)

    def clips(
        self, video: Video, spans: Sequence[Span], *, sound: bool, exact: bool
    ) -> tuple[VideoClip, ...] | None:
        """A clip for each stretch of the row's video; None where that is more than the model takes.

        A clip may begin half a second early, and end a few pictures late, where it is not `exact`.
        Raises BadRow for a video that is missing or cannot be decoded.
        """
        if any(span.seconds < MIN_REST_S for span in spans) or len(spans) > self.video.max_parts:
            return None
        seconds = math.fsum(span.seconds for span in spans)
        if not spans or seconds > self.video.max_seconds:
            return None
        if not video.uri:
            raise BadRow(f"no video for {video.video_id!r}: give its folder as videos=")
        found: list[VideoClip] = []
        for span in spans:
            room = round(self.video.max_mb * MB * span.seconds / seconds)
            clip = self._clip(video, span, sound, exact, room)
            if clip is None:
                return None
            found.append(clip)
        return tuple(found)

    def _clip(
        self, video: Video, span: Span, sound: bool, exact: bool, room: int
    ) -> VideoClip | None:
        take, video_digest = self.video, video.digest or video.uri
        if take.address is not None and sound and span == Span(0.0, video.duration or 0.0):
            name = quote(posixpath.basename(video.uri))
            return VideoClip(
                span=span, digest=video_digest, address=f"{take.address.rstrip('/')}/{name}"
            )
        if not exact:
            copy = clips.copy_span(video.uri, span, sound=sound, most=room)
            if copy is not None:
                key = digest([KIND, video_digest, [copy.span.start, copy.span.end], sound])
                return VideoClip(span=copy.span, digest=key, mp4=copy.mp4)
        made = [KIND, video_digest, [span.start, span.end], sound, take.fps, take.longest, room]
        key = digest(made)
        mp4 = self.store.get(KIND, key) if self.store is not None else None
        if mp4 is None:
            cut = clips.encode_span(video.uri, span, take, sound=sound, most=room)
            if cut is None:
                return None
            mp4 = cut.mp4
            if self.store is not None:
                self.store.put(KIND, key, mp4)
        return VideoClip(span=span, digest=key, mp4=mp4)


def plan_for_model(
    watch: PreparesVideo | None, video: Video, planned: FramePlan, see: Condition
) -> tuple[FramePlan, tuple[VideoClip, ...]]:
    """The plan as it is shown to a model that watches, and the clips; as it is, and none, where the
    model or the condition does not allow it, or there is too much to show.
    """
    if watch is None or not see.looks or see.condition not in WATCHED:
        return planned, ()
    exact = see.condition in EXACT
    found = watch.clips(video, planned.spans, sound=see.listens, exact=exact)
    if not found:
        return planned, ()
    shown = tuple(clip.span for clip in found)
    return replace(planned, spans=shown, times=(), clips=shown), found
