"""The limits of an endpoint: configured ones, quotas that its replies report,
and limits found by trying (`mustsee.calls.limit_search`).

Requests and tokens per minute are token buckets. Time is an argument, so that tests can set it. A
call asks before it starts: it is admitted, to start after `wait` seconds, or held back, to ask
again after `wait` seconds. The caller does the waiting; nothing here sleeps.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from mustsee.calls.limit_search import LONGEST_HOLD, SLOW_RATIO, Search, Slowness
from mustsee.errors import UserError

# The inflow of this time may start at once, because endpoints count in windows of seconds.
BURST_S = 1.0
# The longest time from admission to start, kept short so that new limits apply to a call.
HORIZON_S = 0.1
TROUBLE_AFTER_S = 5.0  # seconds without an answer after which the endpoint's message is shown
REFUSAL_CALLS = 8  # recent calls over which the share of refusals is averaged
RETRY_SILENT_AFTER_S = 5.0  # seconds between two attempts at an endpoint that answers nothing
QUOTA_HEADER = "x-ratelimit-limit-"  # start of the quota headers of OpenAI-compatible endpoints
PERIODS_S = (1.0, 60.0, 3600.0, 86400.0)  # periods over which endpoints count limits
UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What an endpoint allows one account; None: no limit."""

    requests_per_minute: float | None = None
    """Ceiling for the whole cluster; null: what the endpoint's headers say, or what it
    accepts."""
    tokens_per_minute: float | None = None
    """Ceiling for the whole cluster, input and output; null: as above."""
    search: bool = True
    """Find by trying how much the endpoint accepts; false: use the ceilings alone (it refuses
    calls at random)."""

    def __post_init__(self) -> None:
        for name in ("requests_per_minute", "tokens_per_minute"):
            value: float | None = getattr(self, name)
            if value is not None and value <= 0:
                raise UserError(f"{name}={value!r}: must be above 0, or null for no limit")


class Bucket:
    """A token bucket: `per_minute` units flow in evenly, and at most `room` are saved up.

    The default `room` is the inflow of `BURST_S` seconds, and at least one unit. In any span of `t`
    seconds at most `room + t * per_minute / 60` units start. `waited_s`: seconds in which any call
    waited for the bucket.
    """

    def __init__(self, per_minute: float, now: float, room: float | None = None) -> None:
        self.rate = per_minute / 60
        self.room = max(1.0, self.rate * BURST_S if room is None else room)
        self.waited_s = 0.0
        self._level, self._at, self._held_until = self.room, now, now

    def _flow(self, now: float) -> None:
        self._level = min(self.room, self._level + max(0.0, now - self._at) * self.rate)
        self._at = max(self._at, now)

    def reserve(self, units: float, now: float) -> float:
        """Take `units` and return the seconds to wait until they have flowed in.

        More units may be taken than the bucket holds: later calls wait for the debt.
        """
        self._flow(now)
        self._level -= units
        wait = self.seconds_until_free(now)
        self.count_wait(wait, now)
        return wait

    def seconds_until_free(self, now: float) -> float:
        """Return the seconds until all reserved units have flowed in."""
        self._flow(now)
        return max(0.0, -self._level / self.rate)

    def count_wait(self, seconds: float, now: float) -> None:
        """Add a wait of `seconds` to `waited_s`; overlapping waits of several calls count once."""
        self.waited_s += max(0.0, now + seconds - max(now, self._held_until))
        self._held_until = max(self._held_until, now + seconds)

    def cap_level(self, units: float, now: float) -> None:
        """Lower the level to `units`, because other clients use the same quota."""
        self._flow(now)
        self._level = min(self._level, units)

    def refund(self, units: float, now: float) -> None:
        """Return units that were reserved and not used; negative where more were used."""
        self._flow(now)
        self._level = min(self.room, self._level + units)


@dataclass(frozen=True)
class Admission:
    """Whether a call may start.

    `go`: start after `wait` seconds; otherwise ask again after `wait` seconds. `call`: the number
    of the admitted call.
    """

    go: bool
    wait: float = 0.0
    call: int = 0


