"""`look`: one decoding pass over a film that feeds every detector.

Shots and descriptors see a thumbnail of every frame, picked out of the decoder's planes; keyframes
and, where asked for, faces and on-screen text see the few frames that are kept.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from actors.part import Opened, RunContext, hardware
from mustsee.errors import BadRow, UserError
from mustsee.media.descriptors import brightness, describe, motion
from mustsee.media.keyframes import Kept, KeyframePicker, KeyframeRules, numbered
from mustsee.media.lettering import reader
from mustsee.media.pictures import Picture, Thumbnail, Thumbnails
from mustsee.media.shots import USUAL_FPS, ShotFinder, ShotRules
from mustsee.records import Face, Frame, ScreenText, Span, Video


@dataclass(frozen=True, kw_only=True)
class Faces:
    """Frontal faces on the sampled frames (OpenCV's Haar cascade), on a picture `longest` pixels
    wide or high; nothing lower than `smallest` of the picture's height is looked for.
    """

    longest: int = 320
    smallest: float = 0.12
    step: float = 1.15
    neighbours: int = 6

    def open(self) -> Callable[[Picture], tuple[Face, ...]]:
        import cv2
        import cv2.data

        cascade = cv2.CascadeClassifier(
            f"{cv2.data.haarcascades}haarcascade_frontalface_default.xml"
        )

        def find(picture: Picture) -> tuple[Face, ...]:
            luma = picture.luma(self.longest)
            height, width = luma.shape
            least = max(20, round(self.smallest * height))
            boxes: Any = cascade.detectMultiScale(
                luma, self.step, self.neighbours, minSize=(least, least)
            )
            return tuple(
                Face(x=x / width, y=y / height, width=w / width, height=h / height)
                for x, y, w, h in sorted(map(tuple, boxes))
            )

        return find


@dataclass(frozen=True, kw_only=True)
class Texts:
    """Text on keyframes (rapidocr), read on pictures `longest` pixels wide or high; of more than
    `most` keyframes, `most` spread evenly are read. Lines below `score` (0 to 1) are left out.
    """

    longest: int = 960
    most: int = 60
    score: float = 0.6
    shortest: int = 2
    threads: int = hardware(1)

    def open(self) -> Callable[[float, bytes], list[ScreenText]]:
        import cv2
        import numpy as np

        lines = reader(self.threads)

        def read(time: float, jpeg: bytes) -> list[ScreenText]:
            image: Any = cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_COLOR)
            return [
                ScreenText(time=time, text=line.text, score=round(line.score, 4))
                for line in lines(image)
                if line.score >= self.score and sum(map(str.isalnum, line.text)) >= self.shortest
            ]

        return read


@dataclass(frozen=True, kw_only=True)
class Look:
    """Shots, keyframes, frames measured every `sample_every` seconds, and text on screen.

    Without `shots` (null) nothing needs every frame: the film is one shot, and where samples are
    sparser than the film's keyframes they are reached by seeking. Without `faces` or `texts` (null)
    none are looked for (the columns stay null). `threads`: of the decoder.
    """

    version: ClassVar[str] = "2"
    reads: ClassVar[tuple[str, ...]] = ("digest", "start", "end")
    needs: ClassVar[tuple[str, ...]] = ("uri", "duration")
    writes: ClassVar[tuple[str, ...]] = ("shots", "keyframes", "frames", "texts")

    shots: ShotRules | None = field(default_factory=ShotRules)
    keyframes: KeyframeRules = field(default_factory=KeyframeRules)
    sample_every: float = 1.0
    faces: Faces | None = None
    texts: Texts | None = None
    threads: int = hardware(1)

    def check(self, budget_usd: float | None = None) -> None:
        """Raises UserError for samples that are no time apart."""
        if self.sample_every <= 0:
            raise UserError(f"look.sample_every={self.sample_every!r}: more than 0 seconds")

    def open(self, run: RunContext) -> Opened:
        import cv2

        cv2.setNumThreads(self.threads)
        find = self.faces.open() if self.faces else None
        read = self.texts.open() if self.texts else None

        def look(video: Video) -> Video:
            return self.look(video, find, read, run.count)

        return look

    def look(
        self,
        video: Video,
        find: Callable[[Picture], tuple[Face, ...]] | None,
        read: Callable[[float, bytes], list[ScreenText]] | None,
        count: Callable[[str, int], None],
    ) -> Video:
        """The row with what was seen. Raises BadRow when not one frame can be decoded."""
        from mustsee.media.video import film

        picker = KeyframePicker(self.keyframes, self.texts.longest if self.texts else None)
        sampler = Sampler(self.sample_every, find)
        first = last = None
        with film(video.uri, self.threads) as watched:
            if watched.stream is None:
                raise BadRow(f"no video stream in {video.uri!r}")
            fps = watched.fps or USUAL_FPS
            finder = ShotFinder(self.shots, fps) if self.shots else None
            stop = _end(video) if finder is None else video.end or math.inf
            pictures = (
                self._sparse(video, stop)
                if finder is None
                else watched.pictures(video.start or 0.0, stop)
            )
            for picture in pictures:
                picker.see(picture, finder.see(picture) if finder else ())
                sampler.see(picture)
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
            texts=None if read is None else self._read(picker.kept, read),
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

    def _read(
        self, kept: Sequence[Kept], read: Callable[[float, bytes], list[ScreenText]]
    ) -> tuple[ScreenText, ...]:
        most = min(len(kept), self.texts.most if self.texts else 0)
        chosen = [kept[index * len(kept) // most] for index in range(most)]
        return tuple(text for k in chosen if k.large for text in read(k.time, k.large))


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
        self, every: float, find: Callable[[Picture], tuple[Face, ...]] | None = None
    ) -> None:
        self._every, self._find = every, find
        self._next: float | None = None
        self._small = Thumbnails()
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
                faces=None if self._find is None else self._find(picture),
            )
        )
        self._before = thumbnail
