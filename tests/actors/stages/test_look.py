"""Probe and look on drawn videos, on the sample videos, and on every real clip."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from actors.part import RunContext
from actors.stages.look import Faces, Look
from actors.stages.probe import Probe
from mustsee.errors import BadRow
from mustsee.files import schemas
from mustsee.files.store import Store
from mustsee.media.frames import TimedFrame, crop_jpeg, decode
from mustsee.media.keyframes import KeyframePicker, KeyframeRules
from mustsee.media.onscreen import TextRules
from mustsee.media.shots import ShotRules
from mustsee.media.video import open_video
from mustsee.recipes.neptune.video_filters import Static, TalkingHead
from mustsee.records import Line, Video
from tests.support.material import ROOT, material
from tests.support.sample_videos import B_FRAMES, FPS, cuts, damaged, scene, write

SAMPLES = Path(__file__).parents[3] / "examples/videos"
CLIPS = sorted(p for p in (ROOT / "data/video").rglob("*.*") if p.is_file())
LENGTHS = (30, 24, 40, 18, 300, 33)


class Run:
    """A run whose counters can be read."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.context = RunContext(
            store=Store("unused"),
            llm=lambda config: pytest.fail("no model is needed"),
            count=lambda name, n: self.counts.update({name: n}),
        )

    def __call__(self, part: Any, video: Video) -> Video:
        row = part.open(self.context)(video)
        for name in part.writes:  # values fit the columns' types
            schemas.column(name, [getattr(row, name)])
        return row


def row(path: Path, **known: Any) -> Video:
    return Video(video_id="v", uri=str(path), **known)


@pytest.fixture
def run() -> Run:
    return Run()


@pytest.fixture(scope="session")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("videos") / "shown.mp4"
    return write(path, cuts(LENGTHS), options=B_FRAMES, tone=1.0)


def test_probe_writes_the_facts_of_a_file(run: Run, shown: Path) -> None:
    result = run(Probe(), row(shown))
    assert (result.width, result.height, result.fps, result.has_audio, result.has_video) == (
        160,
        120,
        24.0,
        True,
        True,
    )
    assert result.duration == pytest.approx(sum(LENGTHS) / FPS, abs=0.05)
    assert result.digest is not None
    assert len(result.digest) == 64
    assert result.drop is None


@pytest.mark.parametrize(
    ("limits", "clip", "reason"),
    [
        ({"min_seconds": 20}, {}, "too short"),
        ({"max_seconds": 10}, {}, "too long"),
        ({"min_seconds": 5, "max_seconds": 60}, {}, None),
        ({"max_seconds": 10}, {"start": 2.0, "end": 8.0}, None),
        ({"min_seconds": 10}, {"start": 12.0}, "too short"),
    ],
)
def test_probe_drops_by_length(
    run: Run, shown: Path, limits: dict[str, Any], clip: dict[str, Any], reason: str | None
) -> None:
    result = run(Probe(**limits), row(shown, **clip))
    assert result.drop is None if reason is None else reason in str(result.drop)
    video = run(Probe(), row(shown)).duration or 0.0
    assert result.duration == pytest.approx(clip.get("end", video) - clip.get("start", 0.0))


def test_probe_names_unusable_files(run: Run, shown: Path, tmp_path: Path) -> None:
    half = damaged(shown, tmp_path / "half.mp4", lambda d: d.__delitem__(slice(len(d) // 2, None)))
    with pytest.raises(BadRow, match=r"half\.mp4"):
        run(Probe(), row(half))
    with pytest.raises(BadRow, match=r"none\.mp4"):
        run(Probe(), row(tmp_path / "none.mp4"))
    with pytest.raises(BadRow, match="begins at 99"):
        run(Probe(), row(shown, start=99.0, end=100.0))
    import av

    song = tmp_path / "song.wav"
    with av.open(str(song), "w") as out:
        stream = out.add_stream("pcm_s16le", rate=8000, layout="mono")
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 8000), np.int16), "s16", "mono")
        frame.sample_rate = 8000
        out.mux(stream.encode(frame))
    with pytest.raises(BadRow, match=r"no video stream.*song\.wav"):
        run(Probe(), row(song))


