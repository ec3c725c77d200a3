"""Pictures of one film for many questions: each is decoded once, whoever asks for it."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence

from mustsee.errors import BadRow
from mustsee.records import Video

KEPT = 2048  # pictures; at 512 pixels about 80 MB


class Film:
    """JPEGs of the film of a row, `longest` pixels along the longer side. Serves one event loop."""

    def __init__(self, video: Video, *, longest: int = 512, quality: int = 85) -> None:
        self._video, self._longest, self._quality = video, longest, quality
        self._kept: OrderedDict[float, bytes] = OrderedDict()
        self._turn = asyncio.Lock()

    async def pictures(self, times: Sequence[float]) -> tuple[bytes, ...]:
        """The pictures shown at `times` (seconds of the file), in that order.

        Raises BadRow for a film that is missing or cannot be decoded.
        """
        if not times:
            return ()
        if not self._video.uri:
            raise BadRow(f"no film for {self._video.video_id!r}: give its folder as videos=")
        async with self._turn:
            missing = sorted({t for t in times if t not in self._kept})
            if missing:
                made = await asyncio.to_thread(self._decoded, missing)
                self._kept.update(zip(missing, made, strict=True))
            found = tuple(self._kept[t] for t in times)
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return found

    def _decoded(self, times: Sequence[float]) -> list[bytes]:
        from mustsee.media.video import frames_at

        pictures = frames_at(self._video.uri, times)
        return [picture.jpeg(self._longest, self._quality) for picture in pictures]
