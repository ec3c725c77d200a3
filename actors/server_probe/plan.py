"""What a probe costs at most, before it starts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from actors.server_probe.model import ProbedModel
from mustsee.calls.llm import Sampling
from mustsee.prompts import Prompts
from mustsee.run.estimate import money
from mustsee.server_probe.settings import ProbeSettings
from mustsee.server_probe.steps import planned_steps


@dataclass(frozen=True, kw_only=True)
class CallPlan:
    """Upper limits: calls, tokens in and out, and USD; None: the model's price is not known."""

    calls: int
    tokens_in: int
    tokens_out: int
    usd: float | None

    def lines(self, place: str) -> Iterator[str]:
        """Yield what is printed before the first call."""
        cost = "at an unknown price" if self.usd is None else f"{money(self.usd)} USD"
        yield (
            f"probe of {place}: at most {self.calls} calls, {self.tokens_in:,} tokens in, "
            f"{self.tokens_out:,} out, {cost}, retries apart; far less where replies are short and "
            "no fault shows"
        )


def plan_calls(model: ProbedModel, settings: ProbeSettings, seed: int) -> CallPlan:
    """Return what the calls of a probe cost if every step is asked as often as it may be, and every
    reply is as long as it may be.
    """
    prompts, sampling = Prompts(), Sampling(max_tokens=settings.max_tokens)
    calls, tokens_in, tokens_out, usd = 1, 0.0, 0, 0.0  # one call tries the endpoint
    for step, times in planned_steps(settings, seed):
        estimate = model.estimate(step.request(prompts, "0" * 13, sampling, encoded=False))
        calls += times
        tokens_in += times * estimate.tokens_in
        tokens_out += times * estimate.tokens_out
        usd += times * estimate.usd
    return CallPlan(
        calls=calls, tokens_in=round(tokens_in), tokens_out=tokens_out,
        usd=None if model.known_price is None else usd,
    )  # fmt: skip
