"""Frames of a synthetic video: converted to one shape and encoded in closed groups.

Every clip becomes encoded packets whose `pts` counts ticks of the whole video's clock. To join them
with copied streams of H.264, a track holds the parameter sets of the copied stream and of the
encoded stream under different ids (ISO/IEC 14496-15, 5.3.3.1); each slice names the set that it was
encoded with.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from mustsee.errors import BadRow
from mustsee.media.frames import TimedFrame, shown_size
from mustsee.media.video import open_video

if TYPE_CHECKING:
    from av import VideoFrame


IDR, SPS = 5, 7  # types of network abstraction layer units
HIGH_PROFILES = (100, 110, 122, 144)  # profiles whose `avcC` box has four more bytes


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """The content of an `avcC` box."""

    profile: int
    compatibility: int
    level: int
    sps: tuple[bytes, ...]
    pps: tuple[bytes, ...]
    high: bytes = b""

    def ids(self) -> set[int]:
        """Return the ids of the sequence and picture parameter sets."""
        return {_number(s[4:], 0) for s in self.sps} | {_number(p[1:], 0) for p in self.pps}

    def box(self) -> bytes:
        """Return the `avcC` box."""
        head = bytes([1, self.profile, self.compatibility, self.level, 0xFF, 0xE0 | len(self.sps)])
        sets = b"".join(len(s).to_bytes(2, "big") + s for s in self.sps)
        more = b"".join(len(p).to_bytes(2, "big") + p for p in self.pps)
        return head + sets + bytes([len(self.pps)]) + more + self.high


def parse(box: bytes) -> Parameters:
    """Return the parameters of an `avcC` box.

    Raises ValueError for any other box, or where units have lengths of other than four bytes.
    """
    if len(box) < 7 or box[0] != 1:
        raise ValueError("the stream has no avcC parameter sets")
    if box[4] & 3 != 3:
        raise ValueError("the stream's units do not have lengths of four bytes")
    try:
        sps, at = _sets(box, 6, box[5] & 31)
        pps, at = _sets(box, at + 1, box[at])
    except IndexError as error:
        raise ValueError("the stream's avcC parameter sets are cut off") from error
    if not sps or not pps:
        raise ValueError("the stream has its parameter sets elsewhere")
    high = box[at : at + 4] if box[1] in HIGH_PROFILES else b""
    return Parameters(
        profile=box[1], compatibility=box[2], level=box[3], sps=sps, pps=pps, high=high
    )


def _sets(box: bytes, at: int, count: int) -> tuple[tuple[bytes, ...], int]:
    sets: list[bytes] = []
    for _ in range(count):
        size = box[at] << 8 | box[at + 1]
        sets.append(box[at + 2 : at + 2 + size])
        at += 2 + size
    return tuple(sets), at


def _number(data: bytes, skip: int) -> int:
    """The first Exp-Golomb number after `skip` bits."""
    bits = "".join(f"{byte:08b}" for byte in data[:9])[skip:]
    zeros = len(bits) - len(bits.lstrip("0"))
    return int(bits[zeros : 2 * zeros + 1], 2) - 1


def merge_parameters(copied: Parameters, coded: Parameters) -> Parameters:
    """Return the parameters of a track that holds both streams. Raises ValueError when an id is
    used twice.
    """
    if copied.ids() & coded.ids():
        raise ValueError("both streams use the same parameter set id")
    main = max(copied, coded, key=lambda p: (p.profile in HIGH_PROFILES, p.profile))
    return Parameters(
        profile=main.profile,
        compatibility=copied.compatibility & coded.compatibility,
        level=max(copied.level, coded.level),
        sps=copied.sps + coded.sps,
        pps=copied.pps + coded.pps,
        high=main.high,
    )


def is_idr(packet: bytes) -> bool:
    """Whether a packet is an IDR frame: no frame after it refers to one before."""
    at = 0
    while at + 4 < len(packet):
        kind = packet[at + 4] & 31
        if 1 <= kind <= 5:
            return kind == IDR
        at += 4 + int.from_bytes(packet[at : at + 4], "big")
    return False


# FFmpeg filters that turn a frame upright, by its `turn` in degrees.
TURNS = {0: "", 90: "transpose=2,", 180: "hflip,vflip,", 270: "transpose=1,"}
FORMATS = {"yuv420p": "tv", "yuvj420p": "pc"}  # pixel formats, and FFmpeg's name of their range


@dataclass(frozen=True, kw_only=True)
class CodedShape:
    """The properties of every encoded frame, and the encoder's settings.

    `rate`: frames per second. `tick`: seconds of the clock. `pixel`: width over height of a pixel.
    `sps`: the id of the encoder's parameter sets.
    """

    width: int
    height: int
    rate: Fraction
    tick: Fraction
    pixel: Fraction = Fraction(1)
    format: str = "yuv420p"
    colours: tuple[int, int, int, int] = (2, 2, 2, 0)  # primaries, transfer, matrix, range
    profile: str = "high"
    sps: int = 0
    preset: str = "veryfast"
    quality: int = 21
    threads: int = 0


class H264Encoder:
    """An H.264 encoder for one closed clip: its first frame is an IDR frame, and frames leave in
    display order.
    """

    def __init__(self, shape: CodedShape) -> None:
        import av
        from av.codec.context import Flags

        coder: Any = av.CodecContext.create("libx264", "w")
        coder.width, coder.height, coder.pix_fmt = shape.width, shape.height, shape.format
        coder.time_base, coder.framerate = shape.tick, shape.rate
        coder.sample_aspect_ratio = shape.pixel
        coder.color_primaries, coder.color_trc, coder.colorspace, coder.color_range = shape.colours
        coder.thread_count = shape.threads
        coder.flags |= Flags.global_header
        # annexb=0 gives units with lengths, as in MP4, so that they can be mixed with copied units.
        inner = f"sps-id={shape.sps}:annexb=0:bframes=0:rc-lookahead=10:scenecut=40"
        coder.options = {
            "preset": shape.preset,
            "crf": str(shape.quality),
            "profile": shape.profile,
            "bf": "0",
            "x264-params": inner,
        }
        coder.open()
        self.context = coder

    def parameters(self) -> Parameters:
        """Return the encoder's parameter sets."""
        return parse(bytes(self.context.extradata))

    def __call__(self, frame: VideoFrame | None) -> list[Any]:
        """Return the packets that are ready; for None those left in the encoder."""
        return list(self.context.encode(frame))


