"""Synthetic videos follow their plan, with frames and sound in time."""

import json
import wave
from fractions import Fraction
from itertools import pairwise

import av
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mustsee.errors import BadRow
from mustsee.media.files import open_container
from mustsee.media.video import open_video
from mustsee.records import Span
from mustsee.synth import encoding
from mustsee.synth.make import CodingSettings, synthesise
from mustsee.synth.plan import (
    InsertedProbe,
    Insertion,
    InsertionPlan,
    PositionRule,
    plan,
    positions,
)
from tests.support.material import material

FAST = {"preset": "ultrafast", "quality": 28, "threads": 1}
VIDEO = "video/vidstack+files/agent327_hls360p_remux.mp4"


@given(
    st.integers(0, 5),
    st.floats(0, 50),
    st.floats(200, 3600),
    st.floats(0, 20),
    st.floats(0, 15),
    st.integers(0, 1000),
)
def test_positions_keep_gap_and_margin(count, start, length, gap, margin, seed) -> None:
    spread = PositionRule(gap=gap, margin=margin)
    times = positions(count, start, start + length, spread, str(seed))
    assert times == positions(count, start, start + length, spread, str(seed))
    assert len(times) == count
    assert all(start + margin <= t <= start + length - margin + 1e-6 for t in times)
    assert all(b - a >= gap - 1e-6 for a, b in pairwise(times))


def test_positions_are_uniform() -> None:
    single = [positions(1, 0, 100, PositionRule(margin=10), f"{i}")[0] for i in range(2000)]
    counts, _ = np.histogram(single, bins=8, range=(10, 90))
    assert abs(counts - 250).max() < 70  # 4.7 standard deviations
    near = PositionRule(gap=5, margin=0, near_cut=1)
    shots = [Span(0, 30), Span(30, 60), Span(60, 100)]
    cuts = [t for i in range(300) for t in positions(2, 0, 100, near, f"{i}", shots)]
    assert all(min(abs(t - c) for c in (0, 30, 60, 100)) <= 1 for t in cuts)
    shares = np.histogram(cuts, bins=[0, 15, 45, 80, 100])[0] / len(cuts)
    assert abs(shares - np.array([1, 2, 2, 1]) / 6).max() < 0.08


@pytest.mark.parametrize(
    ("count", "spread", "shots"),
    [
        (9, PositionRule(gap=20), ()),
        (2, PositionRule(near_cut=1), ()),
        (3, PositionRule(near_cut=1, gap=30), (Span(0, 50), Span(50, 100))),
    ],
)
def test_a_background_without_room_is_refused(count, spread, shots) -> None:
    with pytest.raises(ValueError, match=r"near_cut|no room"):
        positions(count, 0, 100, spread, "s", shots)


@given(
    st.lists(st.tuples(st.floats(0, 100), st.floats(0.5, 20)), max_size=6).map(sorted),
)
def test_placements_add_the_probes_before_them(pairs) -> None:
    plan = InsertionPlan(
        background="b",
        end=100,
        insertions=tuple(Insertion(at=t, probe=InsertedProbe(uri="p", end=n)) for t, n in pairs),
    )
    spans = plan.placements()
    assert all(b.start >= a.end - 1e-9 for a, b in pairwise(spans))
    assert plan.seconds == pytest.approx(100 + sum(s.seconds for s in spans))
    for number, (span, (at, length)) in enumerate(zip(spans, pairs, strict=True)):
        assert span.seconds == pytest.approx(length)
        assert span.start == pytest.approx(at + sum(n for _, n in pairs[:number]))


def test_a_plan_with_unordered_or_outside_insertions_is_refused() -> None:
    probe = InsertedProbe(uri="p", end=1)
    for times in ([5, 3], [11], [-1]):
        with pytest.raises(ValueError, match="in order and within"):
            InsertionPlan(
                background="b",
                end=10,
                insertions=tuple(Insertion(at=t, probe=probe) for t in times),
            )


@given(st.binary(max_size=60))
def test_parsed_parameter_sets_survive_writing(data) -> None:
    try:
        parameters = encoding.parse(b"\x01" + data)
    except ValueError:
        return
    assert encoding.parse(parameters.box()).sps == parameters.sps


def test_parameter_sets_of_two_streams_are_merged() -> None:
    shapes = [
        encoding.CodedShape(width=64, height=48, rate=Fraction(25), tick=Fraction(1, 25), sps=n)
        for n in (0, 7)
    ]
    one, two = (encoding.H264Encoder(shape).parameters() for shape in shapes)
    assert one.ids() == {0}
    assert two.ids() == {7}
    both = encoding.parse(encoding.merge_parameters(one, two).box())
    assert both.ids() == {0, 7}
    assert both.high == one.high
    with pytest.raises(ValueError, match="same parameter set id"):
        encoding.merge_parameters(one, one)


