"""`pace` of run.json: what each stage did in an hour of the clock and what it paid, beside what it
could have done, and why its workers stood idle.

A place is room for one row in one worker. While the job streams, each second of a stage belongs to
one `Doing`; so much is known without asking the workers anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from mustsee.calls.usage import CallCounts

# "starting": no worker is up; "full": as many rows as places; "rows": fewer, and more are to come
# from the stage before; "few": fewer, and no more will come; "done": none are left.
Doing = Literal["starting", "full", "rows", "few", "done"]
MAIN_SHARE = 0.5  # of a stage's work: what takes more is what it waits for


def stage_state(*, started: int, waiting: int, left: int, places: int) -> Doing:
    """What a stage does: of `left` rows to come or to end, `waiting` have come."""
    if left <= 0:
        return "done"
    if not started:
        return "starting"
    if waiting >= places:
        return "full"
    return "few" if waiting >= left else "rows"


@dataclass
class StageSeconds:
    """Seconds of a stage by what it did, and of all its places together."""

    seconds: dict[Doing, float] = field(default_factory=dict[Doing, float])
    places: float = 0.0

    def see(self, now: Doing, seconds: float, places: int) -> None:
        self.seconds[now] = self.seconds.get(now, 0.0) + seconds
        self.places += seconds * places


@dataclass(frozen=True, kw_only=True)
class EndpointLimits:
    """What an endpoint allows in a minute; None is no limit."""

    calls: float | None = None
    tokens: float | None = None

    def hours(self, tally: CallCounts) -> float:
        """The hours that it takes at least for these calls."""
        tokens = tally.tokens_in + tally.tokens_out
        bounds = ((tally.calls, self.calls), (tokens, self.tokens))
        return max((n / most / 60 for n, most in bounds if most), default=0.0)


@dataclass(frozen=True, kw_only=True)
class StageWork:
    """One stage of a run. `video`: hours of video that it worked on, `work`: hours that its workers
    were at it, `taken`: hours that its places had a row; `usd`: paid by all runs of the folder;
    `limit`: the one that the run's calls waited for longest.
    """

    name: str
    video: float = 0.0
    work: float = 0.0
    taken: float = 0.0
    usd: float = 0.0
    limit: str = ""
    calls: CallCounts = field(default_factory=CallCounts)
    allowed: EndpointLimits = field(default_factory=EndpointLimits)
    watched: StageSeconds = field(default_factory=StageSeconds)

    def plain(self, before: str, kept: int) -> dict[str, Any]:
        """`before`: the stage that its rows come from; `kept`: questions."""
        clocked = sum(self.watched.seconds.values()) / 3600
        busy = self.taken * 3600 / self.watched.places if self.watched.places else 0.0
        return {
            "video_hours": round(self.video, 4),
            "per_hour_of_work": _rate(self.video, self.work),
            "per_hour": _rate(self.video, clocked),
            "ceiling": self._ceiling(clocked, busy),
            "busy": round(busy, 3),
            "idle": {name: round(s / 3600 / clocked, 3) for name, s in self._idle() if clocked},
            "why": self._why(before),
            "usd": round(self.usd, 8),
            "usd_per_kept_question": round(self.usd / kept, 8) if kept else None,
        }

    def _ceiling(self, clocked: float, busy: float) -> float | None:
        """Hours of video an hour, had no place been without work; no more than the endpoint lets
        through.
        """
        if not busy or not clocked or not self.video:
            return None
        least = max(clocked * busy, self.allowed.hours(self.calls))
        return _rate(self.video, least)

    def _idle(self) -> list[tuple[Doing, float]]:
        found = sorted(self.watched.seconds.items(), key=lambda item: -item[1])
        return [(name, seconds) for name, seconds in found if name != "full" and seconds]

    def _why(self, before: str) -> str:
        """The one thing that most of its idle time was for; of a stage that seldom had too few
        rows, what its work itself waits for.
        """
        seconds, work = self.watched.seconds, self.taken * 3600
        if not seconds:
            return ""
        most = max(seconds, key=lambda name: seconds[name])
        held = self.calls.held > MAIN_SHARE * (self.calls.held + self.calls.seconds)
        if held and self.limit and most in ("full", "few"):
            return f"its calls wait for {self.limit}"
        if most != "full":
            return {
                "starting": "its workers were starting",
                "rows": f"waits for rows of {before}" if before else "waits for rows",
                "few": "fewer rows than its workers could do at once",
                "done": "done before the others",
            }[most]
        if held:
            return "its calls wait for the endpoint's limits"
        if self.calls.seconds > MAIN_SHARE * work:
            return "waits for the endpoint's replies"
        return "others wait for it"


def plain(
    stages: Sequence[StageWork], *, kept: int, seconds: float, cores: float
) -> dict[str, Any]:
    """`pace` of run.json; nothing where no stage did or paid anything. `seconds`: of the run."""
    befores = ("", *(each.name for each in stages))
    told = {
        each.name: each.plain(before, kept)
        for each, before in zip(stages, befores, strict=False)
        if each.video or each.usd
    }
    worked = max((each.video for each in stages), default=0.0)
    if not worked or not seconds:
        return {"stages": told} if told else {}
    per_hour = worked * 3600 / seconds
    return {
        "video_hours": round(worked, 4),
        "per_hour": round(per_hour, 3),
        "per_core_hour": round(per_hour / cores, 3) if cores else None,
        "stages": told,
    }


def slowest(told: Mapping[str, Any]) -> str | None:
    """Of the stages in `pace`, that which does the least in an hour of a worker's work."""
    rates = {n: s["per_hour_of_work"] for n, s in told.get("stages", {}).items()}
    known = {name: rate for name, rate in rates.items() if rate}
    return min(known, key=lambda name: known[name], default=None)


def _rate(video: float, hours: float) -> float | None:
    return round(video / hours, 3) if video and hours else None
