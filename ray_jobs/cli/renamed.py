"""Keys and choices of earlier versions: each is refused with its new name, or with the reason."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from mustsee.errors import UserError

RENAMED = {  # new name of a key, of a part of a key, or of a choice
    "enrich/vet/looker": "enrich/verifier",
    "enrich.vet.looker": "enrich.verifier",
    "enrich/vet/verifier": "enrich/verifier",
    "enrich.vet.verifier": "enrich.verifier",
    "enrich.vet.watch": "enrich.watch",
    "people=looker": "people=model",
    "people.looker": "people.llm",
    "people/looker": "people/llm",
    "looker": "verifier",
    "people.pictures": "people.frames",
    "pictures": "image_tokens",
    "limit.film": "limit.video",
    "what.films": "what.videos",
    "what.film": "what.video",
}
REMOVED = {  # key -> why it is gone
    **dict.fromkeys(
        (
            "vet.filters.sight.min_right",
            "enrich.traces.min_right",
        ),
        "one look is enough, and most of runs decide where it is against the question",
    ),
    **dict.fromkeys(
        ("enrich.twins", "enrich.groups.most", "enrich.vet.judge", "enrich/vet/judge"),
        "questions without options, sets and pairs are composed from facts now: ask=facts",
    ),
    "ask.settings.expected": "wrong answers are no longer made from guesses; leave the key out",
}
_OLD = re.compile(rf"(?<![^+~./])({'|'.join(map(re.escape, RENAMED))})(?=[./=]|$)")


_NUMBERED = re.compile(r"[+~]*vet\.filters\.\d+")


def check_overrides(overrides: Sequence[str]) -> None:
    """Raise UserError for an override by an old name; the message has the new override."""
    for word in overrides:
        key = word.lstrip("+~").partition("=")[0]
        if key in REMOVED:
            raise UserError(f"{word!r} is from an earlier version: {REMOVED[key]}")
        if _NUMBERED.match(word):
            raise UserError(
                f"{word!r} is from an earlier version: filters have names now, as in "
                "vet.filters.blind.runs=5; conf/vet lists them"
            )
        if old := _OLD.match(word) or _OLD.search(word.partition("=")[0]):
            now = word[: old.start()] + RENAMED[old[1]] + word[old.end() :]
            raise UserError(f"{word!r} has an old name: write {now}")


def check_keys(path: str, keys: Iterable[str]) -> None:
    """Raise UserError for a key of the part at `path` that has an old name."""
    for key in (f"{path}.{key}" for key in keys):
        if key in REMOVED:
            raise UserError(f"the key {key!r} is from an earlier version: {REMOVED[key]}")
        if old := _OLD.search(key):
            now = key[: old.start()] + RENAMED[old[1]] + key[old.end() :]
            raise UserError(f"the key {key!r} has an old name: write {now!r}")