def test_look_finds_every_shot(run: Run, shown: Path) -> None:
    result = run(Look(), row(shown))
    assert result.shots is not None
    assert result.keyframes is not None
    assert result.frames is not None
    edges = np.cumsum([0, *LENGTHS]) / FPS
    assert [s.start for s in result.shots] == pytest.approx(edges[:-1].tolist(), abs=1 / FPS)
    assert result.shots[-1].end == pytest.approx(edges[-1], abs=1 / FPS)
    # 300 frames are 12.5 s: a keyframe at least every 4 s, and more as the frames change
    assert {k.shot for k in result.keyframes} == {0, 1, 2, 3, 4, 5}
    assert [k.shot for k in result.keyframes].count(4) in range(4, 14)
    steady = run(Look(keyframes=KeyframeRules(change=None)), row(shown)).keyframes or ()
    assert [k.shot for k in steady] == [0, 1, 2, 3, 4, 4, 4, 5]
    for keyframe in result.keyframes:
        shot = result.shots[keyframe.shot]
        assert shot.start <= keyframe.time < shot.end
    middle = (result.shots[0].start + result.shots[0].end) / 2
    assert result.keyframes[0].time == pytest.approx(middle, abs=0.3)
    image: Any = cv2.imdecode(np.frombuffer(result.keyframes[1].jpeg, np.uint8), 1)
    drawn = scene(2, round(result.keyframes[1].time * FPS) - 30)[..., ::-1]
    assert image.shape == (120, 160, 3)
    assert np.abs(image.astype(int) - drawn).mean() < 25
    assert [f.time for f in result.frames] == pytest.approx(range(19), abs=1 / FPS)
    assert result.texts is None
    assert {f.faces for f in result.frames} == {None}
    assert run.counts == {}


def test_look_is_the_same_twice_and_with_more_threads(run: Run, shown: Path) -> None:
    once = run(Look(), row(shown))
    assert run(Look(), row(shown)) == once
    assert run(Look(threads=2), row(shown)) == once


def test_detections_of_a_clip_have_the_videos_times(run: Run, shown: Path) -> None:
    whole, clip = run(Look(), row(shown)), run(Look(), row(shown, start=2.5, end=5.5))
    assert clip.shots is not None
    assert whole.shots is not None
    cut = whole.shots[3].start
    assert [(s.start, s.end) for s in clip.shots] == pytest.approx(
        np.array([(2.5, cut), (cut, whole.shots[4].start), (whole.shots[4].start, 5.5)])
    )
    assert all(2.5 <= k.time < 5.5 for k in clip.keyframes or ())
    assert [f.time for f in clip.frames or ()] == pytest.approx([2.5, 3.5, 4.5], abs=1 / FPS)


def test_without_shots_samples_are_reached_by_seeking(run: Run, shown: Path) -> None:
    result = run(Look(shots=None, sample_every=4.0), row(shown))
    assert result.shots is not None
    assert [(s.start, s.end) for s in result.shots] == [
        (0.0, pytest.approx(sum(LENGTHS) / FPS, abs=0.1))
    ]
    assert [f.time for f in result.frames or ()] == pytest.approx([0, 4, 8, 12, 16], abs=0.5)
    assert {k.shot for k in result.keyframes or ()} == {0}


def test_frames_at_longer_distances_than_keyframes_are_all_kept(shown: Path) -> None:
    with open_video(str(shown)) as watched:
        frame = next(watched.frames()).decoded
    picker = KeyframePicker(KeyframeRules(every=10.0))
    times = [30.0 * number for number in range(60)]
    for time in times:
        picker.see(TimedFrame(time, frame), ())
    picker.finish(1800.0)
    assert [k.time for k in picker.kept] == times


def test_a_changed_frame_has_a_keyframe_of_its_own(run: Run, tmp_path: Path) -> None:
    """A shot whose frames change gradually, within less than `every`."""
    shares = [*[0.0] * 30, *np.linspace(0, 1, 24), *[1.0] * 40]
    a, b = scene(1).astype(float), np.full((120, 160, 3), (20, 20, 200.0))
    images = [(a * (1 - s) + b * s).astype(np.uint8) for s in shares]
    path = write(tmp_path / "becomes.mp4", images)
    rules = ShotRules(dissolve=None, fade_below=None)
    result = run(Look(shots=rules), row(path))
    assert len(result.shots or ()) == 1
    times = [k.time for k in result.keyframes or ()]
    assert min(times) < 30 / FPS
    assert max(times) > 54 / FPS
    still = Look(shots=rules, keyframes=KeyframeRules(change=None))
    assert len(run(still, row(path)).keyframes or ()) == 1


def test_keyframes_are_bounded_and_spread(shown: Path) -> None:
    rules = KeyframeRules(every=0.5, most=8, longest=64, quality=50)
    picker = KeyframePicker(rules)
    with open_video(str(shown)) as watched:
        for frame in watched.frames():
            picker.see(frame, ())
            assert len(picker.kept) <= 8
    picker.finish(frame.time)
    times = [k.time for k in picker.kept]
    assert len(times) == 8
    assert np.diff(times).max() <= 3 * sum(LENGTHS) / FPS / 8
    shape = cv2.imdecode(np.frombuffer(picker.kept[0].jpeg, np.uint8), 1).shape
    assert shape == (48, 64, 3)


