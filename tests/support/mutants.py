"""Damaged videos and subtitles, made from small sound ones, and a child process that reads them.

    python -m tests.support.mutants 1000 [first seed]      a table of outcomes, and the failures

A mutant is named `source/change/seed` and is always the same. `Reader.read` returns its outcome:
used, a problem with its reason, or that the child died, took too long or too much memory. The names
of earlier failures are kept in tests/media/test_mutants.py.
"""

from __future__ import annotations

import dataclasses
import multiprocessing
import random
import resource
import struct
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import av
import numpy as np

from mustsee.errors import BadRow, UserError
from mustsee.media import subtitles
from mustsee.records import Video
from tests.support.sample_videos import cuts

Outcome = Literal["used", "problem", "unforeseen", "died", "too long", "too much memory"]
FAULTS: tuple[Outcome, ...] = ("unforeseen", "died", "too long", "too much memory")
SECONDS = 5.0  # most CPU for one file; a sound one takes a quarter of a second
PATIENCE = 4  # wall time over CPU time, because a busy machine gives a process a part of a core
MEMORY = 1 << 30  # most bytes that a file may add to the child
ROOM = (
    6 << 30
)  # bytes of the child's data at all, so that a bomb ends the child and not the machine

# name of the file -> codecs of frames and sound
VIDEOS = {
    "h264.mp4": ("libx264", "aac"),
    "h264.mkv": ("libx264", "libopus"),
    "vp9.webm": ("libvpx-vp9", "libopus"),
    "mpeg4.avi": ("mpeg4", "libmp3lame"),
    "mpeg2.ts": ("mpeg2video", "mp2"),
    "png.mov": ("png", "pcm_s16le"),
    "mjpeg.avi": ("mjpeg", "pcm_s16le"),
}
SIZED = ("png.mov", "mjpeg.avi")  # Every frame states its size in bytes that can be located.
TEXTS = {
    "plain.srt": "1\n00:00:00,100 --> 00:00:01,000\nHello there.\n\n"
    "2\n00:00:01,100 --> 00:00:01,900\n- Who? - Me.\n\n",
    "plain.vtt": "WEBVTT\n\nSTYLE\n::cue {color: red}\n\n00:00.100 --> 00:01.000\n<v Ann>Hello "
    "<00:00.500>there.\n\n00:01.100 --> 00:01.900\nHello there.\nYes.\n\n",
    "plain.ass": "[Script Info]\nScriptType: v4.00+\n\n[V4+ Styles]\nFormat: Name, Fontname\n"
    "Style: Default,Arial\n\n[Events]\nFormat: Layer, Start, End, Style, Name, MarginL, MarginR, "
    "MarginV, Effect, Text\n"
    "Dialogue: 0,0:00:00.10,0:00:01.00,Default,Ann,0,0,0,,{\\i1}Hello\\N there.\n",
}
CODED = (  # a text stream inside the Matroska file: begin, end in ms, and the text
    (100, 1000, "Hello there."),
    (1100, 1900, "- Who? - Me."),
)

HEADER = TEXTS["plain.ass"].split("Dialogue:")[0].encode()


def write_video(
    path: Path, codecs: tuple[str, str], *, jump: float = 0.0, seconds: float = 2.0
) -> bytes:
    """Write two scenes with a tone, and cues in a Matroska file. `jump`: seconds by which the
    second scene is late.
    """
    video_codec, audio_codec = codecs
    rate, base = 48_000, Fraction(1, 12)
    quick = {"preset": "ultrafast"} if video_codec.startswith("libx") else {}
    quick |= {"deadline": "realtime", "cpu-used": "8"} if "vpx" in video_codec else {}
    with av.open(str(path), "w") as out:
        frames: Any = out.add_stream(video_codec, rate=12, options={"g": "6", **quick})
        frames.width, frames.height = 96, 64
        frames.pix_fmt = {"png": "rgb24", "mjpeg": "yuvj420p"}.get(video_codec, "yuv420p")
        heard: Any = out.add_stream(audio_codec, rate=rate, layout="mono")
        text: Any = out.add_stream("ass") if path.suffix == ".mkv" else None
        if text is not None:
            text.codec_context.subtitle_header = HEADER
        images = cuts([int(6 * seconds)] * 2, width=96, height=64)
        for number, image in enumerate(images):
            frame = av.VideoFrame.from_ndarray(image, format="rgb24")
            frame.pts, frame.time_base = number, base
            if number >= len(images) // 2:
                frame.pts += round(jump / base)
            out.mux(frames.encode(frame))
        out.mux(frames.encode(None))
        _tone(out, heard, seconds)
        for begin, end, cue in CODED if text is not None else ():
            packet = av.Packet(f"0,0,Default,Ann,0,0,0,,{cue}".encode())
            packet.stream, packet.time_base = text, Fraction(1, 1000)
            packet.pts = packet.dts = begin
            packet.duration = end - begin
            out.mux(packet)
    return path.read_bytes()


