"""Mutated replies: every parser reads or refuses them quickly, and accepts nothing that a strict
parser would not.

    python -m tests.replies.test_mutated_replies 10000     # number of replies; prints the outcomes
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
from mustsee.replies.forms import Form, label_lines
from mustsee.replies.thinking import split_reasoning
from tests.replies.test_forms import FORMS
from tests.replies.test_replies import CASES
from tests.support.every_prompt import calls
from tests.support.hostile import FORGED, RUNS, TOKENS
from tests.test_hostile import ANSWERS, MARKS, QUOTING

MAX_CPU_S = 2.0  # for one reply
FRAGMENTS = (
    *ANSWERS, *MARKS, *TOKENS, *FORGED, *RUNS, "```", "{", "}", "[", '"', "\\", "\x00", "\\ud800",
    "９", "A" * 500, "{" * 300, '{"a":' * 2000, "\u202e", "\r\n", "9" * 5000,
)  # fmt: skip
GOLDEN: list[tuple[str, Form[Any], str]] = [
    *((name, case.form, case.reply) for name, case in CASES.items()),
    *((name, case.form, case.lines) for name, case in QUOTING.items()),
]
OPTIONS = {"A": "a cat", "B": "a dog", "C": "a fox"}
_STRICT = re.compile(r"^\* ANSWER: ([A-Z](?: > [A-Z])*)$", re.MULTILINE)


def mutate(reply: str, rng: random.Random) -> str:
    """Return the reply after up to four random changes."""
    for _ in range(rng.randint(0, 4)):
        at = rng.randint(0, len(reply))
        end = min(len(reply), at + rng.randint(0, 40))
        lines = reply.splitlines(keepends=True)
        changes = (
            reply[:at] + reply[end:],
            reply[:at] + rng.choice(FRAGMENTS) + reply[at:],
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
    """Return every prompt's form, with a valid reply as JSON and in lines."""
    forms: list[tuple[str, Form[Any], list[str]]] = []
    for name, call in calls().items():
        schema = call.form.schema
        reply = "" if schema is None else json.dumps(instance(schema))
        forms.append((name, call.form, [reply, label_lines(reply)] if reply else []))
    return forms


def leaves(value: Any) -> Iterator[Any]:
    """Yield the numbers and texts of a parsed value."""
    if is_dataclass(value) and not isinstance(value, type):
        value = [getattr(value, part.name) for part in fields(value)]
    elif isinstance(value, Mapping):
        value = [*value.keys(), *value.values()]
    if isinstance(value, list | tuple | set | frozenset):
        for inner in value:
            yield from leaves(inner)
    else:
        yield value


def try_replies(count: int, seed: int = 0) -> Counter[str]:
    """Parse mutated replies and count the outcomes. Raises AssertionError for a reply that takes
    too long, has another answer, too, or has a value that cannot be stored.
    """
    rng, outcomes = random.Random(seed), Counter[str]()
    others = [*FORMS.items()]
    for _ in range(count):
        name, form, reply = rng.choice(GOLDEN)
        if rng.random() < 0.2:
            name, form = rng.choice(others)
        elif rng.random() < 0.6:
            name, form, replies = rng.choice(prompts())
            reply = rng.choice(replies or [reply])
        reply = mutate(reply, rng)
        begun = time.process_time()
        text = split_reasoning(reply).reply
        letter = extract(reply, [*OPTIONS.values()]).letter
        outcomes["letter" if letter else "no letter"] += 1
        if letter is not None:
            option = OPTIONS[letter].removeprefix("a ")
            assert re.search(rf"\b{letter}\b|{option}", reply, re.IGNORECASE)
        try:
            value = form.read(text)
            outcomes["read"] += 1
        except Unparsed:
            value = None
            outcomes["unparsed"] += 1
        assert time.process_time() - begun < MAX_CPU_S, (name, reply[:200])
        for leaf in leaves(value):
            assert not isinstance(leaf, float) or math.isfinite(leaf), (name, reply[:200])
            assert not isinstance(leaf, int) or abs(leaf) < 2**63, (name, reply[:200])
            assert not isinstance(leaf, str) or leaf.encode() is not None, (name, reply[:200])
        strict = set(_STRICT.findall(text))
        if value is not None and name in ("ranking", "look"):
            assert len(strict) <= 1, (name, reply[:500], value)
    return outcomes


def test_mutated_replies_are_parsed_or_refused_quickly() -> None:
    outcomes = try_replies(400)
    assert outcomes["read"] > 40
    assert outcomes["unparsed"] > 100


if __name__ == "__main__":
    print(dict(try_replies(int(sys.argv[1]))))
