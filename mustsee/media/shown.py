"""What a player does to a decoded frame before it is shown.

Frames are mirrored, and rid of the comb of interlaced video, by FFmpeg's filters, one frame by
itself, so that a frame reached by seeking is the same as in a full pass. HDR is brought to the
brightness of usual screens here: FFmpeg's own conversion takes eight seconds to begin, for each
size of a frame.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from av import VideoFrame

Image = NDArray[np.uint8]
# FFmpeg's numbers of colour properties: AVCOL_TRC_*, AVCOL_PRI_*, AVCOL_SPC_*
PQ, HLG = 16, 18
BT709_PRIMARIES, BT709_SPACE, UNTAGGED_SPACE = 1, 1, 2
HD_SIZE = (1280, 720)  # width or height from which players take untagged colours for BT.709
WHITE_NITS = 203.0  # cd/m2 of white in HDR (ITU-R BT.2408)
PEAK_NITS = 1000.0  # cd/m2 shown as the brightest white
KNEE = 0.75  # brightness, of white's, above which highlights are compressed
# linear BT.2020 to BT.709 (ITU-R BT.2087)
TO_BT709 = np.array(
    [[1.6605, -0.5876, -0.0728], [-0.1246, 1.1329, -0.0083], [-0.0182, -0.1006, 1.1187]], np.float32
)
BT2020_LUMA = np.array([0.2627, 0.6780, 0.0593], np.float32)
CODE_BITS = 12  # size of the table from code values to light


def orientation(frame: VideoFrame) -> tuple[int, bool]:
    """Return by how many degrees counter-clockwise (0, 90, 180, 270) a frame is turned to be shown,
    after it is mirrored left to right if the second is true.
    """
    from av.sidedata.sidedata import Type

    listed: list[Any] = list(frame.side_data)
    found = {data.type: data for data in listed}.get(Type.DISPLAYMATRIX)
    if found is None:
        return 0, False
    # Shown are (ax + cy, bx + dy); (0, 0, 0, 0) is written by some programs for no turn.
    a, b, _, c, d = (int(n) for n in np.frombuffer(found, np.int32)[:5])
    turn = round(math.degrees(math.atan2(c, d)) / 90) * 90 % 360
    return turn, a * d - b * c < 0


def mirror(frame: VideoFrame) -> VideoFrame:
    """Return a frame mirrored left to right, with its times."""
    flipped = _filtered(frame, "hflip")
    flipped.pts, flipped.time_base = frame.pts, frame.time_base
    return flipped


def without_comb(frame: VideoFrame) -> VideoFrame:
    """Return a frame of interlaced video with one moment on all its rows; any other as it is.

    Rows of the second moment are kept where they fit those of the first, so that what does not move
    stays sharp.
    """
    return _filtered(frame, "yadif", "deint=all") if frame.interlaced_frame else frame


def _filtered(frame: VideoFrame, name: str, options: str | None = None) -> VideoFrame:
    """The frame after one of FFmpeg's filters, for which the frames around are the same one."""
    from av.filter import Graph

    graph: Any = Graph()
    graph.threads = 1
    source = graph.add(
        "buffer",
        f"video_size={frame.width}x{frame.height}:pix_fmt={frame.format.name}:time_base=1/1000"
        f":colorspace={frame.colorspace}:range={frame.color_range}",
    )
    step = graph.add(name, options)
    source.link_to(step)
    step.link_to(graph.add("buffersink"))
    graph.configure()
    for _ in range(2):
        graph.push(frame)
    return graph.pull()


def colour_space(frame: VideoFrame) -> int | None:
    """Return the colour space by which players read a frame that names none; else None."""
    is_hd = frame.width >= HD_SIZE[0] or frame.height >= HD_SIZE[1]
    return BT709_SPACE if is_hd and frame.colorspace == UNTAGGED_SPACE else None


def is_hdr(frame: VideoFrame) -> bool:
    """Whether a frame's brightness goes beyond that of usual screens: PQ (HDR10) or HLG."""
    return frame.color_trc in (PQ, HLG)


def sdr_image(frame: VideoFrame) -> Image:
    """Return the BGR pixels of an HDR frame, (height, width, 3), for usual screens: white at 240,
    highlights above it, colours of BT.709.
    """
    import cv2

    rgb: Any = frame.reformat(format="rgb48le", threads=1).to_ndarray()
    light = _light_of_codes(frame.color_trc)[rgb >> (16 - CODE_BITS)]
    if frame.color_trc == HLG:  # The scene's light to a screen's (ITU-R BT.2100), at 1000 cd/m2.
        gain = np.maximum(light @ BT2020_LUMA, 1e-6) ** 0.2 * np.float32(PEAK_NITS / WHITE_NITS)
        light *= gain[..., None]
    if frame.color_primaries != BT709_PRIMARIES:
        light = np.asarray(cv2.transform(light, TO_BT709), np.float32)
    brightest = np.maximum(light.max(axis=2), 1e-6)
    light *= (_compressed(brightest) / brightest)[..., None]
    codes = np.clip(light * 65535 + 0.5, 0, 65535).astype(np.uint16)
    return np.ascontiguousarray(_codes_of_light()[codes][..., ::-1])


@lru_cache(maxsize=2)
def sdr_grey(transfer: int) -> Image:
    """Return the video-range (16 to 235) brightness for usual screens of each of the 256 of an HDR
    transfer.
    """
    signal = np.clip((np.arange(256) - 16) / 219, 0, 1)
    light = _light_of_codes(transfer)[np.round(signal * (2**CODE_BITS - 1)).astype(int)]
    if transfer == HLG:
        light = light**1.2 * (PEAK_NITS / WHITE_NITS)
    codes = _codes_of_light()[np.round(np.clip(_compressed(light), 0, 1) * 65535).astype(int)]
    return np.asarray(np.round(16 + codes * (219 / 255)), np.uint8)


@lru_cache(maxsize=2)
def _light_of_codes(transfer: int) -> NDArray[np.float32]:
    """The light of each code value: PQ relative to white, HLG of the scene, 0 to 1 (BT.2100)."""
    signal = np.linspace(0, 1, 2**CODE_BITS)
    if transfer == HLG:
        a, b, c = 0.17883277, 0.28466892, 0.55991073
        light = np.where(signal <= 0.5, signal**2 / 3, (np.exp((signal - c) / a) + b) / 12)
    else:
        power = signal ** (32 / 2523)
        light = np.maximum(power - 107 / 128, 0) / (2413 / 128 - 2392 / 128 * power)
        light = light ** (16384 / 2610) * 10_000 / WHITE_NITS
    return light.astype(np.float32)


@lru_cache(maxsize=1)
def _codes_of_light() -> Image:
    """The 8-bit sRGB value of each of 65,536 steps of light."""
    light = np.linspace(0, 1, 65536)
    codes = np.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055)
    return np.round(codes * 255).astype(np.uint8)


def _compressed(light: NDArray[np.float32]) -> NDArray[np.float32]:
    """Light from 0 (black) over 1 (white) to the peak, brought to 0 to 1: as it is up to `KNEE`,
    with ever smaller steps above it.
    """
    room, peak = 1 - KNEE, PEAK_NITS / WHITE_NITS
    over = np.clip((light - KNEE) / room, 0, (peak - KNEE) / room)
    most = (peak - KNEE) / room
    return np.where(light <= KNEE, light, KNEE + room * over * (1 + over / most**2) / (1 + over))
