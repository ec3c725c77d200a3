"""Frames look as a player shows them: turned and mirrored, without comb, in a screen's colours."""

import struct
from collections.abc import Iterable
from fractions import Fraction
from itertools import product
from pathlib import Path

import av
import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from mustsee.calls.llm import VideoInput
from mustsee.media.clips import copy_span, encode_span
from mustsee.media.frames import Thumbnails, TimedFrame, small_luma
from mustsee.media.samples import describe
from mustsee.media.shown import HLG, PQ, sdr_image
from mustsee.media.video import facts, frames_at, open_video
from mustsee.records import Span
from mustsee.synth.encoding import CodedShape, FrameFitter
from tests.support.sample_videos import cuts, damaged, scene, write

Image = NDArray[np.uint8]
MATRICES = [m for m in product((-1, 0, 1), repeat=4) if abs(m[0] * m[3] - m[1] * m[2]) == 1
            and m.count(0) == 2]  # fmt: skip
PATCHES = [(255, 255, 255), (128, 128, 128), (224, 172, 105), (200, 30, 30), (40, 160, 60),
           (40, 60, 200)]  # fmt: skip


def corners() -> Image:
    """An image of which each quarter has another brightness."""
    return np.kron(np.array([[250, 180], [110, 40]], np.uint8), np.ones((60, 80), np.uint8))


def moved(image: Image, a: int, b: int, c: int, d: int) -> Image:
    """The image whose pixel (ax + cy, bx + dy) is that at (x, y)."""
    ys, xs = np.mgrid[: image.shape[0], : image.shape[1]]
    across, down = a * xs + c * ys, b * xs + d * ys
    across, down = across - across.min(), down - down.min()
    out = np.zeros((down.max() + 1, across.max() + 1), np.uint8)
    out[down, across] = image
    return out


@pytest.mark.parametrize("matrix", MATRICES)
def test_each_display_matrix_is_followed(matrix: tuple[int, int, int, int], tmp_path: Path) -> None:
    image = corners()
    plain = write(tmp_path / "plain.mp4", [np.dstack([image] * 3)] * 5)
    a, b, c, d = (n << 16 for n in matrix)

    def turn(data: bytearray) -> None:
        struct.pack_into(">8i", data, data.index(b"tkhd") + 44, a, b, 0, c, d, 0, 0, 0)

    path = str(damaged(plain, tmp_path / "moved.mp4", turn))
    expected = moved(image, *matrix)
    assert (facts(path).height, facts(path).width) == expected.shape
    for frame in frames_at(path, [0.0, 0.1]):
        assert np.abs(frame.luma().astype(int) - expected).mean() < 8
        assert np.abs(frame.image()[..., 1].astype(int) - expected).mean() < 8
        upright = av.VideoFrame.from_ndarray(np.dstack([expected] * 3), "rgb24")
        seen = describe(Thumbnails()(frame.decoded), frame.turn)
        assert np.corrcoef(seen, describe(Thumbnails()(upright)))[0, 1] > 0.9


def test_there_are_eight_display_matrices() -> None:
    assert len(MATRICES) == 8


