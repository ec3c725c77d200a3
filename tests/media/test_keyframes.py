"""A keyframe is neither black nor blurred where its shot has a better frame."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np

from actors.stages.look import Look
from mustsee.files.store import Store
from mustsee.media.frames import decode
from mustsee.media.keyframes import EncodedCandidate, KeyframeRules, number_shots, sharpness
from mustsee.records import Keyframe, Span, Video
from tests.support.contract import worker
from tests.support.sample_videos import FPS, scene, write

BLACK = np.zeros((120, 160, 3), np.uint8)


def looked(folder: Path, images: list[np.ndarray]) -> Video:
    path = write(folder / "video.mp4", images)
    row = Video(video_id="v", uri=str(path), digest="d", duration=len(images) / FPS)
    look = Look(shots=None, sample_every=0.25, keyframes=KeyframeRules(change=None))
    (done,) = worker(look, Store(str(folder)))[0](row)
    return done


def grey(keyframe: Keyframe) -> np.ndarray:
    image = decode(keyframe.jpeg)
    assert image is not None
    return cv2.cvtColor(image, cv2.COLOR_BGR2GRAY)


def test_a_blurred_middle_is_passed_over(tmp_path: Path) -> None:
    clear = scene(1)
    blurred = cv2.GaussianBlur(clear, (0, 0), 6)
    images = [clear] * 24 + [blurred] * 36 + [clear] * 24
    (keyframe,) = looked(tmp_path, images).keyframes or ()
    assert not 1.0 <= keyframe.time < 2.5
    assert sharpness(grey(keyframe)) > 4 * sharpness(cv2.cvtColor(blurred, cv2.COLOR_RGB2GRAY))


def test_the_middle_is_kept_among_equals(tmp_path: Path) -> None:
    (keyframe,) = looked(tmp_path, [scene(1)] * 84).keyframes or ()
    assert abs(keyframe.time - 1.75) <= 0.25


def test_a_plain_view_is_not_taken_for_a_blurred_one(tmp_path: Path) -> None:
    plain = np.full((120, 160, 3), (20, 20, 200), np.uint8)
    (keyframe,) = looked(tmp_path, [*[scene(1)] * 12, *[plain] * 60]).keyframes or ()
    assert abs(keyframe.time - 1.5) <= 0.25


def test_a_frame_of_a_black_span_is_passed_over(tmp_path: Path) -> None:
    images = [*[scene(1)] * 20, *[BLACK] * 60]
    keyframes = looked(tmp_path, images).keyframes or ()
    assert keyframes
    assert all(grey(keyframe).max() > 40 for keyframe in keyframes)


def test_a_black_keyframe_stays_where_its_shot_has_no_other() -> None:
    kept = [
        EncodedCandidate(1.0, b"a"),
        EncodedCandidate(3.0, b"b", black=True),
        EncodedCandidate(6.0, b"c", black=True),
    ]
    shots = (Span(0.0, 5.0), Span(5.0, 8.0))
    assert [(k.time, k.shot) for k in number_shots(kept, shots)] == [(1.0, 0), (6.0, 1)]
    assert len(number_shots(kept, ())) == 1
