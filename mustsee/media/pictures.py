"""One decoded frame, and the cheap ways to look at it.

Converting every frame to RGB costs half as much again as decoding it (measured: 1.5x on 360p), so
whatever wants to see every frame gets a thumbnail that is picked straight out of the frame's
planes; only the few frames that are kept are converted.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from av import VideoFrame

Image = NDArray[np.uint8]
# pixel aspects this near to 1 are rounding in the encoder's header, and ignored
SQUARE_TOLERANCE = 0.02


@dataclass(frozen=True, slots=True)
class TimedFrame:
    """A frame with its time in seconds. `turn`: degrees counter-clockwise (0, 90, 180, 270) and
    `aspect`: width over height of a pixel, both needed to show it as it was meant.
    """

    time: float
    frame: VideoFrame
    turn: int = 0
    aspect: float = 1.0

    def end(self, fps: float) -> float:
        """When the next frame is due: after this frame's own duration, else after 1 / fps."""
        length, base = self.frame.duration, self.frame.time_base
        return self.time + (float(length * base) if length and base else 1 / fps)

    def image(self, longest: int | None = None) -> Image:
        """BGR pixels, (height, width, 3), upright and with square pixels, shrunk to `longest`."""
        return self._shown("bgr24", longest)

    def luma(self, longest: int | None = None) -> Image:
        """Brightness 0 to 255, (height, width), upright and with square pixels."""
        return self._shown("gray", longest)

    def jpeg(self, longest: int, quality: int) -> bytes:
        """The picture as a JPEG file."""
        return encode(self.image(longest), quality)

    def _shown(self, kind: str, longest: int | None) -> Image:
        width, height = shown_size(self.frame.width, self.frame.height, self.aspect)
        shrink = 1.0 if longest is None else min(1.0, longest / max(width, height))
        small: Any = self.frame.reformat(
            width=max(1, round(width * shrink)),
            height=max(1, round(height * shrink)),
            format=kind,
            interpolation="BILINEAR" if shrink > 0.5 else "AREA",
            threads=1,  # else threads are started for this one frame: twice the cost
        )
        return upright(small.to_ndarray(), self.turn)


def shown_size(width: int, height: int, aspect: float, turn: int = 0) -> tuple[int, int]:
    """Width and height with square pixels, turned upright: the longer way is stretched, so that no
    line or column is lost.
    """
    if abs(aspect - 1) > SQUARE_TOLERANCE:
        width, height = (
            (round(width * aspect), height) if aspect > 1 else (width, round(height / aspect))
        )
    return (height, width) if turn % 180 else (width, height)


def upright(image: Image, turn: int) -> Image:
    """The image turned counter-clockwise by `turn` degrees (a multiple of 90)."""
    return np.ascontiguousarray(np.rot90(image, turn // 90)) if turn else image


def shrunk(image: Image, longest: int) -> Image:
    """The image shrunk so that its longer side is `longest` at most."""
    height, width = image.shape[:2]
    share = longest / max(width, height)
    if share >= 1:
        return image
    import cv2

    size = max(1, round(width * share)), max(1, round(height * share))
    small: Any = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
    return small


def encode(image: Image, quality: int) -> bytes:
    """BGR pixels as a JPEG file."""
    import cv2

    done, data = cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, quality])
    if not done:
        raise ValueError(f"cannot write a JPEG of shape {image.shape!r}")
    return data.tobytes()


@dataclass(frozen=True, slots=True)
class Thumbnail:
    """A small picture in 8-bit YUV of video range (16 to 235): `yuv` (height * 3/2, width) holds
    the luma rows, then both chroma planes at half size (I420).
    """

    yuv: Image

    @property
    def luma(self) -> Image:
        """(height, width)"""
        return self.yuv[: len(self.yuv) * 2 // 3]

    @property
    def chroma(self) -> Image:
        """(2, height/2, width/2)"""
        height, width = self.luma.shape
        return self.yuv[height:].reshape(2, height // 2, width // 2)


PLANAR = {"yuv420p": 8, "yuvj420p": 8, "yuv420p10le": 10, "yuv420p12le": 12}  # bits per sample
FULL_RANGE = 2  # FFmpeg's AVCOL_RANGE_JPEG
MAX_CACHED_THUMBNAILS = 4  # thumbnails that are not made twice where several look at a video


class Thumbnails:
    """Small pictures of a video's frames, all of one size (the first frame's), about `longest` wide
    or high, not turned.

    The planes of 4:2:0 frames (nearly all video) are shrunk without conversion; other formats take
    a conversion by FFmpeg. A pixel is the mean of the 2 x 2 in the middle of its area: to read more
    lines of each plane costs more than all that is done with the thumbnail.
    """

    def __init__(self, longest: int = 64) -> None:
        import cv2

        self._longest = longest
        self._resize: Any = cv2.resize
        self._linear = cv2.INTER_LINEAR
        self._source: tuple[int, int, str] | None = None
        self._size: tuple[int, int] | None = None
        self._bits, self._full = 0, False
        self._kept: deque[tuple[VideoFrame, Thumbnail]] = deque(maxlen=MAX_CACHED_THUMBNAILS)

    def __call__(self, frame: VideoFrame) -> Thumbnail:
        """The thumbnail of a frame."""
        for seen, thumbnail in self._kept:
            if seen is frame:
                return thumbnail
        thumbnail = self._made(frame)
        self._kept.append((frame, thumbnail))
        return thumbnail

    def _made(self, frame: VideoFrame) -> Thumbnail:
        source = (frame.width, frame.height, frame.format.name)
        if source != self._source:
            self._prepare(frame)
            self._source = source
        return Thumbnail(self._shrunk(frame) if self._bits else self._converted(frame))

    def _prepare(self, frame: VideoFrame) -> None:
        share = min(1.0, self._longest / max(frame.width, frame.height))
        width, height = (max(2, round(n * share / 2) * 2) for n in (frame.width, frame.height))
        self._size = self._size or (width, height)
        self._bits = PLANAR.get(frame.format.name, 0)
        self._full = frame.format.name == "yuvj420p" or frame.color_range == FULL_RANGE

    def _shrunk(self, frame: VideoFrame) -> Image:
        assert self._size is not None
        width, height = self._size
        out = np.empty((height * 3 // 2, width), np.uint8)
        chroma = out[height:].reshape(2, height // 2, width // 2)
        for plane, small in zip(frame.planes, (out[:height], *chroma), strict=True):
            self._pick(plane, small)
        if self._full:
            out[:height] = 16 + (out[:height].astype(np.uint16) * 219 + 127) // 255
            chroma[:] = 16 + (chroma.astype(np.uint16) * 224 + 127) // 255
        return out

    def _pick(self, plane: Any, small: Image) -> None:
        """A plane at another size, each pixel the mean of the 2 x 2 in the middle of its area."""
        shape, size, linear = (plane.height, plane.width), small.shape[::-1], self._linear
        if self._bits == 8:
            seen = np.ndarray(shape, np.uint8, plane, strides=(plane.line_size, 1))
            self._resize(seen, size, small, interpolation=linear)
        else:
            seen = np.ndarray(shape, np.uint16, plane, strides=(plane.line_size, 2))
            small[:] = self._resize(seen, size, interpolation=linear) >> (self._bits - 8)

    def _converted(self, frame: VideoFrame) -> Image:
        assert self._size is not None
        width, height = self._size
        small: Any = frame.reformat(
            width=width,
            height=height,
            format="yuv420p",
            interpolation="AREA",
            dst_color_range="MPEG",
            threads=1,
        )
        return small.to_ndarray()
