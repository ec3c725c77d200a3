"""A first price of a run from the lengths of its videos alone, before anything is decoded.

    work = count_work("make", [238.0, 64.0])       # calls, tokens and frames of the models

What a video takes was counted by dry runs with a job's own settings, of a video of a minute, one of
four, and one of an hour (`docs/costs.md`); between these lengths it is interpolated. Other settings
and other videos take more or less: `RANGE`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass

import numpy as np

RANGE = (0.4, 2.5)  # times the price: chosen, not measured; as wide as a dry run of rules says
FRAME = (512, 288)  # pixels of a frame that a model is shown


@dataclass(frozen=True)
class Work:
    """What models do: calls, tokens of text that go in, frames that they are shown, tokens out."""

    calls: float
    tokens_in: float
    frames: float
    tokens_out: float


# job -> seconds of a video -> its work
COUNTED: Mapping[str, Mapping[float, Work]] = {
    "make": {
        0: Work(0, 0, 0, 0),
        65: Work(72, 46_000, 1_290, 16_600),
        238: Work(113, 194_000, 1_890, 25_900),
        3572: Work(856, 1_690_000, 14_100, 192_000),
    },
    "neptune": {
        0: Work(0, 0, 0, 0),
        65: Work(76, 90_000, 1_080, 11_700),
        238: Work(93, 227_000, 1_500, 13_100),
        3572: Work(103, 910_000, 3_550, 18_800),
    },
}


def count_work(job: str, seconds: Sequence[float]) -> Work | None:
    """Return the work of a job on videos of these lengths; None for a job that was not counted."""
    counted = COUNTED.get(job)
    if counted is None:
        return None
    lengths = list(counted)
    columns = zip(*map(astuple, counted.values()), strict=True)
    last = max(lengths)
    shares = [max(1.0, length / last) for length in seconds]  # beyond the longest: in proportion
    return Work(
        *(
            sum(
                share * float(np.interp(length, lengths, values))
                for share, length in zip(shares, seconds, strict=True)
            )
            for values in columns
        )
    )
