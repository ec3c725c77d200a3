"""Words on the screen: found small, read once, followed while they stay.

A video is looked at once a second. A look is dear only where it must be: lines are searched for
where the picture has changed since the last search and has the strokes of letters, and only what
was not read before is read. In between, what was read is followed by its pixels, which also tells
when it came up and when it went.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Any
from unicodedata import east_asian_width

import numpy as np

from mustsee.media.lettering import Corners, Image, Reader, crop_line
from mustsee.media.pictures import TimedFrame, shrunk
from mustsee.media.samples import SampleSteps
from mustsee.records import ScreenText

LOOK_STEP_S = 1.0  # seconds between looks
NEXT_SEARCH_S = 2.0  # seconds from one search to that of another scene, or of one with words
FOLLOW_PIXELS = 480  # pixels of the picture that lines are followed in
CROP_PIXELS = 1280  # pixels of the picture that lines are cut out of
FINE_LINE_PIXELS = 14  # a line as low as this has the large picture searched for lower ones
MIN_STROKE_SOBEL = 60  # Sobel response of a letter's edge
MIN_PLAIN_EDGE_SHARE = 0.20  # of a place that may be letters: where edges rise, and where they fall
MIN_CROWDED_EDGE_SHARE = 0.36  # the same in a picture that is full of edges
CROWDED_FRAME_SHARE = 0.15  # of the picture: where more may be letters, it is full of edges
SEARCH_WIDTHS_PIXELS = (960, 480, 240, 120, 60)  # of the pictures searched for letters
LINE_MARGIN = 0.08  # of the height, above and below a line: the next ones
MAX_SEARCHED_PLACES = 3  # places with lines: all of the picture is searched
MIN_STIR_CHANGE = 16.0  # of 255, mean over 5 x 5 pixels: less is noise, another letter is more
SCENE_CHANGE = 20.0  # of 255, mean over the picture: another scene
MIN_LINE_CORRELATION = 0.6  # correlation of a line's pixels with what stands there now
SURE_READING = 0.95  # a line that was read worse is read again
MAX_SCROLL_SPEED = 0.2  # of the height in a second (credits); what is farther off is another line
MIN_READING = 0.5  # what is read worse than this is no reading

Box = tuple[float, float, float, float]  # left, top, right, bottom, in shares of the picture


@dataclass(frozen=True, kw_only=True)
class TextRules:
    """Lines are searched for on a picture `longest` pixels wide or high, at another scene and every
    `every` seconds of one that changes. Those less sure than `score` (0 to 1) or of fewer than
    `shortest` letters and digits are left out; a Chinese or Japanese one counts as two.
    """

    every: float = 4.0
    longest: int = 640
    score: float = 0.92
    shortest: int = 3


@dataclass(frozen=True, kw_only=True)
class ReadLine:
    """A line that was on the screen, at `top` of its height (0 to 1), from `first` to `last`, in
    seconds, and what it was read as: each reading with its scores.
    """

    first: float
    last: float
    top: float
    read: Mapping[str, tuple[float, ...]]

    @property
    def best(self) -> tuple[str, float]:
        """What most readings say, and how sure those are."""
        text = max(self.read, key=lambda t: sum(self.read[t]))
        return text, float(np.mean(self.read[text]))


@dataclass(kw_only=True, eq=False)
class _Line:
    """A line that is followed."""

    box: Box
    pixels: Image
    first: float
    last: float
    read: dict[str, tuple[float, ...]] = field(default_factory=dict[str, tuple[float, ...]])

    def hear(self, text: str, score: float) -> None:
        self.read[text] = (*self.read.get(text, ()), score)

    @property
    def to_record(self) -> ReadLine:
        return ReadLine(first=self.first, last=self.last, top=self.box[1], read=self.read)

    @property
    def best(self) -> tuple[str, float]:
        return self.to_record.best


class TextFinder:
    """Reads the frames of a video, or of a stretch of it, while they go by: one every `LOOK_STEP_S`
    seconds from the time `first` on (null: the first frame's). Of those before `since` none is
    read, but what is read later may have been there already.
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
        self._open: list[_Line] = []  # on the screen
        self._past: list[_Line] = []  # gone
        looks = max(2, round(rules.every / LOOK_STEP_S))
        self._lately: deque[tuple[float, Image]] = deque(maxlen=looks)
        self._searched: tuple[float, Image] | None = None
        self._jumped = False  # to another scene, since then

    def see(self, picture: TimedFrame) -> None:
        """Look at the next frame."""
        time = picture.time
        if not self._steps.due(time):
            return
        luma = picture.luma(FOLLOW_PIXELS)
        self._follow(luma, time)
        if time >= self._since and self._due(luma, time):
            self._searched, self._jumped = (time, luma), False
            self._search(picture, luma)
        self._lately.append((time, luma))

    def lines(self) -> tuple[ReadLine, ...]:
        """What was read so far."""
        return tuple(line.to_record for line in (*self._past, *self._open))

    def _follow(self, luma: Image, time: float) -> None:
        """Which of the lines are still there."""
        still = list[_Line]()
        for line in self._open:
            if is_still_there(line.pixels, luma, line.box):
                line.last = time
                still.append(line)
            else:
                self._past.append(line)
        self._open = still

    def _due(self, luma: Image, time: float) -> bool:
        if self._searched is None:
            return True
        then, before = self._searched
        if before.shape != luma.shape:
            return True
        self._jumped |= bool(self._lately) and _apart(self._lately[-1][1], luma) > SCENE_CHANGE
        soon = self._jumped or self._open  # where there are words, more may come
        waited = time - then >= (NEXT_SEARCH_S if soon else self._rules.every) - 1e-4
        return waited and has_changed(before, luma)

    def _search(self, picture: TimedFrame, luma: Image) -> None:
        large = max(picture.frame.width, picture.frame.height) >= SEARCH_WIDTHS_PIXELS[0]
        where, plain = places(picture.luma(SEARCH_WIDTHS_PIXELS[0]) if large else luma)
        if not where:
            return
        image = picture.image(CROP_PIXELS)
        for corners in lines_in(self._reader, image, where, plain, self._rules.longest):
            box = _bounds(corners, image)
            known = next((x for x in self._open if _shared(x.box, box) > 0.5), None)
            sure = known is not None and known.best[1] >= SURE_READING
            if known and sure and not has_changed(known.pixels, _part(luma, known.box)):
                continue
            text, score = self._reader.text(crop_line(image, corners))
            if score >= MIN_READING and letters(text) >= self._rules.shortest:
                self._note(text, score, box, known, luma, picture.time)

    def _note(
        self, text: str, score: float, box: Box, known: _Line | None, luma: Image, time: float
    ) -> None:
        """One more reading of a line that is known, or the first of a new one."""
        if known is not None and not any(is_same_text(text, t) for t in known.read):
            self._open.remove(known)  # another one stands where it was
            self._past.append(known)
            known.last = max(known.first, self._lately[-1][0] if self._lately else known.last)
            known = None
        if known is None:
            known = next((x for x in self._open if is_same_text(text, x.best[0])), None)
            known = known if known and _shared(known.box, box) > 0 else self._again(text, box, time)
        pixels = _part(luma, box)
        if known is None:
            first = time
            for earlier, held in reversed(self._lately):
                if held.shape != luma.shape or not is_still_there(pixels, held, box):
                    break
                first = earlier
            known = _Line(box=box, pixels=pixels, first=first, last=time)
            self._open.append(known)
        known.box, known.pixels, known.last = box, pixels, time
        known.hear(text, score)

    def _again(self, text: str, box: Box, time: float) -> _Line | None:
        """A line of the same words that was lost from sight since the last search: it moves, no
        faster than credits do. Equal words elsewhere are a line of their own.
        """
        lately = (x for x in self._past if time - x.last <= self._rules.every)
        lost = [x for x in lately if _continues(x.to_record, text, box[1], time)]
        if not lost:
            return None
        self._past.remove(lost[-1])
        self._open.append(lost[-1])
        return lost[-1]


def texts(rules: TextRules, stretches: Iterable[Sequence[ReadLine]]) -> tuple[ScreenText, ...]:
    """What was surely read in a video, in the order of time and then from the top down. Its
    stretches follow each other: what was read at the end of one and again at the beginning of the
    next, in the same place or as far off as it may have moved, is one line.
    """
    lines = list[ReadLine]()
    for stretch in stretches:
        begin = min((line.first for line in stretch), default=0.0)
        before = [x for x in lines if begin - x.last <= rules.every]
        for line in stretch:
            near = (x for x in before if line.first - x.last <= rules.every)
            now = line.best[0], line.top, line.first
            known = next((x for x in near if _continues(x, *now)), None)
            if known:
                before.remove(known)
                lines.remove(known)
            lines.append(_one(known, line) if known else line)
    found = list[ScreenText]()
    for line in lines:
        text, score = line.best
        if score >= rules.score:
            found.append(
                ScreenText(
                    time=line.first,
                    end=line.last if line.last > line.first else None,
                    text=text,
                    score=round(score, 4),
                    top=round(line.top, 4),
                )
            )
    return tuple(sorted(found, key=lambda t: (t.time, t.top, t.text)))


def _continues(line: ReadLine, text: str, top: float, time: float) -> bool:
    """Whether words at a height and a time may be a line that was read before, and has moved."""
    reach = MAX_SCROLL_SPEED * max(LOOK_STEP_S, time - line.last)
    return abs(line.top - top) <= reach and is_same_text(text, line.best[0])


def _one(before: ReadLine, after: ReadLine) -> ReadLine:
    """Two that are the same line."""
    read = {
        t: (*before.read.get(t, ()), *after.read.get(t, ())) for t in (*before.read, *after.read)
    }
    return ReadLine(
        first=min(before.first, after.first),
        last=max(before.last, after.last),
        top=after.top,
        read=read,
    )


def places(luma: Image) -> tuple[list[Box], bool]:
    """Where edges rise and fall as densely as in letters, with some room around, and whether the
    picture is plain. What is a letter's density in a plain picture is any leaf's in another one:
    in a picture full of edges only the densest places count.
    """
    import cv2

    height, width = luma.shape
    base = (min(FOLLOW_PIXELS, width), max(8, round(height * min(1.0, FOLLOW_PIXELS / width))))
    dense = np.zeros(base[::-1], np.uint8)
    for wide in (w for w in SEARCH_WIDTHS_PIXELS if w <= max(width, base[0])):
        size = (wide, max(8, round(height * wide / width)))
        slope = cv2.Sobel(cv2.resize(luma, size, interpolation=cv2.INTER_AREA), cv2.CV_16S, 1, 0)
        rises, falls = (
            cv2.blur(edges.astype(np.uint8) * 255, (24, 6))
            for edges in (slope > MIN_STROKE_SOBEL, slope < -MIN_STROKE_SOBEL)
        )
        dense = np.maximum(dense, cv2.resize(np.minimum(rises, falls), base))
    near, plain = _near(dense, MIN_PLAIN_EDGE_SHARE), True
    if float(near.mean()) > CROWDED_FRAME_SHARE:
        near, plain = _near(dense, MIN_CROWDED_EDGE_SHARE), False
    count, _, stats, _ = cv2.connectedComponentsWithStats(near)
    sides = [stats[n][:4].tolist() for n in range(1, count)]
    (across, down) = base
    boxes = [(x / across, y / down, (x + w) / across, (y + h) / down) for x, y, w, h in sides]
    return boxes, plain


def lines_in(
    reader: Reader, image: Image, where: list[Box], plain: bool, longest: int
) -> list[Corners]:
    """Where lines are in a picture whose letters are at the places `where`. They are searched for
    with the picture `longest` pixels wide or high, low ones as large as it is given. Whole rows are
    searched, as a line may be longer than the place that gave it away; in a picture that is not
    `plain` the places come first.
    """
    small = shrunk(image, longest)
    scale = len(image) / len(small)
    found = list[Corners]()
    if not plain:
        where = [box for box in where if reader.lines(_part(small, box))]
    for top, bottom in _rows(where):
        rows, down = (0.0, top, 1.0, bottom), int(top * len(small))
        near = reader.lines(_part(small, rows))
        if scale > 1 and any(float(np.ptp(corners[:, 1])) <= FINE_LINE_PIXELS for corners in near):
            near, down = reader.lines(_part(image, rows)), int(top * len(image))
        else:
            near, down = [c * np.float32(scale) for c in near], round(down * scale)
        found += [corners + np.array([0, down], np.float32) for corners in near]
    return found


def _near(dense: Image, least: float) -> Image:
    """1 where it is dense, and around."""
    import cv2

    around = np.ones((24, 48), np.uint8)
    return np.asarray(cv2.dilate((dense >= least * 255).astype(np.uint8), around), np.uint8)


def has_changed(one: Image, other: Image) -> bool:
    """Whether two grey pictures differ somewhere by more than noise."""
    import cv2

    if one.shape != other.shape:
        return True
    blurred = cv2.blur(cv2.absdiff(one, other).astype(np.float32), (5, 5))
    return float(np.max(blurred)) > MIN_STIR_CHANGE


def is_still_there(pixels: Image, luma: Image, box: Box) -> bool:
    """Whether a line's pixels are still seen in its place, whatever moves behind it."""
    import cv2

    now = _part(luma, box)
    if now.shape != pixels.shape:
        return False
    likeness: Any = cv2.matchTemplate(now, pixels, cv2.TM_CCOEFF_NORMED)
    return bool(np.isfinite(likeness[0, 0])) and float(likeness[0, 0]) >= MIN_LINE_CORRELATION


def letters(text: str) -> int:
    """How many letters and digits; a wide one, which may be half a word, counts as two."""
    return sum(2 if east_asian_width(c) in "WF" else 1 for c in text if c.isalnum())


def is_same_text(one: str, other: str) -> bool:
    """Whether two readings are of the same words. Digits count: 57 is not 51."""
    a, b = ("".join(t.casefold().split()) for t in (one, other))
    if a == b or any(c.isdigit() for c in a + b):
        return a == b
    return SequenceMatcher(None, a, b, autojunk=False).ratio() >= 0.8


def _part(image: Image, box: Box) -> Image:
    height, width = image.shape[:2]
    left, top = int(box[0] * width), int(box[1] * height)
    right, bottom = (max(left + 2, round(box[2] * width)), max(top + 2, round(box[3] * height)))
    return image[top:bottom, left:right]


def _rows(boxes: list[Box]) -> list[tuple[float, float]]:
    """Top and bottom of the rows that hold the boxes, those that meet as one; all of the picture
    for many boxes.
    """
    if len(boxes) >= MAX_SEARCHED_PLACES:
        return [(0.0, 1.0)]
    found: list[tuple[float, float]] = []
    for top, bottom in sorted(
        (max(0.0, b[1] - LINE_MARGIN), min(1.0, b[3] + LINE_MARGIN)) for b in boxes
    ):
        if found and top <= found[-1][1]:
            found[-1] = (found[-1][0], max(bottom, found[-1][1]))
        else:
            found.append((top, bottom))
    return found


def _bounds(corners: Corners, image: Image) -> Box:
    height, width = image.shape[:2]
    left, top = np.clip(corners.min(axis=0) / (width, height), 0, 1).tolist()
    right, bottom = np.clip(corners.max(axis=0) / (width, height), 0, 1).tolist()
    return (left, top, right, bottom)


def _shared(one: Box, other: Box) -> float:
    """Intersection over union."""
    across = min(one[2], other[2]) - max(one[0], other[0])
    down = min(one[3], other[3]) - max(one[1], other[1])
    if across <= 0 or down <= 0:
        return 0.0
    areas = sum((b[2] - b[0]) * (b[3] - b[1]) for b in (one, other))
    return across * down / (areas - across * down)


def _apart(one: Image, other: Image) -> float:
    if one.shape != other.shape:
        return 255.0
    return float(np.abs(one[::4, ::4].astype(np.int16) - other[::4, ::4]).mean())
