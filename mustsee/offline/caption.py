"""Captions without a model: light and colours of each frame, as the pixel captioner writes them."""

from __future__ import annotations

import io
from collections.abc import Callable
from itertools import islice

import numpy as np

from mustsee.calls.llm import Request, VideoClip
from mustsee.media.frames import encode
from mustsee.media.pixels import captions
from mustsee.records import Keyframe

QUALITY = 85  # JPEG quality of a clip's frame, 0 to 100


def frames(request: Request) -> str:
    """Write a numbered sentence for each frame to describe, without its neighbours."""
    variables = request.variables
    first = 0 if variables["before"] is None else 1
    images = [image for message in request.messages for image in message.images]
    described = images[first : first + len(variables["times"])]
    keyframes = [Keyframe(time=float(i), shot=0, jpeg=p) for i, p in enumerate(described)]
    sentences = captions(keyframes, (), ())
    return "\n".join(f"{i}: {text}" for i, (_, text) in enumerate(sentences, 1))


def clips(request: Request) -> str:
    """Write a numbered sentence for the middle frame of each clip."""
    clips_shown = [clip for message in request.messages for clip in message.clips]
    keyframes = [
        Keyframe(time=float(i), shot=0, jpeg=_middle(c)) for i, c in enumerate(clips_shown)
    ]
    sentences = captions(keyframes, (), ())
    return "\n".join(f"{i}: {text}" for i, (_, text) in enumerate(sentences, 1))


def _middle(clip: VideoClip) -> bytes:
    import av
    from av.error import FFmpegError

    try:
        with av.open(io.BytesIO(clip.mp4), "r") as video:
            count = sum(1 for _ in video.decode(video=0))
        with av.open(io.BytesIO(clip.mp4), "r") as video:
            frame = next(islice(video.decode(video=0), count // 2, None))
    except FFmpegError:
        return b""  # The captioner treats this as a damaged frame.
    return encode(frame.to_ndarray(format="bgr24").astype(np.uint8, copy=False), QUALITY)


def caption_by_type(request: Request) -> str:
    """Describe light and colours of the first image; the rules recognise no people."""
    images = [image for message in request.messages for image in message.images]
    keyframes = [Keyframe(time=0.0, shot=0, jpeg=image) for image in images[:1]]
    (text, *_) = [text for _, text in captions(keyframes, (), ())] or ["nothing"]
    return f"PEOPLE: none\nMOOD: none\nCAPTION: {text}"


RULES: dict[str, Callable[[Request], str]] = {
    "caption/frames": frames,
    "caption/clips": clips,
    "caption/typed": caption_by_type,
    "caption/wearer": frames,
    "caption/wearer_clips": clips,
}
