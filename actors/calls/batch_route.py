"""An endpoint's batch route (`/v1/files`, `/v1/batches`): a file of calls in, files of replies out.

Lines of replies may be in any order, repeated, truncated or missing.
"""

from __future__ import annotations

import io
import json
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from actors.calls.connection import Connection
from actors.calls.reply_bodies import UNREADABLE
from mustsee.errors import Transient, hide_secrets

if TYPE_CHECKING:
    from openai.types import BatchCreateParams

CHAT: Final = "/v1/chat/completions"  # route of each line; the host is the endpoint's
TAG = "mustsee"  # key in a batch's metadata by which our batches are recognised
MISSING_STATUS = (404, 405, 501)  # statuses of a route, or of a batch, that does not exist
TRANSFER_TIMEOUT_S = 1800.0  # seconds for 200 MB on a slow line
MAX_FILE_BYTES = 1 << 30  # unpacked bytes of a file of replies that are read
LIST_PAGE_SIZE = 100  # batches on one page of the list; OpenAI's limit
FINISHED_STATES = ("completed", "failed", "expired", "cancelled")
QUEUE_FULL_CODE = "token_limit_exceeded"  # OpenAI's code for a full queue of this account


@dataclass(frozen=True, kw_only=True)
class Job:
    """A batch as the endpoint describes it. `files`: the existing files of replies and errors.
    `why`: the first error of a batch that failed as a whole. `full`: it failed because the queue
    was full. `created`: UNIX seconds.
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
    """The result of one call of a batch: an HTTP status and a body, or why it was `lost`."""

    status: int = 0
    body: Mapping[str, Any] = field(default_factory=dict[str, Any])
    lost: str = ""


class BatchRoute:
    """The batch route of a connection. Raises Transient and UserError, as the connection does."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def submit(self, lines: Iterable[bytes], tag: str) -> Job:
        """Send calls as one batch."""
        from aiohttp import FormData

        form = FormData({"purpose": "batch"})
        content = io.BytesIO(b"".join(lines))
        form.add_field("file", content, filename="calls.jsonl", content_type="application/jsonl")
        raw = await self._connection.request("POST", "/files", form, seconds=TRANSFER_TIMEOUT_S)
        file = await self._connection.parse(raw or b"")
        body: BatchCreateParams = {
            "input_file_id": str(file.get("id")),
            "endpoint": CHAT,
            "completion_window": "24h",
            "metadata": {TAG: tag},
        }
        return _job(await self._connection.post("/batches", body))

    async def list_batches(self, since: float) -> list[Job] | None:
        """The batches made since a UNIX time, newest first; None: there is no batch route."""
        batches: list[Job] = []
        after = ""
        while True:
            address = f"/batches?limit={LIST_PAGE_SIZE}" + (f"&after={after}" if after else "")
            page = await self._if_there("GET", address)
            if page is None:
                return batches or None
            jobs = [_job(b) for b in page.get("data") or ()]
            batches += [job for job in jobs if job.created >= since]
            if not (page.get("has_more") and jobs) or jobs[-1].created < since:
                return batches
            after = jobs[-1].id

    async def state(self, batch: str) -> Job | None:
        """The state of a batch; None: the endpoint does not know it (any more)."""
        body = await self._if_there("GET", f"/batches/{batch}")
        return None if body is None else _job(body)

    async def cancel(self, batch: str) -> None:
        await self._if_there("POST", f"/batches/{batch}/cancel")

    async def answers(self, job: Job) -> dict[str, BatchEntry]:
        """The results of a finished batch by the calls' keys, from the first line of each call."""
        entries: dict[str, BatchEntry] = {}
        for file in job.files:
            for line in _lines(await self._content(file)):
                entry = _entry(line)
                if entry is not None:
                    entries.setdefault(str(line["custom_id"]), entry)
        return entries

    async def keys(self, job: Job) -> list[str]:
        """The keys of the calls of a batch."""
        return [str(line["custom_id"]) for line in _lines(await self._content(job.input))]

    async def _content(self, file: str) -> bytes:
        raw = await self._connection.request(
            "GET", f"/files/{file}/content", seconds=TRANSFER_TIMEOUT_S, most=MAX_FILE_BYTES,
            missing=MISSING_STATUS,
        )  # fmt: skip
        return raw or b""

    async def _if_there(self, method: str, path: str) -> Mapping[str, Any] | None:
        raw = await self._connection.request(method, path, missing=MISSING_STATUS)
        return None if raw is None else await self._connection.parse(raw)


def line(key: str, body: Mapping[str, Any]) -> bytes:
    """One call, as a line of a batch's file."""
    call = {"custom_id": key, "method": "POST", "url": CHAT, "body": body}
    return json.dumps(call, separators=(",", ":")).encode() + b"\n"


def _job(body: Any) -> Job:
    try:
        errors = [e for e in (body.get("errors") or {}).get("data") or () if e]
        first: Mapping[str, Any] = errors[0] if errors else {}
        files = (body.get("output_file_id"), body.get("error_file_id"))
        return Job(
            id=str(body["id"]),
            status=str(body["status"]),
            tag=str((body.get("metadata") or {}).get(TAG, "")),
            input=str(body.get("input_file_id") or ""),
            files=tuple(str(f) for f in files if f),
            why=hide_secrets(str(first.get("message") or first.get("code") or "")),
            full=first.get("code") == QUEUE_FULL_CODE,
            created=_seconds(body.get("created_at")),
        )
    except UNREADABLE:
        excerpt = hide_secrets(repr(body))[:80]
        raise Transient(f"the endpoint returned an invalid batch object: {excerpt}") from None


def _seconds(value: Any) -> float:
    """A UNIX time; the present time, where an endpoint writes another format."""
    return float(value) if isinstance(value, int | float) else time.time()


def _lines(content: bytes) -> Iterator[Mapping[str, Any]]:
    """The lines that can be parsed and name their call."""
    for raw in content.splitlines():
        try:
            line = json.loads(raw)
        except (ValueError, RecursionError):
            continue
        if isinstance(line, dict) and "custom_id" in line:
            yield line


def _entry(line: Mapping[str, Any]) -> BatchEntry | None:
    response: Any = line.get("response")
    if isinstance(response, Mapping) and isinstance(response.get("body"), Mapping):
        status = response.get("status_code")
        return BatchEntry(status=status if isinstance(status, int) else 200, body=response["body"])
    error: Any = line.get("error")
    if isinstance(error, Mapping):
        return BatchEntry(
            lost=hide_secrets(str(error.get("message") or error.get("code") or "an error"))
        )
    return None
