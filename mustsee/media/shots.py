"""Shots: cuts, dissolves, sweeps and fades.

A cut is a lasting change between two frames that stands out from the changes around it (the
adaptive rule), or that is great and leaves nothing of the frame before (the absolute rule). After a
flash, or a lorry that passes before the camera, the frame returns to what it was: that is not a
cut. The rules were chosen on half of a set of real videos with cuts labelled by hand, see
docs/shots.md; the benchmark reports the other half:

    python -m benchmarks.bench what=cuts videos=FOLDER
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby, islice, pairwise, product

from mustsee.media.changes import change, unlike
from mustsee.media.frames import Thumbnail, Thumbnails, TimedFrame
from mustsee.media.gradual import GradualFinder
from mustsee.records import Span

USUAL_FPS = 25.0  # frames per second, where a file gives no rate
MAX_STILL_CHANGE = 0.3  # change up to which a frame repeats the one before, as at a low frame rate
MIN_LASTING_S = 0.25  # seconds for which the frame must not return to what it was
NEIGHBOUR_FRAMES = 2  # frames on each side with which a change is compared
NEIGHBOUR_S = 2.0  # seconds on each side from which such frames come
APART_S = 0.9  # seconds from which a change around may be a cut of its own, and tells nothing
MAX_WAIT_S = 1.0  # seconds to wait for the frames after a change
MIN_LASTING_SHARE = 0.8  # share of `least`; a group that has changed by less is skipped
GROUP_S = 1 / 6  # seconds of frames of which the last one is examined first
MAX_GROUP_FRAMES = 10  # frames of such a group at most
GROUPS_PER_CALL = 2  # groups examined in one call, which is cheaper than one by one
TIME_ROUNDING_S = 0.002  # seconds by which containers round times
CONTEXT_S = 5.0  # seconds around a span of a video that decide which cuts it has

# Chosen together with the defaults of `ShotRules`, on half of the labelled videos.
# factor on the greatest change around a cut; the product is added to `least`
NEIGHBOUR_FACTOR = 1.5
SOME_GONE_SHARE = 0.2  # loss (see `unlike`, rank `SOME_RANK`) of a sharp cut, 0-1
MOST_GONE_SHARE = 0.35  # loss (see `unlike`, rank `MOST_RANK`) of any other cut, 0-1
LASTING_SHARE = 0.6  # share of a cut's change that lasts; after a flash less does
MOST_RANK, SOME_RANK = 1 / 3, 2 / 3  # ranks of `unlike`: most of the frame is gone, some of it is


@dataclass(frozen=True, kw_only=True)
class ShotRules:
    """Thresholds of the shot detection.

    Changes are mean differences of brightness and colour, in 8-bit levels; losses (0 to 1) are
    those of `unlike`. The adaptive rule: a cut changes the frame by `least` plus `NEIGHBOUR_FACTOR`
    times the greatest change of the frames around, and its loss is `SOME_GONE_SHARE`. The absolute
    rule: it changes the frame by `clear` and by 1.2 times that greatest change, and its loss is
    `MOST_GONE_SHARE`. For both, the share `LASTING_SHARE` of the change lasts for the next quarter
    second.
    """

    least: float = 4.5
    """Least change at a cut: mean difference of brightness and colour, 0-255."""
    clear: float = 20.0
    """Change from which a cut counts even among others nearly as great, 0-255."""
    fade_below: float | None = 12.0
    """Mean brightness that counts as black, 0-255; null: no fades."""
    dissolve: float | None = 15.0
    """Least change from end to end of a dissolve or a sweep, 0-255; null: neither."""
    shortest: float = 0.25
    """Shortest shot, seconds."""


@dataclass(frozen=True, slots=True)
class ExaminedFrame:
    """A thumbnail at a time; `change` is the mean per frame where frames were skipped."""

    time: float
    thumbnail: Thumbnail
    change: float


class CutFinder:
    """Finds hard cuts while thumbnails go by, up to `MAX_WAIT_S` seconds late."""

    def __init__(self, rules: ShotRules) -> None:
        self._rules = rules
        self._seen: deque[ExaminedFrame] = deque()
        self._due = 0  # index of the first undecided frame

    def see(self, frames: Iterable[ExaminedFrame]) -> list[float]:
        """Take the next frames; return the times of the cuts decided by now."""
        self._seen.extend(frames)
        return self._decide(self._seen[-1].time)

    def rest(self) -> list[float]:
        """Return the cuts among the last frames."""
        return self._decide(float("inf"))

    @property
    def decided_until(self) -> float:
        """The time before which every cut is decided."""
        return self._seen[self._due].time if self._due < len(self._seen) else float("inf")

    def _decide(self, now: float) -> list[float]:
        cuts: list[float] = []
        seen, least = self._seen, self._rules.least
        while self._due < len(seen):
            frame = seen[self._due]
            if frame.change >= least:
                waited = now - frame.time
                if waited < MIN_LASTING_S:
                    break
                if waited < MAX_WAIT_S and len(_moving(self._later())) < NEIGHBOUR_FRAMES:
                    break
                if self._is_cut(frame):
                    cuts.append(frame.time)
            self._due += 1
        while (
            self._due > 2 * NEIGHBOUR_FRAMES
            and seen[0].time < seen[self._due - 1].time - MAX_WAIT_S
        ):
            seen.popleft()
            self._due -= 1
        return cuts

    def _later(self) -> Iterator[ExaminedFrame]:
        """The frames after the undecided one."""
        return islice(self._seen, self._due + 1, None)

    def _earlier(self) -> Iterator[ExaminedFrame]:
        """The frames before the undecided one, the last one first."""
        return (self._seen[n] for n in range(self._due - 1, -1, -1))

    def _is_cut(self, frame: ExaminedFrame) -> bool:
        if not self._due:
            return False
        rules, before = self._rules, self._seen[self._due - 1]
        is_near = frame.time - before.time < APART_S and before.change > MAX_STILL_CHANGE
        nearest = before.change if is_near else 0.0
        if frame.change < min(rules.clear, rules.least + NEIGHBOUR_FACTOR * nearest):
            return False  # As nearly always: the frame before alone rules out both rules.
        around = self._greatest_around(frame.time)
        is_sharp = frame.change >= rules.least + NEIGHBOUR_FACTOR * around
        if not is_sharp and frame.change < max(rules.clear, 1.2 * around):
            return False
        rank, min_loss = (SOME_RANK, SOME_GONE_SHARE) if is_sharp else (MOST_RANK, MOST_GONE_SHARE)
        if unlike(before.thumbnail, frame.thumbnail, rank) < min_loss:
            return False
        old = [s for s in self._earlier() if s.time > frame.time - MIN_LASTING_S] or [before]
        new = [frame, *(s for s in self._later() if s.time < frame.time + MIN_LASTING_S)]
        min_change = LASTING_SHARE * frame.change
        return all(change(a.thumbnail, b.thumbnail) >= min_change for a, b in product(old, new))

    def _greatest_around(self, time: float) -> float:
        """The greatest change of the frames around the undecided one, less those that are cuts of
        their own, as where a video has few frames.
        """
        greatest, seen = 0.0, self._seen
        for numbers in (range(self._due - 1, 0, -1), range(self._due + 1, len(seen))):
            near = (n for n in numbers if seen[n].change > MAX_STILL_CHANGE)
            for number in islice(near, NEIGHBOUR_FRAMES):
                before, frame = seen[number - 1], seen[number]
                apart = abs(frame.time - time)
                if apart > NEIGHBOUR_S + TIME_ROUNDING_S:
                    break
                if (
                    apart < APART_S
                    or unlike(before.thumbnail, frame.thumbnail, MOST_RANK) < MOST_GONE_SHARE
                ):
                    greatest = max(greatest, frame.change)
        return greatest


def _moving(frames: Iterable[ExaminedFrame]) -> tuple[float, ...]:
    """The changes of the next frames that do not repeat the one before."""
    return tuple(
        islice((s.change for s in frames if s.change > MAX_STILL_CHANGE), NEIGHBOUR_FRAMES)
    )


class ShotFinder:
    """Finds the cuts of a video, or of a span of it, while frames go by. `small`: the thumbnails,
    shared with other measurements of the same frames.

    Frames are taken in groups of a sixth of a second. If the last frame of a group differs from the
    last one of the group before by less than a cut would, the frames between are skipped: a change
    that comes and goes within that time is not a shot.

    In the span `since` <= time < `until` the same cuts are found as in the whole video. For that
    the groups are counted from the video's zero, and frames from `CONTEXT_S` before the span to
    `CONTEXT_S` after it are needed. A fade belongs to the span in which it begins, and is `due`
    until it has ended.
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
        self._cut_finder = CutFinder(rules)
        self._gradual = GradualFinder(rules.fade_below, rules.dissolve, since, until)
        self._waiting: list[tuple[float, Thumbnail]] = []
        # Frames for the gradual transitions, which wait until the cuts before them are decided.
        self._later: deque[tuple[float, Thumbnail, float]] = deque()
        self._unpassed: list[float] = []  # cuts not yet passed on to the gradual transitions
        self._last: Thumbnail | None = None
        self._first: float | None = None
        self._all_cuts: list[float] = []  # all cuts found
        self.cuts: list[float] = []  # the cuts within the span

    @property
    def due(self) -> bool:
        """Whether a fade that began in the span is still going on."""
        return self._gradual.due

    def see(self, frame: TimedFrame) -> Sequence[float]:
        """Take the next frame; return the times of the cuts found by now, up to some seconds before
        it.

        The time of a cut is that of the new shot's first frame.
        """
        if self._first is None:
            self._first = frame.time
        waiting, cuts = self._waiting, ()
        if waiting and (
            len(waiting) >= GROUPS_PER_CALL * MAX_GROUP_FRAMES
            or _group_number(waiting[0][0]) // GROUPS_PER_CALL
            != _group_number(frame.time) // GROUPS_PER_CALL
        ):
            cuts = self._examine_waiting()
        # Where nothing moves, few thumbnails of a group are examined. To take all of them now, and
        # keep no frame, makes `look` 1.5 % faster at 1080p all the same (docs/measured.md).
        self._waiting.append((frame.time, self._small(frame.decoded)))
        return cuts

    def rest(self) -> Sequence[float]:
        """Return the cuts among the last frames."""
        cuts = self._examine_waiting() if self._waiting else []
        cuts += self._transitions(self._cut_finder.rest())
        transitions = self._without_short_shots(self._gradual.rest())
        self.cuts += transitions
        return cuts + transitions

    def _examine_waiting(self) -> list[float]:
        """Examine the waiting frames."""
        waiting, self._waiting = self._waiting, []
        groups = (
            frames[n : n + MAX_GROUP_FRAMES]
            for frames in (
                list(group) for _, group in groupby(waiting, lambda timed: _group_number(timed[0]))
            )
            for n in range(0, len(frames), MAX_GROUP_FRAMES)
        )
        return self._transitions(
            self._cut_finder.see(chain.from_iterable(map(self._examine_group, groups)))
        )

    def _examine_group(self, waiting: Sequence[tuple[float, Thumbnail]]) -> list[ExaminedFrame]:
        """The frames that are examined of one group."""
        time, last = waiting[-1]
        previous = self._last
        moved = change(previous, last) if previous else 0.0
        if not previous or moved >= self._rules.least * MIN_LASTING_SHARE:
            examined = list[ExaminedFrame]()
            for at, thumbnail in waiting:
                changed = change(previous, thumbnail) if previous else 0.0
                examined.append(ExaminedFrame(at, thumbnail, changed))
                previous = thumbnail
        else:
            examined = [ExaminedFrame(time, last, moved / len(waiting))]
        self._last = last
        self._later.append((time, last, moved))
        return examined

    def _transitions(self, hard_cuts: Sequence[float]) -> list[float]:
        """The cuts just found, and the gradual transitions between them."""
        hard_cuts = self._without_short_shots(hard_cuts)
        self._unpassed += hard_cuts
        transitions = [cut for cut in hard_cuts if self._since <= cut < self._until]
        while self._later and self._later[0][0] < self._cut_finder.decided_until:
            time, thumbnail, moved = self._later.popleft()
            cuts = [cut for cut in self._unpassed if cut <= time]
            self._unpassed = self._unpassed[len(cuts) :]
            transitions += self._without_short_shots(
                self._gradual.see(time, thumbnail, moved, cuts)
            )
        self.cuts += transitions
        return transitions

    def _without_short_shots(self, times: Sequence[float]) -> list[float]:
        """The times that make no shot shorter than the shortest."""
        accepted: list[float] = []
        for time in times:
            others = (self._first or 0.0, *self._all_cuts[-8:])
            if all(abs(time - other) >= self._rules.shortest - 1e-6 for other in others):
                self._all_cuts.append(time)
                accepted.append(time)
        return accepted

    def shots(self, end: float) -> tuple[Span, ...]:
        """Return the shots from the first frame to `end`."""
        self.rest()
        if self._first is None:
            return ()
        return shots_between(self._first, self.cuts, end, self._rules.shortest)


