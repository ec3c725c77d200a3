"""On-screen text: searched for, read once, then followed while it stays.

A video is sampled once per second. Lines are searched for at once where strokes of letters appear
or a line has disappeared, and every few seconds where the frame has strokes and has changed. Only
new lines are read. Search and reading are the expensive steps. Between searches a line is followed
by its pixels, which also give the times at which it appears and disappears.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from unicodedata import east_asian_width

import numpy as np

from mustsee.media.frames import TimedFrame
from mustsee.media.ocr import Image, Reader, crop_line
from mustsee.media.samples import SampleSteps
from mustsee.media.text_search import (
    FOLLOW_PIXELS,
    MIN_LINE_CORRELATION,
    SEARCH_PIXELS,
    Box,
    bounding_box,
    boxes_of,
    changed_mask,
    crop_box,
    find_moved,
    find_risen,
    has_changed,
    is_redrawn,
    letter_density,
    letter_mask,
    likeness,
    lines_in,
    overlap,
    resized_likeness,
)
from mustsee.records import ScreenText

LOOK_STEP_S = 1.0  # seconds between samples
MAX_GAP_S = 2.0  # seconds that a line may be lost for, if it moves
CROP_PIXELS = 1280  # pixels: longer side of the frame that lines are cut out of
SURE_READING = 0.95  # score, 0-1, below which a line is read again
MAX_SCROLL_SPEED = 0.2  # share of the height per second (credits); a faster line is another one
MAX_RESIZED = 32  # lines lost of late that may be seen elsewhere or in another size
MAX_UNREADABLE = 32  # places whose pixels are known not to be text
NEXT_DIGITS_S = 4.0  # seconds between searches for other digits in the place of a line
SETTLED_CORRELATION = 0.8  # correlation of a line's pixels from which no part of it is another
SAME_PLACE_OVERLAP = 0.7  # intersection over union of a settled line's boxes, then and now
SQUARE_ASPECT = 1.2  # width over height of a line below which it has few letters
SQUARE_LETTERS = 2  # letters of such a line at most
MIN_SAME_RATIO = 0.8  # similarity, 0-1, of readings of the same text
MIN_READING = 0.5  # score, 0-1, below which a reading is ignored


@dataclass(frozen=True, kw_only=True)
class TextRules:
    """How often on-screen text is searched for, and which text is kept.

    Lines are searched for on the frame scaled to at most `longest` pixels: each second where new
    letters may be, and every `every` seconds wherever letters may be and the frame has changed.
    Lines with a score below `score` (0 to 1) or with fewer than `shortest` letters and digits are
    dropped; a Chinese or Japanese character counts as two.
    """

    every: float = 8.0
    """Seconds between searches of all places that changed; where letters appear, each
    second."""
    longest: int = 640
    """Longer side of the searched frame, pixels."""
    score: float = 0.92
    """Least confidence of a line, 0-1."""
    shortest: int = 3
    """Fewest letters and digits of a line."""


@dataclass(frozen=True, kw_only=True)
class ReadLine:
    """A line that was on the screen from `first` to `last`, in seconds.

    `top`: its upper edge as a share of the frame's height. `read`: the scores of each text that it
    was read as.
    """

    first: float
    last: float
    top: float
    read: Mapping[str, tuple[float, ...]]

    @property
    def best(self) -> tuple[str, float]:
        """The text with the highest sum of scores, and its mean score."""
        return best_reading(self.read)


def best_reading(read: Mapping[str, tuple[float, ...]]) -> tuple[str, float]:
    """Return the text with the highest sum of scores, and its mean score."""
    text = max(read, key=lambda t: sum(read[t]))
    return text, sum(read[text]) / len(read[text])


@dataclass(kw_only=True, eq=False)
class _Line:
    """A line on the screen that is being followed."""

    box: Box
    pixels: Image
    first: float
    last: float
    searched: float = 0.0  # time of the last search in its place for other digits
    likeness: float = 1.0  # of its pixels at the last sample, a correlation
    read: dict[str, tuple[float, ...]] = field(default_factory=dict[str, tuple[float, ...]])
    best: tuple[str, float] = ("", 0.0)  # its text and score by all readings (see `best_reading`)
    has_digits: bool = False

    def add_reading(self, text: str, score: float) -> None:
        self.read[text] = (*self.read.get(text, ()), score)
        self.best = best_reading(self.read)
        self.has_digits = any(c.isdigit() for c in self.best[0])

    @property
    def to_record(self) -> ReadLine:
        """The line as a `ReadLine`."""
        return ReadLine(first=self.first, last=self.last, top=self.box[1], read=self.read)

    @property
    def is_settled(self) -> bool:
        """Whether a line needs no search in its place."""
        return self.is_sure and self.likeness >= SETTLED_CORRELATION

    @property
    def is_sure(self) -> bool:
        """Whether it was read surely, and has no digits, which may change unnoticed."""
        return self.best[1] >= SURE_READING and not self.has_digits


class TextFinder:
    """Reads the text in the frames of a video, or of a span of it, while they go by.

    One frame is used every `LOOK_STEP_S` seconds, counted from the time `first` (null: the first
    frame's). Frames before `since` are not read; they only show since when a line has been there.
    """

    def __init__(
        self,
        rules: TextRules,
        reader: Reader,
        first: float | None = None,
        since: float = float("-inf"),
    ) -> None:
        self._rules, self._reader, self._since = rules, reader, since
        self._steps = SampleSteps(LOOK_STEP_S, first)
        self._visible: list[_Line] = []  # lines on the screen
        self._vanished: list[_Line] = []  # lines that have disappeared
        looks = max(2, round(rules.every / LOOK_STEP_S))
        self._recent: deque[tuple[float, Image]] = deque(maxlen=looks)
        self._unreadable = deque[tuple[Box, Image]](maxlen=MAX_UNREADABLE)
        self._density: Image | None = None  # that of the last sample
        self._searched: Image | None = None  # each place as it was when it was last searched
        self._searched_at = 0.0  # time of the last search of all places

    def see(self, frame: TimedFrame) -> None:
        """Take the next frame."""
        time = frame.time
        if not self._steps.due(time):
            return
        luma = frame.luma(FOLLOW_PIXELS)
        lost = self._follow(luma, time)
        if time >= self._since and (where := self._unread_places(frame, luma, lost)):
            self._search(frame, luma, where)
        self._recent.append((time, luma))

    def lines(self) -> tuple[ReadLine, ...]:
        """Return the lines read so far."""
        return tuple(line.to_record for line in (*self._vanished, *self._visible))

    def _follow(self, luma: Image, time: float) -> list[_Line]:
        """Move the lines that have disappeared to the past ones, and return them."""
        remaining, lost = list[_Line](), list[_Line]()
        for line in self._visible:
            line.likeness = likeness(line.pixels, luma, line.box)
            if line.likeness < MIN_LINE_CORRELATION:
                moved, correlation = find_moved(line.pixels, luma, line.box)
                if correlation >= SETTLED_CORRELATION:
                    line.box, line.likeness = moved, correlation
                    line.pixels = crop_box(luma, moved)
            if line.likeness >= MIN_LINE_CORRELATION:
                line.last = time
                remaining.append(line)
            else:
                lost.append(line)
        self._visible = remaining
        self._vanished += lost
        return lost

    def _unread_places(self, frame: TimedFrame, luma: Image, lost: list[_Line]) -> list[Box]:
        """The places that have letters now and may have had none, or others, when they were last
        searched: at once where letters appear or a line has disappeared, and else after a while,
        where the frame has changed.
        """
        time, searched = frame.time, self._searched
        if searched is not None and searched.shape != luma.shape:
            searched = None
        if searched is not None and not lost and not has_changed(searched, luma):
            return []
        is_large = max(frame.decoded.width, frame.decoded.height) >= SEARCH_PIXELS
        density = letter_density(frame.luma(SEARCH_PIXELS) if is_large else luma)
        before, self._density = self._density, density
        letters = letter_mask(density)
        is_everywhere = searched is None or before is None
        if searched is None or before is None:
            unread = letters
        else:
            unread = letters * find_risen(before, density)
            for line in lost:
                crop_box(unread, line.box)[:] = 1
            if time - self._searched_at >= self._rules.every - 1e-4:
                changed = letters * changed_mask(searched, luma, letters.shape)
                unread = np.maximum(unread, changed)
                is_everywhere = True
        for line in self._visible:
            if line.is_settled:
                crop_box(unread, line.box)[:] = 0
            elif (
                line.has_digits
                and time - line.searched >= NEXT_DIGITS_S - 1e-4
                and has_changed(line.pixels, crop_box(luma, line.box))
            ):
                line.searched = time
                crop_box(unread, line.box)[:] = 1
        where = boxes_of(unread)
        if searched is None or is_everywhere:
            self._searched, self._searched_at = luma.copy(), time
        else:
            for box in where:
                crop_box(searched, box)[:] = crop_box(luma, box)
        return where

    def _search(self, frame: TimedFrame, luma: Image, where: list[Box]) -> None:
        image = frame.image(CROP_PIXELS)
        for corners in lines_in(self._reader, image, where, self._rules.longest):
            box = bounding_box(corners, image)
            line = next((x for x in self._visible if overlap(x.box, box) > 0.5), None)
            is_new = is_redrawn if line and line.best[1] >= SURE_READING else has_changed
            if line and (
                not is_new(line.pixels, crop_box(luma, line.box))
                or (line.is_settled and overlap(line.box, box) >= SAME_PLACE_OVERLAP)
            ):
                continue
            pixels = crop_box(luma, box)
            if any(b == box and not has_changed(p, pixels) for b, p in self._unreadable):
                continue
            if self._is_resized(pixels, box, frame.time):
                continue
            text, score = self._read(crop_line(image, corners))
            if score >= MIN_READING and letters(text) >= self._rules.shortest:
                self._add_reading(text, score, box, line, luma, frame.time)
            else:
                self._unreadable.append((box, pixels))

    def _is_resized(self, pixels: Image, box: Box, time: float) -> bool:
        """Whether the pixels of a box are those of a line, seen here or lost since the last search,
        that has moved or grown. It is then followed from there.
        """
        here = [line for line in self._visible if overlap(line.box, box) > 0]
        for line in (*here, *self._vanished[-MAX_RESIZED:]):
            if (
                line.is_sure
                and time - line.last <= MAX_GAP_S
                and abs(line.box[1] - box[1]) <= MAX_SCROLL_SPEED * LOOK_STEP_S
                and resized_likeness(line.pixels, pixels) >= SETTLED_CORRELATION
            ):
                if line in self._vanished:
                    self._vanished.remove(line)
                    self._visible.append(line)
                line.box, line.pixels, line.last = box, pixels, time
                return True
        return False

    def _read(self, line: Image) -> tuple[str, float]:
        """Return the text of a line and its score; none without room for enough letters."""
        height, width = line.shape[:2]
        if self._rules.shortest > SQUARE_LETTERS and width < SQUARE_ASPECT * height:
            return "", 0.0
        return self._reader.text(line)

    def _add_reading(
        self, text: str, score: float, box: Box, line: _Line | None, luma: Image, time: float
    ) -> None:
        """Add a reading to the line that it belongs to, or begin a new line."""
        if line is not None and _is_part(text, line.best[0]):
            return  # It is still there: the search has split it.
        if line is not None and not any(is_same_text(text, t) for t in line.read):
            self._visible.remove(line)  # Another line has replaced it.
            self._vanished.append(line)
            line.last = max(line.first, self._recent[-1][0] if self._recent else line.last)
            line = _Line(box=box, pixels=crop_box(luma, box), first=time, last=time)
            self._visible.append(line)
        if line is None:
            line = next((x for x in self._visible if is_same_text(text, x.best[0])), None)
            line = (
                line if line and overlap(line.box, box) > 0 else self._moved_line(text, box, time)
            )
        pixels = crop_box(luma, box)
        if line is None:
            first = time
            for earlier, luma_then in reversed(self._recent):
                if luma_then.shape != luma.shape or not (
                    likeness(pixels, luma_then, box) >= MIN_LINE_CORRELATION
                ):
                    break
                first = earlier
            line = _Line(box=box, pixels=pixels, first=first, last=time)
            self._visible.append(line)
        line.box, line.pixels, line.last = box, pixels, time
        line.add_reading(text, score)

    def _moved_line(self, text: str, box: Box, time: float) -> _Line | None:
        """A line with the same text that was lost since the last search because it moves, at most
        as fast as credits do. The same text elsewhere is another line.
        """
        recent = (x for x in self._vanished if time - x.last <= MAX_GAP_S)
        lost = [x for x in recent if _continues(x.to_record, text, box[1], time)]
        if not lost:
            return None
        self._vanished.remove(lost[-1])
        self._visible.append(lost[-1])
        return lost[-1]


def texts(rules: TextRules, windows: Iterable[Sequence[ReadLine]]) -> tuple[ScreenText, ...]:
    """Return the surely read on-screen texts of a video, sorted by time, then from top to bottom.

    `windows` are the lines of consecutive windows of the video. A line at the end of one and the
    same text at the beginning of the next are one line if the place is the same or within its
    possible move.
    """
    lines = list[ReadLine]()
    for window in windows:
        begin = min((line.first for line in window), default=0.0)
        recent = [x for x in lines if begin - x.last <= MAX_GAP_S]
        for line in window:
            candidates = (x for x in recent if line.first - x.last <= MAX_GAP_S)
            reading = line.best[0], line.top, line.first
            earlier = next((x for x in candidates if _continues(x, *reading)), None)
            if earlier:
                recent.remove(earlier)
                lines.remove(earlier)
            lines.append(_joined(earlier, line) if earlier else line)
    screen_texts = list[ScreenText]()
    for line in lines:
        text, score = line.best
        if score >= rules.score:
            screen_texts.append(
                ScreenText(
                    time=line.first,
                    end=line.last if line.last > line.first else None,
                    text=text,
                    score=round(score, 4),
                    top=round(line.top, 4),
                )
            )
    return tuple(sorted(screen_texts, key=lambda t: (t.time, t.top, t.text)))


def _continues(line: ReadLine, text: str, top: float, time: float) -> bool:
    """Whether a text at a height and a time may be an earlier line that has moved."""
    reach = MAX_SCROLL_SPEED * max(LOOK_STEP_S, time - line.last)
    return abs(line.top - top) <= reach and is_same_text(text, line.best[0])


def _joined(before: ReadLine, after: ReadLine) -> ReadLine:
    """Join two readings of the same line."""
    read = {
        t: (*before.read.get(t, ()), *after.read.get(t, ())) for t in (*before.read, *after.read)
    }
    return ReadLine(
        first=min(before.first, after.first),
        last=max(before.last, after.last),
        top=after.top,
        read=read,
    )


def _is_part(text: str, whole: str) -> bool:
    """Whether a text is a part of another."""
    part, all_of_it = ("".join(t.casefold().split()) for t in (text, whole))
    return len(part) < len(all_of_it) and part in all_of_it


def letters(text: str) -> int:
    """Return the number of letters and digits; a wide one, which may be half a word, counts
    as two.
    """
    return sum(2 if east_asian_width(c) in "WF" else 1 for c in text if c.isalnum())


def is_same_text(one: str, other: str) -> bool:
    """Whether two readings have the same text. Digits must be equal: 57 is not 51."""
    a, b = ("".join(text.casefold().split()) for text in (one, other))
    if a == b or any(c.isdigit() for c in a + b):
        return a == b
    matcher = SequenceMatcher(None, a, b, autojunk=False)
    bounds = (matcher.real_quick_ratio, matcher.quick_ratio, matcher.ratio)  # the cheapest first
    return all(ratio() >= MIN_SAME_RATIO for ratio in bounds)
