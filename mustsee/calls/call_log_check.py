"""What else knows of the money that an output folder has spent: `run.json` of its last run, and the
replies in a store of its own. Where the call log is damaged they say what it lacks.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Container
from dataclasses import dataclass
from typing import Any, cast

from pyarrow import fs

from mustsee.errors import MustseeError
from mustsee.files.store import Store, in_folder

RECORD = "run.json"
REPLIES = "llm"  # the store's folder of replies
ROUNDING_USD = 1e-6  # dollars; `run.json` has rounded sums


@dataclass(frozen=True, kw_only=True)
class RecordedSpent:
    """What `run.json` says that all runs had spent: calls, those without an answer, and dollars,
    those that lost calls may have cost included.
    """

    calls: int = 0
    unanswered: int = 0
    usd: float = 0.0


def read_recorded(filesystem: fs.FileSystem, folder: str) -> RecordedSpent:
    """Return what the last finished run of a folder recorded; nothing where that cannot be read."""
    with contextlib.suppress(OSError, ValueError, LookupError, TypeError, AttributeError):
        if filesystem.get_file_info(f"{folder}/{RECORD}").type != fs.FileType.File:
            return RecordedSpent()
        with filesystem.open_input_file(f"{folder}/{RECORD}") as file:
            spent: dict[str, Any] = json.loads(file.read())["llm"]["all_runs"]
        names = ("usd", "unknown_usd", "unanswered_usd")
        return RecordedSpent(
            calls=int(spent["calls"]),
            unanswered=int(spent.get("unanswered", 0)),
            usd=sum(float(spent.get(name, 0.0)) for name in names),
        )
    return RecordedSpent()


def is_own(store: str | None, out: str) -> bool:
    """Whether a store lies in the output folder, so that its replies were paid for by its runs."""
    return store is not None and store.startswith(in_folder(out, "").partition("?")[0])


def usd_of_replies(store: str, known: Container[str]) -> float:
    """Return the dollars of the stored replies to calls that are not `known`."""
    total, replies = 0.0, Store(store)
    with contextlib.suppress(OSError, MustseeError):
        for key in replies.keys(REPLIES):
            if key not in known and (content := replies.get(REPLIES, key)) is not None:
                with contextlib.suppress(ValueError, TypeError, AttributeError):
                    total += float(cast(dict[str, Any], json.loads(content)).get("usd", 0.0))
    return total
