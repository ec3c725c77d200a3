"""What a gateway asks the call coordinator before a call, and what it is answered."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from mustsee.calls.budget import CallCost


@dataclass(frozen=True, kw_only=True)
class AdmissionRequest:
    """May this call start? `tokens_out` is the most that the reply may have, `usd` the most that
    the call may cost, of which `usd_in` for what is sent, `patience` the seconds for which the
    account may have answered nothing. `batched`: it goes by a batch; `joined`: it was sent in one
    before, and only its reply is waited for.
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
            tokens_in=self.tokens_in,
        )  # fmt: skip


@dataclass(frozen=True)
class Grant:
    """`go`: start after `wait` seconds. `elsewhere`: an equal call is in flight, look in the store
    after `wait`. `hold`: the account takes no more for now, or calls in flight may use up the
    budget; ask again after `wait`. `spent`: the budget is reached. `dead`: the account has answered
    nothing for too long.
    """

    answer: Literal["go", "elsewhere", "hold", "spent", "dead"]
    wait: float = 0.0
