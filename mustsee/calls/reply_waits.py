"""How long a reply is waited for, longer where answers come late.

An endpoint that answers after the timeout has done the work and bills it. So a call that timed out
is made again with a longer wait, and so are all calls of its prompt after some timeouts in a row,
or once an answer has shown that it needed the longer wait. A prompt that was never answered waits
as long as the slowest other one.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from mustsee.calls.llm import Request

IN_A_ROW = (
    2  # timeouts of a prompt without an answer in between, before its other calls wait longer
)
FACTORS = (1, 3, 8)  # multiples of the timeout


class ReplyWaits:
    """The waits of one model's calls by prompt; `timeout`: seconds of the first."""

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._steps: dict[str, int] = {}  # prompt -> index of its factor
        self._in_a_row = Counter[str]()

    def lengthen(self, request: Request, timeouts: int) -> Request:
        """Return a request that has timed out `timeouts` times with its wait, if that is not the
        usual one.
        """
        step = min(max(self._step(request.prompt), timeouts), len(FACTORS) - 1)
        return replace(request, wait=self._timeout * FACTORS[step]) if step else request

    def seconds(self, prompt: str) -> float:
        """Return the wait for a new call."""
        return self._timeout * FACTORS[self._step(prompt)]

    def record_timeout(self, prompt: str, waited: float) -> None:
        """Note that a call got no answer within `waited` seconds (0: it failed otherwise)."""
        if waited < self.seconds(prompt):
            return  # sent before the wait was lengthened
        self._in_a_row[prompt] += 1
        if self._in_a_row[prompt] >= IN_A_ROW:
            self._lengthen(prompt)

    def record_answer(self, prompt: str, took: float) -> None:
        """Note that a call was answered after `took` seconds."""
        self._in_a_row[prompt] = 0
        self._steps.setdefault(prompt, 0)
        while took > self.seconds(prompt) and self._lengthen(prompt):
            pass

    def _step(self, prompt: str) -> int:
        return self._steps.get(prompt, max(self._steps.values(), default=0))

    def _lengthen(self, prompt: str) -> bool:
        """Take the next factor, if there is one."""
        before, self._in_a_row[prompt] = self._step(prompt), 0
        self._steps[prompt] = min(before + 1, len(FACTORS) - 1)
        return self._steps[prompt] > before
