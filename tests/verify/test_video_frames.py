"""Frames of one video: requests are decoded side by side, and each frame once."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from mustsee.errors import BadRow
from mustsee.media import video as media
from mustsee.media.frames import TimedFrame
from mustsee.records import Video
from mustsee.verify.conditions import video_frames
from mustsee.verify.conditions.seen import Condition
from mustsee.verify.conditions.video_frames import VideoFrames

SEE = Condition(condition="evidence", longest=64)
TOGETHER_S = 20.0  # seconds for which one decoding waits for the other


VIDEO = Video(video_id="teaser", uri="examples/videos/teaser.mp4")


def test_requests_of_one_video_are_decoded_side_by_side(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    both, decode = threading.Barrier(2, timeout=TOGETHER_S), media.frames_at

    def meet(uri: str, times: Iterable[float]) -> Iterator[TimedFrame]:
        both.wait()  # broken if the other request is not decoded meanwhile
        return decode(uri, times)

    monkeypatch.setattr(video_frames, "DECODERS", 2)
    monkeypatch.setattr(media, "frames_at", meet)

    async def ask() -> tuple[tuple[bytes, ...], tuple[bytes, ...]]:
        frames = VideoFrames(VIDEO)
        return await asyncio.gather(frames.jpegs((0.5, 1.0), SEE), frames.jpegs((2.0,), SEE))

    first, second = asyncio.run(ask())
    assert len({*first, *second}) == 3


def test_a_frame_that_is_being_decoded_is_not_decoded_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    decoded, decode = Counter[float](), media.frames_at

    def count(uri: str, times: Iterable[float]) -> Iterator[TimedFrame]:
        decoded.update(times := list(times))
        return decode(uri, times)

    monkeypatch.setattr(media, "frames_at", count)

    async def ask() -> list[tuple[bytes, ...]]:
        frames, together = VideoFrames(VIDEO), [(0.5, 1.0), (1.0, 2.0), (2.0, 0.5)]
        found = await asyncio.gather(*(frames.jpegs(times, SEE) for times in together))
        return [*found, await frames.jpegs((2.0, 1.0), SEE)]

    (a, b), (b2, c), (c2, a2), (c3, b3) = asyncio.run(ask())
    assert (a, b, c) == (a2, b2, c2)
    assert (b, c) == (b3, c3)
    assert decoded == {0.5: 1, 1.0: 1, 2.0: 1}


def test_a_video_that_cannot_be_decoded_is_refused_in_every_request(tmp_path: Path) -> None:
    (path := tmp_path / "broken.mp4").write_bytes(b"no video")

    async def ask() -> list[object]:
        frames = VideoFrames(Video(video_id="broken", uri=str(path)))
        asked = [frames.jpegs((1.0,), SEE), frames.jpegs((1.0, 2.0), SEE)]
        return [*await asyncio.gather(*asked, return_exceptions=True)]

    assert [type(error) for error in asyncio.run(ask())] == [BadRow, BadRow]
