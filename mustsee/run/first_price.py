"""A first price of a run, from the lengths of its videos alone, before anything is decoded.

    price = first_price("make", lengths)     # calls and tokens; `usd` of a model's price

What a video takes was counted by dry runs of the examples and of an hour, with the settings that a
job has (`docs/costs.md`); between the lengths that were counted it is interpolated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

# job -> for a video of so many minutes: calls, tokens in, tokens out
COUNTED: Mapping[str, Sequence[tuple[float, float, float, float]]] = {
    "make": (),
    "neptune": (),
}
RANGE = 0.4, 2.5  # of the price, for other settings, models and videos