def interlaced(path: Path, fields: Iterable[Image], top_first: bool) -> Path:
    """Write pairs of fields, each from an image of the full height, as interlaced H.264."""
    fields = list(fields)
    with av.open(str(path), "w") as out:
        order = "tff" if top_first else "bff"
        options = {"preset": "veryfast", "crf": "10", "g": "5", "x264-params": f"{order}=1"}
        stream = out.add_stream("libx264", rate=25, options=options)
        stream.height, stream.width = fields[0].shape
        stream.pix_fmt = "yuv420p"
        stream.codec_context.flags |= 0x20040000  # interlaced motion estimation and DCT
        for number in range(len(fields) // 2):
            first, second = fields[2 * number : 2 * number + 2]
            woven = second.copy()
            woven[0 if top_first else 1 :: 2] = first[0 if top_first else 1 :: 2]
            frame = av.VideoFrame.from_ndarray(np.dstack([woven] * 3), format="rgb24")
            frame.pts, frame.time_base = number, Fraction(1, 25)
            out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
    return path


def jagged_rows(image: Image) -> int:
    """The number of rows at which the left edge of what is bright jumps by 3 pixels or more."""
    edges = np.argmax(image > 128, axis=1).astype(int)
    return int((np.abs(np.diff(edges[10:-10])) >= 3).sum())


@pytest.mark.parametrize("top_first", [True, False])
def test_interlaced_frames_have_no_comb(top_first: bool, tmp_path: Path) -> None:
    """By seeking and in a full pass alike; what does not move stays as sharp as it was."""
    fields: list[Image] = []
    for number in range(40):
        image = np.full((240, 320), 30, np.uint8)
        image[:, 60 + 5 * number : 90 + 5 * number] = 220
        fields.append(image)
    path = str(interlaced(tmp_path / "bar.mkv", fields, top_first))
    with open_video(path) as video:
        frames = list(video.frames())
    assert frames[3].decoded.interlaced_frame
    assert jagged_rows(frames[3].decoded.to_ndarray(format="gray")) > 100
    for sought, frame in zip(frames_at(path, [f.time for f in frames]), frames, strict=True):
        assert jagged_rows(frame.luma()) == 0
        assert jagged_rows(frame.image()[..., 1]) == 0
        assert jagged_rows(small_luma(frame.decoded, 320)) == 0
        assert np.array_equal(sought.image(), frame.image())
    words = cv2.GaussianBlur(scene(5, width=320, height=240), (0, 0), 1.2)[..., 0]
    still = str(interlaced(tmp_path / "still.mkv", [words] * 10, top_first))
    (kept,) = frames_at(still, [0.1])
    coded = kept.decoded.to_ndarray(format="gray").astype(int)
    assert np.abs(kept.luma().astype(int) - coded).mean() < 1


def hdr_codes(colour: tuple[int, int, int], transfer: int) -> NDArray[np.float64]:
    """The HDR signal, 0 to 1, of an sRGB colour with white at 203 cd/m2 (BT.2100, BT.2408)."""
    signal = np.array(colour) / 255
    light = np.where(signal <= 0.04045, signal / 12.92, ((signal + 0.055) / 1.055) ** 2.4)
    wide = np.array([[0.6274, 0.3293, 0.0433], [0.0691, 0.9195, 0.0114],
                     [0.0164, 0.0880, 0.8956]]) @ light  # fmt: skip
    if transfer == PQ:
        power = (wide * 203 / 10_000) ** (2610 / 16384)
        coded = (3424 / 4096 + 2413 / 128 * power) / (1 + 2392 / 128 * power)
        return coded ** (2523 / 32)
    shown = wide * 203 / 1000
    scene_light = shown * (shown @ [0.2627, 0.6780, 0.0593]) ** (1 / 1.2 - 1)
    a, b, c = 0.17883277, 0.28466892, 0.55991073
    bright = a * np.log(np.maximum(12 * scene_light - b, 1e-9)) + c
    return np.where(scene_light <= 1 / 12, np.sqrt(3 * scene_light), bright)


def hdr_frame(transfer: int, kind: str) -> av.VideoFrame:
    """Six patches side by side."""
    codes = np.array([hdr_codes(colour, transfer) for colour in PATCHES])
    row = np.kron(np.round(codes * 65535).astype(np.uint16), np.ones((32, 1), np.uint16))
    image = np.repeat(row[None], 96, axis=0)
    frame = av.VideoFrame.from_ndarray(image, format="rgb48le")
    frame = frame.reformat(format=kind, dst_colorspace=9, dst_color_range=1)
    frame.colorspace, frame.color_range = 9, 1
    frame.color_trc, frame.color_primaries = transfer, 9
    return frame


def patches(image: Image) -> list[NDArray[np.float64]]:
    """The colour (red, green, blue) in the middle of each patch."""
    height, width = image.shape[:2]
    rows = slice(height // 3, height // 2)
    spans = [slice(int(width * (n + 0.4) / 6), int(width * (n + 0.6) / 6)) for n in range(6)]
    return [np.median(image[rows, span].reshape(-1, 3), axis=0)[::-1] for span in spans]


@pytest.mark.parametrize("transfer", [PQ, HLG])
@pytest.mark.parametrize("kind", ["yuv420p10le", "yuv420p12le", "yuv422p10le", "p010le", "yuv420p"])
def test_hdr_has_the_colours_of_a_usual_screen(transfer: int, kind: str) -> None:
    """As images of any size, thumbnails, brightness and frames of synthetic videos."""
    frame = hdr_frame(transfer, kind)
    timed = TimedFrame(0.0, frame)
    shape = CodedShape(width=192, height=96, rate=Fraction(25), tick=Fraction(1, 25))
    images = [
        timed.image(),
        timed.image(96),
        Thumbnails()(frame).image(),
        FrameFitter(shape)(timed).to_ndarray(format="bgr24"),
    ]
    for image in images:
        white, *rest = patches(image)
        assert white.min() >= 230
        for colour, expected in zip(rest, PATCHES[1:], strict=True):
            assert np.abs(colour - expected).max() <= (16 if kind == "yuv420p" else 12)
    grey = [int(timed.luma()[48, 16 + 32 * n]) for n in range(2)]
    assert grey == pytest.approx([240, 128], abs=5)
    assert timed.luma(64).shape == (32, 64)
    small = [int(small_luma(frame, 192)[48, 16 + 32 * n]) for n in range(2)]
    assert small == pytest.approx([16 + g * 219 / 255 for g in (240, 128)], abs=6)


def test_hdr_of_a_file_is_shown_for_a_usual_screen(tmp_path: Path) -> None:
    path = tmp_path / "hdr.mp4"
    with av.open(str(path), "w") as out:
        options = {"preset": "ultrafast", "x265-params": "log-level=none"}
        stream = out.add_stream("libx265", rate=25, options=options)
        stream.width, stream.height, stream.pix_fmt = 192, 96, "yuv420p10le"
        context = stream.codec_context
        context.color_trc, context.color_primaries, context.colorspace = PQ, 9, 9
        for number in range(5):
            frame = hdr_frame(PQ, "yuv420p10le")
            frame.pts, frame.time_base = number, Fraction(1, 25)
            out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
    (shown,) = frames_at(str(path), [0.1])
    assert patches(shown.image())[0].min() >= 230
    assert np.abs(patches(shown.image())[3] - PATCHES[3]).max() <= 12
    whole = Span(0.0, 0.2)
    assert copy_span(str(path), whole, sound=False, max_bytes=10**6)
    assert copy_span(str(path), whole, sound=False, max_bytes=10**6, plain=True) is None
    clip = encode_span(str(path), whole, VideoInput(), sound=False, max_bytes=10**6)
    assert clip is not None
    encoded = tmp_path / "clip.mp4"
    encoded.write_bytes(clip.mp4)
    (seen,) = frames_at(str(encoded), [0.1])
    assert patches(seen.image())[0].min() >= 230


def test_highlights_of_hdr_stay_apart() -> None:
    """A brighter grey is never darker, up to 1,000 cd/m2 and beyond."""
    ramp = np.repeat(np.arange(0, 65536, 64, dtype=np.uint16)[None, :, None], 3, axis=2)
    frame = av.VideoFrame.from_ndarray(np.repeat(ramp, 2, axis=0), format="rgb48le")
    for transfer in (PQ, HLG):
        frame.color_trc, frame.color_primaries = transfer, 9
        grey = sdr_image(frame)[0, :, 1].astype(int)
        assert (np.diff(grey) >= 0).all()
        assert grey[0] == 0
        assert grey[-1] == 255
        assert len(set(grey[grey > 240])) > 8


@pytest.mark.parametrize(("size", "space"), [((1280, 720), 1), ((720, 1280), 1), ((640, 360), 5)])
def test_untagged_colours_are_those_of_their_size(size: tuple[int, int], space: int) -> None:
    """BT.709 from 720 rows or 1,280 columns on, as players take them; else BT.601."""
    image = np.full((size[1], size[0], 3), (200, 30, 30), np.uint8)
    coded = av.VideoFrame.from_ndarray(image, "rgb24").reformat(
        format="yuv420p", dst_colorspace=space
    )
    coded.colorspace = 2
    shown = TimedFrame(0.0, coded).image(64)
    assert np.abs(shown[20, 20].astype(int) - (30, 30, 200)).max() <= 3


def test_a_frame_of_usual_video_is_not_filtered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mustsee.media import shown

    monkeypatch.setattr(shown, "_filtered", None)
    path = str(write(tmp_path / "plain.mp4", cuts([5])))
    (frame,) = frames_at(path, [0.1])
    assert frame.picture() is frame.decoded
    assert frame.image().shape == (120, 160, 3)
