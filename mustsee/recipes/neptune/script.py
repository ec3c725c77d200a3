"""A video as a script: short spans, each with its captions, on-screen texts and transcript lines.

The language models of the recipes read this. A `Unit` is a shot, or a span of a long shot, so that
an hour without a cut can still be divided by topic.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TypeVar

from mustsee.media.contact_sheet import ContactSheet
from mustsee.media.transcript import join_lines
from mustsee.media.transcript_quality import is_doubtful, is_surely_read
from mustsee.records import Caption, Line, ScreenText, Span, Video
from mustsee.text import first_words, length

T = TypeVar("T")
_SENTENCE = re.compile(r"[.!?…。！？؟।][\"'”’」』)\]]*$")
_ENDS = re.compile(r"[.!?…؟।][\"'”’)\]]*(?!\S)|[。！？][”’」』）]*")
# units from which a prompt quotes a question's evidence; longer evidence is in the script alone
MAX_QUOTED_UNITS = 3
_LETTERS = re.compile(r"[^\W_]{2}")


@dataclass(frozen=True, kw_only=True)
class Member:
    """A recurring person or thing: its one `name`, and the looks by which it is recognised."""

    name: str
    looks: str

    @property
    def words(self) -> int:
        return length(self.name) + length(self.looks)


@dataclass(frozen=True, kw_only=True)
class Unit:
    """A span of the video, in seconds.

    `captions`: of its frames. `caption`: one sentence on all of them. `texts`: on-screen texts.
    `shots`: number of shots that begin in it; 0 in the later spans of a long shot, and where shots
    are unknown. `cast`: names of the members seen in it.
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
        """Estimate how many words the unit adds to a prompt."""
        parts = [*self.cast, self.caption or " ".join(c.text for c in self.captions)]
        parts += [text for text, _, _ in self.read] + [x.text for x in self.lines]
        return 4 + sum(map(length, parts))

    @property
    def read(self) -> tuple[tuple[str, Span | None, bool], ...]:
        """The on-screen texts that begin in the unit. Each has its span if it outlasts the unit,
        else null, and whether it is uncertain.
        """
        spans = ((t, _span(t)) for t in self.texts if t.time >= self.start)
        return tuple(
            (t.text, span if span.end > self.end else None, not is_surely_read(t))
            for t, span in spans
        )

    @property
    def warned_lines(self) -> tuple[tuple[Line, bool], ...]:
        """The transcript lines, each with whether it is uncertain."""
        return tuple((line, is_doubtful(line)) for line in self.lines)


@dataclass(frozen=True, kw_only=True)
class Scene:
    """The units of one topic. `story`: their dense caption, or "". `words_cut`: number of words cut
    from a story that was too long. `support`: their visual support (C.2.2).
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
    def sentences(self) -> str:
        """The sentences on its shots, each once."""
        return " ".join(dict.fromkeys(unit.caption for unit in self.units if unit.caption))

    @property
    def words(self) -> int:
        """Estimate how many words the scene adds to a prompt."""
        written = length(self.topic) + length(self.story) + length(self.support)
        return written + sum(unit.words for unit in self.units)


@dataclass(frozen=True, kw_only=True)
class ScriptPart:
    """The scenes that fit one prompt: part `number` of `of`, with the `cast` and the `kind` of the
    whole video ("story", "compilation" or "trailer"). An overview has all scenes, without their
    units. `sheets`: contact sheets of its frames.
    """

    scenes: tuple[Scene, ...]
    number: int = 1
    of: int = 1
    overview: bool = False
    cast: tuple[Member, ...] = ()
    sheets: tuple[ContactSheet, ...] = ()
    kind: str = "story"

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
        """Return the runs of units in which a member is seen, by number; none in an overview."""
        runs: list[tuple[int, int]] = []
        for number, unit in enumerate(() if self.overview else self.units, 1):
            if member.name in unit.cast:
                continues = runs and runs[-1][1] == number - 1
                runs.append((runs.pop()[0] if continues else number, number))
        return tuple(runs)

    def scene_at(self, time: float) -> int:
        """Return the index of the scene that contains `time`."""
        return max((n for n, s in enumerate(self.scenes) if s.start <= time), default=0)

    def units_in(self, spans: Sequence[Span]) -> tuple[Unit, ...]:
        """Return the units that overlap `spans`, with the texts and lines that do. There are none
        if they are more than `MAX_QUOTED_UNITS`, or the part is an overview.
        """
        units = () if self.overview else self.units
        find_touched = [unit for unit in units if _meets(unit, spans)]
        if len(find_touched) > MAX_QUOTED_UNITS:
            return ()
        return tuple(
            replace(
                unit,
                texts=tuple(t for t in unit.texts if _meets(_span(t), spans)),
                lines=tuple(x for x in unit.lines if _meets(x, spans)),
            )
            for unit in find_touched
        )


def units(video: Video, longest: float) -> tuple[Unit, ...]:
    """Return the video's shots in order, those longer than `longest` seconds in equal spans, with
    their captions, texts and lines. A line belongs to the unit of its middle. An empty unit is
    joined to the one before.
    """
    spans = list(_shot_spans(video, longest))
    if not spans:
        return ()
    lines = tuple(video.lines or ())
    if any(_SENTENCE.search(line.text) for line in lines):
        lines = join_lines(lines)
    texts = [t for t in video.texts or () if _LETTERS.search(t.text) or t.text.strip().isdigit()]
    filled: list[Unit] = []
    for index, (span, shots) in enumerate(spans):
        low = span.start if index else -math.inf
        high = spans[index + 1][0].start if index + 1 < len(spans) else math.inf
        unit = Unit(
            start=span.start,
            end=span.end,
            captions=tuple(c for c in video.captions or () if low <= c.time < high),
            texts=tuple(t for t in texts if t.time < high and (t.end or t.time) >= low),
            lines=tuple(x for x in lines if low <= (x.start + x.end) / 2 < high),
            shots=shots,
        )
        if unit.captions or unit.texts or unit.lines:
            filled.append(unit)
        elif filled:
            filled[-1] = replace(filled[-1], end=span.end, shots=filled[-1].shots + shots)
    return tuple(filled)


def _shot_spans(video: Video, longest: float) -> Iterator[tuple[Span, int]]:
    """Yield spans in order, each with the number of known shots that begin in it (0 or 1)."""
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
    """Whether any of the spans overlaps `one`, or touches it if either has no length."""
    return any(
        max(one.start, s.start) < min(one.end, s.end)
        or (min(one.end - one.start, s.seconds) == 0 and one.start <= s.end and s.start <= one.end)
        for s in spans
    )


def windows(items: Sequence[T], size: Callable[[T], int], most: int) -> list[tuple[T, ...]]:
    """Group consecutive items so that the sizes in a group add up to at most `most`. An item that
    is larger has a group of its own.
    """
    groups: list[list[T]] = []
    group_size = 0
    for item in items:
        if not groups or group_size + size(item) > most:
            groups.append([])
            group_size = 0
        groups[-1].append(item)
        group_size += size(item)
    return [tuple(group) for group in groups]


def shorten_text(text: str, most: int) -> str:
    """Cut a text to `most` words: behind the last sentence that fits, or else behind a word."""
    if length(text) <= most:
        return text.strip()
    kept = first_words(" ".join(text.split()), most)
    ends = [match.end() for match in _ENDS.finditer(kept)]
    return kept[: ends[-1]] if ends else f"{kept} ..."
