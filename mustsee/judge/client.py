"""Client of the judge's endpoint.

    from mustsee.judge.client import JudgeClient
    scores = JudgeClient("http://127.0.0.1:8000", key).score(items)

Items are `mustsee.judge.judge.JudgeItem`. They are sent in batches over several connections.
Requests are retried while the judge is busy (429) or restarting (503, a lost connection), and
halved where they are too large for it (413).
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, fields
from typing import Any

from mustsee.errors import Transient, UserError
from mustsee.files.fetch import ACCEPTED, Unpacker, check_length, redirect_message, redirect_target
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
        if not items:
            return []
        # A separate thread runs the event loop, because the caller may have one running.
        with ThreadPoolExecutor(1) as thread:
            work = self._score_batches(list(items), threshold, progress)
            return thread.submit(asyncio.run, work).result()

    def models(self) -> dict[str, Any]:
        """Return the served judge's description: weights, prompt, threshold record."""
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(asyncio.run, self._models()).result()["data"][0]

    def _session(self) -> Any:
        import aiohttp

        headers = {"Accept-Encoding": ACCEPTED}
        headers |= {"Authorization": f"Bearer {self.key}"} if self.key else {}
        timeout = aiohttp.ClientTimeout(total=self.timeout)
        return aiohttp.ClientSession(headers=headers, timeout=timeout, auto_decompress=False)

    async def _models(self) -> dict[str, Any]:
        async with self._session() as session:
            return await self._call(session, "GET", "/v1/models", None)

    async def _score_batches(
        self,
        items: list[JudgeItem],
        threshold: float | None,
        progress: Callable[[int, int], None] | None,
    ) -> list[Score]:
        gate, done = asyncio.Semaphore(self.connections), 0
        async with self._session() as session:

            async def score_batch(chunk: list[JudgeItem]) -> list[Score]:
                nonlocal done
                body: dict[str, Any] = {"items": [asdict(item) for item in chunk]}
                if threshold is not None:
                    body["threshold"] = threshold
                try:
                    async with gate:
                        reply = await self._call(session, "POST", "/v1/equivalence", body)
                except TooMuch:
                    half = len(chunk) // 2
                    if not half:
                        raise
                    return [*await score_batch(chunk[:half]), *await score_batch(chunk[half:])]
                done += len(chunk)
                if progress is not None:
                    progress(done, len(items))
                return [
                    Score(**{k: v for k, v in r.items() if k in SCORE_FIELDS})
                    for r in reply["data"]
                ]

            chunks = [items[i : i + self.batch] for i in range(0, len(items), self.batch)]
            scores = await asyncio.gather(*map(score_batch, chunks))
        return [score for chunk in scores for score in chunk]

    async def _call(self, session: Any, method: str, path: str, body: Any) -> dict[str, Any]:
        import aiohttp

        failure, wait_s = "", 0.0
        for attempt in range(self.attempts):
            if attempt:
                # The jitter spreads retries of several clients; no result depends on it.
                await asyncio.sleep(max(wait_s, 0.25 * 2**attempt * random.uniform(0.5, 1)))
            try:
                url = self.url.rstrip("/") + path
                sent = session.request(method, url, json=body, allow_redirects=False)
                async with sent as reply:
                    if 300 <= reply.status < 400:
                        target = redirect_target(url, reply.headers.get("Location"))
                        raise UserError(f"{url}: {redirect_message(reply.status, target)}")
                    raw = await _read(reply)
                    if reply.status == 200:
                        return json.loads(raw)
                    text = raw.decode(errors="replace")
                    if reply.status == 413:
                        raise TooMuch(f"{url} answered 413: {text[:300]}")
                    if reply.status not in RETRYABLE_STATUS:
                        raise UserError(f"{url} answered {reply.status}: {text[:300]}")
                    failure, wait_s = f"{reply.status}: {text[:200]}", _retry_after_s(reply.headers)
            except (aiohttp.ClientError, TimeoutError, ValueError) as error:
                failure, wait_s = f"{type(error).__name__}: {error}", 0.0
        raise Transient(
            f"{self.url} did not answer after {self.attempts} tries; last error: {failure}"
        )


async def _read(reply: Any) -> bytes:
    """Return the body of a response. Raises ValueError for one that is too large."""
    check_length(reply.headers)
    unpacker = Unpacker(reply.headers.get("Content-Encoding", ""))
    async for piece in reply.content.iter_any():
        unpacker.add(piece)
    return unpacker.body()


def _retry_after_s(headers: Any) -> float:
    """Return the seconds of a Retry-After header, at most 30; 0 without one."""
    try:
        return min(float(headers.get("Retry-After", 0)), 30.0)
    except ValueError:
        return 0.0
