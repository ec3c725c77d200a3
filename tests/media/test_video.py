"""Videos are read exactly: times, single frames and facts, in any container."""

import bisect
import hashlib
import subprocess
import sys
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import av
import cv2
import numpy as np
import pytest
from av.video.frame import PictureType
from hypothesis import assume, given
from hypothesis import strategies as st

from actors.part import RunContext
from actors.stages.probe import Probe
from mustsee.errors import BadRow
from mustsee.files.store import Store
from mustsee.media import frame_times as frame_times_module
from mustsee.media.files import content_digest
from mustsee.media.frame_times import frame_times
from mustsee.media.frames import Thumbnails, shown_size, small_luma
from mustsee.media.video import facts, frames_at, last_packet_time, open_video
from mustsee.records import Video
from tests.support.material import material
from tests.support.sample_videos import B_FRAMES, FPS, cuts, damaged, scene, write


def read_frames(
    path: Path, start: float = 0.0, end: float | None = None
) -> list[tuple[float, bytes]]:
    with open_video(str(path)) as f:
        return [(p.time, p.luma().tobytes()) for p in f.frames(start, end)]


@pytest.fixture(scope="session")
def whole(b_frames: Path) -> list[tuple[float, bytes]]:
    return read_frames(b_frames)


def test_facts_are_right_and_every_frame_is_read_once(
    b_frames: Path, whole: list[tuple[float, bytes]]
) -> None:
    video_facts = facts(str(b_frames))
    assert (video_facts.width, video_facts.height, video_facts.fps) == (160, 120, FPS)
    assert video_facts.has_audio
    assert video_facts.has_video
    assert video_facts.duration == pytest.approx(sum(range(12, 22)) / FPS, abs=0.01)
    assert [t for t, _ in whole] == pytest.approx([n / FPS for n in range(sum(range(12, 22)))])


def test_without_deblocking_frames_that_others_refer_to_stay_the_same(tmp_path: Path) -> None:
    path = write(tmp_path / "coarse.mp4", cuts([24]), options={**B_FRAMES, "crf": "40"})
    with open_video(str(path)) as f:
        frames = [(p.luma().astype(int), p.decoded.pict_type) for p in f.frames()]
    with open_video(str(path), deblocked=False) as f:
        rough = [p.luma().astype(int) for p in f.frames()]
    differences = [np.abs(a - b).mean() for (a, _), b in zip(frames, rough, strict=True)]
    assert 0 < max(differences) < 3
    kinds = {PictureType(kind) for (_, kind), d in zip(frames, differences, strict=True) if d}
    assert kinds == {PictureType.B}


@given(
    times=st.lists(st.floats(-1, 9), min_size=1, max_size=8),
    threads=st.sampled_from([1, 2]),
)
def test_single_frames_equal_those_of_a_full_pass(
    b_frames: Path, whole: list[tuple[float, bytes]], times: list[float], threads: int
) -> None:
    starts = [t for t, _ in whole]
    expected = [whole[max(0, bisect.bisect_right(starts, t + 1e-4) - 1)] for t in sorted(times)]
    frames = frames_at(str(b_frames), times, threads=threads)
    assert [(p.time, p.luma().tobytes()) for p in frames] == expected


@given(time=st.floats(0, 6.8), slack=st.floats(0.0, 1.0))
def test_slack_takes_the_nearest_keyframe_within_it(
    b_frames: Path, time: float, slack: float
) -> None:
    with open_video(str(b_frames)) as f:
        keys = [f.seconds(k) for k in frame_times(str(b_frames)).keys]
    (frame,) = frames_at(str(b_frames), [time], slack=slack)
    nearest = min(abs(k - time) for k in keys)
    assume(abs(nearest - slack) > 1e-3)
    if nearest <= slack:
        assert abs(frame.time - time) == pytest.approx(nearest, abs=1e-3)
    else:
        assert frame.time <= time + 1e-3
        assert time - frame.time < 1 / FPS + 1e-3


