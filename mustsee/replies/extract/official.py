"""The released scoring parsers of CinePile and MLVU, quirks included, to reproduce their numbers.

They are told the right answer and reject many plain replies ("The answer is B"): for anything
but reproduction use `mustsee.replies.extract`. Written from the parsers' described behaviour.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_CINEPILE = re.compile(r"Answer:\s*([A-E])\)?\.?\s*(.*)", re.IGNORECASE)


def cinepile(reply: str, options: Sequence[str], answer_index: int) -> bool:
    """CinePile (sec. 5, released code): a bare letter, "Answer: X [text]", or exactly the text.

    With a letter and a text, the text must be the answer's word for word: "Answer: B because ..."
    is wrong. The letter has no right boundary: "Answer: Calls for help" is read as C.
    """
    letter, text = _cinepile_parts(reply)
    wanted = options[answer_index].strip().lower()
    if letter is None:
        return text.lower() == wanted
    return letter == "ABCDE"[answer_index] and (not text or text.lower() == wanted)


def _cinepile_parts(reply: str) -> tuple[str | None, str]:
    bare = reply.replace("*", "").strip()
    if re.fullmatch(r"[A-E]", bare, re.IGNORECASE):
        return bare.upper(), ""
    match = _CINEPILE.search(bare)
    return (match[1].upper(), match[2].strip()) if match else (None, bare)


def mlvu(reply: str, answer_index: int | None) -> bool:
    """MLVU dev (choice_bench): the one character before the first ")", else the whole reply, must
    be the letter exactly: "A." and "a" are wrong. An answer that is not among its candidates
    (two released items) can never be right.
    """
    if answer_index is None:
        return False
    place = reply.find(")")
    said = reply if place < 0 else reply[max(place - 1, 0) : place]
    return said == chr(ord("A") + answer_index)
