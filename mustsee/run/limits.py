"""Requests and tokens per minute, as token buckets that a test can run on a clock of its own.

A call reserves before it starts, is told how long to wait, and gives back what it did not use.
The caller does the waiting: nothing here sleeps.
"""

from __future__ import annotations

from dataclasses import dataclass

from mustsee.errors import UserError

BURST = 1.0  # seconds' worth of calls that may start at once; endpoints count in windows of seconds


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What an endpoint allows one account; None is no limit."""

    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value is not None and value <= 0:
                raise UserError(f"{name}={value!r}: must be above 0, or null for no limit")


class Bucket:
    """`per_minute` units flow in evenly, at most `BURST` seconds' worth (at least one) is saved up.

    In any stretch of `t` seconds at most `room + t * per_minute / 60` units are let start.
    """

    def __init__(self, per_minute: float, now: float) -> None:
        self.rate = per_minute / 60
        self.room = max(1.0, self.rate * BURST)
        self._level, self._at = self.room, now

    def _flow(self, now: float) -> None:
        self._level = min(self.room, self._level + max(0.0, now - self._at) * self.rate)
        self._at = max(self._at, now)

    def reserve(self, units: float, now: float) -> float:
        """Take `units` and return the seconds to wait until they have flowed in. More than the
        bucket holds may be taken: it is a debt that those who come later wait for.
        """
        self._flow(now)
        self._level -= units
        return max(0.0, -self._level / self.rate)

    def refund(self, units: float, now: float) -> None:
        """Give back what was reserved and not used; negative where more was used."""
        self._flow(now)
        self._level = min(self.room, self._level + units)


class Rates:
    """The buckets of one account, and the time before which the endpoint wants no calls."""

    def __init__(self, limits: Limits, now: float) -> None:
        self.limits = limits
        requests, tokens = limits.requests_per_minute, limits.tokens_per_minute
        self._requests = Bucket(requests, now) if requests is not None else None
        self._tokens = Bucket(tokens, now) if tokens is not None else None
        self._closed_until = now

    def reserve(self, tokens: float, now: float) -> float:
        """Seconds to wait before one request of `tokens` may start."""
        waits = [self._closed_until - now, 0.0]
        if self._requests is not None:
            waits.append(self._requests.reserve(1, now))
        if self._tokens is not None:
            waits.append(self._tokens.reserve(tokens, now))
        return max(waits)

    def refund(self, tokens: float, now: float) -> None:
        """Tokens that were reserved and not used."""
        if self._tokens is not None:
            self._tokens.refund(tokens, now)

    def pause(self, seconds: float, now: float) -> None:
        """The endpoint said Retry-After: nothing new starts before that."""
        self._closed_until = max(self._closed_until, now + seconds)
