"""Quotas that an endpoint's replies report in `x-ratelimit-*` headers.

The headers are those of OpenAI-compatible endpoints
(https://platform.openai.com/docs/guides/rate-limits, read 2026):

    x-ratelimit-limit-tokens: 150000    x-ratelimit-remaining-tokens: 149984
    x-ratelimit-reset-tokens: 6m0s      also in seconds, without a unit

`reset` is the time until the whole limit is available. The period of a limit is not reported
(OpenAI counts by the minute, Groq counts requests by the day). It is computed from the used units
and `reset`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

PERIODS_S = (1.0, 60.0, 3600.0, 86400.0)  # periods over which endpoints count limits
UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")


@dataclass(frozen=True)
class Quota:
    """`limit` units in `period` seconds, of which `remaining` are left."""

    limit: float
    remaining: float
    period: float

    @property
    def per_minute(self) -> float:
        return self.limit * 60 / self.period


def quotas_in(headers: Mapping[str, str]) -> dict[str, Quota]:
    """Return the quotas of "requests" and "tokens" that a reply's headers report.

    A quota is left out where its headers are invalid, or where none of it is used.
    """
    quotas = {name: _quota(headers, name) for name in ("requests", "tokens")}
    return {name: quota for name, quota in quotas.items() if quota is not None}


def _quota(headers: Mapping[str, str], name: str) -> Quota | None:
    limit_header = headers.get(f"x-ratelimit-limit-{name}")
    if limit_header is None:
        return None
    try:
        limit, remaining = (
            float(limit_header),
            float(headers.get(f"x-ratelimit-remaining-{name}", "")),
        )
    except ValueError:
        return None
    reset = duration(headers.get(f"x-ratelimit-reset-{name}", ""))
    if reset is None or not reset > 0 or not 0 <= remaining < limit < math.inf:
        return None
    rate = (limit - remaining) / reset
    period = min(PERIODS_S, key=lambda seconds: abs(math.log(rate * seconds / limit)))
    return Quota(limit, remaining, period)


def duration(value: str) -> float | None:
    """Return the seconds of "6m0s", "59.3ms" or "1.5"; None for anything else."""
    text = value.strip().lower()
    if re.fullmatch(r"\d+(\.\d+)?", text):
        return float(text)
    if not re.fullmatch(rf"({DURATION.pattern})+", text):
        return None
    return sum(float(number) * UNITS[unit] for number, unit in DURATION.findall(text))
