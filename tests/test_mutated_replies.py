"""Replies as models send them, mutated: every parser reads them or says why not, soon, and believes
nothing that a strict reader would not.

    python -m tests.test_mutated_replies 10000     # as many, and what came of them
"""

from __future__ import annotations

import random
import re
import sys
import time
from collections import Counter
from typing import Any

from mustsee.errors import Unparsed
from mustsee.extract import extract
from mustsee.forms import Form
from mustsee.thoughts import split_reasoning
from tests.support.hostile import FORGED, RUNS, TOKENS
from tests.test_forms import FORMS
from tests.test_hostile import ANSWERS, MARKS, QUOTING
from tests.test_replies import CASES

SLOWEST = 2.0  # seconds of CPU that one reply may take
PIECES = (
    *ANSWERS, *MARKS, *TOKENS, *FORGED, *RUNS, "```", "{", "}", "[", '"', "\\", "\x00", "\ud800",
    "９", "A" * 500, "{" * 300, '{"a":' * 2000, "\u202e", "\r\n", "9" * 5000,
)  # fmt: skip
GOLDEN: list[tuple[str, Form[Any], str]] = [
    *((name, case.form, case.reply) for name, case in CASES.items()),
    *((name, case.form, case.lines) for name, case in QUOTING.items()),
]
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


def tried(count: int, seed: int = 0) -> Counter[str]:
    """How many replies were read, and how many not. Raises AssertionError for one that takes too
    long, or whose answer is not the only one that stands there.
    """
    rng, found = random.Random(seed), Counter[str]()
    others = [*FORMS.items()]
    for _ in range(count):
        name, form, reply = rng.choice(GOLDEN)
        if rng.random() < 0.3:
            name, form = rng.choice(others)
        reply = mutated(reply, rng)
        begun = time.process_time()
        said = split_reasoning(reply).said
        letter = extract(reply, ["a cat", "a dog", "a fox"]).letter
        found["letter" if letter else "no letter"] += 1
        try:
            value = form.read(said)
            found["read"] += 1
        except Unparsed:
            value = None
            found["unparsed"] += 1
        assert time.process_time() - begun < SLOWEST, (name, reply[:200])
        strict = set(_STRICT.findall(said))
        if value is not None and name in ("ranking", "look"):
            assert len(strict) <= 1, (name, reply[:500], value)
    return found


def test_mutated_replies_are_read_or_refused_soon_and_never_believed_twice() -> None:
    found = tried(400)
    assert found["read"] > 40
    assert found["unparsed"] > 100


if __name__ == "__main__":
    print(dict(tried(int(sys.argv[1]))))
