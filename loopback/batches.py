"""The batch route of the loopback server (`/v1/files`, `/v1/batches`), with planned faults.

A batch is over after `seconds`; only then are its calls answered, and paid for. The first `most`
batches meet all of `faults`, later ones none.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from loopback.replies import Payload

BATCH_FAULTS = (
    "expired", "partial", "cancelled", "duplicates", "disorder", "errors", "failed", "full", "slow",
    "unreadable",
)  # fmt: skip
Answer = Callable[[Payload], tuple[int, Any]]  # a call -> an HTTP status and a body


@dataclass(kw_only=True)
class Batches:
    """`there`: whether the endpoint has the route. `faults`:

    "expired", "cancelled": the second half of the calls is not answered
    "partial": every third line is missing
    "duplicates": every line comes again with another text
    "disorder": the last line comes first
    "errors": every third call failed with HTTP 500
    "failed", "full": no call is answered, for a bad file or a full queue
    "slow": not over after `seconds`; half done if it is cancelled
    "unreadable": the first request for any file fails
    """

    seconds: float = 0.0
    faults: Sequence[str] = ()
    most: int = 1
    there: bool = True
    counts: Counter[str] = field(default_factory=Counter[str])
    files: dict[str, bytes] = field(default_factory=dict[str, bytes])
    batches: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])

    def routes(self, app: web.Application, answer: Answer) -> None:
        """Add the routes to a server; `answer` is its chat route."""
        self._answer = answer
        self._reads: Counter[str] = Counter()
        if not self.there:
            return
        app.router.add_post("/v1/files", self._upload)
        app.router.add_get("/v1/files/{id}/content", self._content)
        app.router.add_post("/v1/batches", self._create)
        app.router.add_get("/v1/batches", self._list)
        app.router.add_get("/v1/batches/{id}", self._retrieve)
        app.router.add_post("/v1/batches/{id}/cancel", self._cancel)

    async def _upload(self, request: web.Request) -> web.Response:
        form = await request.post()
        content = form["file"].file.read()  # type: ignore[union-attr]
        return web.json_response({"id": self._file(content), "object": "file", "purpose": "batch"})

    def _file(self, content: bytes) -> str:
        name = f"file-{len(self.files)}"
        self.files[name] = content
        return name

    async def _content(self, request: web.Request) -> web.Response:
        name = request.match_info["id"]
        self.counts["files read"] += 1
        self._reads[name] += 1
        if "unreadable" in self.faults and self._reads[name] == 1:
            return web.json_response({"error": {"message": "something broke"}}, status=500)
        return web.Response(body=self.files[name])

    async def _create(self, request: web.Request) -> web.Response:
        settings = await request.json()
        self.counts["batches"] += 1
        name = f"batch-{len(self.batches)}"
        self.batches[name] = {
            "id": name,
            "object": "batch",
            "status": "in_progress",
            "created_at": time.time(),
            "output_file_id": None,
            "error_file_id": None,
            **settings,
        }
        return web.json_response(self.batches[name])

    async def _list(self, request: web.Request) -> web.Response:
        newest = list(reversed(self.batches.values()))
        ids = [batch["id"] for batch in newest]
        first = ids.index(request.query["after"]) + 1 if "after" in request.query else 0
        last = first + int(request.query.get("limit", 20))
        page = {"object": "list", "data": newest[first:last], "has_more": last < len(newest)}
        return web.json_response(page)

    async def _retrieve(self, request: web.Request) -> web.Response:
        batch = self.batches.get(request.match_info["id"])
        if batch is None:
            return web.json_response({"error": {"message": "no such batch"}}, status=404)
        old = time.time() - batch["created_at"] >= self.seconds
        if batch["status"] == "in_progress" and old and not self._meets(batch, "slow"):
            self._end(batch)
        return web.json_response(batch)

    async def _cancel(self, request: web.Request) -> web.Response:
        batch = self.batches[request.match_info["id"]]
        if batch["status"] == "in_progress":
            self._end(batch, cancelled=True)
        return web.json_response(batch)

    def _meets(self, batch: Any, fault: str) -> bool:
        return fault in self.faults and list(self.batches).index(batch["id"]) < self.most

    def _end(self, batch: dict[str, Any], *, cancelled: bool = False) -> None:
        """Answer the calls of a batch, with its faults."""
        if self._meets(batch, "failed") or self._meets(batch, "full"):
            code = "token_limit_exceeded" if self._meets(batch, "full") else "invalid_json_line"
            error = {"code": code, "message": f"{code} of this batch"}
            batch |= {"status": "failed", "errors": {"object": "list", "data": [error]}}
            return
        calls = [json.loads(line) for line in self.files[batch["input_file_id"]].splitlines()]
        batch["status"] = "completed"
        for status in ("expired", "cancelled"):
            if self._meets(batch, status) or (cancelled and status == "cancelled"):
                batch["status"], kept = status, len(calls) // 2
                lost = [self._lost(call, f"batch_{status}") for call in calls[kept:]]
                calls = calls[:kept]
                batch["error_file_id"] = self._file(b"".join(lost))
        if self._meets(batch, "partial"):
            calls = [call for i, call in enumerate(calls) if i % 3]
        if self._meets(batch, "errors"):
            broken = (500, {"error": {"message": "something broke"}})
            wrong = [self._line(call, broken) for call in calls[::3]]
            batch["error_file_id"] = self._file(b"".join(wrong))
            calls = [call for i, call in enumerate(calls) if i % 3]
        lines = [self._line(call, self._answer(call["body"])) for call in calls]
        if self._meets(batch, "disorder"):
            lines.reverse()
        if self._meets(batch, "duplicates"):
            lines += [_reworded(line) for line in lines]
        self.counts["batched"] += len(lines)
        batch["output_file_id"] = self._file(b"".join(lines))

    def _line(self, call: Payload, answer: tuple[int, Any]) -> bytes:
        status, body = answer
        response = {"status_code": status, "request_id": "", "body": body}
        line = {"id": "", "custom_id": call["custom_id"], "response": response, "error": None}
        return json.dumps(line).encode() + b"\n"

    def _lost(self, call: Payload, code: str) -> bytes:
        error = {"code": code, "message": f"this call was not made: {code}"}
        line = {"id": "", "custom_id": call["custom_id"], "response": None, "error": error}
        return json.dumps(line).encode() + b"\n"


def _reworded(line: bytes) -> bytes:
    """Return an output line with another text."""
    result = json.loads(line)
    result["response"]["body"]["choices"][0]["message"]["content"] = "a second reply to one call"
    return json.dumps(result).encode() + b"\n"
