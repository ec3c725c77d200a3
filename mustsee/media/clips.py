"""Clips: spans of a video as files of their own, for models that take videos.

    copy_span("video.mp4", Span(60.0, 90.0), sound=True, max_bytes=14_000_000)
    encode_span("video.mp4", Span(60.0, 90.0), VideoInput(), sound=True, max_bytes=14_000_000)

`copy_span` copies the packets from the keyframe before the span, which costs no more than reading
them. `encode_span` encodes small frames at a low rate. It is needed where that keyframe is too far
off, where not every server decodes the codec, where the copy is too large, and where nothing
outside the span may be seen: an edit list could hide the frames before the span, but the decoders
of model servers may ignore it.

`encode_stills` makes a video of images, each shown for a second, and `clip_parts` one of the frames
of a message (`frames_as: clip`): models that take video count a frame of it at a fraction of an
image (`mustsee.calls.image_tokens`). The text keeps its order: where an image was, it names the
second of the clip. Whether a model sees as much in such a clip as in images was not verified.
"""

from __future__ import annotations

import hashlib
import heapq
import io
import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from typing import TYPE_CHECKING, Any

from mustsee.calls.llm import Message, VideoClip, VideoInput
from mustsee.errors import BadRow
from mustsee.media.files import packets
from mustsee.media.frame_times import TICKS, frame_times
from mustsee.media.frames import Image, TimedFrame
from mustsee.media.sound import Sound, audio_chunks
from mustsee.media.video import SAME_TIME_S, VideoStream, frames_at, open_video
from mustsee.records import Span

if TYPE_CHECKING:
    from av.container import OutputContainer

MAX_LEAD_S = 0.5  # seconds by which a copy may begin before its span
COPIED_CODECS = ("h264", "hevc")  # decoded in hardware and in software by servers (vLLM, Gemini)
COPIED_SOUND = ("aac", "mp3")
RATE, SOUND_BITS = 16_000, 32_000  # encoded sound: samples per second, bits per second
CRF = 26  # constant rate factor of encoded frames (x264)
BASE = Fraction(1, 90_000)  # seconds: time base of encoded frames
STILL_FPS = 2  # frames of a still in its second
STILL_CRF = 18  # quality of the encoder: near that of the images
LEAST_FRAMES = 2  # images of a message below which they stay images
INTRODUCTION = (
    "The pictures are in the clip above, one a second: picture 1 in its first second, picture 2 in "
    "its second one, and so on. The clip's own times mean nothing; each picture's time is given "
    "beside its number.\n\n"
)


@dataclass(frozen=True, kw_only=True)
class ClipFile:
    """An MP4 file and the span of the video that it shows. `copied`: its packets were not encoded
    again.
    """

    mp4: bytes
    span: Span
    copied: bool


class _LimitedFile(io.BytesIO):
    """A file of at most `max_bytes`. A write beyond them is dropped and sets `full`."""

    def __init__(self, max_bytes: int) -> None:
        super().__init__()
        self._max_bytes, self.full = max_bytes, False

    def write(self, content: Any, /) -> int:
        self.full = self.full or self.tell() + len(content) > self._max_bytes
        return len(content) if self.full else super().write(content)


def copy_span(
    uri: str,
    span: Span,
    *,
    sound: bool,
    max_bytes: int,
    lead: float = MAX_LEAD_S,
    plain: bool = False,
) -> ClipFile | None:
    """Return the span's packets as a file, from the last keyframe at most `lead` seconds before it.

    None if there is no such keyframe, if a codec is not one of `COPIED_CODECS` and `COPIED_SOUND`,
    or if the file would have more than `max_bytes`. With `plain`, None also for frames that are not
    shown as they are decoded (HDR, interlaced, mirrored), because servers show them so. The file
    may end some frames late, with the frames that its last ones refer to. Raises BadRow and
    Transient.
    """
    with open_video(uri) as video:
        if video.stream is None:
            raise BadRow(f"no video stream in {uri!r}")
        frame = next(video.frames(), None) if plain else None
        if frame and (frame.mirrored or frame.picture() is not frame.decoded):
            return None
        first = _keyframe(video, span.start)
        if first is None or span.start - video.seconds(first) > lead + SAME_TIME_S:
            return None
    with open_video(uri) as video:
        audio = _audio_stream(video) if sound else None
        names = [s.codec_context.name for s in (video.stream, audio) if s is not None]
        if names[0] not in COPIED_CODECS or any(name not in COPIED_SOUND for name in names[1:]):
            return None
        with _LimitedFile(max_bytes) as file:
            copied_span = Span(video.seconds(first), _copy(video, audio, first, span.end, file))
            return (
                None if file.full else ClipFile(mp4=file.getvalue(), span=copied_span, copied=True)
            )


