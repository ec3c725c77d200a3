"""`pace` of run.json: hours of video that each stage processed per hour, its money, its highest
possible pace, and why its workers were idle.

A place is room for one row in one worker. While the job streams, each second of a stage has one
`Doing`. It is computed from row counts, without asking the workers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from mustsee.calls.usage import CallCounts

# "starting": no worker runs yet; "full": as many rows as places; "rows": fewer rows, and more will
# come from the previous stage; "few": fewer rows, and no more will come; "done": no rows are left.
Doing = Literal["starting", "full", "rows", "few", "done"]
MAIN_SHARE = 0.5  # share of a stage's time; an activity with more of it is named as the reason


def stage_state(*, started: int, waiting: int, left: int, places: int) -> Doing:
    """Return what a stage does.

    `started`: workers that run. `left`: rows that are not finished. `waiting`: those of them that
    have arrived.
    """
    if left <= 0:
        return "done"
    if not started:
        return "starting"
    if waiting >= places:
        return "full"
    return "few" if waiting >= left else "rows"


@dataclass
class StageSeconds:
    """Seconds of a stage by what it did, and the summed seconds of all its places."""

    seconds: dict[Doing, float] = field(default_factory=dict[Doing, float])
    places: float = 0.0

    def see(self, now: Doing, seconds: float, places: int) -> None:
        self.seconds[now] = self.seconds.get(now, 0.0) + seconds
        self.places += seconds * places


@dataclass(frozen=True, kw_only=True)
class EndpointLimits:
    """Calls and tokens per minute that an endpoint allows; None: no limit."""

    calls: float | None = None
    tokens: float | None = None

    def hours(self, counts: CallCounts) -> float:
        """Return the hours that the endpoint needs for these calls at least."""
        tokens = counts.tokens_in + counts.tokens_out
        bounds = ((counts.calls, self.calls), (tokens, self.tokens))
        return max((n / limit / 60 for n, limit in bounds if limit), default=0.0)


@dataclass(frozen=True, kw_only=True)
class StageWork:
    """One stage of a run.

    `video`: hours of video that it processed.
    `work`: hours that its workers were busy.
    `taken`: hours that its places had a row.
    `usd`: dollars paid by all runs of the folder.
    `limit`: the limit for which the run's calls waited longest.
    `allowed`: the limits of its endpoint.
    `watched`: its seconds while rows were streaming.
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
        """Return the stage's entry; `before`: the previous stage; `kept`: kept questions."""
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
        """Return hours of video per hour with all places busy, or at the endpoint's limits if those
        are lower.
        """
        if not busy or not clocked or not self.video:
            return None
        min_hours = max(clocked * busy, self.allowed.hours(self.calls))
        return _rate(self.video, min_hours)

    def _idle(self) -> list[tuple[Doing, float]]:
        longest_first = sorted(self.watched.seconds.items(), key=lambda item: -item[1])
        return [(name, seconds) for name, seconds in longest_first if name != "full" and seconds]

    def _why(self, before: str) -> str:
        """Return the main reason of the stage's idle time.

        For a stage that mostly had enough rows, it is what its work waits for.
        """
        seconds, work = self.watched.seconds, self.taken * 3600
        if not seconds:
            return ""
        longest = max(seconds, key=lambda name: seconds[name])
        is_limited = self.calls.held > MAIN_SHARE * (self.calls.held + self.calls.seconds)
        if is_limited and self.limit and longest in ("full", "few"):
            return f"its calls wait for {self.limit}"
        if longest != "full":
            return {
                "starting": "its workers were starting",
                "rows": f"waits for rows of {before}" if before else "waits for rows",
                "few": "fewer rows than its workers could do at once",
                "done": "done before the other stages",
            }[longest]
        if is_limited:
            return "its calls wait for the endpoint's limits"
        if self.calls.seconds > MAIN_SHARE * work:
            return "waits for the endpoint's replies"
        return "other stages wait for it"


def plain(
    stages: Sequence[StageWork], *, kept: int, seconds: float, cores: float
) -> dict[str, Any]:
    """Return `pace` of run.json; `seconds`: duration of the run.

    It is empty where no stage worked on or paid for anything.
    """
    previous = ("", *(each.name for each in stages))
    by_stage = {
        each.name: each.plain(before, kept)
        for each, before in zip(stages, previous, strict=False)
        if each.video or each.usd
    }
    worked = max((each.video for each in stages), default=0.0)
    if not worked or not seconds:
        return {"stages": by_stage} if by_stage else {}
    per_hour = worked * 3600 / seconds
    return {
        "video_hours": round(worked, 4),
        "per_hour": round(per_hour, 3),
        "per_core_hour": round(per_hour / cores, 3) if cores else None,
        "stages": by_stage,
    }


def slowest(pace: Mapping[str, Any]) -> str | None:
    """Return the stage in `pace` with the least hours of video per hour of a worker's work."""
    rates = {n: s["per_hour_of_work"] for n, s in pace.get("stages", {}).items()}
    measured = {name: rate for name, rate in rates.items() if rate}
    return min(measured, key=lambda name: measured[name], default=None)


def _rate(video: float, hours: float) -> float | None:
    return round(video / hours, 3) if video and hours else None
