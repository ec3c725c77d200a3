"""Recorded replies of a model, from a JSON-lines file, for tests and demonstrations.

llm=replay llm.path=replies.jsonl                       answer from the file
llm=record llm.path=replies.jsonl llm.record.model=M    ask an endpoint for what the file lacks
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from base64 import b64encode
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from actors.part import LlmConfig
from mustsee.calls.llm import Llm, Message, Reply, Request, VideoClip
from mustsee.errors import BadRow, UserError
from mustsee.files.schemas import dump, load
from mustsee.prompts import Prompts

MAX_SHOWN_ROWS, MAX_ROW_CHARS = 3, 160  # rows of a difference, and characters of each


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


def hash_words(request: Request) -> str:
    """Hash of all that decides the reply but the pixels, which differ between decoders."""
    turns = [[m.role, m.text, len(m.images), m.lines] for m in request.messages]
    rest = [request.prompt, request.seed, request.form, request.attempt, vars(request.sampling)]
    return hashlib.sha256(json.dumps([turns, rest], default=str).encode()).hexdigest()


def _text_rows(messages: Sequence[Message]) -> list[str]:
    return [row for m in messages for row in f"{m.text}\n{m.lines}".splitlines() if row.strip()]


def hash_rows(messages: Sequence[Message]) -> str:
    """A short hash of each row of a request's text, so that a request that was not recorded can
    name the rows that differ.
    """
    return "".join(map(_row_hash, _text_rows(messages)))


def _row_hash(row: str) -> str:
    return b64encode(hashlib.sha256(row.encode()).digest()[:3]).decode()


@dataclass(frozen=True)
class Recording:
    """The lines of a file. A line is found by its request, or else by the words of the request
    alone, if one line only has them.
    """

    lines: Sequence[Mapping[str, Any]]

    @cached_property
    def _by_key(self) -> dict[str, Mapping[str, Any]]:
        return {line["key"]: line for line in self.lines}

    @cached_property
    def _by_words(self) -> dict[str, Mapping[str, Any] | None]:
        found: dict[str, Mapping[str, Any] | None] = {}
        for line in self._by_key.values():
            found[line["words"]] = None if line["words"] in found else line
        return found

    def reply(self, request: Request) -> Reply | None:
        line = self._by_key.get(request.key("")) or self._by_words.get(hash_words(request))
        return None if line is None else load(Reply, line["reply"])

    def difference(self, request: Request) -> str:
        """Say in what a request that was not recorded differs from the nearest recorded one."""
        rows = {_row_hash(row): row for row in _text_rows(request.messages)}
        recorded = [
            {line["rows"][at : at + 4] for at in range(0, len(line["rows"]), 4)}
            for line in self.lines
            if line["prompt"] == request.prompt and "rows" in line
        ]
        if not recorded:
            return "no reply to this prompt is recorded"
        nearest = max(recorded, key=lambda hashes: len(hashes & rows.keys()))
        other = [row.strip() for key, row in rows.items() if key not in nearest]
        if not other and nearest <= rows.keys():
            return "its text is recorded, with another seed, sampling or form, or other pictures"
        gone = len(nearest - rows.keys())
        said = f"{gone} of its {len(nearest)} rows are not in this request"
        if other:
            shown = "; ".join(repr(row[:MAX_ROW_CHARS]) for row in other[:MAX_SHOWN_ROWS])
            said += f", which has {len(other)} others: {shown}"
            said += "; ..." if len(other) > MAX_SHOWN_ROWS else ""
        return f"of the nearest recorded request {said}"

    def stale(self) -> dict[str, int]:
        """Prompt -> the number of lines that were recorded with another text of it, or before it
        was taken out.
        """
        prompts = Prompts()
        current: dict[str, str] = {}
        for name in {line["prompt"] for line in self.lines}:
            with suppress(FileNotFoundError):
                current[name] = prompts.digest(name)
        return Counter(n["prompt"] for n in self.lines if n["digest"] != current.get(n["prompt"]))


def read(path: str) -> Recording:
    """Read a recording. Raises UserError if the file is missing or invalid."""
    try:
        with open(path, encoding="utf-8") as file:
            lines = [json.loads(line) for line in file if line.strip()]
    except FileNotFoundError:
        raise UserError(
            f"no recorded replies at {path!r}: set llm.path, or record some with llm=record"
        ) from None
    except ValueError as error:
        raise UserError(f"{path!r} is not a file of recorded replies: {error}") from None
    return Recording(lines)


@dataclass(frozen=True, kw_only=True)
class Replay:
    """A model whose replies were recorded."""

    path: str
    """JSON lines; a reply that they hold is not asked for again."""
    record: LlmConfig | None = None
    """Model to ask and to record, e.g. {_target_: actors.llm.offline.Offline}; null: reply from
    the file alone."""

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
        """Say which replies are stale. Raises UserError for an invalid file, and for a budget while
        recording, which could not be enforced.
        """
        if self.record is None:
            if stale := read(self.path).stale():
                listed = ", ".join(f"{name} ({n})" for name, n in sorted(stale.items()))
                print(f"{self.path}: prompts have changed since these replies were recorded: "
                      f"{listed}; ask again with llm=record", file=sys.stderr)  # fmt: skip
        elif budget_usd is not None:
            raise UserError(
                f"budget_usd={budget_usd:g} is not enforced while replies are recorded: leave it "
                "out, or record another time"
            )

    def open(self) -> Llm:
        if self.record is not None:
            return self.make_recorder(self.record.open(), self.path)
        return Player(self.identity, read(self.path))

    def make_recorder(self, llm: Llm, path: str | None) -> Recorder:
        """Return what answers from the file, asks `llm` for what it lacks, and records at `path`;
        None: records nothing.
        """
        known = read(self.path) if os.path.exists(self.path) else Recording(())
        return Recorder(path, llm, known)


@dataclass(frozen=True)
class Player:
    """Answers from recorded lines."""

    identity: str
    recording: Recording

    async def complete(self, request: Request) -> Reply:
        """Raises BadRow for a request that was never recorded."""
        reply = self.recording.reply(request)
        if reply is None:
            raise BadRow(
                f"no recorded reply for prompt {request.prompt!r} with seed {request.seed}: "
                f"{self.recording.difference(request)}. Record again (llm=record), or undo "
                "what changed: a prompt, a setting, the video or its transcript"
            )
        return reply


@dataclass(frozen=True)
class Recorder:
    """Passes on the requests that are not `known` and appends each reply to the file, in one write
    per line, so that several processes may share the file. `path`: None: replies are not recorded.
    """

    path: str | None
    llm: Llm
    known: Recording

    @property
    def identity(self) -> str:
        return self.llm.identity

    async def complete(self, request: Request) -> Reply:
        if (known := self.known.reply(request)) is not None:
            return known
        reply = await self.llm.complete(request)
        if self.path is None:
            return reply
        line = {
            "key": request.key(""),
            "words": hash_words(request),
            "rows": hash_rows(request.messages),
            "digest": request.digest,
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
