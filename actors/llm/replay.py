"""Recorded replies of a model, from a JSON-lines file, for tests and demonstrations.

llm=replay llm.path=replies.jsonl                                 answer from the file
llm=replay llm.path=replies.jsonl llm.record={_target_: ...}      ask that model and record it
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from actors.part import LlmConfig
from mustsee.calls.llm import Llm, Message, Reply, Request, VideoClip
from mustsee.errors import BadRow, UserError
from mustsee.schemas import dump, load


def hash_messages(messages: Sequence[Message], seed: int) -> str:
    """Hash of what an endpoint receives: the turns, their images and videos, and the seed."""
    turns = [[m.role, list(map(_part_id, m.parts))] for m in messages]
    return hashlib.sha256(json.dumps([turns, seed]).encode()).hexdigest()


def hash_sent_forms(request: Request) -> list[str]:
    """Hashes of what an endpoint receives of a request with a schema, and with lines in place."""
    sent = (request.messages_for(schema=schema) for schema in (True, False))
    return [hash_messages(messages, request.seed) for messages in sent]


def _part_id(part: str | bytes | VideoClip) -> str:
    if isinstance(part, str):
        return part
    content = part if isinstance(part, bytes) else part.mp4 or part.address.encode()
    return hashlib.sha256(content).hexdigest()


def read(path: str) -> dict[str, dict[str, Any]]:
    """Recorded lines by request key. Raises UserError if the file is missing or invalid."""
    try:
        with open(path, encoding="utf-8") as file:
            lines = [json.loads(line) for line in file if line.strip()]
    except FileNotFoundError:
        raise UserError(
            f"no recorded replies at {path!r}: set llm.path, or record some with llm.record"
        ) from None
    except ValueError as error:
        raise UserError(f"{path!r} is not a file of recorded replies: {error}") from None
    return {line["key"]: line for line in lines}


@dataclass(frozen=True, kw_only=True)
class Replay:
    """`record`: the model to ask and record; None: replies come from the file alone."""

    path: str
    record: LlmConfig | None = None

    @property
    def identity(self) -> str:
        """The recorded model's identity while recording, else the hash of the file's content."""
        if self.record is not None:
            return self.record.identity
        try:
            with open(self.path, "rb") as file:
                return "replay " + hashlib.sha256(file.read()).hexdigest()[:16]
        except FileNotFoundError:
            raise UserError(f"no recorded replies at {self.path!r}: set llm.path") from None

    def check(self, budget_usd: float | None) -> None:
        """Raise UserError for an invalid file, and for a budget while recording, which could not be
        enforced.
        """
        if self.record is None:
            read(self.path)
        elif budget_usd is not None:
            raise UserError(
                f"budget_usd={budget_usd:g} is not enforced while replies are recorded: leave it "
                "out, or record another time"
            )

    def open(self) -> Llm:
        if self.record is not None:
            return Recorder(self.path, self.record.open())
        return Player(self.identity, read(self.path))


@dataclass(frozen=True)
class Player:
    """Answers from recorded lines."""

    identity: str
    lines: Mapping[str, Mapping[str, Any]]

    async def complete(self, request: Request) -> Reply:
        """Raises BadRow for a request that was never recorded."""
        line = self.lines.get(request.key(""))
        if line is None:
            raise BadRow(
                f"no recorded reply for prompt {request.prompt!r} with seed {request.seed}: the "
                "prompt, its variables or the sampling have changed since; record again"
            )
        return load(Reply, line["reply"])


@dataclass(frozen=True)
class Recorder:
    """Passes requests on and appends each reply to the file, in one write per line, so that several
    processes may share the file.
    """

    path: str
    llm: Llm

    @property
    def identity(self) -> str:
        return self.llm.identity

    async def complete(self, request: Request) -> Reply:
        reply = await self.llm.complete(request)
        line = {
            "key": request.key(""),
            "spoken": hash_sent_forms(request),
            "prompt": request.prompt,
            "reply": dump(reply),
        }
        text = json.dumps(line, sort_keys=True) + "\n"
        handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(handle, text.encode())
        finally:
            os.close(handle)
        return reply
