"""An undeclared limit of the loopback endpoint, of calls per second or in flight."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["rate", "window"]


@dataclass(kw_only=True)
class HiddenLimit:
    """Accept `limit(seconds since the first call)` calls per second, or in flight."""

    kind: Kind
    limit: Callable[[float], float]
    clock: Callable[[], float] = time.monotonic
    answered: list[float] = field(default_factory=list[float])
    refused: list[float] = field(default_factory=list[float])
    in_flight: int = 0
    _began: float | None = None
    _level: float = 1.0
    _at: float = 0.0

    @property
    def now(self) -> float:
        if self._began is None:
            self._began = self.clock()
        return self.clock() - self._began

    def enter(self) -> float | None:
        """Admit a call (None), or refuse it and return the seconds for Retry-After (0: none)."""
        now = self.now
        limit = self.limit(now)
        if self.kind == "rate":
            self._level = min(max(1.0, limit), self._level + (now - self._at) * limit)
            self._at = now
            admitted = self._level >= 1
        else:
            admitted = self.in_flight < limit
        if not admitted:
            self.refused.append(now)
            return (1 - self._level) / limit if self.kind == "rate" else 0.0
        self._level -= 1
        self.in_flight += 1
        return None

    def leave(self) -> None:
        """End an admitted call."""
        self.in_flight -= 1
        self.answered.append(self.now)