def test_few_frames_are_in_memory_however_long_the_shot(shown: Path) -> None:
    with open_video(str(shown)) as watched:
        frame = next(watched.frames()).decoded
    picker = KeyframePicker(KeyframeRules(every=10_000.0))
    for number in range(5000):
        picker.see(TimedFrame(number / 10, frame), ())
        assert len(picker._candidates) <= 16
    picker.finish(500.0)
    assert [k.time for k in picker.kept] == [pytest.approx(250, abs=50)]


def test_broken_packets_are_counted(run: Run, tmp_path: Path) -> None:
    good = write(tmp_path / "good.mp4", cuts([60]), codec="mpeg4", options={"g": "12"})

    def spoil(data: bytearray) -> None:
        middle = data.index(b"mdat") + len(data) // 3
        data[middle : middle + 4000] = bytes(4000)

    result = run(Look(), row(damaged(good, tmp_path / "bad.mp4", spoil)))
    assert result.frames
    assert run.counts["look.broken_packets"] > 0
    with pytest.raises(BadRow, match="decoded"):
        run(Look(), row(good, start=50.0))


def test_text_on_screen_is_read(run: Run, tmp_path: Path) -> None:
    card = np.full((240, 427, 3), 255, np.uint8)
    cv2.putText(card, "ADD 300 GRAMS", (30, 80), cv2.FONT_HERSHEY_SIMPLEX, 1.3, (0, 0, 0), 3)
    cv2.putText(card, "OF FLOUR", (60, 170), cv2.FONT_HERSHEY_SIMPLEX, 1.3, (180, 0, 0), 3)
    path = write(tmp_path / "card.mp4", [card[:240, :426]] * 30)
    result = run(Look(texts=TextRules()), row(path))
    assert result.texts is not None
    words = " ".join(t.text for t in result.texts).replace(" ", "")
    assert words == "ADD300GRAMSOFFLOUR"
    assert {(t.time, t.end) for t in result.texts} == {(0.0, 1.0)}
    assert all(0.92 <= t.score <= 1 for t in result.texts)
    assert all(t.at(k.time) for t in result.texts for k in result.keyframes or ())


def test_the_sample_videos_pass_the_filters(run: Run) -> None:
    """The interview is a talking head, the lighthouse a still, and the pancakes are neither."""
    look, reasons = Look(faces=Faces()), {}
    for name in ("interview.mp4", "lighthouse.mkv", "pancakes.mp4"):
        result = run(look, row(SAMPLES / name, end=40.0))
        for frame in result.frames or ():
            for face in frame.faces or ():
                assert 0 <= face.x < face.x + face.width <= 1
                assert 0 <= face.y < face.y + face.height <= 1
        spoken = replace(result, lines=(Line(start=0.0, end=40.0, text="Good evening."),))
        reasons[name] = Static()(result) or TalkingHead()(spoken)
    assert str(reasons["interview.mp4"]).startswith("talking head")
    assert str(reasons["lighthouse.mkv"]).startswith("static")
    assert reasons["pancakes.mp4"] is None


@pytest.mark.parametrize("path", CLIPS, ids=[p.name for p in CLIPS])
def test_every_real_clip_is_processed(run: Run, path: Path) -> None:
    """Three seconds of each, with the default settings."""
    result = run(Look(faces=Faces()), run(Probe(), row(path, end=3.0)))
    assert result.shots
    assert result.shots[0].start == pytest.approx(0.0, abs=0.1)
    assert result.shots[-1].end == pytest.approx(3.0, abs=0.1)
    assert result.keyframes
    assert len(result.frames or ()) == 3
    assert result.width is not None
    assert result.height is not None
    jpeg = result.keyframes[0].jpeg
    image, inside = (decode(x) for x in (jpeg, crop_jpeg(jpeg)))
    assert image is not None
    assert inside is not None
    assert max(inside.shape) <= 516
    assert image.shape[1] / image.shape[0] == pytest.approx(result.width / result.height, rel=0.02)


def test_there_are_real_clips() -> None:
    material("video")
    assert len(CLIPS) >= 24


def test_what_decides_the_result_is_part_of_the_key() -> None:
    from mustsee.files.store import digest

    plain = digest(Look())
    assert digest(Look(threads=8)) == plain
    assert digest(Look(texts=TextRules(), threads=4)) == digest(Look(texts=TextRules()))
    others = (
        Look(sample_every=2.0),
        Look(shots=None),
        Look(faces=Faces()),
        Look(texts=TextRules()),
        Look(keyframes=KeyframeRules(quality=70)),
    )
    assert len({plain, *map(digest, others)}) == 6


@pytest.mark.slow
def test_memory_does_not_grow_with_length() -> None:
    """In new processes; the benchmark measures three hours."""
    from benchmarks.memory import MemoryBench

    figures = MemoryBench(minutes=(1, 5, 15))()
    ratios = [r["to the second"] for r in figures.as_json()["rows"]]
    assert ratios[1] == 1
    assert ratios[2] < 1.1
