"""A search for the limits of an endpoint by trying: calls per second, and calls in flight."""

from __future__ import annotations

import math
from collections import deque
from typing import Literal

LONGEST_HOLD = 2.0  # seconds after which a call that is held back asks again
START_RATE = 32.0  # calls per second at the beginning
# Calls per second that start even if everything is refused: one each five seconds.
MIN_RATE = 0.2
MIN_RETRY_S = 1.0  # shortest Retry-After that raises the minimum rate
# A cut goes to this share of the level that was accepted when more was refused. RFC 9438 cuts to
# 0.7, but a lost packet is resent at once, whereas a refused call costs a wait.
CUT_SHARE = 0.9
CUBIC_SLOPE = 0.006  # C of RFC 9438, for this cut
# Seconds from a cut back to the level before it.
RECOVERY_S = ((1 - CUT_SHARE) / CUBIC_SLOPE) ** (1 / 3)
MIN_CALLS_PER_STEP = 20  # a step of the climb takes a second, or longer until it has these calls
LONGEST_STEP_S = 10.0
RECENT_CALLS = 50  # calls among which refusals are counted
MAX_REFUSED_SHARE = 0.08  # share of calls that may be refused well below the top without a cut
NOISE_CALLS = 3  # refusals allowed at the top for each that occurred below it
# Refusals below this share of the peak are not due to the rate, so a cut cannot prevent them.
FAR_BELOW_SHARE = 1 / 2
UNLEARN_SHARE = 0.8  # factor on the share of such refusals at each cut near the peak
MEMORY_S = 600.0  # seconds in which the peak fades to 1 / e
MIN_WINDOW = 8  # calls in flight; a smaller window is too noisy to learn from
# Calls that one cut may take from the window; an eighth of it for refusals without Retry-After.
MAX_CUT_CALLS = 64.0
REPEATED_CUT_CALLS = 3  # a refusal this soon after a cut makes the next cut deeper
# Calls this many times as slow as the fastest, without more throughput, mean congestion.
SLOW_RATIO = 2.0
OUTAGE_REFUSALS = 8  # refusals in a row that mean an outage
COLLAPSE_SHARE = 1 / 16  # share of the rate before an outage, below which doubling restores it

Measure = Literal["rate", "window"]
BOTH_MEASURES: tuple[Measure, ...] = ("rate", "window")


