"""Client of the judge's endpoint.

    from mustsee.judge.client import JudgeClient
    scores = JudgeClient("http://127.0.0.1:8000", key).score(items)

Items are `mustsee.judge.judge.JudgeItem`. They are sent in batches over several connections.
Requests are retried while the judge is busy (429) or restarting (503, a lost connection), and
halved where they are too large for it (413).
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, fields
from typing import Any

from mustsee.errors import Transient, UserError
from mustsee.files.fetch import fetch, redirect_message, redirect_target
from mustsee.judge.judge import JudgeItem, Score

RETRYABLE_STATUS = (408, 429, 500, 502, 503, 504)
SCORE_FIELDS = {f.name for f in fields(Score)}


class TooMuch(UserError):
    """The judge refuses a request for its size (413)."""


@dataclass(frozen=True)
class JudgeClient:
    """A client for the server at `url` (without a path).

    `batch` is the number of items per request, `connections` the number of requests in flight,
    `attempts` the number of tries per request, `timeout` the seconds of one try.
    """

    url: str
    key: str | None = None
    batch: int = 64
    connections: int = 4
    attempts: int = 8
    timeout: float = 60.0

    def score(
        self,
        items: Sequence[JudgeItem],
        *,
        threshold: float | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> list[Score]:
        """Return one score per item, in order; an item that cannot be judged has an `error`.

        `progress(done, total)` is called after every batch. Raises UserError for a wrong key or a
        refused request or item, Transient if the judge is unreachable after `attempts` tries.
        """
        chunks = [items[i : i + self.batch] for i in range(0, len(items), self.batch)]
        threads, scores = ThreadPoolExecutor(self.connections), list[Score]()
        try:
            for part in threads.map(lambda chunk: self._score_chunk(chunk, threshold), chunks):
                scores += part
                if progress is not None:
                    progress(len(scores), len(items))
        finally:
            threads.shutdown(wait=False, cancel_futures=True)
        return scores

    def models(self) -> dict[str, Any]:
        """Return the server's description of itself, with its threshold record."""
        return self._call("/v1/models")["data"][0]

    def _score_chunk(self, items: Sequence[JudgeItem], threshold: float | None) -> list[Score]:
        body: dict[str, Any] = {"items": [asdict(item) for item in items]}
        if threshold is not None:
            body["threshold"] = threshold
        try:
            reply = self._call("/v1/equivalence", body)
        except TooMuch:
            half = len(items) // 2
            if not half:
                raise
            halves = (self._score_chunk(part, threshold) for part in (items[:half], items[half:]))
            return [score for part in halves for score in part]
        return [Score(**{k: v for k, v in r.items() if k in SCORE_FIELDS}) for r in reply["data"]]

    def _call(self, path: str, body: object = None) -> dict[str, Any]:
        url, failure, wait_s = self.url.rstrip("/") + path, "", 0.0
        headers = {"Content-Type": "application/json"}
        headers |= {"Authorization": f"Bearer {self.key}"} if self.key else {}
        data = None if body is None else json.dumps(body).encode()
        for attempt in range(self.attempts):
            if attempt:
                time.sleep(max(wait_s, 0.25 * 2**attempt * random.uniform(0.5, 1)))
            try:
                reply = fetch(url, data, headers, self.timeout)
                if reply.status == 200:
                    return json.loads(reply.body)
            except (OSError, ValueError) as error:
                failure, wait_s = f"{type(error).__name__}: {error}", 0.0
                continue
            text = reply.body.decode(errors="replace")
            if 300 <= reply.status < 400:
                target = redirect_target(url, reply.headers.get("Location"))
                raise UserError(f"{url}: {redirect_message(reply.status, target)}")
            if reply.status not in RETRYABLE_STATUS:
                kind = TooMuch if reply.status == 413 else UserError
                raise kind(f"{url} answered {reply.status}: {text[:300]}")
            failure, wait_s = f"{reply.status}: {text[:200]}", _retry_after_s(reply.headers)
        raise Transient(
            f"{self.url} did not answer after {self.attempts} tries; last error: {failure}"
        )


def _retry_after_s(headers: Any) -> float:
    """Return the seconds of a Retry-After header, at most 30; 0 without one."""
    try:
        return min(float(headers.get("Retry-After", 0)), 30.0)
    except ValueError:
        return 0.0
