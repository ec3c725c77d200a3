"""`frames_as: clip`: the frames of a message as one clip, in which each is shown for a second.

Models that take video count a frame of it at a fraction of an image (`mustsee.calls.image_tokens`).
The text keeps its order: where an image was, it names the second of the clip. Whether a model sees
as much in such a clip as in images was not verified.
"""

from __future__ import annotations

import hashlib

from mustsee.calls.llm import Message, VideoClip
from mustsee.media.clips import encode_stills
from mustsee.records import Span

LEAST_FRAMES = 2  # images of a message below which they stay images
INTRODUCTION = (
    "The pictures are in the clip above, one a second: picture 1 in its first second, picture 2 in "
    "its second one, and so on. The clip's own times mean nothing; each picture's time is given "
    "beside its number.\n\n"
)


def goes_as_clip(message: Message) -> bool:
    return len(message.images) >= LEAST_FRAMES


def added_characters(message: Message) -> int:
    """Return the characters that `clip_parts` adds to the text of a message."""
    if not goes_as_clip(message):
        return 0
    return len(INTRODUCTION) + len("[picture 10]") * len(message.images)


def clip_parts(message: Message) -> tuple[str | bytes | VideoClip, ...]:
    """Return the parts of a message, with its images in one clip before its texts."""
    if not goes_as_clip(message):
        return message.parts
    count = len(message.images)
    digest = hashlib.sha256(b"".join(hashlib.sha256(i).digest() for i in message.images))
    clip = VideoClip(
        span=Span(0.0, float(count)),
        digest=f"stills {digest.hexdigest()}",
        mp4=encode_stills(message.images),
    )
    texts: list[str] = [INTRODUCTION]
    number = 0
    for part in message.parts:
        if isinstance(part, bytes):
            number += 1
            texts.append(f"[picture {number}]")
        elif isinstance(part, str):
            texts.append(part)
    if not _placed(message):  # The images come before the text, which numbers them itself.
        texts = [INTRODUCTION, *(p for p in message.parts if isinstance(p, str))]
    return (*message.clips, clip, "".join(texts))


def _placed(message: Message) -> bool:
    """Whether the text says where each image goes."""
    return isinstance(next(p for p in message.parts if not isinstance(p, VideoClip)), str)
