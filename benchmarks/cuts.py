"""Cuts found against cuts labelled by eye, beside each of PySceneDetect's detectors.

    python -m benchmarks.bench what=cuts what.videos=FOLDER

Videos are known by their digest: those of FOLDER that `labels` names are looked at, wherever they
lie. PySceneDetect's detectors see the frames as its own command hands them over (BGR, some 256
pixels wide); each runs at its defaults, and at the best of several thresholds and two shortest
scenes, chosen on the same labels.
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
from benchmarks.look import cpu, decode, head
from mustsee.errors import UserError
from mustsee.media.files import SUFFIXES, content_digest
from mustsee.media.pictures import TimedFrame
from mustsee.media.shots import USUAL_FPS, ShotFinder, ShotRules, shots_of
from mustsee.media.video import open_video

MAX_FRAMES_OFF = 1.5  # frames that a cut may be off
WIDENED_S = 0.25  # seconds by which a gradual transition is looked at more widely
WIDTH = 256  # of the pictures that PySceneDetect's detectors see
OURS, GREY = "ours", "ours, colours taken away"
TRIED = {
    "Content": (15.0, 20.0, 25.0, 30.0, 35.0, 40.0, 45.0),
    "Adaptive": (1.5, 2.0, 2.5, 3.5, 4.0, 5.0),
    "Hash": (0.25, 0.3, 0.4, 0.45, 0.5),
    "Histogram": (0.05, 0.1, 0.15, 0.25, 0.3, 0.4),
    "Threshold": (6.0, 20.0, 30.0),
}
KNOB = {"Adaptive": "adaptive_threshold"}  # what their thresholds are called elsewhere
SCORES = {
    "Content": "_calculate_frame_score",
    "Adaptive": "_calculate_frame_score",
    "Hash": "hash_frame",
    "Histogram": "calculate_histogram",
}
Key = tuple[str, str]  # detector, settings


@dataclass(frozen=True, kw_only=True)
class Labels:
    """The labels of a video. `half`: "chosen", "shown", or the time that parts the two."""

    what: str
    cuts: tuple[float, ...]
    gradual: tuple[tuple[float, float], ...]
    half: str | float

    def is_tuning_time(self, time: float) -> bool:
        """Is this time of the half that thresholds were chosen on?"""
        return self.half == "chosen" or (isinstance(self.half, float) and time < self.half)


@dataclass
class CutScore:
    """Right, missed and wrong cuts; gradual transitions found."""

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
    """`videos`: a folder, searched to its depths. `seconds` of the longest video are timed, against
    decoding alone, the best of `repeats` rounds; 0: no times.
    """

    videos: str = ""
    labels: str = "tests/media/cuts.yaml"
    seconds: float = 40.0
    repeats: int = 3

    def __call__(self) -> BenchTable:
        chosen, shown, whole = dict[Key, CutScore](), dict[Key, CutScore](), dict[Key, CutScore]()
        known = list(self.labelled_videos())
        for path, label in known:
            print(f"{label.what} ...", file=sys.stderr)
            fps, found = cuts_of(path)
            for key, times in found.items():
                for tallies, part in (
                    (chosen, label.is_tuning_time),
                    (shown, lambda t, c=label.is_tuning_time: not c(t)),
                    (whole, lambda t: True),
                ):
                    count(tallies.setdefault(key, CutScore()), times, label, fps, part)
        longest = max(known, key=lambda k: Path(k[0]).stat().st_size)[0]
        costs = self.costs(longest) if self.seconds > 0 else {}
        gradual = sum(len(label.gradual) for _, label in known)
        cuts = sum(len(label.cuts) for _, label in known)
        mistakes = whole[OURS, "default"].places
        return BenchTable(
            title=f"{cuts} cuts of {len(known)} videos",
            columns=("detector", "settings", "recall", "precision", "F1", "F1, half not chosen on",
                     "right", "missed", "wrong", f"of {gradual} gradual", "CPU of decoding"),
            rows=tuple(rows(whole, shown, costs)),
            notes=(
                f"a cut may be off by {MAX_FRAMES_OFF} frames; within a gradual transition "
                "nothing counts",
                "best: the threshold and shortest scene with the highest F1 on these same labels",
                f"CPU on {self.seconds:g} s of {Path(longest).name} (0: not timed), shots only, "
                "theirs by their own reader",
                "ours: " + ("; ".join(mistakes) or "no mistake"),
            ),
        )  # fmt: skip

    def labelled_videos(self) -> Iterator[tuple[str, Labels]]:
        """The labelled videos of the folder. Raises UserError where there are none."""
        entries = yaml.safe_load(Path(self.labels).read_text())
        labels = {entry["video"]: entry for entry in entries}
        paths = Path(self.videos).rglob("*") if self.videos else ()
        files = sorted(p for p in paths if p.suffix[1:].lower() in SUFFIXES)
        found = {digest: str(p) for p in files if (digest := content_digest(str(p))) in labels}
        if not found:
            raise UserError(
                f"what.videos={self.videos!r}: a folder with videos that {self.labels!r} labels"
            )
        for digest, path in found.items():
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
        """CPU of each at its defaults, decoding included, as a ratio to decoding alone."""
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            short = head(path, f"{folder}/head.mkv", self.seconds)
            contest: dict[str, Callable[[], Any]] = {
                "": lambda: decode(short),
                OURS: lambda: shots_of(short),
            }
            for name in TRIED:
                contest[name] = partial(theirs, short, name)
            best = dict.fromkeys(contest, float("inf"))
            for _ in range(self.repeats):
                for name, run in contest.items():
                    best[name] = min(best[name], cpu(run))
        return {name: seconds / best[""] for name, seconds in best.items()}


def rows(
    whole: dict[Key, CutScore], shown: dict[Key, CutScore], costs: dict[str, float]
) -> Iterator[tuple[Cell, ...]]:
    """Each detector at its defaults and at its best."""
    for name in dict.fromkeys(name for name, _ in whole):
        settings = {s: t for (n, s), t in whole.items() if n == name}
        best = max(settings, key=lambda s: settings[s].f1)
        for what in dict.fromkeys(("default", best)):
            tally = settings[what]
            label = what if what == "default" else f"best: {what}"
            yield (name, label, tally.recall, tally.precision, tally.f1, shown[name, what].f1,
                   tally.right, tally.missed, tally.wrong, tally.gradual,
                   costs.get(name) if what == "default" else None)  # fmt: skip


def count(
    tally: CutScore,
    times: Sequence[float],
    label: Labels,
    fps: float,
    part: Callable[[float], bool],
) -> None:
    """Add what was found of a part of a video."""
    left = [cut for cut in label.cuts if part(cut)]
    spans = [(a - WIDENED_S, b + WIDENED_S) for a, b in label.gradual if part(a)]
    for time in filter(part, times):
        near = [cut for cut in left if abs(cut - time) <= MAX_FRAMES_OFF / fps]
        if near:
            left.remove(min(near, key=lambda cut: abs(cut - time)))
            tally.right += 1
        elif not any(a <= time <= b for a, b in spans):
            tally.wrong += 1
            tally.places.append(f"wrong at {time:.2f} s of {label.what}")
    tally.missed += len(left)
    tally.places += [f"missed {cut:.2f} s of {label.what}" for cut in left]
    tally.gradual += sum(any(a <= t <= b for t in times) for a, b in spans)


def cuts_of(path: str) -> tuple[float, dict[Key, list[float]]]:
    """The rate of a video, and the cuts that each detector finds in it, decoded once."""
    from scenedetect.common import FrameTimecode

    with open_video(path) as watched:
        fps = watched.fps or USUAL_FPS
        ours, grey = ShotFinder(ShotRules()), ShotFinder(ShotRules())
        peers = detectors()
        found: dict[Key, list[float]] = {key: [] for key in peers}
        times: list[float] = []
        end = 0.0
        rate = Fraction(fps).limit_denominator(100_000)
        for picture in watched.pictures():
            ours.see(picture)
            grey.see(TimedFrame(picture.time, picture.decoded.reformat(format="gray")))
            frame, stamp = bgr(picture), FrameTimecode(len(times), rate)
            end = picture.end(fps)
            times.append(picture.time)
            for key, detector in peers.items():
                cuts = detector.process_frame(stamp, frame)
                found[key] += [times[cut.frame_num] for cut in cuts]
        for name, finder in ((OURS, ours), (GREY, grey)):
            found[name, "default"] = [shot.start for shot in finder.shots(end)[1:]]
    first = (OURS, GREY)
    return fps, dict(sorted(found.items(), key=lambda pair: pair[0][0] not in first))


def detectors() -> dict[Key, Any]:
    """PySceneDetect's detectors at every setting that is tried. What those of a kind compute of a
    frame is computed once.
    """
    import scenedetect

    made: dict[Key, Any] = {}
    for name, tried in TRIED.items():
        cls = getattr(scenedetect, f"{name}Detector")
        if name in SCORES:
            score = cached_by_picture(getattr(cls(), SCORES[name]))
            cls = type(name, (cls,), {SCORES[name]: lambda self, *a, s=score, **k: s(*a, **k)})
        threshold = inspect.signature(cls).parameters[KNOB.get(name, "threshold")]
        made[name, "default"] = cls()
        for value in (threshold.default, *tried):
            for short in (None, 0.25):
                scene = {} if short is None else {"min_scene_len": short}
                label = f"{value:g}" + ("" if short is None else f", {short} s")
                made[name, label] = cls(**{threshold.name: value}, **scene)
    return made


def cached_by_picture(compute: Callable[..., Any]) -> Callable[..., Any]:
    """The same, computed anew only when the picture among the arguments is another one."""
    last: list[Any] = [None, None]

    def compute_once(*given: Any, **named: Any) -> Any:
        frame = next(x for x in (*given, *named.values()) if hasattr(x, "shape"))
        if frame is not last[0]:
            last[:] = frame, compute(*given, **named)
        return last[1]

    return compute_once


def bgr(picture: TimedFrame) -> Any:
    """The frame as PySceneDetect's command hands it to its detectors."""
    import cv2

    frame: Any = picture.decoded.to_ndarray(format="bgr24")
    height, width = frame.shape[:2]
    shrink = max(1.0, max(width, height) / WIDTH)
    size = round(width / shrink), round(height / shrink)
    return cv2.resize(frame, size, interpolation=cv2.INTER_LINEAR)


def theirs(path: str, name: str) -> None:
    """PySceneDetect over a file, with one detector at its defaults."""
    import scenedetect

    manager = scenedetect.SceneManager()
    manager.add_detector(getattr(scenedetect, f"{name}Detector")())
    manager.detect_scenes(scenedetect.open_video(path, backend="pyav"))
