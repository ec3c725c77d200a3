"""`look` of a long video in windows: detections across a border are as without windows."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import av
import cv2
import numpy as np
import pytest

from actors.part import RunContext
from actors.stages.look import Look, Objects
from mustsee.files import schemas
from mustsee.files.store import Store, identity
from mustsee.media.objects import AgreeingDetectors, Detection, ObjectRules
from mustsee.media.onscreen import TextRules
from mustsee.records import Video
from tests.support.parts import backwards
from tests.support.sample_videos import B_FRAMES, FPS, cuts, damaged, scene, write

WHOLE = 1000.0  # seconds of a window that contains any of these videos


def seen(part: Look, path: Path, **known: Any) -> tuple[Video, Counter[str]]:
    """The row, and the counters, which are equal if its windows are processed in reverse order."""
    counted = Counter[str]()
    run = RunContext(
        store=Store("unused"),
        llm=lambda config: pytest.fail("no model is needed"),
        count=lambda name, n: counted.update({name: n}),
    )
    row = Video(video_id="v", uri=str(path), **known)
    alone: Any = part.open(run)(row)
    once = Counter(counted)
    if part.window == WHOLE:
        return alone, once
    counted.clear()
    others: Any = part.open(replace(run, pieces=backwards))(row)
    one, two = (schemas.table([found], Video) for found in (alone, others))
    assert (two, counted) == (one, once)
    return alone, once


@pytest.fixture(scope="module")
def eventful(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Cuts, some of them close to each other, a slow dissolve, and a fade with 13 s of black."""
    shots = cuts([61, 40, 97, 10, 30, 155, 24])
    end = shots[-1].astype(float)
    blends = [(end * (1 - s) + scene(8) * s).astype(np.uint8) for s in np.linspace(0, 1, 36)]
    fade = [(scene(8) * s).astype(np.uint8) for s in np.linspace(1, 0, 24)]
    black = [np.zeros_like(shots[0])] * round(13 * FPS)
    rise = [(scene(9) * s).astype(np.uint8) for s in np.linspace(0, 1, 24)]
    rest = [scene(9)] * 30 + cuts([12, 70, 200])
    path = tmp_path_factory.mktemp("windows") / "eventful.mp4"
    return write(
        path, [*shots, *blends, *[scene(8)] * 50, *fade, *black, *rise, *rest], options=B_FRAMES
    )


@pytest.fixture(scope="module")
def whole(eventful: Path) -> Video:
    """The row from one window."""
    return seen(Look(window=WHOLE), eventful)[0]


@pytest.mark.parametrize("window", [2.2, 5.0, 13.0])
def test_detections_do_not_depend_on_the_windows(
    eventful: Path, whole: Video, window: float
) -> None:
    """Nor does the one cut in a black span over several of them."""
    part, _ = seen(Look(window=window), eventful)
    assert len(whole.shots or ()) >= 11
    assert part.shots == whole.shots
    assert part.frames == whole.frames
    keyframes = part.keyframes or ()
    assert {k.shot for k in keyframes} == {k.shot for k in whole.keyframes or ()}
    assert list(keyframes) == sorted(keyframes, key=lambda k: k.time)
    black = [f.time for f in whole.frames or () if f.brightness < 0.02]
    inside = [s.start for s in part.shots or () if black[0] < s.start < black[-1]]
    assert inside == pytest.approx([(black[0] + black[-1]) / 2], abs=1.0)


def test_a_clip_is_processed_in_windows_as_in_one(eventful: Path) -> None:
    limits = {"start": 7.3, "end": 31.9, "duration": 24.6}
    whole, _ = seen(Look(window=WHOLE), eventful, **limits)
    part, _ = seen(Look(window=6.0), eventful, **limits)
    assert part.shots == whole.shots
    assert part.frames == whole.frames


def test_keyframes_of_all_windows_are_bounded_together(eventful: Path) -> None:
    few = replace(Look().keyframes, every=0.5, most=8)
    part, _ = seen(Look(window=5.0, keyframes=few), eventful)
    times = [k.time for k in part.keyframes or ()]
    assert len(times) == 8
    end = (part.shots or ())[-1].end
    assert np.diff([0, *times, end]).max() <= 3 * end / 8


