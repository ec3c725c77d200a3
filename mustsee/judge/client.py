"""A client of the judge's endpoint.

    from mustsee.judge.client import JudgeClient
    scores = JudgeClient("http://127.0.0.1:8000", key).score(items)

Items are `mustsee.judge.judge.JudgeItem`; they are sent in batches, several at once, and tried
again while the judge is busy (429) or restarting (503, a lost connection).
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, fields
from typing import Any

from mustsee.errors import Transient, UserError
from mustsee.judge.judge import JudgeItem, Score

_AGAIN = (408, 429, 500, 502, 503, 504)
_FIELDS = {f.name for f in fields(Score)}


@dataclass(frozen=True)
class JudgeClient:
    """`url`: of the server, without a path. `batch`: items in one request; `connections`: requests
    at once; `attempts`: tries of one request; `timeout`: seconds of one try.
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
        """One score each, in order; what is wrong with one item is in its `error`.

        `progress(done, total)` is called after every batch. Raises UserError for a wrong key or a
        request that the judge refuses, Transient when it stayed unreachable.
        """
        if not items:
            return []
        # in a thread of its own, so that a caller may have an event loop running
        with ThreadPoolExecutor(1) as thread:
            work = self._everything(list(items), threshold, progress)
            return thread.submit(asyncio.run, work).result()

    def models(self) -> dict[str, Any]:
        """What serves: weights, prompt, threshold record."""
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(asyncio.run, self._models()).result()["data"][0]

    def _session(self) -> Any:
        import aiohttp

        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        timeout = aiohttp.ClientTimeout(total=self.timeout)
        return aiohttp.ClientSession(headers=headers, timeout=timeout)

    async def _models(self) -> dict[str, Any]:
        async with self._session() as session:
            return await self._call(session, "GET", "/v1/models", None)

    async def _everything(
        self,
        items: list[JudgeItem],
        threshold: float | None,
        progress: Callable[[int, int], None] | None,
    ) -> list[Score]:
        gate, done = asyncio.Semaphore(self.connections), 0
        async with self._session() as session:

            async def score_batch(part: list[JudgeItem]) -> list[Score]:
                nonlocal done
                body: dict[str, Any] = {"items": [asdict(item) for item in part]}
                if threshold is not None:
                    body["threshold"] = threshold
                async with gate:
                    reply = await self._call(session, "POST", "/v1/equivalence", body)
                done += len(part)
                if progress is not None:
                    progress(done, len(items))
                return [
                    Score(**{k: v for k, v in r.items() if k in _FIELDS}) for r in reply["data"]
                ]

            parts = [items[i : i + self.batch] for i in range(0, len(items), self.batch)]
            found = await asyncio.gather(*map(score_batch, parts))
        return [score for part in found for score in part]

    async def _call(self, session: Any, method: str, path: str, body: Any) -> dict[str, Any]:
        import aiohttp

        trouble, wait = "", 0.0
        for attempt in range(self.attempts):
            if attempt:
                # jitter only spreads the tries; nothing that is computed depends on it
                await asyncio.sleep(max(wait, 0.25 * 2**attempt * random.uniform(0.5, 1)))
            try:
                url = self.url.rstrip("/") + path
                async with session.request(method, url, json=body) as reply:
                    if reply.status == 200:
                        return await reply.json()
                    text = await reply.text()
                    if reply.status not in _AGAIN:
                        raise UserError(f"{url} answered {reply.status}: {text[:300]}")
                    trouble, wait = f"{reply.status}: {text[:200]}", _seconds(reply.headers)
            except (aiohttp.ClientError, TimeoutError) as error:
                trouble, wait = f"{type(error).__name__}: {error}", 0.0
        raise Transient(
            f"{self.url} did not answer after {self.attempts} tries; the last: {trouble}"
        )


def _seconds(headers: Any) -> float:
    try:
        return min(float(headers.get("Retry-After", 0)), 30.0)
    except ValueError:
        return 0.0