def track(out: Any, shape: CodedShape, parameters: Parameters) -> Any:
    """Return a video track for packets that are already encoded, in an open MP4 container.

    PyAV makes such a track only from a template: here a file of one black frame.
    """
    import av

    template = io.BytesIO()
    with av.open(template, "w", format="mp4") as file:
        stream: Any = file.add_stream("libx264", rate=shape.rate, options={"preset": "ultrafast"})
        stream.width, stream.height, stream.pix_fmt = shape.width, shape.height, shape.format
        context = stream.codec_context
        context.sample_aspect_ratio = shape.pixel
        context.color_primaries, context.color_trc = shape.colours[:2]
        context.colorspace, context.color_range = shape.colours[2:]
        black = av.VideoFrame(shape.width, shape.height, shape.format)
        for plane in black.planes:  # Uninitialised memory would change the bit rate in the header.
            plane.update(bytes(plane.buffer_size))
        file.mux(stream.encode(black))
        file.mux(stream.encode(None))
    template.seek(0)
    with av.open(template) as file:
        target = out.add_stream_from_template(file.streams.video[0])
    target.time_base = shape.tick
    target.codec_context.extradata = parameters.box()
    return target


class FrameFitter:
    """Converts frames to a shape: upright, scaled into it, black around, its pixel format."""

    def __init__(self, shape: CodedShape) -> None:
        self._shape, self._key, self._graph = shape, None, None

    def __call__(self, timed: TimedFrame) -> VideoFrame:
        frame: Any = timed.picture()
        shape = self._shape
        same = (
            timed.turn == 0
            and (frame.width, frame.height) == (shape.width, shape.height)
            and frame.format.name == shape.format
            and abs(timed.aspect - float(shape.pixel)) < 0.02
        )
        if same:
            return frame
        key = (frame.width, frame.height, frame.format.name, timed.turn, timed.aspect)
        if key != self._key:
            self._key, self._graph = key, self._build(timed, frame)
        graph: Any = self._graph
        frame.pts, frame.time_base = 0, Fraction(1, 1000)
        graph.push(frame)
        return graph.pull()

    def _build(self, timed: TimedFrame, frame: VideoFrame) -> Any:
        from av.filter import Graph

        shape = self._shape
        width, height = shown_size(frame.width, frame.height, timed.aspect, timed.turn)
        box = inner_size(Fraction(width, height), shape)
        left, top = (shape.width - box[0]) // 4 * 2, (shape.height - box[1]) // 4 * 2
        graph: Any = Graph()
        source = graph.add_buffer(width=frame.width, height=frame.height, format=frame.format.name,
                                  time_base=Fraction(1, 1000))  # fmt: skip
        steps = (
            f"{TURNS[timed.turn]}scale={box[0]}:{box[1]}:flags=bilinear"
            f":out_range={FORMATS[shape.format]},format={shape.format},"
            f"pad={shape.width}:{shape.height}:{left}:{top}:black,setsar=1"
        )
        named = (step.partition("=") for step in steps.split(","))
        nodes = [graph.add(name, arguments) for name, _, arguments in named]
        graph.link_nodes(source, *nodes, graph.add("buffersink"))
        graph.configure()
        return graph