def write_beeps(path, *, seconds: int, rate: int = 25, sound_rate: int = 22_050, level=0.5):
    """Write a video in which each second begins with white frames and a short tone."""
    with av.open(str(path), "w", format="mp4") as out:
        video = out.add_stream("libx264", rate=rate, options={"preset": "ultrafast", "g": "50"})
        video.width, video.height, video.pix_fmt = 96, 64, "yuv420p"
        sound = out.add_stream("aac", rate=sound_rate, layout="mono")
        for number in range(seconds * rate):
            shade = 235 if number % rate < 2 else 40 + number % 60
            frame = av.VideoFrame.from_ndarray(np.full((64, 96), shade, np.uint8), format="gray")
            out.mux(video.encode(frame.reformat(format="yuv420p")))
        times = np.arange(seconds * sound_rate) / sound_rate
        wave_ = np.where(times % 1 < 0.06, level * np.sin(times * 2 * np.pi * 800), 0)
        for at in range(0, len(times), 1024):
            block = wave_[None, at : at + 1024].astype(np.float32)
            frame = av.AudioFrame.from_ndarray(block, format="fltp", layout="mono")
            frame.sample_rate, frame.pts = sound_rate, at
            out.mux(sound.encode(frame))
        out.mux(video.encode(None))
        out.mux(sound.encode(None))


def find_flashes_and_tones(path):
    """Return the times at which frames turn white, and at which tones begin."""
    with open_video(str(path)) as video:
        shades = [(p.time, p.luma().mean()) for p in video.frames()]
    flashes = [b[0] for a, b in pairwise([(0, 0), *shades]) if b[1] > 180 >= a[1]]
    with open_container(str(path)) as container:
        rate = container.streams.audio[0].rate
        blocks = []
        for frame in container.decode(audio=0):
            first = round(float(frame.pts * frame.time_base) * rate)
            samples = frame.to_ndarray()[0]
            blocks.append((first, samples))
    sound = np.zeros(max(f + len(s) for f, s in blocks) + 1)
    for first, samples in blocks:
        sound[max(first, 0) : first + len(samples)] = samples[max(0, -first) :]
    loud = np.flatnonzero(abs(sound) > 0.1) / rate
    return flashes, [b for a, b in pairwise([-1, *loud]) if b - a > 0.3]


@pytest.mark.parametrize("copy", [True, False])
def test_sound_and_frames_stay_in_time(tmp_path, copy) -> None:
    write_beeps(tmp_path / "long.mp4", seconds=40)
    write_beeps(tmp_path / "probe.mp4", seconds=5, rate=30, sound_rate=48_000)
    probe = InsertedProbe(uri=str(tmp_path / "probe.mp4"), start=0, end=2.8)
    insertions = tuple(Insertion(at=t, probe=probe) for t in (7.37, 19.72, 30.5))
    planned = InsertionPlan(background=str(tmp_path / "long.mp4"), end=40, insertions=insertions)
    video = synthesise(planned, str(tmp_path / "out.mp4"), CodingSettings(copy=copy, **FAST))
    assert video.mode == ("copy" if copy else "code"), video.why
    flashes, tones = find_flashes_and_tones(tmp_path / "out.mp4")
    assert len(flashes) >= 46
    for flash in flashes:
        assert min(abs(flash - tone) for tone in tones) < 0.045, (flash, tones)
    for placed in video.placed:  # the probe's own flashes are on its own seconds
        inside = [f for f in flashes if placed.start - 0.01 <= f < placed.end - 0.01]
        assert inside == pytest.approx([placed.start + n for n in range(3)], abs=0.045)


def fingerprint(frame, ratio=None):
    """The 16 x 16 luma of a frame without the black around it, as a unit vector."""
    luma = frame.luma().astype(np.float32)
    if ratio is not None:
        height, width = luma.shape
        wide, high = min(width, height * ratio), min(height, width / ratio)
        top, left = round((height - high) / 2), round((width - wide) / 2)
        luma = luma[top : top + round(high), left : left + round(wide)]
    import cv2

    tiny = cv2.resize(luma, (16, 16), interpolation=cv2.INTER_AREA).ravel()
    tiny -= tiny.mean()
    return tiny / (np.linalg.norm(tiny) + 1e-3)


def ratio_of(path):
    with open_video(path) as video:
        file_facts = video.facts()
    return file_facts.width / file_facts.height


