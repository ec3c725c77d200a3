"""Keys and choices that had another name in earlier versions, refused with the new one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from mustsee.errors import UserError

RENAMED = {  # a key, a part of one, or a choice -> its name now
    "people=looker": "people=model",
    "people.looker": "people.llm",
    "people/looker": "people/llm",
    "looker": "verifier",
    "limit.film": "limit.video",
    "what.films": "what.videos",
    "what.film": "what.video",
}
_OLD = re.compile(rf"(?<![^+~./])({'|'.join(map(re.escape, RENAMED))})(?=[./=]|$)")


_NUMBERED = re.compile(r"[+~]*vet\.filters\.\d+")


def check_overrides(overrides: Sequence[str]) -> None:
    """Raises UserError for an override by an old name, with the override as it is written now."""
    for word in overrides:
        if _NUMBERED.match(word):
            raise UserError(
                f"{word!r} is from an earlier version: filters have names now, as in "
                "vet.filters.blind.runs=5; conf/vet lists them"
            )
        if old := _OLD.match(word) or _OLD.search(word.partition("=")[0]):
            now = word[: old.start()] + RENAMED[old[1]] + word[old.end() :]
            raise UserError(f"{word!r} is from an earlier version: write {now}")


def check_keys(path: str, keys: Iterable[str]) -> None:
    """Raises UserError for a key of the part at `path` that has another name now."""
    for key in (f"{path}.{key}" for key in keys):
        if old := _OLD.search(key):
            now = key[: old.start()] + RENAMED[old[1]] + key[old.end() :]
            raise UserError(f"the key {key!r} is from an earlier version: it is {now!r} now")
