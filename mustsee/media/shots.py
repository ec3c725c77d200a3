"""Shots: where the picture cuts, dissolves, is swept away, or fades through black.

A cut is a change between two frames that stands out from those around it (the adaptive rule), or is
great and leaves nothing of what was there (the absolute rule), and that lasts: after a flash, or a
lorry that passes before the camera, the picture is what it was. The rules were chosen on half of
a set of real videos with cuts labelled by hand, see docs/shots.md; the bench shows the other half:

    python -m benchmarks.bench what=cuts videos=FOLDER
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby, islice, pairwise, product

from mustsee.media.changes import change, unlike
from mustsee.media.gradual import GradualFinder
from mustsee.media.pictures import Thumbnail, Thumbnails, TimedFrame
from mustsee.records import Span

USUAL_FPS = 25.0  # where a file does not say
# Change up to which a frame repeats the one before, as in videos of a low frame rate
MAX_STILL_CHANGE = 0.3
MIN_LASTING_S = 0.25  # seconds for which the picture must not be again what it was
NEIGHBOUR_FRAMES = 2  # frames on each side that a change is held against
MAX_WAIT_S = 1.0  # seconds that are waited for them
MIN_LASTING_SHARE = 0.8  # share of a cut's change that is left at the end of those frames
GROUP_S = 1 / 6  # seconds of frames of which the last one is looked at first
MOST_TOGETHER = 10  # frames of these
GROUPS_AT_ONCE = 2  # of such frames, looked into at once, which is cheaper than one by one
TIME_ROUNDING_S = 0.002  # seconds by which containers round times
CONTEXT_S = 5.0  # seconds around a stretch of a video that decide what is found in it

# Chosen together with the defaults of `ShotRules`, on half of the labelled videos.
NEIGHBOUR_FACTOR = 1.5  # factor of the greatest change around a cut, which is added to `least`
SOME_GONE_SHARE = 0.2  # least share of a third of the frame that is gone at a sharp cut, 0-1
MOST_GONE_SHARE = 0.35  # least share of two thirds of the frame that is gone at any other cut, 0-1
LASTING_SHARE = 0.6  # least share of a cut's change that persists; after a flash it does not
MOST, SOME = 1 / 3, 2 / 3  # ranks of `unlike`: of most of the picture, of some of it


@dataclass(frozen=True, kw_only=True)
class ShotRules:
    """How shots are told apart. Changes are mean differences of brightness and colour, in 8-bit
    levels; what is gone (0 to 1, see `unlike`) is not found again near where it was.

    Adaptive: a cut changes the picture by `least` plus `NEIGHBOUR_FACTOR` times the greatest change
    of the frames around, and of some of it `SOME_GONE_SHARE` is gone. Absolute: by `clear`, and 1.2
    times as much as those, and of most of it `MOST_GONE_SHARE` is gone. Both: the share
    `LASTING_SHARE` of the change is still there throughout the next quarter second.

    `fade_below`: mean brightness (0 to 255) that counts as black; `dissolve`: the change that a
    gradual transition makes in all; null looks for none. `shortest` shot, in seconds.
    """

    least: float = 4.5
    clear: float = 20.0
    fade_below: float | None = 12.0
    dissolve: float | None = 15.0
    shortest: float = 0.25


@dataclass(frozen=True, slots=True)
class ExaminedFrame:
    """A frame looked at; `change` is for one frame on, also where some were passed over."""

    time: float
    thumbnail: Thumbnail
    change: float


class CutFinder:
    """Finds hard cuts while thumbnails go by, up to `MAX_WAIT_S` seconds late."""

    def __init__(self, rules: ShotRules) -> None:
        self._rules = rules
        self._seen: deque[ExaminedFrame] = deque()
        self._due = 0  # the first frame that is not decided

    def see(self, frames: Iterable[ExaminedFrame]) -> list[float]:
        """Look at the next frames; returns the times of the cuts that are sure by now."""
        self._seen.extend(frames)
        return self._decide(self._seen[-1].time)

    def rest(self) -> list[float]:
        """The cuts among the last frames."""
        return self._decide(float("inf"))

    @property
    def decided_until(self) -> float:
        """The time before which every cut is found."""
        return self._seen[self._due].time if self._due < len(self._seen) else float("inf")

    def _decide(self, now: float) -> list[float]:
        found: list[float] = []
        seen, least = self._seen, self._rules.least
        while self._due < len(seen):
            this = seen[self._due]
            if this.change >= least:
                waited = now - this.time
                if waited < MIN_LASTING_S:
                    break
                if waited < MAX_WAIT_S and len(_moving(self._later())) < NEIGHBOUR_FRAMES:
                    break
                if self._cuts(this):
                    found.append(this.time)
            self._due += 1
        while (
            self._due > 2 * NEIGHBOUR_FRAMES
            and seen[0].time < seen[self._due - 1].time - MAX_WAIT_S
        ):
            seen.popleft()
            self._due -= 1
        return found

    def _later(self) -> Iterator[ExaminedFrame]:
        return islice(self._seen, self._due + 1, None)

    def _earlier(self) -> Iterator[ExaminedFrame]:
        """The last one first."""
        return (self._seen[n] for n in range(self._due - 1, -1, -1))

    def _cuts(self, this: ExaminedFrame) -> bool:
        if not self._due:
            return False
        rules = self._rules
        around = max((*_moving(self._earlier()), *_moving(self._later())), default=0.0)
        sharp = this.change >= rules.least + NEIGHBOUR_FACTOR * around
        if not sharp and this.change < max(rules.clear, 1.2 * around):
            return False
        before = self._seen[self._due - 1]
        rank, gone = (SOME, SOME_GONE_SHARE) if sharp else (MOST, MOST_GONE_SHARE)
        if unlike(before.thumbnail, this.thumbnail, rank) < gone:
            return False
        old = [s for s in self._earlier() if s.time > this.time - MIN_LASTING_S] or [before]
        new = [this, *(s for s in self._later() if s.time < this.time + MIN_LASTING_S)]
        left = LASTING_SHARE * this.change
        return all(change(a.thumbnail, b.thumbnail) >= left for a, b in product(old, new))


def _moving(frames: Iterable[ExaminedFrame]) -> tuple[float, ...]:
    """The changes of the next frames that repeat none."""
    return tuple(
        islice((s.change for s in frames if s.change > MAX_STILL_CHANGE), NEIGHBOUR_FRAMES)
    )


class ShotFinder:
    """Finds the cuts of a video, or of a stretch of it, while frames go by. `small`: shared with
    what else looks at the same frames.

    Of the frames of a sixth of a second the last one is looked at first: where it differs from the
    last of those before by less than a cut would, none of those between is looked at. What comes
    and goes within that time is no shot.

    Of the stretch `since` <= time < `until` the same cuts are found as in the whole video: those
    sixths are counted from the video's zero, and what is seen from `CONTEXT_S` before it to
    `CONTEXT_S` behind it decides. A fade belongs to where it begins, and is `due` until it has
    ended.
    """

    def __init__(
        self,
        rules: ShotRules,
        small: Thumbnails | None = None,
        since: float = float("-inf"),
        until: float = float("inf"),
    ) -> None:
        self._rules = rules
        self._small = small or Thumbnails()
        self._since, self._until = since, until
        self._cut = CutFinder(rules)
        self._gradual = GradualFinder(rules.fade_below, rules.dissolve, since, until)
        self._waiting: list[TimedFrame] = []
        self._later: deque[tuple[float, Thumbnail, float]] = deque()  # for when the cuts are sure
        self._found: list[float] = []  # cuts that the gradual transitions have not been told of
        self._last: Thumbnail | None = None
        self._first: float | None = None
        self._stood: list[float] = []  # all cuts that were found
        self.cuts: list[float] = []  # those of the stretch alone

    @property
    def due(self) -> bool:
        """Whether a fade of the stretch goes on."""
        return self._gradual.due

    def see(self, picture: TimedFrame) -> Sequence[float]:
        """Look at the next frame; returns the times of the cuts found by now, which lie up to some
        seconds before it. A cut is the time of the first frame of the new shot.
        """
        if self._first is None:
            self._first = picture.time
        waiting, found = self._waiting, ()
        if waiting and (
            len(waiting) >= GROUPS_AT_ONCE * MOST_TOGETHER
            or _sixth(waiting[0]) // GROUPS_AT_ONCE != _sixth(picture) // GROUPS_AT_ONCE
        ):
            found = self._look()
        self._waiting.append(picture)
        return found

    def rest(self) -> Sequence[float]:
        """The cuts among the frames seen last, which have not been looked into yet."""
        found = self._look() if self._waiting else []
        found += self._transitions(self._cut.rest())
        last = self._free(self._gradual.rest())
        self.cuts += last
        return found + last

    def _look(self) -> list[float]:
        """Look into the frames that wait."""
        waiting, self._waiting = self._waiting, []
        groups = (
            together[n : n + MOST_TOGETHER]
            for together in (list(some) for _, some in groupby(waiting, _sixth))
            for n in range(0, len(together), MOST_TOGETHER)
        )
        return self._transitions(self._cut.see(chain.from_iterable(map(self._seen_of, groups))))

    def _seen_of(self, waiting: Sequence[TimedFrame]) -> list[ExaminedFrame]:
        """What is looked at of frames of a sixth of a second."""
        before, last = self._last, self._small(waiting[-1].frame)
        moved = change(before, last) if before else 0.0
        if before and moved < self._rules.least * MIN_LASTING_SHARE:
            seen = [ExaminedFrame(waiting[-1].time, last, moved / len(waiting))]
        else:
            seen = list[ExaminedFrame]()
            for picture in waiting:
                now = self._small(picture.frame)
                seen.append(
                    ExaminedFrame(picture.time, now, change(before, now) if before else 0.0)
                )
                before = now
        self._last = last
        self._later.append((waiting[-1].time, last, moved))
        return seen

    def _transitions(self, sharp: Sequence[float]) -> list[float]:
        """The cuts just found, and the gradual transitions between them."""
        sharp = self._free(sharp)
        self._found += sharp
        found = [cut for cut in sharp if self._since <= cut < self._until]
        while self._later and self._later[0][0] < self._cut.decided_until:
            time, thumbnail, moved = self._later.popleft()
            cuts = [cut for cut in self._found if cut <= time]
            self._found = self._found[len(cuts) :]
            found += self._free(self._gradual.see(time, thumbnail, moved, cuts))
        self.cuts += found
        return found

    def _free(self, times: Sequence[float]) -> list[float]:
        """Those that make no shot shorter than the shortest."""
        found: list[float] = []
        for time in times:
            others = (self._first or 0.0, *self._stood[-8:])
            if all(abs(time - other) >= self._rules.shortest - 1e-6 for other in others):
                self._stood.append(time)
                found.append(time)
        return found

    def shots(self, end: float) -> tuple[Span, ...]:
        """The shots from the first frame to `end`."""
        self.rest()
        if self._first is None:
            return ()
        return shots_between(self._first, self.cuts, end, self._rules.shortest)


def _sixth(picture: TimedFrame) -> int:
    """Of which sixth of a second a frame is."""
    return int((picture.time + TIME_ROUNDING_S) / GROUP_S)


def shots_between(
    first: float, cuts: Iterable[float], end: float, shortest: float
) -> tuple[Span, ...]:
    """The shots from `first` to `end`, without gaps; one that is too short belongs to the one
    before.
    """
    edges = [first]
    for cut in sorted(cuts):
        if min(cut - edges[-1], end - cut) >= shortest - 1e-6:
            edges.append(cut)
    return tuple(Span(a, b) for a, b in pairwise([*edges, end]))


def shots_of(uri: str, rules: ShotRules | None = None) -> tuple[Span, ...]:
    """The shots of a file, all of it decoded. Raises BadRow and Transient."""
    from mustsee.media.video import open_video

    with open_video(uri) as watched:
        finder, last = ShotFinder(rules or ShotRules()), None
        for last in watched.pictures():
            finder.see(last)
    return finder.shots(last.end(watched.fps or USUAL_FPS)) if last else ()
