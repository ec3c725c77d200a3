"""Frames of one video for many questions, each decoded once, those of several requests side by
side: the windows of a long video wait for their frames longer than for a model.
"""

from __future__ import annotations

import asyncio
import os
from collections import OrderedDict
from collections.abc import Sequence

import numpy as np

from mustsee.errors import BadRow
from mustsee.media.frames import encode
from mustsee.records import UNSEEN, Video
from mustsee.verify.conditions.seen import Condition

MAX_CACHED_FRAMES = 2048  # about 80 MB at 512 pixels
# Requests whose frames are decoded at the same time, each with buffers of its own.
DECODERS = min(4, os.cpu_count() or 1)

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
