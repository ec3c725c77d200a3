"""Clips: the stretch asked for, copied where that is near enough, else coded anew, that alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from actors.llm.openai import data_url
from loopback.videos import WatchedVideo, watch_video
from mustsee.calls.llm import VideoInput
from mustsee.errors import BadRow
from mustsee.media.clips import ClipFile, copy_span, encode_span
from mustsee.records import Span
from tests.support.coloured import coloured, seconds_in
from tests.support.material import material
from tests.support.sample_videos import write

ROOM = 5_000_000
TAKE = VideoInput(fps=4.0, longest=96)


@pytest.fixture(scope="module")
def video(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(coloured(tmp_path_factory.mktemp("clips") / "video.mp4"))


def seen(cut: ClipFile | None) -> WatchedVideo:
    assert cut is not None
    return watch_video(data_url(cut.mp4, "video/mp4"))


def test_a_copy_begins_with_the_keyframe_before_and_ends_with_the_stretch(video: str) -> None:
    cut = copy_span(video, Span(4.4, 7.0), sound=True, most=ROOM)
    assert cut is not None
    assert cut.copied
    assert cut.span.start == 4.0
    assert cut.span.end == pytest.approx(7.0, abs=0.2)  # what its last pictures refer to
    shown = seen(cut)
    assert shown.times[0] == 0.0
    assert shown.seconds == pytest.approx(cut.span.seconds, abs=0.01)
    assert seconds_in(shown.colours) in ([4, 5, 6], [4, 5, 6, 7])
    assert shown.loud == pytest.approx(0.35, abs=0.05)


def test_a_keyframe_too_far_before_is_not_copied_from(video: str) -> None:
    assert copy_span(video, Span(5.5, 7.0), sound=True, most=ROOM) is None
    assert copy_span(video, Span(5.5, 7.0), sound=True, most=ROOM, lead=1.5) is not None


def test_the_whole_video_is_copied_frame_by_frame(video: str) -> None:
    shown = seen(copy_span(video, Span(0.0, 12.0), sound=True, most=ROOM))
    assert len(shown.times) == 12 * 24
    assert seconds_in(shown.colours) == list(range(12))


@pytest.mark.parametrize("span", [Span(5.0, 7.0), Span(0.0, 1.0), Span(11.0, 12.0)])
def test_what_is_coded_anew_shows_the_stretch_and_nothing_else(video: str, span: Span) -> None:
    cut = encode_span(video, span, TAKE, sound=True, most=ROOM)
    assert cut is not None
    assert (cut.span, cut.copied) == (span, False)
    shown = seen(cut)
    assert shown.seconds == pytest.approx(span.seconds, abs=0.01)
    assert len(shown.times) == span.seconds * TAKE.fps
    assert seconds_in(shown.colours) == list(range(int(span.start), int(span.end)))
    assert shown.loud == pytest.approx(0.35, abs=0.05)


def test_sound_is_left_out_where_nothing_is_to_be_heard(video: str) -> None:
    assert seen(encode_span(video, Span(1.0, 3.0), TAKE, sound=False, most=ROOM)).loud is None
    assert seen(copy_span(video, Span(2.0, 4.0), sound=False, most=ROOM)).loud is None


def test_more_than_there_is_room_for_is_neither(video: str) -> None:
    assert copy_span(video, Span(0.0, 12.0), sound=True, most=3000) is None
    assert encode_span(video, Span(0.0, 12.0), TAKE, sound=True, most=3000) is None


def test_the_rate_is_held_to_the_room() -> None:
    video = str(material("video/Zulko+moviepy/media/chaplin.mp4"))
    span, most = Span(0.0, 9.0), 120_000
    free = encode_span(video, span, VideoInput(), sound=True, most=10**7)
    held = encode_span(video, span, VideoInput(), sound=True, most=most)
    assert free is not None
    assert held is not None
    assert len(held.mp4) <= most < len(free.mp4)
    assert seen(held).seconds == pytest.approx(9.0, abs=0.01)


def test_the_last_moment_of_a_video_may_have_all_the_room(video: str) -> None:
    cut = encode_span(video, Span(1.0, 1.08), VideoInput(fps=25.0), sound=True, most=200_000_000)
    assert cut is not None


def test_a_codec_that_not_all_servers_decode_is_coded_anew(tmp_path: Path) -> None:
    video = coloured(tmp_path / "video.mkv", codec="mpeg4", options={"g": "24"}, tone=False)
    span = Span(2.0, 4.0)
    assert copy_span(str(video), span, sound=True, most=ROOM) is None
    shown = seen(encode_span(str(video), span, TAKE, sound=True, most=ROOM))
    assert seconds_in(shown.colours) == [2, 3]
    assert shown.loud is None


def test_a_video_that_begins_late_and_lies_turned_is_cut_by_what_is_shown(tmp_path: Path) -> None:
    import numpy as np

    from tests.support.coloured import PALETTE

    images = [np.full((120, 160, 3), PALETTE[n // 24], np.uint8) for n in range(96)]
    late = [2.0 + n / 24 for n in range(96)]
    video = str(write(tmp_path / "late.mkv", images, times=late, options={"g": "24"}))
    for cut in (
        copy_span(video, Span(1.0, 3.0), sound=True, most=ROOM),
        encode_span(video, Span(1.0, 3.0), TAKE, sound=True, most=ROOM),
    ):
        assert seconds_in(seen(cut).colours)[:2] == [1, 2]
    turned = str(write(tmp_path / "turned.mp4", images, turn=90))
    cut = encode_span(turned, Span(0.0, 1.0), TAKE, sound=True, most=ROOM)
    assert cut is not None
    import io

    import av

    with av.open(io.BytesIO(cut.mp4)) as container:
        stream = container.streams.video[0]
        assert (stream.width, stream.height) == (72, 96)


def test_what_is_no_video_is_a_bad_row(tmp_path: Path) -> None:
    (tmp_path / "x.mp4").write_bytes(b"no video")
    with pytest.raises(BadRow):
        copy_span(str(tmp_path / "x.mp4"), Span(0.0, 1.0), sound=True, most=ROOM)
    with pytest.raises(BadRow):
        encode_span(str(tmp_path / "x.mp4"), Span(0.0, 1.0), TAKE, sound=True, most=ROOM)
