"""The lines of the call log: JSON objects, each with a checksum of its content."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

import xxhash

SUM = "sum"  # the checksum, the last field of a line


def write_line(entry: Mapping[str, Any]) -> bytes:
    """Return an entry as a line."""
    content = _json_of(entry)
    return b'%s,"%s":"%s"}\n' % (content[:-1], SUM.encode(), _checksum(content).encode())


def read_lines(content: bytes) -> tuple[list[dict[str, Any]], int]:
    """Return the entries of a file's lines, and the number of lines that are damaged.

    A damaged line is skipped; if it ended a call, that call counts as lost. Blank lines are none.
    """
    entries, damaged = list[dict[str, Any]](), 0
    for line in content.splitlines():
        if not line:
            continue
        entry = _read_line(line)
        damaged += entry is None
        if entry is not None:
            entries.append(entry)
    return entries, damaged


def _read_line(line: bytes) -> dict[str, Any] | None:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(entry, dict):
        return None
    entry = cast(dict[str, Any], entry)
    checksum = entry.pop(SUM, None)  # lines of early versions have none
    return entry if checksum in (None, _checksum(_json_of(entry))) else None


def _json_of(entry: Mapping[str, Any]) -> bytes:
    return json.dumps(entry, separators=(",", ":")).encode()


def _checksum(content: bytes) -> str:
    return xxhash.xxh3_64_hexdigest(content)
