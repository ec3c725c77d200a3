"""Whether a budget admits a call, by an estimate of its cost that is corrected by earlier bills.

The estimate is a formula (characters, the tiles of an image, the longest reply), but endpoints bill
by rules of their own: some thirty times as much for an image. So each call's bill is compared with
its estimate, by model and prompt, and an upper quantile of these ratios corrects the money reserved
for the next call. Until there are bills, few calls are in flight at once.

Bills may also jump: a new price, another model behind a name, thinking that is switched on. No
earlier bill shows that, and every call in flight is then as dear. So a second bound counts each
call in flight with the dearest bill that is possible (`BillingHistory.dearest_bill`): another one
starts only while these would fit into what is left. Fewer calls are in flight as the end nears, and
the bills exceed the budget by at most one call.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Literal

RECENT_CALLS = 64  # ratios of bill to estimate that are kept of a model and prompt
BILLING_QUANTILE = 0.95  # the ratio that an estimate is multiplied by, among those kept
MIN_MARGIN = 1.25  # factor on the quantile, for calls that are in flight together
FIRST_MARGIN = 8.0  # added to the margin, divided by the calls that were billed as expected
SLOW_START = 4  # calls in flight for each call that was billed as expected
ROUNDING_USD = 1e-12  # dollars
JUMP = 100.0  # times its estimate: what a call may be billed once bills jump
JUMP_FROM_BILLS = 200.0  # times the bills of its model and prompt: the same, if that is less
# It is at most the price of the longest call: so many tokens in, and as many out as models write
# with their thoughts.
LONGEST_IN, LONGEST_OUT = 200_000, 131_072

Pair = tuple[str, str]  # model and prompt


@dataclass(frozen=True, kw_only=True)
class CallCost:
    """The most that a call may cost by its estimate: `usd`, with `usd_in` of it for `tokens_in` and
    the rest for `tokens_out`.
    """

    model: str = ""
    prompt: str = ""
    usd: float = 0.0
    usd_in: float = 0.0
    tokens_in: float = 0.0
    tokens_out: float = 0.0

    @property
    def pair(self) -> Pair:
        return self.model, self.prompt

    @property
    def longest(self) -> float:
        """Dollars of the longest call at list price."""
        if self.tokens_in <= 0 or self.tokens_out <= 0:
            return math.inf
        per_token = self.usd_in / self.tokens_in, (self.usd - self.usd_in) / self.tokens_out
        return LONGEST_IN * per_token[0] + LONGEST_OUT * per_token[1]


@dataclass
class BillingRatio:
    """The bills of one model and prompt, as multiples of their estimates.

    `kept`: recent calls that were billed at most what was reserved for them; halved by each call
    that was billed more. At 0 the next call cannot rely on any bill.
    """

    kept: int = 0
    _ratios: deque[tuple[float, float]] = field(
        default_factory=lambda: deque[tuple[float, float]](maxlen=RECENT_CALLS)
    )
    _upper: tuple[float, float] | None = None
    _together: tuple[float, float] = (1.0, 1.0)

    def add(self, cost: CallCost, usd: float, tokens_in: float, expected: float | None) -> None:
        """Add a call that was billed `usd`.

        `expected`: what was reserved for it; None where the reserve was not based on bills.
        """
        is_kept = expected is None or usd <= expected + ROUNDING_USD
        self.kept = self.kept + 1 if is_kept else self.kept // 2
        whole = usd / cost.usd if cost.usd > 0 else 1.0
        self._ratios.append((whole, tokens_in / cost.tokens_in if cost.tokens_in > 0 else whole))
        self._upper = None

    @property
    def upper(self) -> tuple[float, float] | None:
        """The quantile of the ratios of money, and of tokens in. None before the first call."""
        if self._upper is None and self._ratios:
            at = math.ceil(BILLING_QUANTILE * len(self._ratios)) - 1
            money, tokens = (sorted(column) for column in zip(*self._ratios, strict=True))
            self._upper = money[at], tokens[at]
            self._together = money[at] + money[-1] - money[0], tokens[at] + tokens[-1] - tokens[0]
        return self._upper

    @property
    def together(self) -> tuple[float, float]:
        """As `upper`, with a margin for calls that are in flight with others.

        The margin grows with the spread and the rise of the ratios, and is larger after few calls.
        """
        money, tokens = (1.0, 1.0) if self.upper is None else self._together
        margin = MIN_MARGIN + FIRST_MARGIN / max(1, self.kept)
        return margin * money, margin * tokens


class BillingHistory:
    """The bills of all calls, by model and prompt."""

    def __init__(self) -> None:
        self._pairs: dict[Pair, BillingRatio] = {}

    def billing_of(self, pair: Pair) -> BillingRatio:
        return self._pairs.setdefault(pair, BillingRatio())

    def likely_cost(self, cost: CallCost) -> float:
        """Return the most that a call is likely to cost, in dollars.

        The bills of its model and prompt decide, or those of the model's dearest prompt where the
        prompt is new.
        """
        upper = self.billing_of(cost.pair).upper
        if upper is None:
            of_model = (b.upper for (model, _), b in self._pairs.items() if model == cost.model)
            uppers = [each for each in of_model if each is not None]
            upper = max((u[0] for u in uppers), default=1.0), max((u[1] for u in uppers), default=1)
        return multiply_cost(cost, *upper)

    def dearest_bill(self, cost: CallCost) -> float:
        """Return what a call may be billed once bills jump, in dollars; at least its estimate.

        Most of an estimate is room for the longest reply, which few replies fill. So bills that are
        known say more than the estimate; bills of nothing say nothing.
        """
        upper = self.billing_of(cost.pair).upper
        times = JUMP_FROM_BILLS * upper[0] if upper is not None and upper[0] > 0 else JUMP
        return max(cost.usd, min(min(JUMP, times) * cost.usd, cost.longest))

    def cost_with_margin(self, cost: CallCost) -> float:
        """As `likely_cost`, with the margin for a call that is in flight with others."""
        return multiply_cost(cost, *self.billing_of(cost.pair).together)


def multiply_cost(cost: CallCost, whole: float, tokens_in: float) -> float:
    """Return the dollars of a call, corrected by ratios of bill to estimate.

    The result is the largest of the estimate, the estimate times `whole`, and the cost of the
    longest reply with `tokens_in` times as many tokens in.
    """
    by_tokens = cost.usd_in * tokens_in + (cost.usd - cost.usd_in)
    return max(cost.usd, cost.usd * whole, by_tokens)


@dataclass(frozen=True, kw_only=True)
class HeldAmount:
    """The money reserved for a call in flight.

    `usd`: the reserve. `expected`: the most that it should cost by earlier bills; None without any.
    `bare`: reserved without a margin. `dearest`: the dearest bill that is possible.
    """

    cost: CallCost
    usd: float
    dearest: float = 0.0
    expected: float | None = None
    bare: bool = False


NOTHING = HeldAmount(cost=CallCost(), usd=0.0)


class Budget:
    """The calls in flight under `limit` dollars (None: no limit), each with its reserve.

    At most one call of each model is in flight without a margin (`bare`): a first one, whose bill
    is unknown, or one of the last that the money allows.
    """

    def __init__(self, limit: float | None, history: BillingHistory) -> None:
        self._limit, self._history = limit, history
        self._reserves: dict[str, HeldAmount] = {}
        self._reserved = self._at_risk = 0.0
        self._bare = Counter[str]()
        self._in_flight = Counter[Pair]()

    def consider(
        self, cost: CallCost, spent: float, *, batched: bool = False
    ) -> HeldAmount | Literal["hold", "spent"]:
        """Return the reserve for a call that may start, with `spent` dollars already gone.

        "hold": it must wait for calls in flight. "spent": the budget does not allow it. `batched`:
        it is sent in a batch, whose calls are answered together; the bound on jumps does not count
        them, or nothing else could start for as long as a batch takes.
        """
        if self._limit is None or cost.usd <= 0:
            return NOTHING
        billed = self._history.billing_of(cost.pair)
        is_new = billed.upper is None
        minimum = cost.usd if is_new else self._history.likely_cost(cost)
        left = self._limit - spent
        if left <= 0 or minimum > left + ROUNDING_USD:
            return "spent"
        if self._at_risk > left and not batched:
            return "hold"
        dearest = 0.0 if batched else max(self._history.dearest_bill(cost), minimum)
        free = left - self._reserved
        expected = self._history.cost_with_margin(cost)
        has_slot = self._in_flight[cost.pair] < SLOW_START * billed.kept or batched
        if has_slot and expected <= free + ROUNDING_USD:
            return HeldAmount(cost=cost, usd=expected, expected=expected, dearest=dearest)
        if not self._bare[cost.model] and minimum <= free + ROUNDING_USD:
            usd, known = max(minimum, min(self._history.likely_cost(cost), free)), not is_new
            return HeldAmount(
                cost=cost, usd=usd, expected=expected if known else None, bare=True, dearest=dearest
            )
        return "hold"

    def resume(self, cost: CallCost) -> HeldAmount:
        """Return the reserve for a call that is already in flight."""
        return HeldAmount(cost=cost, usd=self._history.likely_cost(cost))

    def start(self, key: str, reserve: HeldAmount) -> None:
        """Reserve the money of a call that starts."""
        self.release(key)
        if reserve is NOTHING:
            return
        self._reserves[key] = reserve
        self._reserved += reserve.usd
        self._at_risk += reserve.dearest
        self._bare[reserve.cost.model] += reserve.bare
        self._in_flight[reserve.cost.pair] += 1

    def release(self, key: str) -> float | None:
        """Release the money of a call that ended, and return its expected cost."""
        reserve = self._reserves.pop(key, None)
        if reserve is None:
            return None
        self._reserved = self._reserved - reserve.usd if self._reserves else 0.0
        self._at_risk = self._at_risk - reserve.dearest if self._reserves else 0.0
        self._bare[reserve.cost.model] -= reserve.bare
        self._in_flight[reserve.cost.pair] -= 1
        return reserve.expected


@dataclass(frozen=True, kw_only=True)
class AdmissionRequest:
    """A request to start a call. `tokens_out`: greatest number of tokens in the reply. `usd`:
    greatest cost of the call, `usd_in` of it for the input. `patience`: seconds for which the
    account may be silent. `batched`: the call is part of a batch. `joined`: an earlier batch
    contains the call, and only its reply is awaited.
    """

    key: str
    account: str
    prompt: str
    model: str = ""
    tokens_in: float = 0.0
    tokens_out: int = 0
    usd: float = 0.0
    usd_in: float = 0.0
    patience: float = math.inf
    batched: bool = False
    joined: bool = False

    @property
    def cost(self) -> CallCost:
        return CallCost(
            model=self.model, prompt=self.prompt, usd=self.usd, usd_in=self.usd_in,
            tokens_in=self.tokens_in, tokens_out=self.tokens_out,
        )  # fmt: skip


@dataclass(frozen=True)
class Grant:
    """`go`: start after `wait` seconds. `elsewhere`: an equal call is in flight; look for its reply
    in the store after `wait`. `hold`: the account is at its limit, or calls in flight may use up
    the budget; ask again after `wait`. `spent`: the budget is used up. `dead`: the account has been
    silent for too long.
    """

    answer: Literal["go", "elsewhere", "hold", "spent", "dead"]
    wait: float = 0.0
