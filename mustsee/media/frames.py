"""One decoded frame, and cheap ways to measure it.

To convert every frame to RGB costs half as much again as decoding it (measured: 1.5x on 360p).
Measurements of every frame therefore take a thumbnail that is picked straight from the frame's
planes; only the few frames that are kept are converted.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mustsee.media.colours import bar_shares, is_black
from mustsee.media.shown import colour_space, is_hdr, sdr_grey, sdr_image, without_comb

if TYPE_CHECKING:
    from av import VideoFrame

Image = NDArray[np.uint8]
BARS_LONGEST = 256  # about the longer side in pixels of the image whose black bars are measured
SQUARE_TOLERANCE = 0.02  # pixel aspects this near to 1 are rounding in the encoder's header


@dataclass(frozen=True, slots=True)
class TimedFrame:
    """A decoded frame with its time in seconds.

    `turn`: degrees counter-clockwise (0, 90, 180, 270) and `aspect`: width over height of a pixel;
    both are needed to show the frame as it was meant. `mirrored`: whether `decoded` is a mirror
    image of the file's frame, as the file asks.
    """

    time: float
    decoded: VideoFrame
    turn: int = 0
    aspect: float = 1.0
    mirrored: bool = False

    def end(self, fps: float) -> float:
        """Return the time of the next frame: by this frame's own duration, else 1 / fps."""
        length, base = self.decoded.duration, self.decoded.time_base
        return self.time + (float(length * base) if length and base else 1 / fps)

    def picture(self) -> VideoFrame:
        """Return the frame without the comb of interlaced video and for usual screens, not turned
        upright.
        """
        frame = without_comb(self.decoded)
        if not is_hdr(frame):
            return frame
        from av import VideoFrame

        return VideoFrame.from_ndarray(sdr_image(frame), format="bgr24")

    def image(self, longest: int | None = None) -> Image:
        """Return BGR pixels, (height, width, 3), upright, square, shrunk to `longest` pixels."""
        return self._converted_to("bgr24", longest)

    def luma(self, longest: int | None = None) -> Image:
        """Return brightness 0 to 255, (height, width), upright and with square pixels."""
        return self._converted_to("gray", longest)

    def jpeg(self, longest: int, quality: int, *, crop: bool = False) -> bytes:
        """Return the frame as a JPEG file. `crop`: without its black bars, so that `longest` is the
        longer side of its content.
        """
        if not crop:
            return encode(self.image(longest), quality)
        return encode(cut_bars(*self._barred_image(longest)), quality)

    def barred_jpeg(self, longest: int, quality: int) -> bytes:
        """Return the frame as a JPEG file with its black bars, the longer side of whose content is
        `longest`, so that what crops it later has as many pixels.
        """
        return encode(self._barred_image(longest)[0], quality)

    def _barred_image(self, longest: int) -> tuple[Image, tuple[float, float]]:
        """BGR pixels, at the size that gives the content within the bars the longer side `longest`,
        and the bars.
        """
        image = self.image(longest)
        bars = _bars_of(image)
        width, height = shown_size(self.decoded.width, self.decoded.height, self.aspect, self.turn)
        content = max(height * (1 - 2 * bars[0]), width * (1 - 2 * bars[1]))
        whole = round(longest * max(width, height) / content)
        return (image if whole == longest else self.image(whole)), bars

    def _converted_to(self, pixel_format: str, longest: int | None) -> Image:
        width, height = shown_size(self.decoded.width, self.decoded.height, self.aspect)
        shrink = 1.0 if longest is None else min(1.0, longest / max(width, height))
        frame = without_comb(self.decoded)
        hdr = is_hdr(frame)
        small: Any = frame.reformat(
            width=max(1, round(width * shrink)),
            height=max(1, round(height * shrink)),
            format="rgb48le" if hdr else pixel_format,
            src_colorspace=colour_space(frame),
            interpolation="BILINEAR" if shrink > 0.5 else "AREA",
            threads=1,  # Threads started for one frame would double the cost.
        )
        if not hdr:
            return upright(packed_pixels(small.planes[0], pixel_format), self.turn)
        image: Any = sdr_image(small)
        if pixel_format == "gray":
            import cv2

            image = cv2.cvtColor(image, cv2.COLOR_BGR2GRAY)
        return upright(image, self.turn)


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