def test_sparse_frames_are_reached_by_seeking(
    b_frames: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few frames between are decoded, as the decoder's output shows."""
    from mustsee.media import video

    seen = []
    decode = video.VideoStream.decode

    def counted(self: video.VideoStream):
        for frame in decode(self):
            seen.append(frame.time)
            yield frame

    monkeypatch.setattr(video.VideoStream, "decode", counted)
    list(frames_at(str(b_frames), [0.0, 3.0, 6.0]))
    assert len(seen) < 30
    seen.clear()
    assert len(list(frames_at(str(b_frames), [n / 10 for n in range(60)]))) == 60
    assert len(seen) <= 166


def test_the_index_of_a_video_is_cached_until_its_file_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed, read = list[object](), frame_times_module._read_packets
    monkeypatch.setattr(
        frame_times_module, "_read_packets", lambda *of: listed.append(of) or read(*of)
    )
    path = write(tmp_path / "video.mp4", cuts([30, 30]))
    before = [next(frames_at(str(path), [time])).luma() for time in (0.5, 1.5, 0.5)]
    assert len(listed) == 1
    write(path, cuts([30, 30])[::-1])
    assert not np.array_equal(next(frames_at(str(path), [0.5])).luma(), before[0])
    assert len(listed) == 2


def test_the_index_has_presentation_times(b_frames: Path, whole: list[tuple[float, bytes]]) -> None:
    with open_video(str(b_frames)) as f:
        index = frame_times(str(b_frames))
        assert [f.seconds(s) for s in index.stamps] == pytest.approx([t for t, _ in whole])
        keys = [f.seconds(k) for k in index.keys]
    with av.open(str(b_frames)) as container:
        flagged = [f.time for f in container.decode(video=0) if f.key_frame]
    assert keys == pytest.approx(flagged)


def test_frames_of_a_span_equal_those_of_a_full_pass(
    b_frames: Path, whole: list[tuple[float, bytes]]
) -> None:
    assert read_frames(b_frames, 3.1, 4.6) == [p for p in whole if 3.1 <= p[0] < 4.6]


@pytest.mark.parametrize("turn", [90, 180, -90])
def test_frames_are_upright_with_square_pixels(tmp_path: Path, turn: int) -> None:
    """As OpenCV shows them; sizes are those as shown."""
    path = write(tmp_path / "turned.mp4", cuts([3]), turn=turn)
    with open_video(str(path)) as f:
        frame = next(f.frames())
    _, shown = cv2.VideoCapture(str(path)).read()
    assert np.array_equal(frame.image(), shown)
    assert (facts(str(path)).height, facts(str(path)).width) == shown.shape[:2]
    wide = write(tmp_path / "wide.mp4", cuts([3]), aspect=Fraction(2, 1))
    with open_video(str(wide)) as f:
        assert next(f.frames()).image().shape == (120, 320, 3)
        assert next(f.frames()).image(160).shape == (60, 160, 3)
    assert shown_size(720, 576, 1.0667, 90) == (576, 768)
    assert shown_size(426, 320, 640 / 639) == (426, 320)


def test_variable_and_late_frame_times_are_exact(tmp_path: Path) -> None:
    """Variable frame rate, and a stream that begins five seconds late."""
    times = [5.0, 5.04, 5.5, 5.54, 7.0, 7.2]
    path = write(tmp_path / "vfr.mkv", cuts([6]), times=times)
    assert [t for t, _ in read_frames(path)] == pytest.approx([t - 5 for t in times], abs=0.002)
    shown = [p.time for p in frames_at(str(path), [0.03, 0.49, 1.9, 2.1])]
    assert shown == pytest.approx([0.0, 0.04, 0.54, 2.0], abs=0.002)
    assert facts(str(path)).duration == pytest.approx(2.2, abs=0.1)


def test_a_stream_without_timestamps_gets_even_times(tmp_path: Path) -> None:
    path = write(tmp_path / "bare.h264", cuts([50]), options=B_FRAMES)
    times = [t for t, _ in read_frames(path)]
    assert len(times) == 50
    assert all(b - a == pytest.approx(1 / facts(str(path)).fps) for a, b in pairwise(times))
    assert facts(str(path)).duration == pytest.approx(2.0, abs=0.1)
    assert [p.time for p in frames_at(str(path), [1.0, 99.0])] == pytest.approx([1.0, times[-1]])


def test_broken_packets_are_skipped_and_counted(tmp_path: Path) -> None:
    good = write(tmp_path / "good.mp4", cuts([60]), codec="mpeg4", options={"g": "12"})

    def spoil(data: bytearray) -> None:
        middle = data.index(b"mdat") + len(data) // 3
        data[middle : middle + 4000] = bytes(4000)

    bad = damaged(good, tmp_path / "bad.mp4", spoil)
    with open_video(str(bad)) as f:
        times = [p.time for p in f.frames()]
        assert f.broken + len(times) >= 55
        assert f.broken > 0
    assert len(times) >= 20
    assert times == sorted(set(times))
    assert times[-1] > 2
    assert len(list(frames_at(str(bad), [0.5, 1.0, 2.0]))) == 3
    cut = damaged(good, tmp_path / "cut.mkv", lambda data: data.__delitem__(slice(-3000, None)))
    with pytest.raises(BadRow, match=r"cut\.mkv"):  # an MP4's table of contents was at its end
        facts(str(cut))


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_the_last_packet_of_a_truncated_video_is_found(share: float, tmp_path: Path) -> None:
    """Matroska states its duration in the header, also where the rest of the file is missing."""
    whole = write(tmp_path / "whole.mkv", cuts([50] * 20), codec="mpeg4", options={"g": "12"})
    seconds = facts(str(whole)).duration
    assert last_packet_time(str(whole), seconds) == pytest.approx(seconds, abs=0.1)
    size = whole.stat().st_size
    cut = damaged(
        whole, tmp_path / "cut.mkv", lambda data: data.__delitem__(slice(int(share * size), None))
    )
    assert facts(str(cut)).duration == pytest.approx(seconds, abs=0.1)
    assert last_packet_time(str(cut), seconds) == pytest.approx(share * seconds, abs=0.1 * seconds)
    message = rf"truncated: .* duration of {seconds:.1f} s, but data for \d"
    with pytest.raises(BadRow, match=message):
        probed(str(cut))
    assert probed(str(whole)).duration == pytest.approx(seconds, abs=0.1)


def probed(uri: str) -> Video:
    work = Probe().open(RunContext(store=Store("unused"), llm=Any, count=lambda name, n: None))
    row = work(Video(video_id="v", uri=uri))
    assert isinstance(row, Video)
    return row


def test_the_largest_video_stream_is_used_and_cover_art_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "two.mkv"
    with av.open(str(path), "w") as out:
        streams = [out.add_stream("mpeg4", rate=FPS) for _ in range(2)]
        for stream, (width, height) in zip(streams, [(64, 48), (96, 80)], strict=True):
            stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        for stream in streams:
            for number in range(5):
                image = scene(1, number, stream.width, stream.height)
                frame = av.VideoFrame.from_ndarray(image, format="rgb24")
                out.mux(stream.encode(frame))
            out.mux(stream.encode(None))
    assert (facts(str(path)).width, facts(str(path)).height) == (96, 80)

    song = tmp_path / "song.mp3"
    cover = cv2.imencode(".jpg", scene(1))[1].tobytes()
    body = b"\x00image/jpeg\x00\x03\x00" + cover
    size = len(body) + 10
    head = b"ID3\x03\x00\x00" + bytes((size >> 7 * k) & 127 for k in (3, 2, 1, 0))
    plain = tmp_path / "plain.mp3"
    with av.open(str(plain), "w") as out:
        stream = out.add_stream("mp3", rate=16_000, layout="mono")
        for _ in range(20):
            frame = av.AudioFrame.from_ndarray(np.zeros((1, 576), np.int16), "s16p", "mono")
            frame.sample_rate = 16_000
            out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
    song.write_bytes(
        head + b"APIC" + len(body).to_bytes(4, "big") + b"\x00\x00" + body + plain.read_bytes()
    )
    with av.open(str(song)) as container:
        assert container.streams.video, "the cover art is there"
    assert not facts(str(song)).has_video
    assert facts(str(song)).has_audio


@pytest.mark.parametrize("content", [b"", b"no video at all\n" * 50])
def test_a_file_that_is_not_a_video_is_named_in_the_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "odd.mp4"
    path.write_bytes(content)
    with pytest.raises(BadRow, match=r"odd\.mp4"):
        facts(str(path))
    with pytest.raises(BadRow, match=r"gone\.mp4"):
        facts(str(tmp_path / "gone.mp4"))
    with pytest.raises(BadRow, match=r"gone\.mp4"):
        content_digest(str(tmp_path / "gone.mp4"))


def test_a_uri_reads_the_same_as_its_path(b_frames: Path, whole: list[tuple[float, bytes]]) -> None:
    """The way object stores are read: through `pyarrow.fs`."""
    uri = b_frames.as_uri()
    assert content_digest(uri) == hashlib.sha256(b_frames.read_bytes()).hexdigest()
    assert content_digest(str(b_frames)) == content_digest(uri)
    assert facts(uri) == facts(str(b_frames))
    with open_video(uri) as f:
        assert [(p.time, p.luma().tobytes()) for p in f.frames(2, 3)] == [
            p for p in whole if 2 <= p[0] < 3
        ]


@pytest.mark.parametrize("kind", ["yuv420p", "yuvj420p", "yuv420p10le", "yuv444p", "rgb24", "nv12"])
def test_thumbnails_of_every_format_agree(kind: str) -> None:
    frame = av.VideoFrame.from_ndarray(scene(3), format="rgb24").reformat(format="yuv420p")
    usual = Thumbnails(64)(frame)
    other = Thumbnails(64)(frame.reformat(format=kind))
    assert other.yuv.shape == usual.yuv.shape == (72, 64)
    assert np.abs(other.yuv.astype(int) - usual.yuv).mean() < 8
    small = cv2.cvtColor(usual.yuv, cv2.COLOR_YUV2RGB_I420)
    blurred = cv2.resize(scene(3), (64, 48), interpolation=cv2.INTER_AREA)
    assert np.abs(blurred.astype(int) - small).mean() < 16


@pytest.mark.parametrize("kind", ["yuv420p", "yuv420p10le", "rgb24"])
@pytest.mark.parametrize(("longest", "shape"), [(400, (120, 160)), (100, (60, 80)), (60, (40, 53))])
def test_a_small_brightness_is_that_of_the_frame(
    kind: str, longest: int, shape: tuple[int, int]
) -> None:
    """Of any format, at the largest whole fraction that fits."""
    image = cv2.GaussianBlur(scene(3, width=160, height=120), (0, 0), 5)
    frame = av.VideoFrame.from_ndarray(image, format="rgb24").reformat(format=kind)
    luma = small_luma(frame, longest)
    assert luma.shape == shape
    grey = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)
    expected = cv2.resize(grey, luma.shape[::-1], interpolation=cv2.INTER_AREA)
    assert np.corrcoef(luma.ravel(), expected.ravel())[0, 1] > 0.99


