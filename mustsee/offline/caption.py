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


def typed(request: Request) -> str:
    """The rules know light and colours of one picture."""
    images = [image for message in request.messages for image in message.images]
    keyframes = [Keyframe(time=0.0, shot=0, jpeg=image) for image in images[:1]]
    (text, *_) = [text for _, text in captions(keyframes, (), ())] or ["nothing"]
    return f"PEOPLE: none\nMOOD: none\nCAPTION: {text}"


RULES: dict[str, Callable[[Request], str]] = {"caption/frames": frames, "caption/typed": typed}
