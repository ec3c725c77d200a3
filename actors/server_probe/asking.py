"""One call of a probe: its request, and what became of it. And a short ramp: more and more calls at
once, until the server refuses one.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from actors.server_probe.model import ProbedModel, ReplyLog
from mustsee.calls.llm import Llm, Reply, Request, Sampling
from mustsee.calls.quota import Quota
from mustsee.errors import BadRow, BudgetSpent, KeyRefused, Transient, Unparsed, UserError
from mustsee.prompts import Prompts
from mustsee.server_probe.record import NO_USAGE, RampStep, ReportedUsage, State
from mustsee.server_probe.steps import ProbeStep, word_step

MAX_REASON = 300  # characters of an endpoint's words that are kept


@dataclass(frozen=True, kw_only=True)
class ProbeReply:
    """What became of a call. `value`: the parsed reply; `why`: the reason where there is none."""

    state: State
    value: Any = None
    why: str = ""
    reply: Reply | None = None
    usage: ReportedUsage = NO_USAGE


class ProbeAsker:
    """Asks a model under probe. `run`: eight hexadecimal digits that mark the requests of this
    probe, so that no reply of an earlier one is taken for its own.
    """

    def __init__(self, model: ProbedModel, llm: Llm, run: str, max_tokens: int) -> None:
        self._model, self._llm, self._run = model, llm, run
        self._prompts, self._sampling = Prompts(), Sampling(max_tokens=max_tokens)
        self._numbers = itertools.count(1)
        self.sent = 0  # calls so far

    @property
    def log(self) -> ReplyLog:
        """What the replies report."""
        return self._model.log

    @property
    def quotas(self) -> Mapping[str, Quota]:
        """The limits that the replies' headers report."""
        return self._model.log.quotas

    def new_mark(self) -> str:
        """Return a mark that no other request has; all are of one length."""
        return f"{self._run}-{next(self._numbers):04d}"

    def request(self, step: ProbeStep, mark: str, *, encoded: bool = True) -> Request:
        return step.request(self._prompts, mark, self._sampling, encoded=encoded)

    async def ask(self, step: ProbeStep, mark: str | None = None) -> ProbeReply:
        """Make one call. Raises KeyRefused, which ends the probe."""
        request = self.request(step, mark or self.new_mark())
        self.sent += 1
        try:
            reply = await self._llm.complete(request)
        except KeyRefused:
            raise
        except BudgetSpent as error:
            return ProbeReply(state="unasked", why=_shorten(error))
        except (BadRow, UserError) as error:
            return ProbeReply(state="refused", why=_shorten(error))
        except Transient as error:
            return ProbeReply(state="failed", why=_shorten(error))
        usage = self._model.log.usages.get(request.variables["mark"], NO_USAGE)
        try:
            value = self._read(step, reply)
        except Unparsed as error:
            why = f"{error}; the reply: {reply.text[:80]!r}"
            return ProbeReply(state="untold", why=_shorten(why), reply=reply, usage=usage)
        return ProbeReply(state="answered", value=value, reply=reply, usage=usage)

    def _read(self, step: ProbeStep, reply: Reply) -> Any:
        if reply.finish == "length":
            raise Unparsed(f"it was cut off after {reply.tokens_out} tokens")
        if reply.finish == "refusal":
            raise Unparsed("it declines to answer")
        return step.form.read(reply.text)


def _shorten(error: object) -> str:
    text = " ".join(str(error).split())
    return text if len(text) <= MAX_REASON else text[: MAX_REASON - 3] + "..."


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