class Rates:
    """The limits of one account and its calls in flight.

    `last_message`: the endpoint's last message, shown while it refuses or is silent.
    """

    def __init__(self, limits: Limits, now: float) -> None:
        self.limits = limits
        requests, tokens = limits.requests_per_minute, limits.tokens_per_minute
        self._requests = Bucket(requests, now) if requests is not None else None
        self._tokens = Bucket(tokens, now) if tokens is not None else None
        self._reported: dict[str, tuple[Quota, Bucket]] = {}
        self._list_buckets()
        self.last_message = ""
        self._refused = 0.0  # share of recent calls
        self.search = Search() if limits.search else Search(math.inf)
        self.in_flight = 0
        self._closed_until = self._next = self._line = self._retry_at = now
        self._silent_since = math.inf
        self._slowness = Slowness()

    @property
    def held_seconds(self) -> dict[str, float]:
        """Seconds in which calls waited for a limit, by `name=value` of the configured limit, or by
        header and value of the reported one.
        """
        configured = (("requests_per_minute", self._requests), ("tokens_per_minute", self._tokens))
        seconds_by_limit = {
            f"{n}={b.rate * 60:.12g}": b.waited_s for n, b in configured if b is not None
        }
        for name, (quota, bucket) in self._reported.items():
            seconds_by_limit[f"{QUOTA_HEADER}{name}={quota.limit:.12g}"] = bucket.waited_s
        return {name: seconds for name, seconds in seconds_by_limit.items() if seconds}

    def _buckets_of(self, unit: str, configured: Bucket | None) -> list[Bucket]:
        reported = self._reported.get(unit)
        return [b for b in (configured, reported and reported[1]) if b is not None]

    def _list_buckets(self) -> None:
        self._of_requests = self._buckets_of("requests", self._requests)
        self._of_tokens = self._buckets_of("tokens", self._tokens)

    def record_quotas(self, quotas: Mapping[str, Quota], now: float) -> None:
        """Apply the quotas of "requests" and "tokens" that a reply reported."""
        for name, quota in quotas.items():
            reported = self._reported.get(name)
            if reported is None or reported[0].limit != quota.limit:
                bucket = Bucket(quota.per_minute, now, room=quota.limit)
                self._reported[name] = reported = quota, bucket
                self._list_buckets()
            reported[1].cap_level(quota.remaining, now)

    def admit(self, tokens: float, now: float) -> Admission:
        """Return whether a request of `tokens` may start. It is then in flight until `release`."""
        closed = self._seconds_closed(now)
        if closed is not None:
            return Admission(False, self._wait_in_line(now, closed))
        # A call that asks a little late does not slow down those behind it.
        self._next = max(self._next, now - 2 / self.search.rate)
        waits = [self._next - now, 0.0]
        if waits[0] > 0:
            self.search.record_wait("rate", now)
        self._next += 1 / self.search.rate
        waits += [bucket.reserve(1, now) for bucket in self._of_requests]
        waits += [bucket.reserve(tokens, now) for bucket in self._of_tokens]
        self.in_flight += 1
        return Admission(True, max(waits), self.search.record_start(now + max(waits)))

    def _seconds_closed(self, now: float) -> float | None:
        """Return the seconds in which no call may start, or None if one may start now."""
        over = 0.0
        if now < self._closed_until:
            return self._closed_until - now
        if self.in_flight + 1 > self.search.window:
            self.search.record_wait("window", now)
            return 0.0
        if self._next - now > HORIZON_S:
            self.search.record_wait("rate", now)
            return self._next - now - HORIZON_S
        for bucket in (*self._of_requests, *self._of_tokens):
            if (debt := bucket.seconds_until_free(now)) > HORIZON_S:
                bucket.count_wait(debt, now)
                over = max(over, debt - HORIZON_S)
        return over or None

    def _wait_in_line(self, now: float, closed: float) -> float:
        """Return the seconds after which a call that is held back asks again.

        Calls ask one after another, two for each that can start.
        """
        first = now + closed
        self._line = min(max(self._line, first), first + LONGEST_HOLD)
        self._line += 1 / max(50.0, 2 * self.search.observed_rate)
        return self._line - now

    def release(self, unused: float, now: float) -> None:
        """End a call, and return the `unused` tokens that it had reserved."""
        self.in_flight = max(0, self.in_flight - 1)
        for bucket in self._of_tokens:
            bucket.refund(unused, now)

    def record_answer(self, call: int, prompt: str, seconds: float) -> None:
        """Learn from a released call that was answered after `seconds`."""
        self._silent_since = math.inf
        self._refused -= self._refused / REFUSAL_CALLS
        self.search.record_answer(call)
        slow = self._slowness.measure_slowdown(prompt, seconds, self.in_flight + 1)
        if slow is not None and self.limits.search:
            self.search.cut("window", round(self.in_flight * SLOW_RATIO / slow))

    def record_refusal(self, call: int, now: float, has_retry_after: bool = False) -> None:
        """Learn from a released call that was refused, perhaps with a Retry-After."""
        if self.limits.search:
            self.search.record_refusal(call, self.in_flight, now, has_retry_after)
        self.record_failure(now)

    def record_failure(self, now: float) -> None:
        """Note a retryable failure of a call."""
        self._refused += (1 - self._refused) / REFUSAL_CALLS
        self._silent_since = min(self._silent_since, now)

    def pause(self, seconds: float, now: float) -> None:
        """Start no call for `seconds`, as the endpoint's Retry-After demands."""
        self.search.record_retry_after(seconds)
        self._closed_until = max(self._closed_until, now + seconds)
        self._next = max(self._next, self._closed_until)

    def trouble_message(self, now: float) -> str:
        """Return the endpoint's message while it is silent or refuses most calls, else ""."""
        silent = now - self._silent_since > TROUBLE_AFTER_S
        return self.last_message if silent or self._refused > 1 / 2 else ""

    def is_silent(self, patience: float, now: float) -> bool:
        """Whether nothing was answered for `patience` seconds.

        Every `RETRY_SILENT_AFTER_S` seconds the result is False, so that one call tries.
        """
        if now - self._silent_since <= patience:
            return False
        may_retry = now >= self._retry_at
        self._retry_at = now + RETRY_SILENT_AFTER_S if may_retry else self._retry_at
        return not may_retry