def encode_span(
    uri: str, span: Span, video_input: VideoInput, *, sound: bool, max_bytes: int
) -> ClipFile | None:
    """Return the span, and nothing outside it, encoded at `video_input.fps` frames per second.

    None if that takes more than `max_bytes`. Holds one frame and the file in memory. Raises BadRow
    and Transient.
    """
    import av

    with _LimitedFile(max_bytes) as file:
        with av.open(file, "w", format="mp4") as out:
            streams = [_encoded_frames(out, uri, span, video_input, max_bytes)]
            if sound:
                streams.append(_encoded_sound(out, uri, span))
            for packet in heapq.merge(*streams, key=_decoding_time):
                out.mux(packet)
                if file.full:
                    return None
        return None if file.full else ClipFile(mp4=file.getvalue(), span=span, copied=False)


def _keyframe(video: VideoStream, start: float) -> int | None:
    """The timestamp of the last keyframe shown at `start` or before.

    A demuxer that seeks by decoding time may land after it; the seek is then tried further back.
    """
    latest = video.stamp(start)
    if video.is_mpeg_stream:
        keys = frame_times(video.uri).keys
        return keys[bisect_right(keys, latest) - 1] if keys and keys[0] <= latest else None
    for back in (0.0, 2.0, 20.0, start + 1):
        offset = max(video.zero or 0, video.stamp(start - back))
        video.container.seek(offset, stream=video.stream, backward=True)
        keyframe = None
        for packet in packets(video.container, video.stream):
            if packet.dts is not None and packet.dts > latest:
                break
            if packet.is_keyframe and packet.pts is not None and packet.pts <= latest:
                keyframe = packet.pts
        if keyframe is not None:
            return keyframe
    return None


def _audio_stream(video: VideoStream) -> Any:
    """The audio stream that belongs to the video stream; None without one."""
    return video.container.streams.best("audio")


def _copy(video: VideoStream, audio: Any, first: int, end: float, file: _LimitedFile) -> float:
    """Write the packets from keyframe `first` on; return the time at which the last frame ends."""
    import av

    begin = Fraction(first) * video.stream.time_base
    stop = begin + Fraction(end - video.seconds(first) - 2 * SAME_TIME_S)
    last_end = begin
    with av.open(file, "w", format="mp4") as out:
        copies = {
            stream.index: out.add_stream_from_template(stream)
            for stream in (video.stream, audio)
            if stream is not None
        }
        if video.is_mpeg_stream:  # From a second before, for all of the sound.
            frame_times(video.uri).seek_before(video.container, first - TICKS)
        else:
            video.container.seek(first, stream=video.stream, backward=True)
        for packet in _between(video, audio, begin, stop):
            base = packet.stream.time_base
            if packet.stream is video.stream:
                last_end = max(last_end, (packet.pts + (packet.duration or 0)) * base)
            offset = round(begin / base)
            packet.pts, packet.dts = packet.pts - offset, packet.dts - offset
            packet.stream = copies[packet.stream.index]
            out.mux(packet)
            if file.full:
                break
    return video.seconds(first) + float(last_end - begin)


def _between(video: VideoStream, audio: Any, begin: Fraction, stop: Fraction) -> Iterator[Any]:
    """Yield the packets that decode everything shown or heard from `begin` until `stop`.

    A packet shown before `begin` is skipped: it belongs to a group of frames that is not copied.
    """
    streams = [stream for stream in (video.stream, audio) if stream is not None]
    unfinished = {stream.index for stream in streams}
    for packet in _with_times(video.packets(streams)):
        if packet.stream.index not in unfinished:
            continue
        base = packet.stream.time_base
        if packet.dts * base >= stop:
            unfinished.remove(packet.stream.index)
            if not unfinished:
                return
        elif packet.pts * base >= begin:
            yield packet


