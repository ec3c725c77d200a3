"""The words of questions that ask when something is seen.

question = word_question("a boy in red rings a bell", "event", 1)
phrase = stated_phrase(question)          # "a boy in red rings a bell"
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from mustsee.records import Span

ASKS = {"event": "When does this happen: {}?", "state": "When is this so: {}?"}
SEEN, WORDS_SEEN = "When is {} seen?", "When are {} seen?"
ONCE = "Give its start and its end, in seconds."
AGAIN = "It comes more than once: give the start and the end of each time, in seconds."
_STATED = [
    re.compile("(.+)".join(map(re.escape, ask.split("{}"))) + f" (?:{ONCE}|{AGAIN})", re.DOTALL)
    for ask in (*ASKS.values(), SEEN, WORDS_SEEN)
]


def word_question(phrase: str, kind: str, times: int, *, is_written: bool = False) -> str:
    """Return the question for a fact of a kind that is seen at so many separate times.
    `is_written`: it is words on the screen.
    """
    ask = ASKS.get(kind, WORDS_SEEN if is_written else SEEN)
    return f"{ask.format(phrase)} {ONCE if times == 1 else AGAIN}"


def stated_phrase(question: str) -> str:
    """Return the phrase that a question asks for; the whole question if it has other words."""
    found = (pattern.fullmatch(question) for pattern in _STATED)
    return next((match[1] for match in found if match), question)


def word_spans(spans: Sequence[Span]) -> str:
    """Return spans in words: "12.5 to 18.0 s; 40.0 to 44.5 s"."""
    return "; ".join(f"{span.start:.1f} to {span.end:.1f} s" for span in spans)
