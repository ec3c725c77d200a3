"""A short ramp: more and more calls at once, until the server refuses one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence

from actors.server_probe.asking import ProbeAsker
from mustsee.server_probe.record import RampStep
from mustsee.server_probe.steps import word_step

MAX_STEP_S = 60.0  # seconds for which the calls of one step are waited for
POLL_S = 0.02  # seconds between two looks at the log


async def climb(asker: ProbeAsker, levels: Sequence[int]) -> AsyncIterator[RampStep]:
    """Yield a step for each of the levels, up to the first with a refusal or a failure. A refused
    call is not waited for: its Retry-After is in the step.
    """
    for level in levels:
        step = await _send_at_once(asker, level)
        yield step
        if step.refused or step.failed:
            return


async def _send_at_once(asker: ProbeAsker, level: int) -> RampStep:
    busy_before = len(asker.log.busy)
    began = time.monotonic()
    calls = [asyncio.create_task(asker.ask(word_step(n))) for n in range(level)]
    pending = set(calls)
    while pending and time.monotonic() - began < MAX_STEP_S:
        _, pending = await asyncio.wait(pending, timeout=POLL_S)
        if len(pending) <= len(asker.log.busy) - busy_before:
            break  # all others wait for the server
    seconds = time.monotonic() - began
    for call in pending:
        call.cancel()
    ended = [call.result() for call in calls if call.done() and not call.cancelled()]
    busy = asker.log.busy[busy_before:]
    answered = sum(each.reply is not None for each in ended)
    return RampStep(
        in_flight=level,
        answered=answered,
        refused=len(busy),
        failed=max(0, level - answered - len(busy)),
        seconds=seconds,
        retry_after=max((wait or 0.0 for wait in busy), default=0.0) or None,
    )
