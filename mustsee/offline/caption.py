"""Captions without a model: light and colours of each frame, as the pixel captioner writes them."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from itertools import islice

import numpy as np

from mustsee.calls.llm import Request, VideoClip
from mustsee.media.frames import encode
from mustsee.media.pixels import captions
from mustsee.offline.looking import images_of
from mustsee.records import Keyframe

QUALITY = 85  # JPEG quality of a clip's frame, 0 to 100


def frames(request: Request) -> str:
    """Write a numbered sentence for each frame to describe, without its neighbours."""
    variables = request.variables
    first = 0 if variables["before"] is None else 1
    described = images_of(request)[first : first + len(variables["times"])]
    return "\n".join(f"{i}: {text}" for i, text in enumerate(_sentences(described), 1))


def clips(request: Request) -> str:
    """Write a numbered sentence for the middle frame of each clip."""
    middles = [_middle(clip) for message in request.messages for clip in message.clips]
    return "\n".join(f"{i}: {text}" for i, text in enumerate(_sentences(middles), 1))


def caption_by_type(request: Request) -> str:
    """Describe light and colours of the first image; the rules recognise no people."""
    (text, *_) = _sentences(images_of(request)[:1]) or ["nothing"]
    return f"PEOPLE: none\nMOOD: none\nCAPTION: {text}"


def _sentences(jpegs: Sequence[bytes]) -> list[str]:
    keyframes = [Keyframe(time=float(i), shot=0, jpeg=jpeg) for i, jpeg in enumerate(jpegs)]
    return [text for _, text in captions(keyframes, (), ())]


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


RULES: dict[str, Callable[[Request], str]] = {
    "caption/frames": frames,
    "caption/clips": clips,
    "caption/typed": caption_by_type,
    "caption/wearer": frames,
    "caption/wearer_clips": clips,
}
