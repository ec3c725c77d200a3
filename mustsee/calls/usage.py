"""Usage totals of a run's model calls: calls, tokens, money and waits, by prompt, model, stage; and
the requests about one row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, TypeVar

from mustsee.calls.limits import Quota
from mustsee.errors import BadRow, MustseeError, UserError
from mustsee.records import RequestCount, is_rules

T = TypeVar("T")
MILLION = 1_000_000
MAX_REASONS = 5  # reasons of unparseable replies that `run.json` lists

Outcome = Literal["done", "cached", "retry", "refused", "failed"]
RETRY_OUTCOMES: tuple[Outcome, ...] = ("retry", "refused")


@dataclass(frozen=True)
class Price:
    """US dollars per million tokens: in, out, in from the endpoint's cache of prompts, and in
    written to it (None: as any other in). `long`: the price of a call with a long prompt.
    """

    tokens_in: float
    tokens_out: float
    tokens_cached: float | None = None
    tokens_written: float | None = None
    long: LongPrice | None = None

    def usd(
        self,
        tokens_in: float,
        tokens_out: float,
        tokens_cached: float = 0.0,
        tokens_written: float = 0.0,
    ) -> float:
        """Return the price of a call. `tokens_cached`, `tokens_written`: of `tokens_in`, those that
        were read from the cache and those that were written to it.
        """
        if self.long is not None and tokens_in > self.long.above:
            return self.long.price.usd(tokens_in, tokens_out, tokens_cached, tokens_written)
        cached = self.tokens_in if self.tokens_cached is None else self.tokens_cached
        written = self.tokens_in if self.tokens_written is None else self.tokens_written
        plain = tokens_in - tokens_cached - tokens_written
        usd_in = plain * self.tokens_in + tokens_cached * cached + tokens_written * written
        return (usd_in + tokens_out * self.tokens_out) / MILLION


@dataclass(frozen=True)
class LongPrice:
    """The price of the whole call where its prompt has more than `above` tokens."""

    above: int
    price: Price


def read_price(entry: Sequence[float | None], long: LongPrice | None = None) -> Price:
    """Return the price of a row of `[in, out]`, `[in, out, cached]` or `[in, out, cached, written]`
    (null: as any other in).
    """
    usd_in, usd_out, cached, written = [*entry, None, None][:4]
    return Price(
        tokens_in=float(usd_in or 0.0),
        tokens_out=float(usd_out or 0.0),
        tokens_cached=cached,
        tokens_written=written,
        long=long,
    )


def price(prices: Mapping[str, Sequence[float]], model: str) -> Price | None:
    """Return the model's price from a table of `model: [in, out]` or `[in, out, cached]` (USD per
    million tokens).

    None where the table lacks the model. Raises UserError when the entry is not two or three
    numbers of 0 or more.
    """
    if model not in prices:
        return None
    entry = prices[model]
    if len(entry) not in (2, 3) or any(value < 0 for value in entry):
        raise UserError(
            f"prices of {model!r}: {entry!r} must be [USD per million tokens in, out] or "
            "[in, out, in from the cache], 0 or more"
        )
    return read_price(entry)


def require_price(known: Price | None, model: str, budget_usd: float | None) -> None:
    """Raise UserError if a budget is set for a model of unknown price."""
    if budget_usd is not None and known is None:
        raise UserError(
            f"budget_usd={budget_usd:g} is set, but the price of model {model!r} is unknown: add "
            f"it to the model's prices as {{{model}: [USD per million tokens in, out]}}, or remove "
            "budget_usd"
        )


@dataclass(frozen=True, kw_only=True)
class CallOutcome:
    """The end of one attempt at a call.

    `outcome`: `done` (paid for and stored), `cached` (from the store, or from an equal call),
    `retry` (failed, and retried), `refused` (too many at once, and retried), `failed` (given up).
    `again`: why the previous reply to the prompt could not be parsed, empty for a first attempt.
    `retry_after`: seconds that the endpoint asked to wait.
    `key`, `account`: the call, and the account whose limits it used.
    `seconds`: duration of the attempt.
    `held`: seconds that the call waited in all attempts, for limits, a connection, or a retry.
    `instead`: the model that this one replaced.
    `batched`: sent by an endpoint's batch route.
    `stage`: the stage that asked, if any.
    `said`: the endpoint's message, where the attempt is retried.
    `quotas`: limits that the endpoint's last reply reported.
    `bill_known`: of a failed attempt: nothing was sent, or the endpoint answered, and `usd` is what
    it billed. Otherwise the attempt counts with its likely cost.
    """

    outcome: Outcome
    model: str
    prompt: str
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_thought: int = 0
    tokens_cached: int = 0
    usd: float = 0.0
    again: str = ""
    retry_after: float | None = None
    key: str = ""
    account: str = ""
    seconds: float = 0.0
    held: float = 0.0
    instead: str = ""
    batched: bool = False
    stage: str = ""
    said: str = ""
    quotas: Mapping[str, Quota] | None = None
    bill_known: bool = False

    @property
    def has_unknown_bill(self) -> bool:
        """Whether the attempt may have been billed without anybody having said how much."""
        return self.outcome in ("retry", "failed") and not self.bill_known

    def billed_by(self, error: Exception) -> CallOutcome:
        """Return the end of a failed attempt with what it cost, as far as its error says."""
        if not isinstance(error, MustseeError):
            return self
        if error.usage is not None:
            return replace(self, bill_known=True, **vars(error.usage))
        return replace(self, bill_known=not error.sent)


@dataclass
class CallCounts:
    """Counts and sums of calls. Tokens and money are those of all calls that were billed, seconds
    those of `done` calls.
    """

    calls: int = 0
    batched: int = 0
    cached: int = 0
    retries: int = 0
    refused: int = 0
    failed: int = 0
    asked_again: int = 0
    asked_again_for: Counter[str] = field(default_factory=Counter[str])
    retry_after_waits: int = 0
    retry_after_seconds: float = 0.0
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_thought: int = 0
    tokens_cached: int = 0
    usd: float = 0.0
    seconds: float = 0.0
    held: float = 0.0

    def add(self, entry: CallOutcome) -> None:
        self.calls += entry.outcome == "done"
        self.batched += entry.outcome == "done" and entry.batched
        self.cached += entry.outcome == "cached"
        self.retries += entry.outcome in RETRY_OUTCOMES
        self.refused += entry.outcome == "refused"
        self.failed += entry.outcome == "failed"
        if entry.again and entry.outcome in ("done", "cached"):
            self.asked_again += 1
            self.asked_again_for[entry.again] += 1
        if entry.outcome in RETRY_OUTCOMES and entry.retry_after is not None:
            self.retry_after_waits += 1
            self.retry_after_seconds += entry.retry_after
        if entry.outcome != "cached":
            self.tokens_in += entry.tokens_in
            self.tokens_out += entry.tokens_out
            self.tokens_thought += entry.tokens_thought
            self.tokens_cached += entry.tokens_cached
            self.usd += entry.usd
        if entry.outcome == "done":
            self.seconds += entry.seconds
            self.held += entry.held

    def plus(self, other: CallCounts) -> CallCounts:
        return CallCounts(
            **{f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)}
        )

    def reasons(self) -> list[tuple[str, int]]:
        """Return why replies could not be parsed, with counts, most frequent first."""
        return sorted(self.asked_again_for.items(), key=lambda item: (-item[1], item[0]))[
            :MAX_REASONS
        ]

    def plain(self) -> dict[str, Any]:
        values = {f.name: _rounded(getattr(self, f.name)) for f in fields(self)}
        return {**values, "asked_again_for": dict(self.reasons())}


def _rounded(value: float) -> float:
    """Round to a millionth of a cent, so that sums do not depend on the order of their terms."""
    return round(value, 8) if isinstance(value, float) else value


def _summed(
    one: Mapping[str, CallCounts], other: Mapping[str, CallCounts]
) -> dict[str, CallCounts]:
    names = dict.fromkeys((*one, *other))
    return {name: one.get(name, CallCounts()).plus(other.get(name, CallCounts())) for name in names}


@dataclass
class UsageTotals:
    """The sums of all entries, in total and by prompt, model and stage.

    `by_stage`: its seconds are those of models, for which a stage waits; rules are its own work.
    `instead`: calls by (model that answered, model that it replaced).
    """

    total: CallCounts = field(default_factory=CallCounts)
    by_prompt: dict[str, CallCounts] = field(default_factory=dict[str, CallCounts])
    by_model: dict[str, CallCounts] = field(default_factory=dict[str, CallCounts])
    by_stage: dict[str, CallCounts] = field(default_factory=dict[str, CallCounts])
    instead: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])

    def add(self, entry: CallOutcome) -> None:
        self.total.add(entry)
        self.by_prompt.setdefault(entry.prompt, CallCounts()).add(entry)
        self.by_model.setdefault(entry.model, CallCounts()).add(entry)
        no_wait = replace(entry, seconds=0.0) if is_rules(entry.model) else entry
        self.by_stage.setdefault(entry.stage, CallCounts()).add(no_wait)
        if entry.instead and entry.outcome in ("done", "cached"):
            self.instead[entry.model, entry.instead] += 1

    def plus(self, other: UsageTotals) -> UsageTotals:
        return UsageTotals(
            total=self.total.plus(other.total),
            by_prompt=_summed(self.by_prompt, other.by_prompt),
            by_model=_summed(self.by_model, other.by_model),
            by_stage=_summed(self.by_stage, other.by_stage),
            instead=self.instead + other.instead,
        )

    def expected_out(self, prompt: str, most: int) -> float:
        """Return the mean tokens of replies to this prompt so far, or 512; at most `most`."""
        counts = self.by_prompt.get(prompt)
        if counts is None or not counts.calls:
            return min(most, 512)
        return min(most, counts.tokens_out / counts.calls)

    def summary(self) -> dict[str, Any]:
        """Return `llm` of `run.json`: the totals, then the same by prompt, model and stage."""
        return {
            **self.total.plain(),
            "by_prompt": {name: t.plain() for name, t in sorted(self.by_prompt.items())},
            "by_model": {name: t.plain() for name, t in sorted(self.by_model.items())},
            "by_stage": {name: t.plain() for name, t in sorted(self.by_stage.items())},
            "instead": [
                {"model": model, "of": of, "calls": n}
                for (model, of), n in sorted(self.instead.items())
            ],
        }


class RequestTally:
    """Counts the requests about one row by what they are for, and those without a readable reply.

    A stage that goes on without a reply counts what it lost here, and returns the counts with the
    row (`Video.requests`). The engine marks the stored result of such a row as incomplete, the
    summary names the loss, and `retry_problems=true` computes the row again: replies that could be
    read come from the store, so only the lost ones are paid.
    """

    def __init__(self) -> None:
        self._counts: dict[str, RequestCount] = {}

    def add_sent(self, what: str, number: int = 1) -> None:
        """Count requests for `what` that are made."""
        count = self._counts.get(what, RequestCount(what=what, sent=0))
        self._counts[what] = replace(count, sent=count.sent + number)

    def add_unread(self, what: str, error: Exception, number: int = 1) -> None:
        """Count requests for `what` without a readable reply, which are among those sent."""
        count = self._counts.get(what, RequestCount(what=what, sent=0))
        unread = count.unread + number
        self._counts[what] = replace(
            count, sent=max(count.sent, unread), unread=unread, error=str(error)
        )

    async def try_call(self, what: str, call: Awaitable[T]) -> T | None:
        """Await a call for `what`, which is counted; None where no reply could be read."""
        self.add_sent(what)
        try:
            return await call
        except BadRow as error:
            self.add_unread(what, error)
            return None

    def unread(self, what: str) -> int:
        """Return the number of requests for `what` without a readable reply."""
        return self._counts[what].unread if what in self._counts else 0

    @property
    def counts(self) -> tuple[RequestCount, ...]:
        """The counts, in the order of their first requests."""
        return tuple(self._counts.values())
