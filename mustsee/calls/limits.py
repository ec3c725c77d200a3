"""What an endpoint lets through: limits that are configured, those that its replies tell
(`mustsee.calls.quota`), and those that are found by trying (`mustsee.calls.limit_search`).

Requests and tokens per minute are token buckets; all run on a clock that a test can turn. A call
asks before it starts and is let go, to start after so many seconds, or held back, to ask again
after so many. The caller does the waiting: nothing here sleeps.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from mustsee.calls.limit_search import LONGEST_HOLD, SLOW_RATIO, Search, Slowness
from mustsee.calls.quota import Quota
from mustsee.errors import UserError

# seconds' worth of calls that may start at once; endpoints count in windows of seconds
BURST_S = 1.0
HORIZON_S = 0.1  # seconds before its start that a call is let go: what is found meanwhile holds
TROUBLE_AFTER_S = 5.0  # seconds without an answer after which it is shown what the endpoint says
FEW_CALLS = 8  # over which it is seen whether most are refused
RETRY_SILENT_AFTER_S = 5.0  # seconds after which an endpoint that answers nothing is asked again
TOLD = "x-ratelimit-limit-"  # header of OpenAI-compatible endpoints


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What an endpoint allows one account; None is no limit. `search`: find below these what it
    takes, by trying.
    """

    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    search: bool = True

    def __post_init__(self) -> None:
        for name in ("requests_per_minute", "tokens_per_minute"):
            value: float | None = getattr(self, name)
            if value is not None and value <= 0:
                raise UserError(f"{name}={value!r}: must be above 0, or null for no limit")


class Bucket:
    """`per_minute` units flow in evenly, at most `room` are saved up (`BURST_S` seconds' worth, and
    at least one).

    In any stretch of `t` seconds at most `room + t * per_minute / 60` units are let start. `held`:
    seconds in which somebody had to wait for it.
    """

    def __init__(self, per_minute: float, now: float, room: float | None = None) -> None:
        self.rate = per_minute / 60
        self.room = max(1.0, self.rate * BURST_S if room is None else room)
        self.held = 0.0
        self._level, self._at, self._held_until = self.room, now, now

    def _flow(self, now: float) -> None:
        self._level = min(self.room, self._level + max(0.0, now - self._at) * self.rate)
        self._at = max(self._at, now)

    def reserve(self, units: float, now: float) -> float:
        """Take `units` and return the seconds to wait until they have flowed in. More than the
        bucket holds may be taken: it is a debt that those who come later wait for.
        """
        self._flow(now)
        self._level -= units
        wait = self.seconds_until_free(now)
        self.count_wait(wait, now)
        return wait

    def seconds_until_free(self, now: float) -> float:
        """Seconds until what was taken has flowed in."""
        self._flow(now)
        return max(0.0, -self._level / self.rate)

    def count_wait(self, seconds: float, now: float) -> None:
        """Somebody waits for this so long; the same seconds count once, however many wait."""
        self.held += max(0.0, now + seconds - max(now, self._held_until))
        self._held_until = max(self._held_until, now + seconds)

    def cap_level(self, units: float, now: float) -> None:
        """No more than so many units are left: others take from it, too."""
        self._flow(now)
        self._level = min(self._level, units)

    def refund(self, units: float, now: float) -> None:
        """Give back what was reserved and not used; negative where more was used."""
        self._flow(now)
        self._level = min(self.room, self._level + units)


@dataclass(frozen=True)
class Admission:
    """`go`: start after `wait` seconds; else ask again after them. `call`: its number."""

    go: bool
    wait: float = 0.0
    call: int = 0


