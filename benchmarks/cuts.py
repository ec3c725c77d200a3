"""Detected cuts against cuts labelled by eye, beside each of PySceneDetect's detectors.

    python -m benchmarks.bench what=cuts what.videos=FOLDER

The videos of FOLDER are matched to the labels by their digest. PySceneDetect's detectors get the
frames as from its own command (BGR, some 256 pixels wide); each runs at its defaults, and at the
best of several thresholds and two shortest scenes, chosen on the same labels.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from benchmarks.figures import BenchTable, Cell
from benchmarks.harness import best_cpu_seconds
from benchmarks.look import decode, head
from mustsee.errors import UserError, need
from mustsee.files.folders import SUFFIXES
from mustsee.media.files import content_digest
from mustsee.media.frames import TimedFrame
from mustsee.media.shots import USUAL_FPS, ShotFinder, ShotRules, shots_of
from mustsee.media.video import open_video

MAX_FRAMES_OFF = 1.5  # largest distance of a detected cut from its label, in frames
WIDENED_S = 0.25  # added to both ends of a labelled gradual transition
WIDTH = 256  # longer side of the frames that PySceneDetect's detectors get, in pixels
OURS, GREY = "ours", "ours, colours taken away"
THRESHOLDS = {
    "Content": (15.0, 20.0, 25.0, 30.0, 35.0, 40.0, 45.0),
    "Adaptive": (1.5, 2.0, 2.5, 3.5, 4.0, 5.0),
    "Hash": (0.25, 0.3, 0.4, 0.45, 0.5),
    "Histogram": (0.05, 0.1, 0.15, 0.25, 0.3, 0.4),
    "Threshold": (6.0, 20.0, 30.0),
}
THRESHOLD_NAMES = {
    "Adaptive": "adaptive_threshold"
}  # names in detectors that do not say `threshold`
SCORE_METHODS = {  # the method that computes a frame's score, whatever the threshold
    "Content": "_calculate_frame_score",
    "Adaptive": "_calculate_frame_score",
    "Hash": "hash_frame",
    "Histogram": "calculate_histogram",
}
Key = tuple[str, str]  # detector, settings


@dataclass(frozen=True, kw_only=True)
class Labels:
    """The labels of a video. `half`: "chosen" (for tuning), "shown" (held out), or the time that
    divides the two.
    """

    what: str
    cuts: tuple[float, ...]
    gradual: tuple[tuple[float, float], ...]
    half: str | float

    def is_tuning_time(self, time: float) -> bool:
        """Whether this time is in the half on which thresholds were chosen."""
        return self.half == "chosen" or (isinstance(self.half, float) and time < self.half)


@dataclass
class CutScore:
    """Right, missed and wrong cuts; detected gradual transitions."""

    right: int = 0
    missed: int = 0
    wrong: int = 0
    gradual: int = 0
    places: list[str] = field(default_factory=list[str])

    @property
    def recall(self) -> float:
        return self.right / max(1, self.right + self.missed)

    @property
    def precision(self) -> float:
        return self.right / max(1, self.right + self.wrong)

    @property
    def f1(self) -> float:
        return 2 * self.right / max(1, 2 * self.right + self.missed + self.wrong)


@dataclass(frozen=True, kw_only=True)
class CutsBench:
    """`videos`: a folder, searched recursively. `seconds`: length of the largest video that is
    timed against decoding alone, as the best of `repeats` rounds; 0: no times.
    """

    videos: str = ""
    labels: str = "tests/media/cuts.yaml"
    seconds: float = 40.0
    repeats: int = 3

    def __call__(self) -> BenchTable:
        need("bench what=cuts", "mustsee[bench]", "scenedetect")
        chosen, other, whole = dict[Key, CutScore](), dict[Key, CutScore](), dict[Key, CutScore]()
        labelled = list(self.labelled_videos())
        for path, label in labelled:
            print(f"{label.what} ...", file=sys.stderr)
            fps, detected = cuts_of(path)
            for key, times in detected.items():
                for scores, in_half in (
                    (chosen, label.is_tuning_time),
                    (other, lambda t, tuned=label.is_tuning_time: not tuned(t)),
                    (whole, lambda t: True),
                ):
                    count(scores.setdefault(key, CutScore()), times, label, fps, in_half)
        largest = max(labelled, key=lambda pair: Path(pair[0]).stat().st_size)[0]
        costs = self.costs(largest) if self.seconds > 0 else {}
        gradual = sum(len(label.gradual) for _, label in labelled)
        cuts = sum(len(label.cuts) for _, label in labelled)
        mistakes = whole[OURS, "default"].places
        return BenchTable(
            title=f"{cuts} cuts of {len(labelled)} videos",
            columns=("detector", "settings", "recall", "precision", "F1", "F1, half not chosen on",
                     "right", "missed", "wrong", f"of {gradual} gradual", "CPU of decoding"),
            rows=tuple(rows(whole, other, costs)),
            notes=(
                f"a cut may be off by {MAX_FRAMES_OFF} frames; within a gradual transition "
                "nothing counts",
                "best: the threshold and shortest scene with the highest F1 on these same labels",
                f"CPU on {self.seconds:g} s of {Path(largest).name} (0: not timed), shots only, "
                "theirs by their own reader",
                "ours: " + ("; ".join(mistakes) or "no mistake"),
            ),
        )  # fmt: skip

    def labelled_videos(self) -> Iterator[tuple[str, Labels]]:
        """Yield the labelled videos of the folder. Raises UserError where there are none."""
        entries = yaml.safe_load(Path(self.labels).read_text())
        labels = {entry["video"]: entry for entry in entries}
        paths = Path(self.videos).rglob("*") if self.videos else ()
        files = sorted(p for p in paths if p.suffix[1:].lower() in SUFFIXES)
        videos = {digest: str(p) for p in files if (digest := content_digest(str(p))) in labels}
        if not videos:
            raise UserError(
                f"what.videos={self.videos!r}: no video there is labelled in {self.labels!r}"
            )
        for digest, path in videos.items():
            entry = labels[digest]
            yield (
                path,
                Labels(
                    what=entry["what"],
                    cuts=tuple(map(float, entry["cuts"])),
                    gradual=tuple((float(g[0]), float(g[1])) for g in entry.get("gradual", ())),
                    half=entry["half"],
                ),
            )

    def costs(self, path: str) -> dict[str, float]:
        """Return the CPU of each detector at its defaults, with decoding, over that of decoding."""
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            short = head(path, f"{folder}/head.mkv", self.seconds)
            contest: dict[str, Callable[[], Any]] = {
                "": lambda: decode(short),
                OURS: lambda: shots_of(short),
            }
            for name in THRESHOLDS:
                contest[name] = partial(theirs, short, name)
            best = best_cpu_seconds(contest, self.repeats)
        return {name: seconds / best[""] for name, seconds in best.items()}


def rows(
    whole: dict[Key, CutScore], other: dict[Key, CutScore], costs: dict[str, float]
) -> Iterator[tuple[Cell, ...]]:
    """Yield a row for each detector at its defaults and at its best."""
    for name in dict.fromkeys(name for name, _ in whole):
        settings = {s: t for (n, s), t in whole.items() if n == name}
        best = max(settings, key=lambda s: settings[s].f1)
        for what in dict.fromkeys(("default", best)):
            tally = settings[what]
            label = what if what == "default" else f"best: {what}"
            yield (name, label, tally.recall, tally.precision, tally.f1, other[name, what].f1,
                   tally.right, tally.missed, tally.wrong, tally.gradual,
                   costs.get(name) if what == "default" else None)  # fmt: skip


def count(
    score: CutScore,
    times: Sequence[float],
    label: Labels,
    fps: float,
    in_half: Callable[[float], bool],
) -> None:
    """Add the cuts detected in one half of a video to a score."""
    left = [cut for cut in label.cuts if in_half(cut)]
    spans = [(a - WIDENED_S, b + WIDENED_S) for a, b in label.gradual if in_half(a)]
    for time in filter(in_half, times):
        near = [cut for cut in left if abs(cut - time) <= MAX_FRAMES_OFF / fps]
        if near:
            left.remove(min(near, key=lambda cut: abs(cut - time)))
            score.right += 1
        elif not any(a <= time <= b for a, b in spans):
            score.wrong += 1
            score.places.append(f"wrong at {time:.2f} s of {label.what}")
    score.missed += len(left)
    score.places += [f"missed {cut:.2f} s of {label.what}" for cut in left]
    score.gradual += sum(any(a <= t <= b for t in times) for a, b in spans)


def cuts_of(path: str) -> tuple[float, dict[Key, list[float]]]:
    """Decode a video once; return its frame rate and the cuts that each detector finds."""
    from scenedetect.common import FrameTimecode

    with open_video(path) as video:
        fps = video.fps or USUAL_FPS
        ours, grey = ShotFinder(ShotRules()), ShotFinder(ShotRules())
        peers = detectors()
        cuts: dict[Key, list[float]] = {key: [] for key in peers}
        times: list[float] = []
        end = 0.0
        rate = Fraction(fps).limit_denominator(100_000)
        for frame in video.frames():
            ours.see(frame)
            grey.see(TimedFrame(frame.time, frame.decoded.reformat(format="gray")))
            image, stamp = bgr(frame), FrameTimecode(len(times), rate)
            end = frame.end(fps)
            times.append(frame.time)
            for key, detector in peers.items():
                cuts[key] += [times[c.frame_num] for c in detector.process_frame(stamp, image)]
        for name, finder in ((OURS, ours), (GREY, grey)):
            cuts[name, "default"] = [shot.start for shot in finder.shots(end)[1:]]
    first = (OURS, GREY)
    return fps, dict(sorted(cuts.items(), key=lambda pair: pair[0][0] not in first))


def detectors() -> dict[Key, Any]:
    """Return PySceneDetect's detectors at every setting. Detectors of one kind share the score of
    a frame.
    """
    import scenedetect

    opened: dict[Key, Any] = {}
    for name, thresholds in THRESHOLDS.items():
        cls = getattr(scenedetect, f"{name}Detector")
        if name in SCORE_METHODS:
            score = cached_by_frame(getattr(cls(), SCORE_METHODS[name]))
            cls = type(
                name, (cls,), {SCORE_METHODS[name]: lambda self, *a, s=score, **k: s(*a, **k)}
            )
        threshold = inspect.signature(cls).parameters[THRESHOLD_NAMES.get(name, "threshold")]
        opened[name, "default"] = cls()
        for value in (threshold.default, *thresholds):
            for short in (None, 0.25):
                scene = {} if short is None else {"min_scene_len": short}
                label = f"{value:g}" + ("" if short is None else f", {short} s")
                opened[name, label] = cls(**{threshold.name: value}, **scene)
    return opened


def cached_by_frame(compute: Callable[..., Any]) -> Callable[..., Any]:
    """Return `compute` with its last result kept as long as the image among its arguments is the
    same object.
    """
    last: list[Any] = [None, None]

    def compute_once(*args: Any, **kwargs: Any) -> Any:
        image = next(x for x in (*args, *kwargs.values()) if hasattr(x, "shape"))
        if image is not last[0]:
            last[:] = image, compute(*args, **kwargs)
        return last[1]

    return compute_once


def bgr(frame: TimedFrame) -> Any:
    """Return the frame as PySceneDetect's command passes it to its detectors."""
    import cv2

    image: Any = frame.decoded.to_ndarray(format="bgr24")
    height, width = image.shape[:2]
    shrink = max(1.0, max(width, height) / WIDTH)
    size = round(width / shrink), round(height / shrink)
    return cv2.resize(image, size, interpolation=cv2.INTER_LINEAR)


def theirs(path: str, name: str) -> None:
    """Run PySceneDetect over a file, with one detector at its defaults."""
    import scenedetect

    manager = scenedetect.SceneManager()
    manager.add_detector(getattr(scenedetect, f"{name}Detector")())
    manager.detect_scenes(scenedetect.open_video(path, backend="pyav"))
