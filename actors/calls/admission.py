"""A gateway's request to start a call, and the call coordinator's answer."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from mustsee.calls.budget import CallCost


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
