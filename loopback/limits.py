"""A limit of the loopback endpoint that its replies do not tell: of calls a second, or at once."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["rate", "window"]


@dataclass(kw_only=True)
class HiddenLimit:
    """What an endpoint takes: `limit(seconds since the first call)` calls a second, or at once."""

    kind: Kind
    limit: Callable[[float], float]
    clock: Callable[[], float] = time.monotonic
    answered: list[float] = field(default_factory=list[float])
    refused: list[float] = field(default_factory=list[float])
    at_work: int = 0
    _began: float | None = None
    _level: float = 1.0
    _at: float = 0.0

    @property
    def now(self) -> float:
        if self._began is None:
            self._began = self.clock()
        return self.clock() - self._began

    def enter(self) -> float | None:
        """A call comes: None lets it in, else it is refused; seconds for Retry-After, 0: none."""
        now = self.now
        limit = self.limit(now)
        if self.kind == "rate":
            self._level = min(max(1.0, limit), self._level + (now - self._at) * limit)
            self._at = now
            taken = self._level >= 1
        else:
            taken = self.at_work < limit
        if not taken:
            self.refused.append(now)
            return (1 - self._level) / limit if self.kind == "rate" else 0.0
        self._level -= 1
        self.at_work += 1
        return None

    def leave(self) -> None:
        """A call that was let in is over."""
        self.at_work -= 1
        self.answered.append(self.now)