def _tone(out: Any, stream: Any, seconds: float) -> None:
    rate = stream.codec_context.sample_rate
    size = stream.codec_context.frame_size or 1024
    for first in range(0, int(seconds * rate), size):
        wave = 8000 * np.sin(2 * np.pi * 440 * (first + np.arange(size)) / rate)
        sound = av.AudioFrame.from_ndarray(wave.astype(np.int16)[None], "s16", "mono")
        sound.sample_rate, sound.pts, sound.time_base = rate, first, Fraction(1, rate)
        out.mux(stream.encode(sound))
    out.mux(stream.encode(None))


def sources(folder: Path) -> dict[str, bytes]:
    """Return the undamaged files by name."""
    videos = {name: write_video(folder / name, codecs) for name, codecs in VIDEOS.items()}
    late = {
        f"{jump:.0e}.{kind}": write_video(
            folder / f"late.{kind}", VIDEOS[f"h264.{kind}"], jump=jump
        )
        for kind, jump in LATE
    }
    return {**videos, **late, **{name: text.encode() for name, text in TEXTS.items()}}


def flipped(data: bytearray, rng: random.Random) -> None:
    for _ in range(rng.choice((1, 4, 32, 256))):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def head_flipped(data: bytearray, rng: random.Random) -> None:
    """Flip bits in the first kilobyte or the last two, where most of a header is."""
    for _ in range(rng.choice((1, 2, 4, 16))):
        at = rng.randrange(min(1024, len(data)))
        if rng.random() < 0.5:
            at = len(data) - 1 - rng.randrange(min(2048, len(data)))
        data[at] = rng.randrange(256)


def truncated(data: bytearray, rng: random.Random) -> None:
    del data[rng.randrange(len(data)) :]


def holed(data: bytearray, rng: random.Random) -> None:
    begin = rng.randrange(len(data))
    del data[begin : begin + rng.choice((1, 100, 5_000))]