class Search:
    """A search for the limits of an endpoint: `rate` calls per second, `window` calls in flight.

    A refusal does not say which of the two was exceeded, so both are limited. The rate doubles
    every second until a call is refused. The levels at that moment become the top of both measures.
    The measure that held calls back is cut below its top and climbs as in CUBIC: quickly to just
    below the top, slowly past it, and faster and faster while nothing is refused. The other measure
    may not exceed its top meanwhile. Refusals of calls that started before the cut belong to the
    same event. Time counts only while calls are held back, because a client that sends little
    learns nothing about limits.

    A few refusals well below the top, without a Retry-After, are taken for noise: they change
    nothing, and the same share is expected at the top. A window that is refused again before it has
    recovered is cut deeper each time. In an outage the rate falls to `MIN_RATE`; after the first
    answer it doubles until it is back at its earlier level.
    """

    def __init__(self, start: float = START_RATE) -> None:
        self._low: dict[Measure, float] = {"rate": start, "window": math.inf}
        self._top: dict[Measure, float] = {"rate": math.inf, "window": math.inf}
        self._tight = BOTH_MEASURES
        self._doubling, self._time = True, 0.0
        self._held_at = -math.inf
        self._holder: Measure = "rate"
        self._started = self._cut_at = 0  # number of the last call, and of the last before a cut
        self._accepted = self._passed = 0.0  # accepted calls, and their seconds, both fading
        self._start_at = math.nan
        self._refusals = deque[int]()
        self._noise = 0  # refusals since the cut that are taken for noise
        self._base_refusals = 0.0  # share of calls that is refused at any rate
        self._peak = 0.0  # highest accepted calls per second at a cut, slowly fading
        self._row = 0  # refusals in a row
        self._cuts = 0  # consecutive cuts after which almost nothing was accepted
        self._max_cut = 0.0  # calls that a cut may take from the window
        self._before: dict[Measure, float] = self._top
        self._min_rate = MIN_RATE

    @property
    def rate(self) -> float:
        return max(self._min_rate, self._level("rate"))

    def record_retry_after(self, seconds: float) -> None:
        """Raise the minimum rate, so that a call starts when a short Retry-After ends."""
        self._min_rate = max(MIN_RATE, 1 / max(MIN_RETRY_S, seconds))

    @property
    def window(self) -> float:
        return self._level("window")

    @property
    def _shape(self) -> float:
        return 1 + CUBIC_SLOPE * (self._time - RECOVERY_S) ** 3

    def _level(self, of: Measure) -> float:
        if self._doubling:
            return min(self._low[of] * 2**self._time, CUT_SHARE * self._top[of])
        level = self._top[of] * (self._shape if of in self._tight else max(1.0, self._shape))
        return max(level, self._top[of] - self._max_cut) if of == "window" else level

    def record_wait(self, by: Measure, now: float) -> None:
        """Note that a call waits for a measure, and climb, unless there is an outage."""
        passed, self._held_at, self._holder = now - self._held_at, now, by
        if self._row >= OUTAGE_REFUSALS or passed > 2 * LONGEST_HOLD:
            return
        step_s = (
            1.0 if self._doubling else min(max(1.0, MIN_CALLS_PER_STEP / self.rate), LONGEST_STEP_S)
        )
        if not (self._doubling and self.rate > START_RATE + 2 * self.observed_rate):
            self._time += passed / step_s
        if self._doubling and all(self._level(m) >= CUT_SHARE * self._top[m] for m in self._top):
            self._tight = BOTH_MEASURES
            self._doubling, self._time = False, 0.0

    @property
    def _is_recovering(self) -> bool:
        """Whether the level is still well below its top after a cut."""
        return not self._doubling and self._shape < 0.97

    def record_start(self, at: float) -> int:
        """Note a call that starts at `at`, and return its number."""
        self._started += 1
        passed = max(0.0, at - self._start_at) if self._started > 1 else 0.0
        self._start_at = max(at, self._start_at) if self._started > 1 else at
        fading = math.exp(-passed / self._span)
        self._accepted = self._accepted * fading + 1
        self._passed = self._passed * fading + passed
        self._peak *= math.exp(-passed / MEMORY_S)
        return self._started

    @property
    def observed_rate(self) -> float:
        """Accepted calls per second, as of the last start."""
        return self._accepted / max(self._passed, 1 / self.rate, 1e-6)

    @property
    def _span(self) -> float:
        """Seconds over which the observed rate is averaged."""
        return max(1.0, 8 / self.rate)

    def record_answer(self, call: int) -> None:
        """Learn from an answered call."""
        if call <= self._cut_at:
            return
        self._learn(0.0)
        if self.rate < COLLAPSE_SHARE * self._before["rate"]:
            self._low = {"rate": self.rate, "window": self.window}
            self._top, self._doubling, self._time = self._before, True, 0.0
        self._row = self._cuts = 0

    def record_refusal(self, call: int, in_flight: int, now: float, has_retry_after: bool) -> None:
        """Learn from a refused call, perhaps with a Retry-After."""
        self._row += 1
        if self._row == 1:
            self._before = {"rate": self.rate, "window": self.window}
        self._accepted = max(0.0, self._accepted - 1)
        self._refusals.append(self._started)
        while self._refusals[0] <= self._started - RECENT_CALLS:
            self._refusals.popleft()
        if call <= self._cut_at:
            return
        self._learn(1.0)
        calls = min(RECENT_CALLS, self._started - self._cut_at)
        if self._is_recovering or now - self._held_at > 1:
            allowed = (
                0.5
                + max(0.0 if has_retry_after else MAX_REFUSED_SHARE, 2 * self._base_refusals)
                * calls
            )
        else:
            allowed = max(NOISE_CALLS * self._noise, 2 * self._base_refusals * calls)
        if len(self._refusals) > allowed:
            self.cut(
                "rate" if has_retry_after else self._holder,
                in_flight - (self._started - call),
                has_retry_after,
            )
        elif self._is_recovering:
            self._noise = min(NOISE_CALLS, self._noise + 1)

    def _learn(self, refused: float) -> None:
        """Average the share of refusals far below the peak, which no cut prevents."""
        if (
            self._is_recovering
            and self.rate < FAR_BELOW_SHARE * self._peak
            and self._row < OUTAGE_REFUSALS
        ):
            self._base_refusals += (refused - self._base_refusals) / RECENT_CALLS

    def cut(self, holder: Measure, in_flight: int, has_retry_after: bool = False) -> None:
        """Lower the levels after congestion, with `in_flight` calls accepted.

        `holder`: the measure that held further calls back. `has_retry_after`: the refusal had one.
        A cut is deeper if almost nothing was accepted after the previous ones.
        """
        none_accepted = has_retry_after or self._started - self._cut_at <= REPEATED_CUT_CALLS
        self._cut_at = self._started
        self._cuts = self._cuts + 1 if none_accepted else 0
        deeper = CUT_SHARE ** max(0, self._cuts - 2)
        in_flight = round(in_flight * deeper)
        accepted = deeper * self.observed_rate / (1 - min(self._base_refusals, 0.5))
        rate, window = min(self.rate, accepted), min(self.window, float(in_flight))
        is_repeated = not self._doubling and self._time < RECOVERY_S
        deepest = MAX_CUT_CALLS if has_retry_after else MAX_CUT_CALLS / 8
        doubled = min(max(1.0, 2 * self._max_cut), deepest)
        self._max_cut = doubled if is_repeated else self._max_cut // 2
        if holder == "window":
            rate = max(CUT_SHARE * self.rate, min(self.rate, 1.25 * accepted))
        elif self.window < 1.5 * in_flight and not has_retry_after:
            window = max(window, CUT_SHARE * self.window)
        if window < MIN_WINDOW:
            window = self.window
        if rate > FAR_BELOW_SHARE * self._peak or not self._is_recovering:
            self._base_refusals *= UNLEARN_SHARE
        self._peak = max(self._peak, min(self.rate, accepted))
        top: dict[Measure, float] = {"rate": max(self._min_rate, rate), "window": window}
        cuts_both = is_repeated and holder == "rate" and window > MIN_WINDOW
        self._tight = BOTH_MEASURES if cuts_both else (holder,)
        self._top, self._doubling, self._time, self._noise = top, False, 0.0, 0
        self._refusals.clear()


