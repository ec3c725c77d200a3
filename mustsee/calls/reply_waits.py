"""How long a reply is waited for, longer where answers come late.

An endpoint that answers after the timeout has done the work and bills it. So a call that timed out
is made again with twice the wait, and so are all calls of its prompt after some timeouts in a row,
or once an answer has shown that it needed the longer wait.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from mustsee.calls.llm import Request

IN_A_ROW = (
    2  # timeouts of a prompt without an answer in between, before its other calls wait longer
)
MOST_DOUBLINGS = 3


class ReplyWaits:
    """The waits of one model's calls by prompt; `timeout`: seconds of the first."""

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._doublings = Counter[str]()  # of a prompt's wait
        self._in_a_row = Counter[str]()

    def lengthen(self, request: Request, timeouts: int) -> Request:
        """Return a request that has timed out `timeouts` times with its wait, if that is not the
        usual one.
        """
        doublings = min(MOST_DOUBLINGS, max(self._doublings[request.prompt], timeouts))
        return replace(request, wait=self._timeout * 2**doublings) if doublings else request

    def seconds(self, prompt: str) -> float:
        """Return the wait for a new call."""
        return self._timeout * 2 ** self._doublings[prompt]

    def record_timeout(self, prompt: str, waited: float) -> None:
        """Note that a call got no answer within `waited` seconds (0: it failed otherwise)."""
        if waited < self.seconds(prompt):
            return  # sent before the wait was lengthened
        self._in_a_row[prompt] += 1
        if self._in_a_row[prompt] >= IN_A_ROW:
            self._double(prompt)

    def record_answer(self, prompt: str, took: float) -> None:
        """Note that a call was answered after `took` seconds."""
        self._in_a_row[prompt] = 0
        while took > self.seconds(prompt) and self._doublings[prompt] < MOST_DOUBLINGS:
            self._double(prompt)

    def _double(self, prompt: str) -> None:
        self._doublings[prompt] = min(MOST_DOUBLINGS, self._doublings[prompt] + 1)
        self._in_a_row[prompt] = 0