@dataclass(frozen=True)
class Quota:
    """What an endpoint's replies report: `limit` units in `period` seconds, of which `remaining`
    are left.
    """

    limit: float
    remaining: float
    period: float

    @property
    def per_minute(self) -> float:
        return self.limit * 60 / self.period


def quotas_in(headers: Mapping[str, str]) -> dict[str, Quota]:
    """Return the quotas of "requests" and "tokens" that a reply's headers report, in the form of
    OpenAI-compatible endpoints (https://platform.openai.com/docs/guides/rate-limits, read 2026):

        x-ratelimit-limit-tokens: 150000    x-ratelimit-remaining-tokens: 149984
        x-ratelimit-reset-tokens: 6m0s      also in seconds, without a unit

    `reset` is the time until the whole limit is available. The period of a limit is not reported
    (OpenAI counts by the minute, Groq counts requests by the day). It is computed from the used
    units and `reset`. A quota is left out where its headers are invalid, or where none of it is
    used.
    """
    quotas = {name: _quota(headers, name) for name in ("requests", "tokens")}
    return {name: quota for name, quota in quotas.items() if quota is not None}


def _quota(headers: Mapping[str, str], name: str) -> Quota | None:
    limit_header = headers.get(f"x-ratelimit-limit-{name}")
    if limit_header is None:
        return None
    try:
        limit = float(limit_header)
        remaining = float(headers.get(f"x-ratelimit-remaining-{name}", ""))
    except ValueError:
        return None
    reset = duration(headers.get(f"x-ratelimit-reset-{name}", ""))
    if reset is None or not reset > 0 or not 0 <= remaining < limit < math.inf:
        return None
    rate = (limit - remaining) / reset
    period = min(PERIODS_S, key=lambda seconds: abs(math.log(rate * seconds / limit)))
    return Quota(limit, remaining, period)


def duration(value: str) -> float | None:
    """Return the seconds of "6m0s", "59.3ms" or "1.5"; None for anything else."""
    text = value.strip().lower()
    if re.fullmatch(r"\d+(\.\d+)?", text):
        return float(text)
    if not re.fullmatch(rf"({DURATION.pattern})+", text):
        return None
    return sum(float(number) * UNITS[unit] for number, unit in DURATION.findall(text))
