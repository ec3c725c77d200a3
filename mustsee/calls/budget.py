"""Whether a budget admits a call: what it may cost is an estimate, corrected by what was billed.

An estimate is a formula (characters, the tiles of a picture, the longest reply), and endpoints bill
by rules of their own: some thirty times as much for a picture. So every call is held against its
estimate once its `usage` is known, by model and prompt, and an upper quantile of these ratios
corrects what the next call holds back. Until something is known calls go out few at a time. What is
billed then exceeds the budget by no more than one call of each model.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Literal

RECENT_CALLS = 64  # of a model and prompt, whose ratios of billed to estimated are remembered
BILLING_QUANTILE = 0.95  # of these ratios
LEAST_MARGIN = 1.25  # on the quantile, for calls that are in flight together
FIRST_MARGIN = 8.0  # added to it after one call, divided by the number of calls that kept to theirs
SLOW_START = 4  # calls in flight for each call that was billed as expected
ROUNDING_USD = 1e-12  # dollars

Pair = tuple[str, str]  # model and prompt


@dataclass(frozen=True, kw_only=True)
class CallCost:
    """The most that a call may cost by its estimate: `usd`, of which `usd_in` for `tokens_in`."""

    model: str = ""
    prompt: str = ""
    usd: float = 0.0
    usd_in: float = 0.0
    tokens_in: float = 0.0

    @property
    def pair(self) -> Pair:
        return self.model, self.prompt


@dataclass
class BillingRatio:
    """What calls of one model and prompt were billed, as multiples of their estimates.

    `kept`: how many of late were billed no more than was held back for them; halved by each that
    was billed more. While it is 0 nothing is known that the next call could rely on.
    """

    kept: int = 0
    _ratios: deque[tuple[float, float]] = field(
        default_factory=lambda: deque[tuple[float, float]](maxlen=RECENT_CALLS)
    )
    _upper: tuple[float, float] | None = None
    _together: tuple[float, float] = (1.0, 1.0)

    def add(self, cost: CallCost, usd: float, tokens_in: float, held: float | None) -> None:
        """A call was billed `usd`; `held`: what was held back for it, None where that says nothing
        of the meter.
        """
        self.kept = self.kept + 1 if held is None or usd <= held + ROUNDING_USD else self.kept // 2
        whole = usd / cost.usd if cost.usd > 0 else 1.0
        self._ratios.append((whole, tokens_in / cost.tokens_in if cost.tokens_in > 0 else whole))
        self._upper = None

    @property
    def upper(self) -> tuple[float, float] | None:
        """The quantile of the ratios: of the money, and of the tokens in. None: no call yet."""
        if self._upper is None and self._ratios:
            at = math.ceil(BILLING_QUANTILE * len(self._ratios)) - 1
            money, tokens = (sorted(column) for column in zip(*self._ratios, strict=True))
            self._upper = money[at], tokens[at]
            self._together = money[at] + money[-1] - money[0], tokens[at] + tokens[-1] - tokens[0]
        return self._upper

    @property
    def together(self) -> tuple[float, float]:
        """As `upper`, for calls that are in flight with others: more where the ratios lie apart, or
        rise, and while few are known.
        """
        money, tokens = (1.0, 1.0) if self.upper is None else self._together
        margin = LEAST_MARGIN + FIRST_MARGIN / max(1, self.kept)
        return margin * money, margin * tokens


class BillingHistory:
    """What was billed, by model and prompt."""

    def __init__(self) -> None:
        self._pairs: dict[Pair, BillingRatio] = {}

    def billing_of(self, pair: Pair) -> BillingRatio:
        return self._pairs.setdefault(pair, BillingRatio())

    def likely_cost(self, cost: CallCost) -> float:
        """What a call is likely to cost at most, in dollars: by what its model and prompt were
        billed, or where these are new by the dearest prompt of the model.
        """
        upper = self.billing_of(cost.pair).upper
        if upper is None:
            known = (b.upper for (model, _), b in self._pairs.items() if model == cost.model)
            uppers = [each for each in known if each is not None]
            upper = max((u[0] for u in uppers), default=1.0), max((u[1] for u in uppers), default=1)
        return times(cost, *upper)

    def cost_with_margin(self, cost: CallCost) -> float:
        """As `likely_cost`, for a call that is in flight with others."""
        return times(cost, *self.billing_of(cost.pair).together)


def times(cost: CallCost, whole: float, tokens_in: float) -> float:
    """The dollars of a call, were all of it so many times as dear, or its tokens in so many times
    as many beside the longest reply, whichever is more; never less than estimated.
    """
    by_tokens = cost.usd_in * tokens_in + (cost.usd - cost.usd_in)
    return max(cost.usd, cost.usd * whole, by_tokens)


@dataclass(frozen=True, kw_only=True)
class HeldAmount:
    """What is held back for a call in flight: `usd`; `expected` is the most that it should cost, or
    None where nothing is known. `bare`: it is let go without a margin.
    """

    cost: CallCost
    usd: float
    expected: float | None = None
    bare: bool = False


NOTHING = HeldAmount(cost=CallCost(), usd=0.0)


class Budget:
    """The calls in flight under `limit` dollars (None: no limit), each with what is held back for
    it. Of each model one call at most is in flight `bare`, without a margin: a first one, whose
    price nobody knows, or one of the last for which there is money.
    """

    def __init__(self, limit: float | None, history: BillingHistory) -> None:
        self._limit, self._history = limit, history
        self._held: dict[str, HeldAmount] = {}
        self._reserved = 0.0
        self._bare = Counter[str]()
        self._in_flight = Counter[Pair]()

    def consider(
        self, cost: CallCost, spent: float, *, batched: bool = False
    ) -> HeldAmount | Literal["hold", "spent"]:
        """What to hold back for a call that is to start now that `spent` dollars are gone; or
        "hold": it waits for those in flight. `batched`: it goes with many others, which are
        answered together.
        """
        if self._limit is None or cost.usd <= 0:
            return NOTHING
        billed = self._history.billing_of(cost.pair)
        new = billed.upper is None
        least = cost.usd if new else self._history.likely_cost(cost)
        left = self._limit - spent
        if left <= 0 or least > left + ROUNDING_USD:
            return "spent"
        free = left - self._reserved
        expected = self._history.cost_with_margin(cost)
        few = self._in_flight[cost.pair] < SLOW_START * billed.kept or batched
        if few and expected <= free + ROUNDING_USD:
            return HeldAmount(cost=cost, usd=expected, expected=expected)
        if not self._bare[cost.model] and least <= free + ROUNDING_USD:
            held = max(least, min(self._history.likely_cost(cost), free))
            return HeldAmount(cost=cost, usd=held, expected=None if new else expected, bare=True)
        return "hold"

    def resume(self, cost: CallCost) -> HeldAmount:
        """What to hold back for a call that is in flight already."""
        return HeldAmount(cost=cost, usd=self._history.likely_cost(cost))

    def start(self, key: str, held: HeldAmount) -> None:
        """The call is in flight."""
        self.release(key)
        if held is NOTHING:
            return
        self._held[key] = held
        self._reserved += held.usd
        self._bare[held.cost.model] += held.bare
        self._in_flight[held.cost.pair] += 1

    def release(self, key: str) -> float | None:
        """A call is not in flight any more. Returns what it was expected to cost."""
        held = self._held.pop(key, None)
        if held is None:
            return None
        self._reserved = self._reserved - held.usd if self._held else 0.0
        self._bare[held.cost.model] -= held.bare
        self._in_flight[held.cost.pair] -= 1
        return held.expected