class Rates:
    """One account: its configured limits, what was found of the others, the calls in flight, and
    the time before which the endpoint wants none.
    """

    def __init__(self, limits: Limits, now: float) -> None:
        self.limits = limits
        requests, tokens = limits.requests_per_minute, limits.tokens_per_minute
        self._requests = Bucket(requests, now) if requests is not None else None
        self._tokens = Bucket(tokens, now) if tokens is not None else None
        self._told: dict[str, tuple[Quota, Bucket]] = {}
        self._list()
        self.said = ""  # by the endpoint, in place of its last answer
        self._refused = 0.0  # share of late calls
        self.search = Search() if limits.search else Search(math.inf)
        self.in_flight = 0
        self._closed_until = self._next = self._line = self._look_at = now
        self._silent_since = math.inf
        self._slowness = Slowness()

    @property
    def held_seconds(self) -> dict[str, float]:
        """Seconds in which calls had to wait for a limit that is configured, by `name=value`, or
        that the endpoint told, by its header and value.
        """
        named = (("requests_per_minute", self._requests), ("tokens_per_minute", self._tokens))
        found = {f"{n}={b.rate * 60:.12g}": b.held for n, b in named if b is not None}
        found |= {f"{TOLD}{name}={q.limit:.12g}": b.held for name, (q, b) in self._told.items()}
        return {name: seconds for name, seconds in found.items() if seconds}

    def _listed(self, own: Bucket | None, of: str) -> list[Bucket]:
        """The configured bucket of "requests" or "tokens", and the one that was told."""
        told = self._told.get(of)
        return [bucket for bucket in (own, told and told[1]) if bucket is not None]

    def _list(self) -> None:
        self._of_requests = self._listed(self._requests, "requests")
        self._of_tokens = self._listed(self._tokens, "tokens")

    def record_quotas(self, quotas: Mapping[str, Quota], now: float) -> None:
        """A reply told what is left of a limit of "requests" or "tokens"."""
        for name, quota in quotas.items():
            known = self._told.get(name)
            if known is None or known[0].limit != quota.limit:
                bucket = Bucket(quota.per_minute, now, room=quota.limit)
                self._told[name] = known = quota, bucket
                self._list()
            known[1].cap_level(quota.remaining, now)

    def admit(self, tokens: float, now: float) -> Admission:
        """Whether one request of `tokens` may start; if so, it is in flight until `release`."""
        held = self._held(now)
        if held is not None:
            return Admission(False, self._turn(now, held))
        self._next = max(self._next, now - 2 / self.search.rate)  # who asks a little late
        waits = [self._next - now, 0.0]
        if waits[0] > 0:
            self.search.record_wait("rate", now)
        self._next += 1 / self.search.rate
        waits += [bucket.reserve(1, now) for bucket in self._of_requests]
        waits += [bucket.reserve(tokens, now) for bucket in self._of_tokens]
        self.in_flight += 1
        return Admission(True, max(waits), self.search.record_start(now + max(waits)))

    def _held(self, now: float) -> float | None:
        """Seconds for which nothing may start; None: something may."""
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

    def _turn(self, now: float, held: float) -> float:
        """Those who are held back ask again one after the other, two for each that can start."""
        first = now + held
        self._line = min(max(self._line, first), first + LONGEST_HOLD)
        self._line += 1 / max(50.0, 2 * self.search.observed_rate)
        return self._line - now

    def release(self, unused: float, now: float) -> None:
        """A call is over that had reserved so many tokens more than it used."""
        self.in_flight = max(0, self.in_flight - 1)
        for bucket in self._of_tokens:
            bucket.refund(unused, now)

    def record_answer(self, call: int, prompt: str, seconds: float) -> None:
        """That call, which is released, was answered after so many seconds."""
        self._silent_since = math.inf
        self._refused -= self._refused / FEW_CALLS
        self.search.record_answer(call)
        slow = self._slowness.slowdown(prompt, seconds, self.in_flight + 1)
        if slow is not None and self.limits.search:
            self.search.cut("window", round(self.in_flight * SLOW_RATIO / slow))

    def record_refusal(self, call: int, now: float, told: bool = False) -> None:
        """That call, which is released, was refused; `told`: with a Retry-After."""
        if self.limits.search:
            self.search.record_refusal(call, self.in_flight, now, told)
        self.record_failure(now)

    def record_failure(self, now: float) -> None:
        """A call failed in a way that another attempt may mend."""
        self._refused += (1 - self._refused) / FEW_CALLS
        self._silent_since = min(self._silent_since, now)

    def pause(self, seconds: float, now: float) -> None:
        """The endpoint said Retry-After: nothing new starts before that."""
        self.search.record_retry_after(seconds)
        self._closed_until = max(self._closed_until, now + seconds)
        self._next = max(self._next, self._closed_until)

    def trouble_message(self, now: float) -> str:
        """What the endpoint says while it answers nothing for a while, or refuses most calls."""
        silent = now - self._silent_since > TROUBLE_AFTER_S
        return self.said if silent or self._refused > 1 / 2 else ""

    def is_silent(self, patience: float, now: float) -> bool:
        """Whether nothing was answered for longer than that; now and then one may look again."""
        if now - self._silent_since <= patience:
            return False
        again = now >= self._look_at
        self._look_at = now + RETRY_SILENT_AFTER_S if again else self._look_at
        return not again
