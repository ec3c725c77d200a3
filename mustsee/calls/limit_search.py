"""What an endpoint takes, found by trying: calls a second, and calls in flight."""

from __future__ import annotations

import math
from collections import deque
from typing import Literal

LONGEST_HOLD = 2.0  # seconds after which a call that was held back asks again
START_RATE = 32.0  # calls a second at first
MIN_RATE = 0.2  # calls a second: every five seconds one tries, whatever was refused, ...
# ... or after as long as the endpoint asks for, where that is less, but at least so
MIN_RETRY_S = 1.0
# of what was taken when more was refused, and CUBIC's slope (RFC 9438 cuts to 0.7, ...
CUT_SHARE = 0.9
# ... but a lost packet is sent again at once, where a refused call costs a wait)
CUBIC_SLOPE = 0.006
# seconds from a cut back to the level before it
RECOVERY_S = ((1 - CUT_SHARE) / CUBIC_SLOPE) ** (1 / 3)
MIN_CALLS_PER_STEP = 20  # a second of the climb lasts at least so many calls, ...
LONGEST_SECOND = 10.0  # ... and at most so long
RECENT_CALLS = 50  # calls over which refusals are counted
MAX_REFUSED_SHARE = 0.08  # share of calls that may be refused well below the top, ...
NOISE_CALLS = 3  # ... each of which lets so many pass at the top
FAR_BELOW_SHARE = 1 / 2  # of what once stood: refusals below that are none that a cut mends, ...
UNLEARN_SHARE = 0.8  # ... and of the share that they were so much stays at each cut at the top
MEMORY_S = 600.0  # seconds in which what once stood fades to 1 / e
LEAST_WINDOW = 8  # calls in flight; of fewer nothing is learnt
# calls that a cut of the window takes away; an eighth where none was told to wait
MAX_CUT_CALLS = 64.0
AT_ONCE = 3  # calls after a cut, of which one is refused: nothing of them stands
SLOW_RATIO = 2.0  # times as slow as at best, with no more done, is congestion
OUTAGE_REFUSALS = 8  # refusals without an answer to a later call
COLLAPSE_SHARE = 1 / 16  # of the rate at the first of them

Measure = Literal["rate", "window"]
BOTH_MEASURES: tuple[Measure, ...] = ("rate", "window")