def test_single_frames_of_real_videos_equal_those_of_a_full_pass() -> None:
    """Open and closed groups, B-frames, VP8 and VP9, by real encoders."""
    for name in (
        "awwkl+ZWM/data/demo_videos/clip_03_sintel.mp4",
        "pytorch+torchcodec/test/resources/nasa_13013.mp4",
        "samdutton+simpl/video/video/small.webm",
    ):
        path = material(f"video/{name}")
        frames = read_frames(path)
        starts = [t for t, _ in frames]
        times = [starts[-1] * k / 7.3 for k in range(8)]
        expected = [frames[bisect.bisect_right(starts, t + 1e-4) - 1] for t in times]
        assert [(p.time, p.luma().tobytes()) for p in frames_at(str(path), times)] == expected


@pytest.mark.slow
def test_a_video_left_early_does_not_hang(tmp_path: Path) -> None:
    """Several threads decode ahead when the video is closed. Closing it hung while FFmpeg's log was
    on.
    """
    path = write(tmp_path / "long.mp4", cuts([50, 50], width=640, height=360), options=B_FRAMES)
    script = (
        "import sys; from itertools import islice; from mustsee.media.video import open_video\n"
        "for n in range(60):\n"
        "    with open_video(sys.argv[1], 3) as video:\n"
        "        list(islice(video.frames(float(n % 3)), 1 + n % 7))\n"
    )
    command = [sys.executable, "-c", script, str(path)]
    subprocess.run(command, timeout=120, check=True, cwd=Path(__file__).parents[2])