def test_text_across_a_border_is_one_line(tmp_path: Path) -> None:
    """It appears shortly before one border and disappears shortly after another."""
    plain = np.full((240, 320, 3), 60, np.uint8)
    card = cv2.putText(
        plain.copy(), "MARKET SQUARE", (20, 150), cv2.FONT_HERSHEY_SIMPLEX, 0.8, (255,) * 3, 2
    )
    images = [card if 36 <= n < 124 else plain for n in range(160)]  # 4 frames a second
    path = write(tmp_path / "line.mp4", images, fps=4)
    whole, _ = seen(Look(texts=TextRules(), window=WHOLE), path)
    part, _ = seen(Look(texts=TextRules(), window=10.0), path)
    line = (part.texts or ())[0]
    assert line.text == "MARKET SQUARE"
    assert line.time == pytest.approx(9.0, abs=1.01)
    assert line.end == pytest.approx(31.0, abs=1.01)
    assert part.texts == tuple(replace(t, score=line.score) for t in whole.texts or ())


def test_text_after_a_line_across_a_border_is_another_line(tmp_path: Path) -> None:
    plain = np.full((240, 320, 3), 60, np.uint8)
    one, two = (
        cv2.putText(plain.copy(), t, (20, 150), cv2.FONT_HERSHEY_SIMPLEX, 0.8, (255,) * 3, 2)
        for t in ("MARKET SQUARE", "HARBOUR VIEW")
    )
    path = write(tmp_path / "lines.mp4", [one] * 40 + [two] * 40, fps=4)
    part, _ = seen(Look(texts=TextRules(), window=10.0), path)
    assert [t.text for t in part.texts or ()] == ["MARKET SQUARE", "HARBOUR VIEW"]


def test_an_object_across_a_border_is_one(eventful: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def detect(image: Any) -> list[Detection]:
        return [Detection(name="dog", score=0.9, x=0.1, y=0.1, width=0.5, height=0.5)]

    detectors = AgreeingDetectors(detect, detect, ObjectRules())
    monkeypatch.setattr(Objects, "find_missing", lambda self: None)
    monkeypatch.setattr(Objects, "load", lambda self: detectors)
    whole, _ = seen(Look(objects=Objects(), window=WHOLE), eventful)
    part, _ = seen(Look(objects=Objects(), window=8.5), eventful)
    assert [thing.name for thing in part.objects or ()] == ["dog"]
    assert part.objects == whole.objects


def test_broken_packets_are_counted_once(tmp_path: Path) -> None:
    good = write(tmp_path / "good.mp4", cuts([480]), codec="mpeg4", options={"g": "12"})

    def spoil(data: bytearray) -> None:
        for share in (0.3, 0.49, 0.5, 0.51, 0.7, 0.85):
            middle = data.index(b"mdat") + round(len(data) * share)
            data[middle : middle + 3000] = bytes(3000)

    bad = damaged(good, tmp_path / "bad.mp4", spoil)
    _, whole = seen(Look(window=WHOLE), bad)
    _, part = seen(Look(window=5.0), bad)
    _, claimed = seen(Look(window=5.0), bad, duration=60.0)
    assert whole["look.broken_packets"] > 0
    assert part == claimed == whole


def test_a_file_without_seeking_is_one_window(tmp_path: Path) -> None:
    path = tmp_path / "bare.h264"
    with av.open(str(path), "w", format="h264") as out:
        stream = out.add_stream("libx264", rate=FPS, options={"preset": "ultrafast"})
        stream.height, stream.width, stream.pix_fmt = 120, 160, "yuv420p"
        for image in cuts([100, 100, 100]):
            out.mux(stream.encode(av.VideoFrame.from_ndarray(image, format="rgb24")))
        out.mux(stream.encode(None))
    whole, _ = seen(Look(window=WHOLE), path)
    assert len(whole.shots or ()) == 3
    part, _ = seen(Look(window=4.0), path)
    assert part == whole


def test_a_header_with_too_long_a_duration_loses_nothing(eventful: Path, whole: Video) -> None:
    part, _ = seen(Look(window=10.0), eventful, duration=90.0)
    assert (part.shots, part.frames) == (whole.shots, whole.frames)


def test_a_window_does_not_depend_on_the_address_of_the_video(
    tmp_path: Path, eventful: Path
) -> None:
    part = Look(window=10.0)
    (tmp_path / "copy.mp4").write_bytes(eventful.read_bytes())
    rows = [Video(video_id="v", uri=str(p), digest="d") for p in (eventful, tmp_path / "copy.mp4")]
    one, two = ([identity(w) for w in part.windows(row)] for row in rows)
    assert one == two
    assert len({str(i) for i in one}) == len(one) > 3
