"""Clips: copied from a keyframe that is near enough, otherwise encoded from the span alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from actors.llm.openai import data_url
from loopback.replies import WatchedVideo, watch_video
from mustsee.calls.llm import VideoInput
from mustsee.errors import BadRow
from mustsee.media.clips import ClipFile, copy_span, encode_span
from mustsee.records import Span
from tests.support.coloured import coloured, seconds_in
from tests.support.material import material
from tests.support.sample_videos import write

LIMIT = 5_000_000
VIDEO_INPUT = VideoInput(fps=4.0, longest=96)


@pytest.fixture(scope="module")
def video(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(coloured(tmp_path_factory.mktemp("clips") / "video.mp4"))


def watch(cut: ClipFile | None) -> WatchedVideo:
    assert cut is not None
    return watch_video(data_url(cut.mp4, "video/mp4"))


def test_a_copy_begins_at_the_last_keyframe_and_ends_with_the_span(video: str) -> None:
    clip = copy_span(video, Span(4.4, 7.0), sound=True, max_bytes=LIMIT)
    assert clip is not None
    assert clip.copied
    assert clip.span.start == 4.0
    assert clip.span.end == pytest.approx(7.0, abs=0.2)  # its last frames refer to later ones
    watched = watch(clip)
    assert watched.times[0] == 0.0
    assert watched.seconds == pytest.approx(clip.span.seconds, abs=0.01)
    assert seconds_in(watched.colours) in ([4, 5, 6], [4, 5, 6, 7])
    assert watched.loud == pytest.approx(0.35, abs=0.05)


def test_a_span_too_far_after_its_keyframe_is_not_copied(video: str) -> None:
    assert copy_span(video, Span(5.5, 7.0), sound=True, max_bytes=LIMIT) is None
    assert copy_span(video, Span(5.5, 7.0), sound=True, max_bytes=LIMIT, lead=1.5) is not None


def test_the_whole_video_is_copied_frame_by_frame(video: str) -> None:
    watched = watch(copy_span(video, Span(0.0, 12.0), sound=True, max_bytes=LIMIT))
    assert len(watched.times) == 12 * 24
    assert seconds_in(watched.colours) == list(range(12))


@pytest.mark.parametrize("span", [Span(5.0, 7.0), Span(0.0, 1.0), Span(11.0, 12.0)])
def test_an_encoded_clip_shows_only_its_span(video: str, span: Span) -> None:
    clip = encode_span(video, span, VIDEO_INPUT, sound=True, max_bytes=LIMIT)
    assert clip is not None
    assert (clip.span, clip.copied) == (span, False)
    watched = watch(clip)
    assert watched.seconds == pytest.approx(span.seconds, abs=0.01)
    assert len(watched.times) == span.seconds * VIDEO_INPUT.fps
    assert seconds_in(watched.colours) == list(range(int(span.start), int(span.end)))
    assert watched.loud == pytest.approx(0.35, abs=0.05)


def test_a_clip_without_sound_has_no_audio_stream(video: str) -> None:
    assert (
        watch(encode_span(video, Span(1.0, 3.0), VIDEO_INPUT, sound=False, max_bytes=LIMIT)).loud
        is None
    )
    assert watch(copy_span(video, Span(2.0, 4.0), sound=False, max_bytes=LIMIT)).loud is None


def test_a_clip_larger_than_the_limit_is_neither_copied_nor_encoded(video: str) -> None:
    assert copy_span(video, Span(0.0, 12.0), sound=True, max_bytes=3000) is None
    assert encode_span(video, Span(0.0, 12.0), VIDEO_INPUT, sound=True, max_bytes=3000) is None


def test_the_bit_rate_keeps_a_clip_below_the_size_limit() -> None:
    video = str(material("video/Zulko+moviepy/media/chaplin.mp4"))
    span, limit = Span(0.0, 9.0), 120_000
    unlimited = encode_span(video, span, VideoInput(), sound=True, max_bytes=10**7)
    limited = encode_span(video, span, VideoInput(), sound=True, max_bytes=limit)
    assert unlimited is not None
    assert limited is not None
    assert len(limited.mp4) <= limit < len(unlimited.mp4)
    assert watch(limited).seconds == pytest.approx(9.0, abs=0.01)


def test_a_very_short_clip_may_have_a_large_size_limit(video: str) -> None:
    clip = encode_span(
        video, Span(1.0, 1.08), VideoInput(fps=25.0), sound=True, max_bytes=200_000_000
    )
    assert clip is not None


def test_a_codec_that_not_all_servers_decode_is_encoded_again(tmp_path: Path) -> None:
    video = coloured(tmp_path / "video.mkv", codec="mpeg4", options={"g": "24"}, tone=False)
    span = Span(2.0, 4.0)
    assert copy_span(str(video), span, sound=True, max_bytes=LIMIT) is None
    watched = watch(encode_span(str(video), span, VIDEO_INPUT, sound=True, max_bytes=LIMIT))
    assert seconds_in(watched.colours) == [2, 3]
    assert watched.loud is None


def test_late_and_rotated_videos_are_cut_by_displayed_time_and_shape(tmp_path: Path) -> None:
    import numpy as np

    from tests.support.coloured import PALETTE

    images = [np.full((120, 160, 3), PALETTE[n // 24], np.uint8) for n in range(96)]
    late = [2.0 + n / 24 for n in range(96)]
    video = str(write(tmp_path / "late.mkv", images, times=late, options={"g": "24"}))
    for clip in (
        copy_span(video, Span(1.0, 3.0), sound=True, max_bytes=LIMIT),
        encode_span(video, Span(1.0, 3.0), VIDEO_INPUT, sound=True, max_bytes=LIMIT),
    ):
        assert seconds_in(watch(clip).colours)[:2] == [1, 2]
    turned = str(write(tmp_path / "turned.mp4", images, turn=90))
    clip = encode_span(turned, Span(0.0, 1.0), VIDEO_INPUT, sound=True, max_bytes=LIMIT)
    assert clip is not None
    import io

    import av

    with av.open(io.BytesIO(clip.mp4)) as container:
        stream = container.streams.video[0]
        assert (stream.width, stream.height) == (72, 96)


def test_a_file_that_is_not_a_video_is_a_bad_row(tmp_path: Path) -> None:
    (tmp_path / "x.mp4").write_bytes(b"no video")
    with pytest.raises(BadRow):
        copy_span(str(tmp_path / "x.mp4"), Span(0.0, 1.0), sound=True, max_bytes=LIMIT)
    with pytest.raises(BadRow):
        encode_span(
            str(tmp_path / "x.mp4"), Span(0.0, 1.0), VIDEO_INPUT, sound=True, max_bytes=LIMIT
        )
