"""MPEG streams (.ts, .m2ts, .vob, .mpg), joined or not, give the same frames as any other file."""

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from actors.part import RunContext
from actors.stages.look import Look
from actors.stages.probe import Probe
from benchmarks.harness import NO_CALLS
from mustsee.files.store import Store
from mustsee.media.clips import copy_span
from mustsee.media.sound import audio_chunks
from mustsee.media.video import facts, frames_at, last_packet_time, open_video
from mustsee.records import Span, Video
from tests.support.sample_videos import scene

COLOURS = {
    "red": (255, 0, 0), "lime": (0, 255, 0), "blue": (0, 0, 255), "yellow": (255, 255, 0),
    "magenta": (255, 0, 255), "cyan": (0, 255, 255), "white": (255, 255, 255),
    "grey": (128, 128, 128),
}  # fmt: skip
NAMES = list(COLOURS)
FPS, WRAP_S = 25, 2**33 / 90_000  # the clock of an MPEG stream has 33 bits
X264 = {"preset": "veryfast", "bf": "3", "g": "50"}
OPEN = {**X264, "x264-params": "open-gop=1:scenecut=0:keyint=40"}
OPEN_HEVC = {"preset": "ultrafast", "x265-params": "open-gop=1:keyint=40:bframes=3:log-level=none"}
MPEG2 = {"g": "12", "bf": "2"}
KINDS: dict[str, tuple[str, str, dict[str, str], float]] = {
    "h264.ts": ("mpegts", "libx264", X264, 0.0),
    "one_group.ts": ("mpegts", "libx264", {"preset": "veryfast"}, 0.0),
    "open.ts": ("mpegts", "libx264", OPEN, 0.0),
    "open_hevc.ts": ("mpegts", "libx265", OPEN_HEVC, 0.0),
    "mpeg2.ts": ("mpegts", "mpeg2video", MPEG2, 0.0),
    "wrapped.ts": ("mpegts", "libx264", X264, WRAP_S - 4),
    "disc.m2ts": ("mpegts", "libx264", X264, 0.0),
    "disc.vob": ("vob", "mpeg2video", MPEG2, 0.0),
    "old.mpg": ("mpeg", "mpeg2video", MPEG2, 0.0),
}


