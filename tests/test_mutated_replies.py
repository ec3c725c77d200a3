"""Replies as models send them, mutated: every parser reads them or says why not, soon, and believes
nothing that a strict reader would not.

    python -m tests.test_mutated_replies 10000     # as many, and what came of them
"""

from __future__ import annotations

import json
import math
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

from loopback.schemas import instance
from mustsee.errors import Unparsed
from mustsee.replies.extract import extract
from mustsee.replies.forms import Form, in_lines
from mustsee.replies.thinking import split_reasoning
from tests.support.every_prompt import calls
from tests.support.hostile import FORGED, RUNS, TOKENS
from tests.test_forms import FORMS
from tests.test_hostile import ANSWERS, MARKS, QUOTING
from tests.test_replies import CASES

SLOWEST = 2.0  # seconds of CPU that one reply may take
PIECES = (
    *ANSWERS, *MARKS, *TOKENS, *FORGED, *RUNS, "```", "{", "}", "[", '"', "\\", "\x00", "\\ud800",
    "９", "A" * 500, "{" * 300, '{"a":' * 2000, "\u202e", "\r\n", "9" * 5000,
)  # fmt: skip
GOLDEN: list[tuple[str, Form[Any], str]] = [
    *((name, case.form, case.reply) for name, case in CASES.items()),
    *((name, case.form, case.lines) for name, case in QUOTING.items()),
]
OPTIONS = {"A": "a cat", "B": "a dog", "C": "a fox"}
_STRICT = re.compile(r"^\* ANSWER: ([A-Z](?: > [A-Z])*)$", re.MULTILINE)


def mutated(reply: str, rng: random.Random) -> str:
    """The reply after up to four changes."""
    for _ in range(rng.randint(0, 4)):
        at = rng.randint(0, len(reply))
        end = min(len(reply), at + rng.randint(0, 40))
        lines = reply.splitlines(keepends=True)
        changes = (
            reply[:at] + reply[end:],
            reply[:at] + rng.choice(PIECES) + reply[at:],
            reply[:at] + reply[at:end] * 3 + reply[end:],
            f"{reply}\n{rng.choice(GOLDEN)[2]}",
            f"```\n{reply}\n```",
            reply[:at],
            "".join(rng.sample(lines, len(lines))),
        )
        reply = rng.choice(changes)
    return reply


@cache
def prompts() -> list[tuple[str, Form[Any], list[str]]]:
    """Every prompt's form, with what an endpoint that keeps to its schema may reply, as JSON and in
    lines.
    """
    found: list[tuple[str, Form[Any], list[str]]] = []
    for name, call in calls().items():
        schema = call.form.schema
        reply = "" if schema is None else json.dumps(instance(schema))
        found.append((name, call.form, [reply, in_lines(reply)] if reply else []))
    return found


def leaves(value: Any) -> Iterator[Any]:
    """The numbers and texts in what was read."""
    if is_dataclass(value) and not isinstance(value, type):
        value = [getattr(value, part.name) for part in fields(value)]
    elif isinstance(value, Mapping):
        value = [*value.keys(), *value.values()]
    if isinstance(value, list | tuple | set | frozenset):
        for inner in value:
            yield from leaves(inner)
    else:
        yield value


def tried(count: int, seed: int = 0) -> Counter[str]:
    """How many replies were read, and how many not. Raises AssertionError for one that takes too
    long, whose answer is not the only one that stands there, or whose value cannot be stored.
    """
    rng, found = random.Random(seed), Counter[str]()
    others = [*FORMS.items()]
    for _ in range(count):
        name, form, reply = rng.choice(GOLDEN)
        if rng.random() < 0.2:
            name, form = rng.choice(others)
        elif rng.random() < 0.6:
            name, form, replies = rng.choice(prompts())
            reply = rng.choice(replies or [reply])
        reply = mutated(reply, rng)
        begun = time.process_time()
        said = split_reasoning(reply).reply
        letter = extract(reply, [*OPTIONS.values()]).letter
        found["letter" if letter else "no letter"] += 1
        assert letter is None or re.search(rf"\b{letter}\b|{OPTIONS[letter]}", reply, re.IGNORECASE)
        try:
            value = form.read(said)
            found["read"] += 1
        except Unparsed:
            value = None
            found["unparsed"] += 1
        assert time.process_time() - begun < SLOWEST, (name, reply[:200])
        for leaf in leaves(value):
            assert not isinstance(leaf, float) or math.isfinite(leaf), (name, reply[:200])
            assert not isinstance(leaf, int) or abs(leaf) < 2**63, (name, reply[:200])
            assert not isinstance(leaf, str) or leaf.encode() is not None, (name, reply[:200])
        strict = set(_STRICT.findall(said))
        if value is not None and name in ("ranking", "look"):
            assert len(strict) <= 1, (name, reply[:500], value)
    return found


def test_mutated_replies_are_parsed_or_refused_quickly() -> None:
    found = tried(400)
    assert found["read"] > 40
    assert found["unparsed"] > 100


if __name__ == "__main__":
    print(dict(tried(int(sys.argv[1]))))
