"""Pictures of one video for many questions: each is decoded once, whoever asks for it."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence

from mustsee.errors import BadRow
from mustsee.records import UNSEEN, Video
from mustsee.verify.conditions.seen import Condition

MAX_CACHED_FRAMES = 2048  # pictures; at 512 pixels about 80 MB


class VideoFrames:
    """JPEGs of the video of a row. Serves one event loop."""

    def __init__(self, video: Video) -> None:
        self._video = video
        self._kept: OrderedDict[tuple[float, int, int], bytes] = OrderedDict()
        self._turn = asyncio.Lock()

    async def pictures(self, times: Sequence[float], see: Condition) -> tuple[bytes, ...]:
        """The pictures shown at `times` (seconds of the file), in that order, of `see`'s size.

        Raises BadRow for a video that is missing or cannot be decoded.
        """
        if not times:
            return ()
        if not self._video.uri or self._video.uri.startswith(UNSEEN):
            raise BadRow(f"no video for {self._video.video_id!r}: give its folder as videos=")
        async with self._turn:
            keys = [(time, see.longest, see.quality) for time in times]
            missing = sorted({key for key in keys if key not in self._kept})
            if missing:
                made = await asyncio.to_thread(self._decoded, [key[0] for key in missing], see)
                self._kept.update(zip(missing, made, strict=True))
            found = tuple(self._kept[key] for key in keys)
            while len(self._kept) > MAX_CACHED_FRAMES:
                self._kept.popitem(last=False)
        return found

    def _decoded(self, times: Sequence[float], see: Condition) -> list[bytes]:
        from mustsee.media.video import frames_at

        return [p.jpeg(see.longest, see.quality) for p in frames_at(self._video.uri, times)]