def _bars_of(image: Image) -> tuple[float, float]:
    """Return the `bar_shares` of an image, measured at a whole fraction of its size, which is quick
    to compute.
    """
    import cv2

    factor = max(1, max(image.shape) // BARS_LONGEST)
    height, width = (max(1, n // factor) for n in image.shape[:2])
    whole = image[: height * factor, : width * factor]
    small: Any = cv2.resize(whole, (width, height), interpolation=cv2.INTER_AREA)
    return bar_shares(small)


def cut_bars(image: Image, bars: tuple[float, float]) -> Image:
    """Return the image without `bars`: the shares of its height at the top and at the bottom, and
    of its width on the left and on the right.
    """
    height, width = image.shape[:2]
    rows, columns = math.ceil(height * bars[0]), math.ceil(width * bars[1])
    return image[rows : height - rows, columns : width - columns]


def crop_jpeg(jpeg: bytes, quality: int = 90) -> bytes:
    """Return a JPEG without its black bars; the same bytes without bars, or if it is damaged."""
    image = decode(jpeg)
    inside = image if image is None else without_bars(image)
    return jpeg if inside is None or inside is image else encode(inside, quality)


def without_bars(image: Image) -> Image:
    """Return the image without its black bars; the same one without bars."""
    bars = _bars_of(image)
    return cut_bars(image, bars) if any(bars) else image


def decode(jpeg: bytes) -> Image | None:
    """Return the BGR pixels of a JPEG file, or None if it is damaged."""
    import cv2

    image: Any = cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_COLOR) if jpeg else None
    return image


def is_black_jpeg(jpeg: bytes) -> bool:
    """Whether nearly nothing of a JPEG is lit; not for a damaged one."""
    image = decode(jpeg)
    return image is not None and is_black(image)


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

    def image(self) -> Image:
        """(height, width, 3), BGR"""
        import cv2

        return np.asarray(cv2.cvtColor(self.yuv, cv2.COLOR_YUV2BGR_I420), np.uint8)


def jpeg_thumbnail(jpeg: bytes, longest: int = 64) -> Thumbnail | None:
    """Return the thumbnail of a JPEG file, or None if it is damaged."""
    import cv2

    image = decode(jpeg)
    if image is None:
        return None
    share = min(1.0, longest / max(image.shape[:2]))
    width, height = (max(2, round(n * share / 2) * 2) for n in image.shape[1::-1])
    small = cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA)
    return Thumbnail(np.asarray(cv2.cvtColor(small, cv2.COLOR_BGR2YUV_I420), np.uint8))


def small_luma(frame: VideoFrame, longest: int) -> Image:
    """Return a frame's brightness in its own range, (height, width), not turned upright, at a whole
    fraction of its size, so that its longer side is at most `longest` pixels.

    At half the size a pixel is the mean of its area, at less that of the 2 x 2 in its middle.
    """
    import cv2

    transfer = frame.color_trc if is_hdr(frame) else None
    frame = without_comb(frame)
    bits = PLANAR.get(frame.format.name, 0)
    luma: Any = (
        plane_pixels(frame.planes[0], bits)
        if bits
        else frame.reformat(format="gray", threads=1).to_ndarray()
    )
    factor = math.ceil(max(luma.shape) / longest)
    if factor > 1:
        height, width = (max(1, n // factor) for n in luma.shape)
        how = cv2.INTER_AREA if factor == 2 else cv2.INTER_LINEAR
        luma = cv2.resize(luma, (width, height), interpolation=how)
    small = np.asarray(luma >> (bits - 8) if bits > 8 else luma, np.uint8)
    return small if transfer is None else sdr_grey(transfer)[small]


def packed_pixels(plane: Any, pixel_format: str) -> Image:
    """Return the pixels of a frame of `gray` or `bgr24`, (height, width) or (height, width, 3),
    without a copy: fresh memory costs as much as the conversion.
    """
    size = (plane.height, plane.width)
    if pixel_format == "gray":
        return plane_pixels(plane, 8)
    return np.ndarray((*size, 3), np.uint8, plane, strides=(plane.line_size, 3, 1))


def plane_pixels(plane: Any, bits: int) -> NDArray[Any]:
    """Return a plane of a frame with so many bits per sample, (height, width), without a copy."""
    kind, size = (np.uint8, 1) if bits == 8 else (np.uint16, 2)
    return np.ndarray((plane.height, plane.width), kind, plane, strides=(plane.line_size, size))


PLANAR = {"yuv420p": 8, "yuvj420p": 8, "yuv420p10le": 10, "yuv420p12le": 12}  # bits per sample
FULL_RANGE = 2  # FFmpeg's AVCOL_RANGE_JPEG
MAX_CACHED_THUMBNAILS = 4  # thumbnails kept, because several measurements ask for the same one


class Thumbnails:
    """Makes thumbnails of a video's frames: of the first frame's size, scaled to about `longest`
    pixels, not turned upright.

    The planes of 4:2:0 frames (nearly all video) are shrunk without conversion; FFmpeg converts
    frames of other formats. HDR is converted once it is small. A pixel is the mean of the 2 x 2 in
    the middle of its area, because to read more rows of each plane would cost more than all
    measurements of the thumbnail.
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
        if is_hdr(frame):
            return Thumbnail(self._convert_hdr(frame))
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
        size, linear = small.shape[::-1], self._linear
        pixels = plane_pixels(plane, self._bits)
        if self._bits == 8:
            self._resize(pixels, size, small, interpolation=linear)
        else:
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

    def _convert_hdr(self, frame: VideoFrame) -> Image:
        import cv2
        from av import VideoFrame

        assert self._size is not None
        width, height = self._size
        small: Any = frame
        if self._bits:
            sizes = (width, height), *2 * ((width // 2, height // 2),)
            shrunk = [
                self._resize(plane_pixels(plane, self._bits), size, interpolation=self._linear)
                for plane, size in zip(frame.planes, sizes, strict=True)
            ]
            pixels: Any = np.concatenate([plane.ravel() for plane in shrunk])
            pixels = pixels.reshape(height * 3 // 2, width) >> max(0, self._bits - 10)
            kind = "yuv420p" if self._bits == 8 else "yuv420p10le"
            small = VideoFrame.from_ndarray(pixels, format=kind)
            for name in ("colorspace", "color_range", "color_trc", "color_primaries"):
                setattr(small, name, getattr(frame, name))
        small = small.reformat(width, height, "rgb48le", interpolation="AREA", threads=1)
        return np.asarray(cv2.cvtColor(sdr_image(small), cv2.COLOR_BGR2YUV_I420), np.uint8)