class Search:
    """How much an endpoint takes, found by trying: `rate` calls a second, `window` calls in flight.

    A refusal does not say which of the two was too much, so both are held. The rate doubles every
    second until something is refused. Then what was taken at that moment is the top of both: the
    one that held calls back is cut below it, and climbs as CUBIC does, quickly to just under the
    top, slowly past it, and ever faster where nothing is refused; the other may not be above it
    meanwhile. Refusals of calls that had started before the cut are part of the same event. Time
    counts only while calls are held back: who asks for little learns nothing.

    A few refusals well below the top are no limit of ours, unless they come with a time at which to
    come again: they change nothing, and as many are expected at the top. A window that is refused
    again before it is back at its top is cut deeper each time. Where nothing is answered any more,
    what is let go falls to `MIN_RATE`; with the first answer it doubles again up to where it was.
    """

    def __init__(self, start: float = START_RATE) -> None:
        self._low: dict[Measure, float] = {"rate": start, "window": math.inf}
        self._top: dict[Measure, float] = {"rate": math.inf, "window": math.inf}
        self._tight = BOTH_MEASURES
        self._doubling, self._time = True, 0.0
        self._held_at = -math.inf
        self._holder: Measure = "rate"
        self._started = self._cut_at = 0  # calls by number
        self._stood = self._passed = 0.0  # calls that stood, and the time, both fading
        self._start_at = math.nan
        self._refusals = deque[int]()
        self._noise = 0  # refusals since the cut that were none of ours
        self._anyway = 0.0  # share of calls that is refused however few they are
        self._peak = 0.0  # calls a second that once stood at a cut, slowly fading
        self._row = 0  # refusals without an answer to a later call
        self._cuts = 0  # in a row after which nothing stood
        self._below = 0.0  # calls that a cut of the window takes away at most
        self._before: dict[Measure, float] = self._top
        self._slowest = MIN_RATE

    @property
    def rate(self) -> float:
        return max(self._slowest, self._level("rate"))

    def record_retry_after(self, seconds: float) -> None:
        """The endpoint says when to come again: then it is asked again, if that is soon."""
        self._slowest = max(MIN_RATE, 1 / max(MIN_RETRY_S, seconds))

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
        return max(level, self._top[of] - self._below) if of == "window" else level

    def record_wait(self, by: Measure, now: float) -> None:
        """A call had to wait: time to climb, unless nothing is answered."""
        passed, self._held_at, self._holder = now - self._held_at, now, by
        if self._row >= OUTAGE_REFUSALS or passed > 2 * LONGEST_HOLD:
            return
        second = (
            1.0 if self._doubling else min(max(1.0, MIN_CALLS_PER_STEP / self.rate), LONGEST_SECOND)
        )
        if not (self._doubling and self.rate > START_RATE + 2 * self.observed_rate):
            self._time += passed / second
        if self._doubling and all(self._level(m) >= CUT_SHARE * self._top[m] for m in self._top):
            self._tight = BOTH_MEASURES
            self._doubling, self._time = False, 0.0

    @property
    def _low_down(self) -> bool:
        """On the way back from a cut."""
        return not self._doubling and self._shape < 0.97

    def record_start(self, at: float) -> int:
        """A call starts then: its number."""
        self._started += 1
        passed = max(0.0, at - self._start_at) if self._started > 1 else 0.0
        self._start_at = max(at, self._start_at) if self._started > 1 else at
        fading = math.exp(-passed / self._span)
        self._stood = self._stood * fading + 1
        self._passed = self._passed * fading + passed
        self._peak *= math.exp(-passed / MEMORY_S)
        return self._started

    @property
    def observed_rate(self) -> float:
        """Calls a second that stood, as of the last start."""
        return self._stood / max(self._passed, 1 / self.rate, 1e-6)

    @property
    def _span(self) -> float:
        """Seconds over which what is seen is counted."""
        return max(1.0, 8 / self.rate)

    def record_answer(self, call: int) -> None:
        """The call of that number was answered."""
        if call <= self._cut_at:
            return
        self._learn(0.0)
        if self.rate < COLLAPSE_SHARE * self._before["rate"]:
            self._low = {"rate": self.rate, "window": self.window}
            self._top, self._doubling, self._time = self._before, True, 0.0
        self._row = self._cuts = 0

    def record_refusal(self, call: int, in_flight: int, now: float, told: bool) -> None:
        """The call of that number was refused; so many are still in flight. `told`: with the time
        at which to come again.
        """
        self._row += 1
        if self._row == 1:
            self._before = {"rate": self.rate, "window": self.window}
        self._stood = max(0.0, self._stood - 1)
        self._refusals.append(self._started)
        while self._refusals[0] <= self._started - RECENT_CALLS:
            self._refusals.popleft()
        if call <= self._cut_at:
            return
        self._learn(1.0)
        calls = min(RECENT_CALLS, self._started - self._cut_at)
        if self._low_down or now - self._held_at > 1:
            most = 0.5 + max(0.0 if told else MAX_REFUSED_SHARE, 2 * self._anyway) * calls
        else:
            most = max(NOISE_CALLS * self._noise, 2 * self._anyway * calls)
        if len(self._refusals) > most:
            self.cut("rate" if told else self._holder, in_flight - (self._started - call), told)
        elif self._low_down:
            self._noise = min(NOISE_CALLS, self._noise + 1)

    def _learn(self, refused: float) -> None:
        """What is refused behind a cut, far below what once stood, no cut mends."""
        if (
            self._low_down
            and self.rate < FAR_BELOW_SHARE * self._peak
            and self._row < OUTAGE_REFUSALS
        ):
            self._anyway += (refused - self._anyway) / RECENT_CALLS

    def cut(self, holder: Measure, in_flight: int, told: bool = False) -> None:
        """Congestion, while so many calls stood, and `holder` held further ones back; `told`: as in
        `record_refusal`. Where nothing stood after the cuts before, this one is deeper.
        """
        nothing_stood = told or self._started - self._cut_at <= AT_ONCE
        self._cut_at = self._started
        self._cuts = self._cuts + 1 if nothing_stood else 0
        deeper = CUT_SHARE ** max(0, self._cuts - 2)
        in_flight = round(in_flight * deeper)
        stood = deeper * self.observed_rate / (1 - min(self._anyway, 0.5))
        rate, window = min(self.rate, stood), min(self.window, float(in_flight))
        again = not self._doubling and self._time < RECOVERY_S
        deepest = MAX_CUT_CALLS if told else MAX_CUT_CALLS / 8
        self._below = min(max(1.0, 2 * self._below), deepest) if again else self._below // 2
        if holder == "window":
            rate = max(CUT_SHARE * self.rate, min(self.rate, 1.25 * stood))
        elif self.window < 1.5 * in_flight and not told:
            window = max(window, CUT_SHARE * self.window)
        if window < LEAST_WINDOW:
            window = self.window
        if rate > FAR_BELOW_SHARE * self._peak or not self._low_down:
            self._anyway *= UNLEARN_SHARE
        self._peak = max(self._peak, min(self.rate, stood))
        taken: dict[Measure, float] = {"rate": max(self._slowest, rate), "window": window}
        self._tight = (
            BOTH_MEASURES if again and holder == "rate" and window > LEAST_WINDOW else (holder,)
        )
        self._top, self._doubling, self._time, self._noise = taken, False, 0.0, 0
        self._refusals.clear()


class Slowness:
    """Whether calls have become slower because there are too many: an endpoint that lets them queue
    refuses none. A call is held against the quickest of its prompt; that many calls are slower than
    few is well as long as more is done in all.
    """

    def __init__(self) -> None:
        self._mean: dict[str, float] = {}
        self._best: dict[str, float] = {}
        self._slow = 1.0  # calls take so many times as long as at best
        self._most = 0.0  # calls in flight by how slow they were: what is done in all
        self._calls = 0

    def slowdown(self, prompt: str, seconds: float, in_flight: int) -> float | None:
        """A call was answered; how many times too slow calls are, where that is for their number,
        and at most once for as many calls as are in flight.
        """
        mean = self._mean.get(prompt, seconds)
        mean = self._mean[prompt] = mean + (seconds - mean) / 16
        best = self._best[prompt] = max(1e-3, min(self._best.get(prompt, mean), mean))
        self._slow += (mean / best - self._slow) / 16
        self._calls += 1
        done = in_flight / self._slow
        risen = (
            self._slow > SLOW_RATIO and done < 1.1 * self._most and self._calls > max(32, in_flight)
        )
        if self._slow < SLOW_RATIO:
            self._most = max(self._most, done)
        if not risen:
            return None
        self._calls = 0
        return self._slow
