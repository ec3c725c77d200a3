"""The `problem` of a row that failed."""

from __future__ import annotations

import traceback

from actors.calls.coordinator import OVERRAN_DEATHS
from mustsee.errors import MustseeError
from mustsee.records import Problem


def problem_from_error(stage: str, error: Exception) -> Problem:
    """The problem of an error that a part raised; an unexpected error is given with its place."""
    message = str(error)
    if not isinstance(error, MustseeError):
        frames = traceback.extract_tb(error.__traceback__)
        if frames:
            message += f" (at {frames[-1].filename.rsplit('/', 2)[-1]}:{frames[-1].lineno})"
    return Problem(stage=stage, error=type(error).__name__, message=message, attempts=1)


def problem_from_deaths(stage: str, deaths: int, most: float | None) -> Problem:
    """The problem of a row with which `deaths` workers died. `most`: its timeout in seconds."""
    if deaths >= OVERRAN_DEATHS:
        message = (
            f"it took longer than {most:g} s, the timeout of a video of this length "
            f"(cluster.stages.{stage}.limit), and its worker was killed: something hangs, or the "
            "machine is too slow; check the file, or set a higher limit"
        )
        return Problem(stage=stage, error="TooLong", message=message, attempts=1)
    message = (
        f"the worker was killed {deaths} times while it worked on this row (out of memory, or a "
        "crash in native code); check the file, or leave the row out"
    )
    return Problem(stage=stage, error="WorkerKilled", message=message, attempts=deaths)
