"""The plan of a synthesised video: which clip goes where. It is seeded and stored beside the video,
so that the answer to a question is known by construction (MLVU, F.4, F.8, F.9).

A plan is in seconds. `mustsee.synth.make` puts every cut on the frame that is shown then, and says
where each probe really ended up.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from mustsee.records import Span

MAX_TRIES = 10_000


@dataclass(frozen=True, kw_only=True)
class InsertedProbe:
    """A stretch of a clip, to be shown within another video; `label` says what is in it."""

    uri: str
    start: float = 0.0
    end: float
    label: str = ""

    def __post_init__(self) -> None:
        if not 0 <= self.start < self.end:
            raise ValueError(f"a probe needs 0 <= start < end: {self!r}")


@dataclass(frozen=True, kw_only=True)
class Insertion:
    """The background stops at `at` (its own clock), the probe is shown, the background goes on."""

    at: float
    probe: InsertedProbe


@dataclass(frozen=True, kw_only=True)
class InsertionPlan:
    """The background between `start` and `end`, with probes inserted (nothing is overwritten).

    `insertions` are in order of time; several may share one moment and follow each other.
    """

    background: str
    start: float = 0.0
    end: float
    insertions: tuple[Insertion, ...] = ()

    def __post_init__(self) -> None:
        times = [i.at for i in self.insertions]
        if not 0 <= self.start < self.end:
            raise ValueError(f"a background needs 0 <= start < end: {self.start!r}, {self.end!r}")
        if times != sorted(times) or any(not self.start <= t <= self.end for t in times):
            raise ValueError(
                f"insertions must be in order and within the background "
                f"({self.start:g} to {self.end:g} s): {times!r}"
            )

    @property
    def seconds(self) -> float:
        """The length of the whole: background and probes."""
        return self.end - self.start + sum(i.probe.end - i.probe.start for i in self.insertions)

    def placements(self) -> list[Span]:
        """When each probe is on screen, on the clock of the whole."""
        spans: list[Span] = []
        before = 0.0
        for insertion in self.insertions:
            begin = insertion.at - self.start + before
            length = insertion.probe.end - insertion.probe.start
            spans.append(Span(begin, begin + length))
            before += length
        return spans


@dataclass(frozen=True, kw_only=True)
class PositionRule:
    """How positions are drawn: uniformly over all that keep these rules (MLVU gives none).

    In seconds of the background. `gap`: the least distance between two of them. `margin`: the least
    distance to the beginning and the end. `near_cut`: the greatest distance to a cut between shots
    (null: anywhere), so that no shot is torn in its middle.
    """

    gap: float = 20.0
    margin: float = 10.0
    near_cut: float | None = None


def positions(
    count: int,
    start: float,
    end: float,
    spread: PositionRule,
    seed: str,
    shots: Sequence[Span] = (),
) -> list[float]:
    """`count` moments of a background, in order, drawn uniformly over all that keep the rules.

    Raises ValueError when the background has no room for them.
    """
    first, last = start + spread.margin, end - spread.margin
    room = last - first - spread.gap * (count - 1)
    if count < 1:
        return []
    if room < 0:
        raise ValueError(
            f"no room for {count} insertions between {start:g} and {end:g} s with gap="
            f"{spread.gap:g} and margin={spread.margin:g}: take a longer background or lower them"
        )
    draw = random.Random(seed)
    allowed = _allowed(first, last, spread.near_cut, shots)
    for _ in range(MAX_TRIES):
        # Points of a shorter stretch, spread by the gaps: uniform over all sets that keep the gap.
        points = sorted(first + draw.random() * room for _ in range(count))
        found = [p + i * spread.gap for i, p in enumerate(points)]
        if allowed is not None:
            found = sorted(_on(allowed, draw.random()) for _ in range(count))
            if any(b - a < spread.gap for a, b in pairwise(found)):
                continue
        return found
    raise ValueError(
        f"found no {count} moments that are {spread.gap:g} s apart and within {spread.near_cut:g} s"
        f" of a cut between {start:g} and {end:g} s: raise near_cut, lower gap, or take another"
        " background"
    )


def _allowed(
    first: float, last: float, near_cut: float | None, shots: Sequence[Span]
) -> list[Span] | None:
    """The stretches close to a cut; None when anywhere is allowed."""
    if near_cut is None:
        return None
    cuts = sorted({shot.start for shot in shots} | {shot.end for shot in shots})
    found: list[Span] = []
    for cut in cuts:
        low, high = max(first, cut - near_cut), min(last, cut + near_cut)
        if low > high:
            continue
        if found and low <= found[-1].end:
            found[-1] = Span(found[-1].start, max(high, found[-1].end))
        else:
            found.append(Span(low, high))
    if not found:
        raise ValueError(f"no cut between shots from {first:g} to {last:g} s: leave near_cut unset")
    return found


def _on(stretches: Sequence[Span], share: float) -> float:
    """The point at `share` (0 to 1) of the stretches laid end to end."""
    rest = share * sum(s.seconds for s in stretches)
    for stretch in stretches:
        if rest <= stretch.seconds:
            return stretch.start + rest
        rest -= stretch.seconds
    return stretches[-1].end


def plan(
    background: str,
    start: float,
    end: float,
    probes: Sequence[InsertedProbe],
    *,
    spread: PositionRule | None = None,
    seed: str | int = 0,
    shots: Sequence[Span] = (),
) -> InsertionPlan:
    """A plan that shows `probes`, in the order given, at seeded moments of the background."""
    moments = positions(
        len(probes), start, end, spread or PositionRule(), f"{seed}/{background}/positions", shots
    )
    insertions = tuple(Insertion(at=t, probe=p) for t, p in zip(moments, probes, strict=True))
    return InsertionPlan(background=background, start=start, end=end, insertions=insertions)