def check_probe(path, placed) -> None:
    """Assert that the probe is shown from its start to its end, and neither before nor after."""
    step = 0.2
    ratio = ratio_of(placed.uri)
    with open_video(placed.uri) as video:
        length = placed.end - placed.start
        source = [
            (p.time - placed.from_start, fingerprint(p))
            for p in video.frames(placed.from_start, placed.from_start + length)
        ]
    with open_video(path) as video:
        shown = [
            (p.time - placed.start, fingerprint(p, ratio))
            for p in video.frames(max(0, placed.start - step), placed.end + step)
        ]
    similarity = {
        time: max(float(a @ b) for at, b in source if abs(at - min(max(time, 0), length)) < 0.1)
        for time, a in shown
    }
    inside = [s for t, s in similarity.items() if 0 <= round(t, 4) < length - 1e-4]
    outside = [s for t, s in similarity.items() if round(t, 4) < 0 or t > length - 1e-4]
    assert min(inside) > 0.95
    assert max(outside, default=0) < 0.9


PROBES = [
    ("video/OpenGVLab+Ask-Anything/example/yoga.mp4", 0, 4),
    ("video/modelscope+data-juicer/tests/ops/data/video2.mp4", 3.2, 6.1),
    ("video/act-rules+act-rules.github.io/test-assets/rabbit-video/video.mp4", 1, 4),
    ("video/samdutton+simpl/av1/video/vp9_562.webm", 0, 2),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("background", "end", "options", "mode"),
    [
        (VIDEO, 60, {}, "copy"),
        (VIDEO, 40, {"height": 180}, "code"),
        ("video/Zulko+moviepy/media/chaplin.mp4", 9.6, {}, "copy"),
        ("video/intel-iot-devkit+sample-videos/bottle-detection.mp4", 30, {}, "copy"),
        ("video/samdutton+simpl/video/video/small.webm", 20, {"height": 136}, "code"),
    ],
)
def test_probes_are_at_their_places_in_real_videos(
    tmp_path, background, end, options, mode
) -> None:
    probes = [InsertedProbe(uri=str(material(uri)), start=a, end=b) for uri, a, b in PROBES]
    probes = probes if end > 35 else probes[1:3]
    planned = plan(
        str(material(background)), 0, end, probes, spread=PositionRule(gap=2, margin=1.3), seed=5
    )
    path = str(tmp_path / "out.mp4")
    video = synthesise(planned, path, CodingSettings(**FAST, **options))
    assert video.mode == mode, video.why
    assert video.duration == pytest.approx(planned.seconds, abs=(len(probes) + 1) * 0.5 / video.fps)
    step = 1 / video.fps
    with open_container(path) as container:
        ends = [float(s.duration * s.time_base) for s in container.streams]
        count = sum(1 for _ in container.decode(video=0))
    assert count == video.copied + video.coded
    assert ends == pytest.approx([video.duration] * len(ends), abs=step)
    assert len(ends) == 2
    for span, placed in zip(planned.placements(), video.placed, strict=True):
        assert placed.start == pytest.approx(span.start, abs=len(probes) * step)
        check_probe(path, placed)
    report = json.loads((tmp_path / "out.mp4.json").read_text())
    assert report["plan"]["insertions"][0]["at"] == planned.insertions[0].at
    assert len(report["made"]["placed"]) == len(probes)


def test_the_same_plan_gives_the_same_bytes(tmp_path) -> None:
    probes = [InsertedProbe(uri=str(material(PROBES[0][0])), end=1)]
    planned = plan(str(material(VIDEO)), 0, 25, probes, seed=1)
    for name in ("a", "b"):
        synthesise(planned, str(tmp_path / name), CodingSettings(**FAST))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_missing_or_short_files_are_bad_rows(tmp_path) -> None:
    with wave.open(str(tmp_path / "sound.wav"), "wb") as file:
        file.setparams((1, 2, 8000, 8000, "NONE", ""))
        file.writeframes(bytes(16_000))
    video_ = str(material(VIDEO))
    for planned in (
        InsertionPlan(background=video_, end=10_000),
        InsertionPlan(background=str(tmp_path / "none.mp4"), end=3),
        InsertionPlan(background=str(tmp_path / "sound.wav"), end=0.5),
        InsertionPlan(
            background=video_,
            end=20,
            insertions=(
                Insertion(at=3, probe=InsertedProbe(uri=str(material(PROBES[0][0])), end=60)),
            ),
        ),
    ):
        with pytest.raises(BadRow):
            synthesise(planned, str(tmp_path / "out.mp4"))
    assert not list(tmp_path.glob("out*"))