def inner_size(ratio: Fraction, shape: CodedShape) -> tuple[int, int]:
    """Return even width and height, within the shape, of a frame with this ratio as shown."""
    pixel_ratio = ratio / shape.pixel  # in the shape's own pixels
    width = min(Fraction(shape.width), shape.height * pixel_ratio)
    height = min(Fraction(shape.height), shape.width / pixel_ratio)
    return max(2, round(width / 2) * 2), max(2, round(height / 2) * 2)


def steady_frames(
    uri: str, start: Fraction, count: int, rate: Fraction, threads: int
) -> Iterator[TimedFrame]:
    """Yield `count` frames at a steady rate from `start` on: for each time the frame shown then.

    The last frame of the file is repeated where it ends early. Raises BadRow when nothing can be
    decoded.
    """
    half = float(1 / rate) / 2
    begin = float(start)
    current: TimedFrame | None = None
    sent = 0
    with open_video(uri, threads) as video:
        if video.stream is None:
            raise BadRow(f"no video stream in {uri!r}")
        for frame in video.frames(max(0.0, begin - 1.0)):
            while (
                current is not None and sent < count and frame.time > _at(begin, sent, rate) + half
            ):
                yield current
                sent += 1
            if sent >= count:
                return
            current = frame
    if current is None:
        raise BadRow(f"no frame of {uri!r} can be decoded from {begin:g} s on")
    for _ in range(sent, count):
        yield current


def _at(begin: float, number: int, rate: Fraction) -> float:
    return begin + float(number / rate)


def encode_frames(frames: Iterator[tuple[int, TimedFrame]], shape: CodedShape) -> Iterator[Any]:
    """Yield the packets of frames, each given with the tick at which it is shown."""
    coder, fit = H264Encoder(shape), FrameFitter(shape)
    last: tuple[TimedFrame, VideoFrame] | None = None
    for tick, timed in frames:
        if last is None or last[0] is not timed:
            last = (timed, fit(timed))
        frame: Any = last[1]
        frame.pts, frame.time_base, frame.pict_type = tick, shape.tick, 0
        yield from coder(frame)
    yield from coder(None)