class Slowness:
    """Detects that too many calls make all of them slower: an endpoint with a queue refuses none.

    Durations are compared with the shortest mean of the same prompt. More calls may be slower than
    few as long as the throughput grows.
    """

    def __init__(self) -> None:
        self._mean: dict[str, float] = {}
        self._best: dict[str, float] = {}
        self._slow = 1.0  # mean duration of calls, as a multiple of the shortest
        self._max_throughput = 0.0  # calls in flight divided by `_slow`
        self._calls = 0

    def measure_slowdown(self, prompt: str, seconds: float, in_flight: int) -> float | None:
        """Add an answered call, and return how many times too slow calls are, if it is congestion.

        Otherwise the result is None, as it is for the next `in_flight` calls after a result.
        """
        mean = self._mean.get(prompt, seconds)
        mean = self._mean[prompt] = mean + (seconds - mean) / 16
        best = self._best[prompt] = max(1e-3, min(self._best.get(prompt, mean), mean))
        self._slow += (mean / best - self._slow) / 16
        self._calls += 1
        throughput = in_flight / self._slow
        is_congested = (
            self._slow > SLOW_RATIO
            and throughput < 1.1 * self._max_throughput
            and self._calls > max(32, in_flight)
        )
        if self._slow < SLOW_RATIO:
            self._max_throughput = max(self._max_throughput, throughput)
        if not is_congested:
            return None
        self._calls = 0
        return self._slow
