"""What is said of a row that failed: its `problem`."""

from __future__ import annotations

import traceback

from actors.calls.coordinator import OVERRAN_DEATHS
from mustsee.errors import MustseeError
from mustsee.records import Problem


def problem_from_error(stage: str, error: Exception) -> Problem:
    """Of what a part raised; for an error that nobody foresaw, also where."""
    message = str(error)
    if not isinstance(error, MustseeError):
        frames = traceback.extract_tb(error.__traceback__)
        if frames:
            message += f" (at {frames[-1].filename.rsplit('/', 2)[-1]}:{frames[-1].lineno})"
    return Problem(stage=stage, error=type(error).__name__, message=message, attempts=1)


def problem_from_deaths(stage: str, deaths: int, most: float | None) -> Problem:
    """Of so many workers that died with the row, which was allowed `most` seconds."""
    if deaths >= OVERRAN_DEATHS:
        message = (
            f"it took longer than {most:g} s, the limit of a video of this length "
            f"(cluster.stages.{stage}.limit), and its worker was ended: something hangs, or the "
            "machine is too slow; look at the file, or set a higher limit"
        )
        return Problem(stage=stage, error="TooLong", message=message, attempts=1)
    message = (
        f"the worker was killed {deaths} times while it worked on this row (out of memory, or a "
        "crash in native code); look at the file, or leave the row out"
    )
    return Problem(stage=stage, error="WorkerKilled", message=message, attempts=deaths)
