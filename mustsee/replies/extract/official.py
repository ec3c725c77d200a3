"""The released scoring parsers of CinePile and MLVU, quirks included, to reproduce their numbers.

They need the right answer and reject many plain replies ("The answer is B"). Use them for
reproduction only, and `mustsee.replies.extract` for anything else. Written from the parsers'
described behaviour.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_CINEPILE = re.compile(r"Answer:\s*([A-E])\)?\.?\s*(.*)", re.IGNORECASE)


def cinepile(reply: str, options: Sequence[str], answer_index: int) -> bool:
    """Return whether CinePile's released code (sec. 5) accepts the reply.

    It reads a bare letter, "Answer: X [text]", or exactly the text. With a letter and a text, the
    text must equal the answer's: "Answer: B because ..." is wrong. The letter has no right
    boundary: "Answer: Calls for help" is read as C.
    """
    letter, text = cinepile_parts(reply)
    answer = options[answer_index].strip().lower()
    if letter is None:
        return text.lower() == answer
    return letter == "ABCDE"[answer_index] and (not text or text.lower() == answer)


def cinepile_parts(reply: str) -> tuple[str | None, str]:
    """Return the letter that the parser reads, or None, and the text behind it or else all."""
    bare = reply.replace("*", "").strip()
    if re.fullmatch(r"[A-E]", bare, re.IGNORECASE):
        return bare.upper(), ""
    match = _CINEPILE.search(bare)
    return (match[1].upper(), match[2].strip()) if match else (None, bare)


def mlvu(reply: str, answer_index: int | None) -> bool:
    """Return whether MLVU dev's released code (choice_bench) accepts the reply.

    The character before the first ")", or else the whole reply, must equal the letter: "A." and
    "a" are wrong. `answer_index` is None for an answer that is not among its candidates (two
    released items), which no reply gets right.
    """
    if answer_index is None:
        return False
    place = reply.find(")")
    letter = reply if place < 0 else reply[max(place - 1, 0) : place]
    return letter == chr(ord("A") + answer_index)
