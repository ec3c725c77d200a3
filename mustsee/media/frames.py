"""One decoded frame, and cheap ways to measure it.

To convert every frame to RGB costs half as much again as decoding it (measured: 1.5x on 360p).
Measurements of every frame therefore take a thumbnail that is picked straight from the frame's
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
SQUARE_TOLERANCE = 0.02  # pixel aspects this near to 1 are rounding in the encoder's header


@dataclass(frozen=True, slots=True)
class TimedFrame:
    """A decoded frame with its time in seconds.

    `turn`: degrees counter-clockwise (0, 90, 180, 270) and `aspect`: width over height of a pixel;
    both are needed to show the frame as it was meant.
    """

    time: float
    decoded: VideoFrame
    turn: int = 0
    aspect: float = 1.0

    def end(self, fps: float) -> float:
        """Return the time of the next frame: by this frame's own duration, else 1 / fps."""
        length, base = self.decoded.duration, self.decoded.time_base
        return self.time + (float(length * base) if length and base else 1 / fps)

    def image(self, longest: int | None = None) -> Image:
        """Return BGR pixels, (height, width, 3), upright, square, shrunk to `longest` pixels."""
        return self._converted_to("bgr24", longest)

    def luma(self, longest: int | None = None) -> Image:
        """Return brightness 0 to 255, (height, width), upright and with square pixels."""
        return self._converted_to("gray", longest)

    def jpeg(self, longest: int, quality: int) -> bytes:
        """Return the frame as a JPEG file."""
        return encode(self.image(longest), quality)

    def _converted_to(self, pixel_format: str, longest: int | None) -> Image:
        width, height = shown_size(self.decoded.width, self.decoded.height, self.aspect)
        shrink = 1.0 if longest is None else min(1.0, longest / max(width, height))
        small: Any = self.decoded.reformat(
            width=max(1, round(width * shrink)),
            height=max(1, round(height * shrink)),
            format=pixel_format,
            interpolation="BILINEAR" if shrink > 0.5 else "AREA",
            threads=1,  # Threads started for one frame would double the cost.
        )
        return upright(small.to_ndarray(), self.turn)


def shown_size(width: int, height: int, aspect: float, turn: int = 0) -> tuple[int, int]:
    """Return width and height with square pixels, turned upright.

    The longer way is stretched, so that no line or column is lost.
    """
    if abs(aspect - 1) > SQUARE_TOLERANCE:
        width, height = (
            (round(width * aspect), height) if aspect > 1 else (width, round(height / aspect))
        )
    return (height, width) if turn % 180 else (width, height)


def upright(image: Image, turn: int) -> Image:
    """Return the image turned counter-clockwise by `turn` degrees (a multiple of 90)."""
    return np.ascontiguousarray(np.rot90(image, turn // 90)) if turn else image


def shrunk(image: Image, longest: int) -> Image:
    """Return the image, shrunk so that its longer side is at most `longest`."""
    height, width = image.shape[:2]
    share = longest / max(width, height)
    if share >= 1:
        return image
    import cv2

    size = max(1, round(width * share)), max(1, round(height * share))
    small: Any = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
    return small


def encode(image: Image, quality: int) -> bytes:
    """Return BGR pixels as a JPEG file."""
    import cv2

    is_encoded, data = cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, quality])
    if not is_encoded:
        raise ValueError(f"cannot write a JPEG of shape {image.shape!r}")
    return data.tobytes()


@dataclass(frozen=True, slots=True)
class Thumbnail:
    """A small frame in 8-bit YUV of video range (16 to 235).

    `yuv` (height * 3/2, width) holds the luma rows, then both chroma planes at half size (I420).
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
MAX_CACHED_THUMBNAILS = 4  # thumbnails kept, because several measurements ask for the same one


class Thumbnails:
    """Makes thumbnails of a video's frames: of the first frame's size, scaled to about `longest`
    pixels, not turned upright.

    The planes of 4:2:0 frames (nearly all video) are shrunk without conversion; FFmpeg converts
    frames of other formats. A pixel is the mean of the 2 x 2 in the middle of its area, because to
    read more rows of each plane would cost more than all measurements of the thumbnail.
    """

    def __init__(self, longest: int = 64) -> None:
        import cv2

        self._longest = longest
        self._resize: Any = cv2.resize
        self._linear = cv2.INTER_LINEAR
        self._source: tuple[int, int, str] | None = None
        self._size: tuple[int, int] | None = None
        self._bits, self._full_range = 0, False
        self._cached: deque[tuple[VideoFrame, Thumbnail]] = deque(maxlen=MAX_CACHED_THUMBNAILS)

    def __call__(self, frame: VideoFrame) -> Thumbnail:
        """Return the thumbnail of a frame."""
        for cached_frame, thumbnail in self._cached:
            if cached_frame is frame:
                return thumbnail
        thumbnail = self._make(frame)
        self._cached.append((frame, thumbnail))
        return thumbnail

    def _make(self, frame: VideoFrame) -> Thumbnail:
        source = (frame.width, frame.height, frame.format.name)
        if source != self._source:
            self._prepare(frame)
            self._source = source
        return Thumbnail(self._shrink(frame) if self._bits else self._convert(frame))

    def _prepare(self, frame: VideoFrame) -> None:
        share = min(1.0, self._longest / max(frame.width, frame.height))
        width, height = (max(2, round(n * share / 2) * 2) for n in (frame.width, frame.height))
        self._size = self._size or (width, height)
        self._bits = PLANAR.get(frame.format.name, 0)
        self._full_range = frame.format.name == "yuvj420p" or frame.color_range == FULL_RANGE

    def _shrink(self, frame: VideoFrame) -> Image:
        assert self._size is not None
        width, height = self._size
        out = np.empty((height * 3 // 2, width), np.uint8)
        chroma = out[height:].reshape(2, height // 2, width // 2)
        for plane, small in zip(frame.planes, (out[:height], *chroma), strict=True):
            self._shrink_plane(plane, small)
        if self._full_range:
            out[:height] = 16 + (out[:height].astype(np.uint16) * 219 + 127) // 255
            chroma[:] = 16 + (chroma.astype(np.uint16) * 224 + 127) // 255
        return out

    def _shrink_plane(self, plane: Any, small: Image) -> None:
        """Fill `small` from a plane, each pixel the mean of the 2 x 2 in the middle of its area."""
        shape, size, linear = (plane.height, plane.width), small.shape[::-1], self._linear
        if self._bits == 8:
            pixels = np.ndarray(shape, np.uint8, plane, strides=(plane.line_size, 1))
            self._resize(pixels, size, small, interpolation=linear)
        else:
            pixels = np.ndarray(shape, np.uint16, plane, strides=(plane.line_size, 2))
            small[:] = self._resize(pixels, size, interpolation=linear) >> (self._bits - 8)

    def _convert(self, frame: VideoFrame) -> Image:
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