def swapped(data: bytearray, rng: random.Random) -> None:
    """Swap two spans of bytes, as packets written in the wrong order."""
    size = min(rng.choice((16, 188, 500, 2_000)), len(data) // 3)
    one, two = (rng.randrange(len(data) - size) for _ in range(2))
    data[one : one + size], data[two : two + size] = data[two : two + size], data[one : one + size]


def repeated(data: bytearray, rng: random.Random) -> None:
    begin = rng.randrange(len(data))
    span = data[begin : begin + rng.choice((50, 2_000, 20_000))]
    data[begin:begin] = span * rng.choice((1, 5, 50))


def lying(data: bytearray, rng: random.Random) -> None:
    """Write extreme numbers where a header keeps numbers: sizes of frames,
    lengths, rates, counts.
    """
    spots = [at for name in NUMBERS for at in _places(data, name)]
    for _ in range(rng.choice((1, 2, 6))):
        at = rng.choice(spots) + rng.randrange(24) if spots else rng.randrange(len(data))
        code, values = rng.choice((
            (">I", (0, 1, 0x7FFFFFFF, 0xFFFFFFFF, 0x10000)), (">H", (0, 1, 16384, 32768, 65535)),
            ("<I", (0, 1, 0x7FFFFFFF, 0xFFFFFFFF, 0x4000)), (">d", (0.0, -1.0, 1e18, float("nan"))),
        ))  # fmt: skip
        number = struct.pack(code, rng.choice(values))
        data[at : at + len(number)] = number


def huge(data: bytearray, rng: random.Random) -> None:
    """Give a frame a huge size, or a side of zero pixels."""
    sides = (0, 1, 4_000, 8_000, 16_000, 23_000, 30_000, 65_535)
    for name, code, at in ((b"IHDR", ">II", 0), (b"\xff\xc0", ">HH", 3)):
        for place in _places(data, name):
            struct.pack_into(code, data, place + at, rng.choice(sides), rng.choice(sides))


def sound(data: bytearray, rng: random.Random) -> None:
    """Change nothing, for sources that are strange in themselves."""


# boxes of MP4 and MOV, elements of Matroska, chunks of AVI, start codes of MPEG
NUMBERS = (
    b"mvhd", b"tkhd", b"mdhd", b"stts", b"ctts", b"stsz", b"stsc", b"stco", b"avc1", b"hev1",
    b"mp4a", b"elst", b"\x2a\xd7\xb1", b"\x44\x89", b"\xb0", b"\xba", b"\x23\xe3\x83", b"\xb5",
    b"\x1f\x43\xb6\x75", b"\xe7", b"\xa3", b"avih", b"strh", b"strf", b"idx1",
    b"\x00\x00\x01\xb3", b"\x00\x00\x01\xba", b"\x00\x00\x01\xe0",
)  # fmt: skip


def _places(data: bytearray, name: bytes) -> list[int]:
    places: list[int] = []
    at = data.find(name)
    while at >= 0 and len(places) < 8:
        places.append(at + len(name))
        at = data.find(name, at + 1)
    return places


TWICE = "twice"


def twice(size: int) -> bytes:
    """Return two cues of many rows that differ only at the end."""
    cue, rows = "\n\n1\n00:00:01,000 --> 00:00:01,500\n", "a\n" * (size // 4)
    return f"{cue}{rows}b{cue}{rows}".encode()


def bomb(data: bytearray, rng: random.Random) -> None:
    """Insert text that is cheap to write and slow to read: an endless row, cue, tag or time."""
    size = rng.choice((1_000, 100_000, 2_000_000))
    filler = rng.choice((
        "<v ", "<a", "{\\", "[", "(", "- a. ", "a\n", "\\N", "<00:00.500>", "&amp;", "♪", "A: ",
        "\u202e", "00:00:00,100 --> 00:00:01,000\n", "1\n", "\x00", "-->", "<v.a b>", "<br>",
        "9" * 50 + ":", "a\nb\nc\n\n1\n00:00:01,000 --> 00:00:01,500\n", TWICE,
    ))  # fmt: skip
    if filler == TWICE:
        data += twice(size)
        return
    at = max(0, data.rfind(rng.choice((b"Hello", b"\n\n", b"-->"))))
    text = filler * (size // len(filler))
    data[at:at] = text.encode()
    with suppress(ValueError):
        if rng.random() < 0.3:
            stamp = data.index(b"00:01")
            data[stamp : stamp + 5] = b"99999999:59"


MEDIA: dict[str, Callable[[bytearray, random.Random], None]] = {
    f.__name__: f for f in (flipped, head_flipped, truncated, holed, swapped, repeated, lying)
}
CHANGES = {**MEDIA, "huge": huge, "bomb": bomb, "sound": sound}
# kind of file, and seconds by which its second half comes late: a day to 30,000 years
LATE = tuple((kind, jump) for kind in ("mkv", "mp4") for jump in (1e5, 1e7, 1e9, 1e12))


def names(count: int, first: int = 0) -> list[str]:
    """Return the names of `count` mutants, evenly over sources and changes."""
    kinds = [
        *(f"{source}/{change}" for change in MEDIA for source in VIDEOS),
        *(f"{source}/huge" for source in SIZED * 4),
        *(f"{source}/{change}" for change in (*MEDIA, *["bomb"] * 5) for source in TEXTS),
    ]
    odd = [f"{jump:.0e}.{kind}/sound/0" for kind, jump in LATE]
    numbered = (f"{kinds[n % len(kinds)]}/{n}" for n in range(first, first + count))
    return [*(odd if first == 0 else ()), *numbered][:count]


def mutant(name: str, made: dict[str, bytes]) -> bytes:
    """Return the bytes of a mutant. `made`: the sources."""
    source, change, seed = name.split("/")
    data = bytearray(made[source])
    if seed == TWICE:
        return bytes(data) + twice(2_000_000)
    CHANGES[change](data, random.Random(name))
    return bytes(data)


@dataclass(frozen=True)
class Read:
    """The outcome of reading a file; `seconds` of CPU, `memory`: bytes added to the child."""

    name: str
    outcome: Outcome
    reason: str = ""
    seconds: float = 0.0
    memory: int = 0


def through(path: Path) -> None:
    """Read a file as all stages of a run do. Raises BadRow and unforeseen errors."""
    from actors.stages.look import Look
    from actors.stages.probe import Probe
    from benchmarks.harness import NO_CALLS
    from mustsee.media.sound import audio_chunks

    if path.suffix[1:] in subtitles.FORMATS:
        subtitles.read(str(path))
        return
    row: Any = Probe().open(NO_CALLS)(Video(video_id="v", uri=str(path)))
    Look(window=max(0.5, (row.duration or 0.0) / 3)).open(NO_CALLS)(row)  # in three windows
    row = Look().open(NO_CALLS)(row)
    subtitles.embedded_subtitles(str(path))
    for _ in audio_chunks(str(path)):
        pass


def _peak(key: str = "VmHWM") -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(key)) * 1024


def _child(pipe: Any, work: Callable[[Path], None]) -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (ROOM, ROOM))
    while path := pipe.recv():
        Path("/proc/self/clear_refs").write_text("5")  # Reset the peak memory.
        before, outcome, reason = _peak("VmRSS"), "used", ""
        begun = time.process_time()
        try:
            work(Path(path))
        except (BadRow, UserError) as error:
            outcome, reason = "problem", str(error)
        except Exception as error:
            outcome, reason = "unforeseen", f"{type(error).__name__}: {error}"
        pipe.send((outcome, reason[:300], time.process_time() - begun, _peak() - before))


class Reader:
    """Reads files with `work` in a child, which is restarted when it dies. `seconds`: of CPU
    that a file may take.
    """

    def __init__(self, seconds: float = SECONDS, work: Callable[[Path], None] = through) -> None:
        self._seconds, self._work = seconds, work
        self.child: Any = None

    def read(self, name: str, path: Path, seconds: float | None = None) -> Read:
        """Read a file. `seconds` replaces the reader's limit; the first file waits for imports."""
        most = seconds or self._seconds
        if self.child is None:
            context = multiprocessing.get_context("spawn")
            self._pipe, theirs = context.Pipe()
            self.child = context.Process(target=_child, args=(theirs, self._work), daemon=True)
            self.child.start()
            theirs.close()
        self._pipe.send(str(path))
        result, lost = None, self._pipe.poll(PATIENCE * most)
        with suppress(EOFError, OSError):
            result = self._pipe.recv() if lost else None
        if result is None:
            self.close()
            return Read(name, "died" if lost else "too long", seconds=PATIENCE * most)
        read = Read(name, *result)
        if read.outcome in ("used", "problem"):
            if read.memory > MEMORY:
                return dataclasses.replace(read, outcome="too much memory")
            if read.seconds > most:
                return dataclasses.replace(read, outcome="too long")
        return read

    def close(self) -> None:
        if self.child is not None:
            self.child.kill()
            self.child.join()
            self._pipe.close()
            self.child = None


def read_all(wanted: Sequence[str], folder: Path) -> list[Read]:
    """Read mutants and return their outcomes in order."""
    made, reader = sources(folder), Reader()

    def written(name: str) -> Path:
        path = folder / f"mutant.{name.split('/')[0].rsplit('.', 1)[-1]}"
        path.write_bytes(mutant(name, made))
        return path

    return read_each(wanted, reader, written)


def read_each(wanted: Sequence[str], reader: Reader, written: Callable[[str], Path]) -> list[Read]:
    """Read the file that `written` writes for each name; return the outcomes in order."""
    try:
        return [reader.read(name, written(name)) for name in wanted]
    finally:
        reader.close()


def show(results: Sequence[Read], groups: Sequence[str], part: int) -> int:
    """Print outcomes by a part of the names, and the failures; return 1 if there are any."""
    outcomes = ("used", "problem", *FAULTS)
    print(f"{'':18}", *(f"{o:>12}" for o in outcomes), f"{'most CPU s':>12} {'most MB':>12}")
    for group in (*groups, "all"):
        group_results = [r for r in results if group in (r.name.split("/")[part], "all")]
        count_of = Counter(r.outcome for r in group_results)
        slowest = max((r.seconds for r in group_results), default=0.0)
        most = max((r.memory for r in group_results), default=0) >> 20
        print(f"{group:18}", *(f"{count_of[o]:12}" for o in outcomes), f"{slowest:12.1f} {most:12}")
    for read in results:
        if read.outcome in FAULTS:
            print(f"{read.outcome}: {read.name} ({read.seconds:.1f} s, {read.memory >> 20} MB)",
                  read.reason)  # fmt: skip
    reasons = Counter(r.reason.split(":")[0][:50] for r in results if r.outcome == "problem")
    print(*(f"{n:5} {reason}" for reason, n in reasons.most_common(20)), sep="\n")
    return int(any(r.outcome in FAULTS for r in results))


def main(count: int, first: int = 0) -> int:
    with tempfile.TemporaryDirectory() as folder:
        return show(read_all(names(count, first), Path(folder)), (*VIDEOS, *TEXTS), part=0)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
