"""A video as a script: short stretches in time, each with what is seen, read and said in it.

The language models of the recipes read this. A stretch (`Unit`) is a shot, or a piece of a shot
that goes on for long, so that an hour in one shot can still be cut by topic.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TypeVar

from mustsee.media.certainty import is_doubtful, is_surely_read
from mustsee.media.transcript import join_lines
from mustsee.records import Caption, Line, ScreenText, Span, Video
from mustsee.text import first_words, length

T = TypeVar("T")
_SENTENCE = re.compile(r"[.!?…。！？؟।][\"'”’」』)\]]*$")
_ENDS = re.compile(r"[.!?…؟।][\"'”’)\]]*(?!\S)|[。！？][”’」』）]*")
# units that evidence is quoted from; where it is more, it is found in the script
MAX_QUOTED_UNITS = 3
_LETTERS = re.compile(r"[^\W_]{2}")


@dataclass(frozen=True, kw_only=True)
class Member:
    """Who or what recurs in a video: the one `name` for it, and how one knows it."""

    name: str
    looks: str

    @property
    def words(self) -> int:
        return length(self.name) + length(self.looks)


@dataclass(frozen=True, kw_only=True)
class Unit:
    """A stretch of the video. `captions`: what was written of its frames; `caption`: one sentence
    on them. `texts`: what can be read on the screen in it. `shots`: how many shots begin in it; 0
    in the later pieces of a long shot, and where shots are not known. `cast`: names of the members
    seen in it.
    """

    start: float
    end: float
    captions: tuple[Caption, ...] = ()
    texts: tuple[ScreenText, ...] = ()
    lines: tuple[Line, ...] = ()
    caption: str = ""
    shots: int = 0
    cast: tuple[str, ...] = ()

    @property
    def words(self) -> int:
        """About how many words the unit adds to a prompt."""
        parts = [*self.cast, self.caption or " ".join(c.text for c in self.captions)]
        parts += [text for text, _, _ in self.read] + [x.text for x in self.lines]
        return 4 + sum(map(length, parts))

    @property
    def read(self) -> tuple[tuple[str, Span | None, bool], ...]:
        """What comes up on the screen, each with its times where it stays for longer than the unit,
        and with whether a reader is to be warned of it.
        """
        spans = ((t, _span(t)) for t in self.texts if t.time >= self.start)
        return tuple(
            (t.text, span if span.end > self.end else None, not is_surely_read(t))
            for t, span in spans
        )

    @property
    def warned_lines(self) -> tuple[tuple[Line, bool], ...]:
        """The lines, each with whether a reader is to be warned of it."""
        return tuple((line, is_doubtful(line)) for line in self.lines)


@dataclass(frozen=True, kw_only=True)
class Scene:
    """One topic at work: its units, and what was written of them so far. `words_cut`: of its story,
    how many were too many.
    """

    topic: str
    units: tuple[Unit, ...]
    story: str = ""
    words_cut: int = 0
    support: str = ""

    @property
    def start(self) -> float:
        return self.units[0].start

    @property
    def end(self) -> float:
        return self.units[-1].end

    @property
    def words(self) -> int:
        """About how many words the scene adds to a prompt; its support is in none."""
        written = length(self.topic) + length(self.story)
        return written + sum(unit.words for unit in self.units)


@dataclass(frozen=True, kw_only=True)
class ScriptPart:
    """As much of a video as one prompt holds: part `number` of `of`, and the `cast` of the whole
    video. An overview has all scenes, without their units.
    """

    scenes: tuple[Scene, ...]
    number: int = 1
    of: int = 1
    overview: bool = False
    cast: tuple[Member, ...] = ()

    @property
    def span(self) -> Span:
        return Span(self.scenes[0].start, self.scenes[-1].end)

    @property
    def words(self) -> int:
        return sum(scene.words for scene in self.scenes)

    @property
    def units(self) -> tuple[Unit, ...]:
        return tuple(unit for scene in self.scenes for unit in scene.units)

    @property
    def numbered_scenes(self) -> tuple[tuple[Scene, int, int], ...]:
        """The scenes, each with the numbers of its first and last unit, counted from 1."""
        ends = tuple(accumulate(len(scene.units) for scene in self.scenes))
        return tuple(
            (scene, end - len(scene.units) + 1, end)
            for scene, end in zip(self.scenes, ends, strict=True)
        )

    def runs_of_member(self, member: Member) -> tuple[tuple[int, int], ...]:
        """The runs of units in which a member is seen, by their numbers; none in an overview."""
        runs: list[tuple[int, int]] = []
        for number, unit in enumerate(() if self.overview else self.units, 1):
            if member.name in unit.cast:
                goes_on = runs and runs[-1][1] == number - 1
                runs.append((runs.pop()[0] if goes_on else number, number))
        return tuple(runs)

    def scene_at(self, time: float) -> int:
        """The place of the scene that runs at `time`."""
        return max((n for n, s in enumerate(self.scenes) if s.start <= time), default=0)

    def units_in(self, spans: Sequence[Span]) -> tuple[Unit, ...]:
        """The units in which spans lie, with what is read and said in these; none where they are
        more than `MAX_QUOTED_UNITS`, or where the part is an overview.
        """
        units = () if self.overview else self.units
        found = [unit for unit in units if _meets(unit, spans)]
        if len(found) > MAX_QUOTED_UNITS:
            return ()
        return tuple(
            replace(
                unit,
                texts=tuple(t for t in unit.texts if _meets(_span(t), spans)),
                lines=tuple(x for x in unit.lines if _meets(x, spans)),
            )
            for unit in found
        )


def units(video: Video, longest: float) -> tuple[Unit, ...]:
    """The video's shots in order, those longer than `longest` seconds in equal pieces, with the
    captions, texts and lines (each by its middle) that fall into them. Units with none of these are
    part of the one before.
    """
    pieces = list(_pieces(video, longest))
    if not pieces:
        return ()
    spoken = tuple(video.lines or ())
    if any(_SENTENCE.search(line.text) for line in spoken):
        spoken = join_lines(spoken)
    read = [t for t in video.texts or () if _LETTERS.search(t.text) or t.text.strip().isdigit()]
    found: list[Unit] = []
    for index, (piece, shots) in enumerate(pieces):
        low = piece.start if index else -math.inf
        high = pieces[index + 1][0].start if index + 1 < len(pieces) else math.inf
        unit = Unit(
            start=piece.start,
            end=piece.end,
            captions=tuple(c for c in video.captions or () if low <= c.time < high),
            texts=tuple(t for t in read if t.time < high and (t.end or t.time) >= low),
            lines=tuple(x for x in spoken if low <= (x.start + x.end) / 2 < high),
            shots=shots,
        )
        if unit.captions or unit.texts or unit.lines:
            found.append(unit)
        elif found:
            found[-1] = replace(found[-1], end=piece.end, shots=found[-1].shots + shots)
    return tuple(found)


def _pieces(video: Video, longest: float) -> Iterator[tuple[Span, int]]:
    """Stretches in order, each with the number of known shots that begin in it (0 or 1)."""
    begin = video.start or 0.0
    last = max(
        [begin + (video.duration or 0.0)]
        + [line.end for line in video.lines or ()]
        + [caption.time for caption in video.captions or ()]
    )
    for shot in video.shots or ((Span(begin, last),) if last > begin else ()):
        count = max(1, math.ceil(shot.seconds / longest - 1e-9))
        step = shot.seconds / count
        for i in range(count):
            end = shot.end if i + 1 == count else shot.start + (i + 1) * step
            yield Span(shot.start + i * step, end), int(i == 0 and bool(video.shots))


def _span(text: ScreenText) -> Span:
    return Span(text.time, text.end or text.time)


def _meets(one: Unit | Span | Line, spans: Sequence[Span]) -> bool:
    """Whether any of the spans lies in a stretch at least in part, or either in the other where it
    is a moment without length.
    """
    return any(
        max(one.start, s.start) < min(one.end, s.end)
        or (min(one.end - one.start, s.seconds) == 0 and one.start <= s.end and s.start <= one.end)
        for s in spans
    )


def windows(items: Sequence[T], size: Callable[[T], int], most: int) -> list[tuple[T, ...]]:
    """Consecutive items in as few groups as hold at most `most` each; one that is larger stands
    alone.
    """
    groups: list[list[T]] = []
    total = 0
    for item in items:
        if not groups or total + size(item) > most:
            groups.append([])
            total = 0
        groups[-1].append(item)
        total += size(item)
    return [tuple(group) for group in groups]


def shorten_text(text: str, most: int) -> str:
    """Text of at most `most` words, cut at the last sentence that fits; at a word where not even
    the first one does.
    """
    if length(text) <= most:
        return text.strip()
    kept = first_words(" ".join(text.split()), most)
    ends = [match.end() for match in _ENDS.finditer(kept)]
    return kept[: ends[-1]] if ends else f"{kept} ..."
