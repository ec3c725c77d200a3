"""The videos in the loopback server's requests, decoded.

    Loopback(reply=lambda payload: describe(videos(payload)))

So a reply can depend on the clip that arrived: its length, its frames, its sound.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

SECOND = 290  # tokens of a second of video, frame and sound, as Gemini counts
KINDS = ("video_url", "image_url")


@dataclass(frozen=True, kw_only=True)
class WatchedVideo:
    """A decoded video. `seconds`: from the first frame to the end of the last. `times`: of the
    frames, in seconds. `colours`: their mean red, green and blue, 0 to 255. `loud`: root mean
    square of the sound, 0 to 1; None without sound. `size`: bytes.
    """

    seconds: float
    times: tuple[float, ...]
    colours: tuple[tuple[float, float, float], ...]
    loud: float | None
    size: int


def videos(payload: Mapping[str, Any]) -> list[WatchedVideo]:
    """Return every video of a chat request that was sent as data, in order."""
    urls = [url for message in payload["messages"] for url in video_urls(message["content"])]
    return [watch_video(url) for url in urls if url.startswith("data:")]


def video_urls(content: str | Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the data URLs and addresses of the videos in a message."""
    if isinstance(content, str):
        return []
    parts = ((part["type"], part[part["type"]]["url"]) for part in content if part["type"] in KINDS)
    return [url for kind, url in parts if kind == "video_url" or url.startswith("data:video/")]


def decode_data_url(url: str) -> bytes:
    """Return the file of a data URL."""
    return base64.b64decode(url.partition(",")[2])


@lru_cache(maxsize=256)
def video_seconds(url: str) -> float:
    """Return the length of a video of a data URL, read from its packets without decoding."""
    import av

    with av.open(io.BytesIO(decode_data_url(url)), "r") as container:
        stream = container.streams.video[0]
        packets = [p for p in container.demux(stream) if p.pts is not None]
        times = [(p.pts or 0, (p.pts or 0) + (p.duration or 0)) for p in packets]
        length = max(end for _, end in times) - min(start for start, _ in times)
        return float(length * (stream.time_base or 0))


@lru_cache(maxsize=64)
def watch_video(url: str) -> WatchedVideo:
    """Decode a video of a data URL from its first packet to its last."""
    import av

    content = decode_data_url(url)
    with av.open(io.BytesIO(content), "r") as container:
        times: list[float] = []
        colours: list[tuple[float, float, float]] = []
        end = 0.0
        for frame in container.decode(video=0):
            red, green, blue = frame.to_ndarray(format="rgb24").mean(axis=(0, 1))
            times.append(float(frame.time or 0.0))
            colours.append((float(red), float(green), float(blue)))
            end = times[-1] + float((frame.duration or 0) * (frame.time_base or 0))
    with av.open(io.BytesIO(content), "r") as container:
        loud = None
        if container.streams.audio:
            squares = [np.square(f.to_ndarray()).mean() for f in container.decode(audio=0)]
            loud = float(np.sqrt(np.mean(squares or [0.0])))
    return WatchedVideo(
        seconds=end - times[0], times=tuple(times), colours=tuple(colours), loud=loud,
        size=len(content),
    )  # fmt: skip
