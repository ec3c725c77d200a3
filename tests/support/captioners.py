"""The contract that every captioner keeps."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Callable
from typing import Any

import numpy as np
from PIL import Image

from actors.part import Part
from mustsee.errors import BadRow
from mustsee.files import schemas
from mustsee.records import Keyframe, Video

Rows = Callable[..., list[Any]]


def jpeg(seed: int) -> bytes:
    """Return a JPEG of 64 x 48 pixels of noise."""
    noise = np.random.default_rng(seed).integers(0, 255, (5, 7, 3), np.uint8)
    out = io.BytesIO()
    Image.fromarray(noise).resize((64, 48)).save(out, "JPEG")
    return out.getvalue()


def video(name: str, *jpegs: bytes) -> Video:
    """Return a row with these keyframes, one every two seconds."""
    keyframes = tuple(Keyframe(time=2.0 * i, shot=i, jpeg=data) for i, data in enumerate(jpegs))
    return Video(video_id=name, uri=f"{name}.mp4", keyframes=keyframes, title=name)


ROWS = (
    video("three", jpeg(1), jpeg(2), jpeg(3)),
    video("none"),
    video("bad", jpeg(1), b"not a JPEG"),
    video("one", jpeg(2)),
    dataclasses.replace(video("unseen"), keyframes=None),
)


def check_captioner(part: Part, caption: Rows) -> None:
    """Caption rows with keyframes, without any and with a damaged one, and assert the contract: a
    captioner changes `captions` (and `requests`) alone, sorted by time; a row without keyframes
    gets none; a damaged
    keyframe raises BadRow or is skipped; a row gets the same captions alone and among others.
    """
    results = caption(*ROWS)
    assert part.writes == ("captions",)
    for row, captioned in zip(ROWS, results, strict=True):
        if isinstance(captioned, BadRow) and row.video_id == "bad":
            continue
        assert not isinstance(captioned, BaseException), captioned
        assert dataclasses.replace(captioned, captions=row.captions, requests=row.requests) == row
        times = [keyframe.time for keyframe in row.keyframes or ()]
        assert {c.time for c in captioned.captions} <= set(times)
        assert [c.time for c in captioned.captions] == sorted(c.time for c in captioned.captions)
        assert all(c.text == c.text.strip() != "" for c in captioned.captions)
        stored = schemas.table([captioned], Video)
        assert schemas.load(Video, stored.to_pylist()[0]).captions == captioned.captions
    assert results[1].captions == results[4].captions == ()
    assert caption(ROWS[0])[0] == results[0]
