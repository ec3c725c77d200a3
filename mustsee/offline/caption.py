"""Captions without a model: light and colours of each picture, as the pixel captioner says them."""

from __future__ import annotations

import io
from collections.abc import Callable
from itertools import islice

import numpy as np

from mustsee.calls.llm import Request, VideoClip
from mustsee.media.pictures import encode
from mustsee.media.pixels import captions
from mustsee.records import Keyframe

QUALITY = 85


def frames(request: Request) -> str:
    """A numbered sentence for each picture of the request that is to be described."""
    known = request.variables
    first = 0 if known["before"] is None else 1
    images = [image for message in request.messages for image in message.images]
    pictures = images[first : first + len(known["times"])]
    keyframes = [Keyframe(time=float(i), shot=0, jpeg=p) for i, p in enumerate(pictures)]
    found = captions(keyframes, (), ())
    return "\n".join(f"{i}: {text}" for i, (_, text) in enumerate(found, 1))


def clips(request: Request) -> str:
    """The same for a picture from the middle of each clip."""
    shown = [clip for message in request.messages for clip in message.clips]
    keyframes = [Keyframe(time=float(i), shot=0, jpeg=_middle(c)) for i, c in enumerate(shown)]
    found = captions(keyframes, (), ())
    return "\n".join(f"{i}: {text}" for i, (_, text) in enumerate(found, 1))


def _middle(clip: VideoClip) -> bytes:
    import av
    from av.error import FFmpegError

    try:
        with av.open(io.BytesIO(clip.mp4), "r") as video:
            count = sum(1 for _ in video.decode(video=0))
        with av.open(io.BytesIO(clip.mp4), "r") as video:
            frame = next(islice(video.decode(video=0), count // 2, None))
    except FFmpegError:
        return b""  # as a damaged picture
    return encode(frame.to_ndarray(format="bgr24").astype(np.uint8, copy=False), QUALITY)


def caption_by_type(request: Request) -> str:
    """The rules know light and colours of one picture."""
    images = [image for message in request.messages for image in message.images]
    keyframes = [Keyframe(time=0.0, shot=0, jpeg=image) for image in images[:1]]
    (text, *_) = [text for _, text in captions(keyframes, (), ())] or ["nothing"]
    return f"PEOPLE: none\nMOOD: none\nCAPTION: {text}"


RULES: dict[str, Callable[[Request], str]] = {
    "caption/frames": frames,
    "caption/clips": clips,
    "caption/typed": caption_by_type,
}