def write_cards(
    path: Path, names: Sequence[str], kind: str, offset: float = 0.0, tone: bool = True
) -> Path:
    """A second of each colour with a moving mark, and a fifth of a second of sound with each."""
    form, codec, options, start = KINDS[kind]
    times = {"output_ts_offset": str(start + offset)} if start + offset else {}
    with av.open(str(path), "w", format=form, options=times) as out:
        stream: Any = out.add_stream(codec, rate=FPS, options=options)
        stream.width, stream.height, stream.pix_fmt = 176, 144, "yuv420p"
        stream.bit_rate = 1_000_000
        sound: Any = out.add_stream("mp2", rate=48_000, layout="mono") if tone else None
        samples = 0
        for number in range(FPS * len(names)):
            image = np.full((144, 176, 3), COLOURS[names[number // FPS]], np.uint8)
            image[60:80, 10 + number % FPS * 5 :][:, :20] = 20
            frame = av.VideoFrame.from_ndarray(image, format="rgb24")
            frame.pts, frame.time_base = number, Fraction(1, FPS)
            out.mux(stream.encode(frame))
            while sound and samples < (number + 1) * 48_000 // FPS:
                time = (samples + np.arange(1152)) / 48_000
                is_loud = (time % 1 < 0.2) & (time < len(names) - 0.5)
                wave = 15_000 * np.sin(2 * np.pi * 440 * time) * is_loud
                block = av.AudioFrame.from_ndarray(wave.astype(np.int16)[None], "s16", "mono")
                block.sample_rate, block.time_base = 48_000, Fraction(1, 48_000)
                block.pts = samples
                out.mux(sound.encode(block))
                samples += 1152
        out.mux(stream.encode(None))
        if sound:
            out.mux(sound.encode(None))
    return path


def join(path: Path, *parts: Path) -> Path:
    path.write_bytes(b"".join(part.read_bytes() for part in parts))
    return path


def colour(image: np.ndarray) -> str:
    middle = np.median(image.reshape(-1, 3), axis=0)[::-1]
    return min(COLOURS, key=lambda name: float(np.abs(middle - COLOURS[name]).sum()))


def tone_starts(path: Path, start: float = 0.0, end: float | None = None) -> list[float]:
    """The seconds at which it becomes loud."""
    starts: list[float] = []
    for sound in audio_chunks(str(path), start=start, end=end):
        loud = np.convolve(np.abs(sound.samples), np.ones(160) / 160, "same") > 0.1
        begins = np.flatnonzero(np.diff(loud.astype(int), prepend=0) == 1)
        starts += [sound.start + float(n) / 16_000 for n in begins]
    return starts


def assert_cards(path: Path, names: Sequence[str]) -> None:
    """Each second shows its colour: by length, in a full pass, in spans, at single times."""
    uri, count = str(path), len(names)
    assert facts(uri).duration == pytest.approx(count, abs=0.15)
    assert last_packet_time(uri, count) > count - 0.5
    with open_video(uri) as video:
        whole = [(f.time, f.luma().tobytes(), colour(f.image(32))) for f in video.frames()]
    assert len(whole) == count * FPS
    assert [whole[FPS * n][0] for n in range(count)] == pytest.approx(range(count), abs=0.1)
    assert [whole[FPS * n + 12][2] for n in range(count)] == [*names]
    middles = [n + 0.5 for n in range(count)]
    assert [colour(f.image(32)) for f in frames_at(uri, middles)] == [*names]
    for middle, name in zip(middles, names, strict=True):
        assert [colour(f.image(32)) for f in frames_at(uri, [middle])] == [name]
    for start, end in ((0.4, 1.0), (1.2, 3.0), (3.8, 4.4), (5.1, 6.2), (7.5, 9.0)):
        with open_video(uri) as video:
            span = [(f.time, f.luma().tobytes()) for f in video.frames(start, end)]
        assert span == [(t, luma) for t, luma, _ in whole if start <= t < end]


@pytest.mark.parametrize("kind", KINDS)
def test_every_frame_of_a_stream_is_reached(kind: str, tmp_path: Path) -> None:
    path = write_cards(tmp_path / kind, NAMES, kind)
    assert_cards(path, NAMES)
    assert tone_starts(path) == pytest.approx(range(8), abs=0.06)
    assert tone_starts(path, 1.5, 3.5) == pytest.approx([2, 3], abs=0.06)


@pytest.mark.parametrize(
    ("first", "second", "tone"),
    [(0, 0, True), (0, 1000, True), (1000, 0, True), (70_000, 3, True), (0, 1000, False),
     (70_000, 3, False)],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["h264.ts", "mpeg2.ts", "disc.vob"])
def test_the_times_of_joined_streams_go_on(
    kind: str, first: float, second: float, tone: bool, tmp_path: Path
) -> None:
    """Whether the clock of the second part begins anew, or far later, as of another recording."""
    parts = (
        write_cards(tmp_path / f"1_{kind}", NAMES[:4], kind, first, tone),
        write_cards(tmp_path / f"2_{kind}", NAMES[4:], kind, second, tone),
    )
    path = join(tmp_path / f"joined_{kind}", *parts)
    assert_cards(path, NAMES)
    if tone:
        assert tone_starts(path) == pytest.approx(range(8), abs=0.15)
        assert tone_starts(path, 5.5, 7.5) == pytest.approx([6, 7], abs=0.15)


def test_three_parts_are_joined(tmp_path: Path) -> None:
    spans = (NAMES[:3], NAMES[3:5], NAMES[5:])
    parts = [write_cards(tmp_path / f"{n}.ts", s, "h264.ts") for n, s in enumerate(spans)]
    path = join(tmp_path / "joined.ts", *parts)
    assert_cards(path, NAMES)
    row = Probe().open(RunContext(store=Store("unused"), llm=Any, count=lambda name, n: None))(
        Video(video_id="v", uri=str(path))
    )
    assert isinstance(row, Video)
    assert row.duration == pytest.approx(8, abs=0.2)


def test_a_short_gap_in_a_stream_stays(tmp_path: Path) -> None:
    """Seconds that were not received: the frame before is held, in all ways to read alike."""
    parts = (
        write_cards(tmp_path / "1.ts", NAMES[:4], "h264.ts"),
        write_cards(tmp_path / "2.ts", NAMES[4:], "h264.ts", 9.0),
    )
    path = str(join(tmp_path / "joined.ts", *parts))
    assert facts(path).duration == pytest.approx(13, abs=0.2)
    shown = [colour(f.image(32)) for f in frames_at(path, [3.5, 6.0, 8.5, 9.5])]
    assert shown == ["yellow", "yellow", "yellow", "magenta"]
    with open_video(path) as video:
        assert next(video.frames(5.0)).time == pytest.approx(9, abs=0.15)


@pytest.mark.parametrize("is_joined", [False, True])
def test_clips_of_a_stream_begin_with_their_keyframe(is_joined: bool, tmp_path: Path) -> None:
    path = write_cards(tmp_path / "whole.ts", NAMES, "h264.ts")
    if is_joined:
        parts = [write_cards(tmp_path / f"{n}.ts", NAMES[n : n + 4], "h264.ts") for n in (0, 4)]
        path = join(tmp_path / "joined.ts", *parts)
    for start, end in ((0.5, 2.5), (4.5, 6.5)):
        clip = copy_span(str(path), Span(start, end), sound=False, max_bytes=10**7, lead=99)
        assert clip is not None
        copy = tmp_path / "clip.mp4"
        copy.write_bytes(clip.mp4)
        times = [0.2 + n / 2 for n in range(4)]
        shown = [colour(f.image(32)) for f in frames_at(str(copy), times)]
        assert shown == [NAMES[int(clip.span.start + time)] for time in times]


def test_a_look_finds_the_shots_of_a_joined_stream(tmp_path: Path) -> None:
    """In one window and in several."""
    form, codec, options, _ = KINDS["h264.ts"]
    parts: list[Path] = []
    for part in range(2):
        parts.append(tmp_path / f"{part}.ts")
        with av.open(str(parts[-1]), "w", format=form) as out:
            stream: Any = out.add_stream(codec, rate=FPS, options=options)
            stream.width, stream.height, stream.pix_fmt = 160, 120, "yuv420p"
            for number in range(6 * FPS):
                image = scene(10 * part + number // (3 * FPS), number)
                frame = av.VideoFrame.from_ndarray(image, format="rgb24")
                frame.pts, frame.time_base = number, Fraction(1, FPS)
                out.mux(stream.encode(frame))
            out.mux(stream.encode(None))
    row = Video(video_id="v", uri=str(join(tmp_path / "joined.ts", *parts)), duration=12.0)
    for window in (300.0, 4.0):
        shots = Look(window=window).open(NO_CALLS)(row).shots or ()
        assert [shot.start for shot in shots] == pytest.approx([0, 3, 6, 9], abs=0.1)
        assert shots[-1].end == pytest.approx(12, abs=0.1)
