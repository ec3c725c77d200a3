"""Captions without a model: light and colours of each picture, as the pixel captioner says them."""

from __future__ import annotations

from collections.abc import Callable

from mustsee.llm import Request
from mustsee.media.pixels import captions
from mustsee.records import Keyframe


def frames(request: Request) -> str:
    """A numbered sentence for each picture of the request that is to be described."""
    known = request.variables
    first = 0 if known["before"] is None else 1
    images = [image for message in request.messages for image in message.images]
    pictures = images[first : first + len(known["times"])]
    keyframes = [Keyframe(time=float(i), shot=0, jpeg=p) for i, p in enumerate(pictures)]
    found = captions(keyframes, (), ())
    return "\n".join(f"{i}: {text}" for i, (_, text) in enumerate(found, 1))


RULES: dict[str, Callable[[Request], str]] = {"caption/frames": frames}