def _with_times(packets_read: Iterator[Any]) -> Iterator[Any]:
    """Yield the packets that have times. Matroska leaves the first ones after a seek without
    decoding times; these get times right before the first known one.
    """
    untimed: list[Any] = []
    for packet in packets_read:
        if packet.pts is None:
            continue
        if packet.dts is None:
            untimed.append(packet)
            continue
        if untimed and packet.stream is untimed[0].stream:
            for ticks, early in enumerate(reversed(untimed), 1):
                early.dts = packet.dts - ticks
            yield from untimed
            untimed = []
        yield packet


def _encoded_frames(
    out: OutputContainer, uri: str, span: Span, video_input: VideoInput, max_bytes: int
) -> Iterator[Any]:
    """The packets of the span's frames, evenly spaced."""
    fps = Fraction(video_input.fps).limit_denominator(1000)
    count = max(1, math.ceil(span.seconds * fps - SAME_TIME_S))
    frames = frames_at(uri, [span.start + float(i / fps) for i in range(count)])
    first = next(frames).image(video_input.longest)
    height, width = (max(2, side - side % 2) for side in first.shape[:2])
    stream: Any = out.add_stream("libx264", rate=fps, options={"preset": "veryfast", "bf": "0"})
    stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
    stream.codec_context.time_base, stream.codec_context.thread_count = BASE, 1
    rate = max(20_000, round(0.8 * (8 * max_bytes / max(1.0, span.seconds) - SOUND_BITS)))
    rate = min(rate, 1_000_000_000)  # Twice this rate must fit the encoder's 32 bits.
    stream.options |= {"crf": str(CRF), "maxrate": str(rate), "bufsize": str(2 * rate)}
    return _encode_frames(stream, first, frames, width, height, round(1 / (fps * BASE)))


def _encode_frames(
    stream: Any, first: Image, frames: Iterator[TimedFrame], width: int, height: int, step: int
) -> Iterator[Any]:
    import av

    longest = max(width, height) + 1
    images = chain([first], (frame.image(longest) for frame in frames))
    for number, image in enumerate(images):
        frame = av.VideoFrame.from_ndarray(image, format="bgr24")
        frame = frame.reformat(width=width, height=height, format="yuv420p")
        frame.pts, frame.time_base, frame.duration = number * step, BASE, step
        yield from stream.encode(frame)
    yield from stream.encode(None)


def _encoded_sound(out: OutputContainer, uri: str, span: Span) -> Iterator[Any]:
    """The packets of the span's sound; none where the video has no sound there."""
    chunks = audio_chunks(uri, RATE, 10.0, start=span.start, end=span.end)
    first = next(chunks, None)
    if first is None:
        return iter(())
    stream: Any = out.add_stream("aac", rate=RATE, layout="mono")
    stream.bit_rate = SOUND_BITS
    return _encode_sound(stream, chain([first], chunks), span.start)


def _encode_sound(stream: Any, chunks: Iterator[Sound], start: float) -> Iterator[Any]:
    import av

    for chunk in chunks:
        frame = av.AudioFrame.from_ndarray(chunk.samples[None], "fltp", "mono")
        frame.sample_rate, frame.time_base = RATE, Fraction(1, RATE)
        frame.pts = round((chunk.start - start) * RATE)
        yield from stream.encode(frame)
    yield from stream.encode(None)


def _decoding_time(packet: Any) -> float:
    return float((packet.dts or 0) * packet.time_base)


def encode_stills(images: Sequence[bytes]) -> bytes:
    """Return an MP4 file that shows each image (JPEG) for one second, as `STILL_FPS` equal
    frames: a model that takes one frame a second sees each, and so does one that merges two frames.

    All are scaled into the first one's size. Raises OSError for what is no image.
    """
    import av
    from PIL import Image, ImageOps

    pictures = [Image.open(io.BytesIO(image)).convert("RGB") for image in images]
    width, height = (side + side % 2 for side in pictures[0].size)
    file = io.BytesIO()
    with av.open(file, "w", format="mp4") as out:
        options = {"preset": "veryfast", "crf": str(STILL_CRF), "bf": "0", "g": str(STILL_FPS)}
        stream = out.add_stream("libx264", rate=STILL_FPS, options=options)
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        stream.codec_context.time_base, stream.codec_context.thread_count = (
            Fraction(1, STILL_FPS),
            1,
        )
        for number in range(STILL_FPS * len(pictures)):
            padded = ImageOps.pad(pictures[number // STILL_FPS], (width, height))
            frame = av.VideoFrame.from_image(padded)
            frame.pts, frame.time_base = number, Fraction(1, STILL_FPS)
            out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
    return file.getvalue()


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
