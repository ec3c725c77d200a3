"""An endpoint's batch route (`/v1/files`, `/v1/batches`): a file of calls in, files of replies out.

What comes back is taken as it comes: lines in any order, twice, cut off or missing.
"""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from actors.calls.connection import Connection
from actors.calls.reply_bodies import UNREADABLE
from mustsee.errors import Transient, hide_secrets

if TYPE_CHECKING:
    from openai import AsyncOpenAI

T = TypeVar("T")
CHAT = "/v1/chat/completions"  # what a line asks; the address itself is the endpoint's own
TAG = "mustsee"  # the name in a batch's metadata under which ours are found again
NONE_SUCH = (404, 405, 501)  # statuses of a route, or of a batch, that is not there
TRANSFER_TIMEOUT_S = 1800.0  # seconds for 200 MB on a slow line
LIST_PAGE_SIZE = 100  # batches in one answer of the list, the most that OpenAI gives
FINISHED_STATES = ("completed", "failed", "expired", "cancelled")
QUEUE_FULL_CODE = "token_limit_exceeded"  # OpenAI's code for: too much of yours is waiting already


@dataclass(frozen=True, kw_only=True)
class Job:
    """A batch as the endpoint describes it. `files`: of its replies and of its errors, those that
    are there. `why`: the first error of a batch that failed as a whole. `created`: UNIX seconds.
    """

    id: str
    status: str
    tag: str = ""
    input: str = ""
    files: tuple[str, ...] = ()
    why: str = ""
    full: bool = False
    created: float = 0.0

    @property
    def is_over(self) -> bool:
        return self.status in FINISHED_STATES


@dataclass(frozen=True, kw_only=True)
class BatchEntry:
    """What a batch holds for one call: an HTTP status and a body, or why it was `lost`."""

    status: int = 0
    body: Mapping[str, Any] = field(default_factory=dict[str, Any])
    lost: str = ""


class BatchRoute:
    """The route, over a connection. Raises Transient, UserError, as the connection does."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def submit(self, lines: Iterable[bytes], tag: str) -> Job:
        """Send calls as one batch."""
        content = b"".join(lines)
        file = await self._connection.call(
            lambda client: client.files.create(
                file=("calls.jsonl", content), purpose="batch", timeout=TRANSFER_TIMEOUT_S
            ),
            TRANSFER_TIMEOUT_S,
        )
        body = {
            "input_file_id": file.id,
            "endpoint": CHAT,
            "completion_window": "24h",
            "metadata": {TAG: tag},
        }
        return _job(await self._connection.post("/batches", body))

    async def list_batches(self, since: float) -> list[Job] | None:
        """The batches made since a UNIX time, the newest first; None: there is no such route."""
        found: list[Job] = []
        after = ""
        while True:
            address = f"/batches?limit={LIST_PAGE_SIZE}" + (f"&after={after}" if after else "")
            page = await self._if_there(lambda client, a=address: client.get(a, cast_to=object))
            if page is None:
                return found or None
            if not isinstance(page, Mapping):
                raise Transient(f"{self._connection.place}: the list of batches is no JSON object")
            jobs = [_job(b) for b in page.get("data") or ()]
            found += [job for job in jobs if job.created >= since]
            if not (page.get("has_more") and jobs) or jobs[-1].created < since:
                return found
            after = jobs[-1].id

    async def state(self, batch: str) -> Job | None:
        """How a batch stands; None where the endpoint does not know it (any more)."""
        told = await self._if_there(lambda c: c.get(f"/batches/{batch}", cast_to=object))
        return None if told is None else _job(told)

    async def cancel(self, batch: str) -> None:
        await self._if_there(lambda c: c.post(f"/batches/{batch}/cancel", cast_to=object))

    async def answers(self, job: Job) -> dict[str, BatchEntry]:
        """By the calls' keys what a batch that is over holds: the first line of each."""
        found: dict[str, BatchEntry] = {}
        for file in job.files:
            for line in _lines(await self._content(file)):
                answer = _answer(line)
                if answer is not None:
                    found.setdefault(str(line["custom_id"]), answer)
        return found

    async def keys(self, job: Job) -> list[str]:
        """The keys of the calls that a batch was made of."""
        return [str(line["custom_id"]) for line in _lines(await self._content(job.input))]

    async def _content(self, file: str) -> bytes:
        read = await self._if_there(
            lambda c: c.files.content(file, timeout=TRANSFER_TIMEOUT_S), TRANSFER_TIMEOUT_S
        )
        return b"" if read is None else read.content

    async def _if_there(
        self, work: Callable[[AsyncOpenAI], Awaitable[T]], seconds: float | None = None
    ) -> T | None:
        import openai

        async def call_route(client: AsyncOpenAI) -> T | None:
            try:
                return await work(client)
            except openai.APIStatusError as error:
                if error.status_code in NONE_SUCH:
                    return None
                raise

        return await self._connection.call(call_route, seconds)


def line(key: str, body: Mapping[str, Any]) -> bytes:
    """One call, as a line of a batch's file."""
    told = {"custom_id": key, "method": "POST", "url": CHAT, "body": body}
    return json.dumps(told, separators=(",", ":")).encode() + b"\n"


def _job(told: Any) -> Job:
    try:
        errors = [e for e in (told.get("errors") or {}).get("data") or () if e]
        first: Mapping[str, Any] = errors[0] if errors else {}
        files = (told.get("output_file_id"), told.get("error_file_id"))
        return Job(
            id=str(told["id"]),
            status=str(told["status"]),
            tag=str((told.get("metadata") or {}).get(TAG, "")),
            input=str(told.get("input_file_id") or ""),
            files=tuple(str(f) for f in files if f),
            why=hide_secrets(str(first.get("message") or first.get("code") or "")),
            full=first.get("code") == QUEUE_FULL_CODE,
            created=_seconds(told.get("created_at")),
        )
    except UNREADABLE:
        raise Transient(f"the endpoint's batch is none: {hide_secrets(repr(told))[:80]}") from None


def _seconds(told: Any) -> float:
    """A UNIX time; now, where an endpoint writes it otherwise."""
    return float(told) if isinstance(told, int | float) else time.time()


def _lines(content: bytes) -> Iterator[Mapping[str, Any]]:
    """The lines that can be read and say what they belong to."""
    for raw in content.splitlines():
        try:
            told = json.loads(raw)
        except (ValueError, RecursionError):
            continue
        if isinstance(told, dict) and "custom_id" in told:
            yield told


def _answer(told: Mapping[str, Any]) -> BatchEntry | None:
    response: Any = told.get("response")
    if isinstance(response, Mapping) and isinstance(response.get("body"), Mapping):
        status = response.get("status_code")
        return BatchEntry(status=status if isinstance(status, int) else 200, body=response["body"])
    error: Any = told.get("error")
    if isinstance(error, Mapping):
        return BatchEntry(
            lost=hide_secrets(str(error.get("message") or error.get("code") or "an error"))
        )
    return None