def _group_number(time: float) -> int:
    """The number of the group, a sixth of a second, to which the frame at a time belongs."""
    return int((time + TIME_ROUNDING_S) / GROUP_S)


def shots_between(
    first: float, cuts: Iterable[float], end: float, shortest: float
) -> tuple[Span, ...]:
    """Return the shots from `first` to `end`, without gaps; one that is too short joins the one
    before.
    """
    edges = [first]
    for cut in sorted(cuts):
        if min(cut - edges[-1], end - cut) >= shortest - 1e-6:
            edges.append(cut)
    return tuple(Span(a, b) for a, b in pairwise([*edges, end]))


def shown_until(last_end: float, duration: float) -> float:
    """Return when the last shot ends: with the video where its last frame is held, as in screen
    recordings; else with that frame, because sound may last a little longer.
    """
    from mustsee.media.video import HELD_S

    return duration if duration - last_end > HELD_S else last_end


def shots_of(uri: str, rules: ShotRules | None = None) -> tuple[Span, ...]:
    """Return the shots of a file, which is decoded completely. Raises BadRow and Transient."""
    from mustsee.media.video import open_video

    with open_video(uri, deblocked=False) as video:  # as `look` decodes
        finder, last = ShotFinder(rules or ShotRules()), None
        for last in video.frames():
            finder.see(last)
        duration = video.duration() if last else 0.0
    return finder.shots(shown_until(last.end(video.fps or USUAL_FPS), duration)) if last else ()
