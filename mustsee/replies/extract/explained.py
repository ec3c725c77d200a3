"""Which options a reply can mean that explains itself instead of naming a letter.

"The man is climbing. There is no sign of a rope, so he is not abseiling": the sentence that repeats
the question names the answer, and the rest argues. What is denied, supposed or asked is not meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mustsee.replies.extract.reworded import WAYS, Found, joined_to
from mustsee.replies.extract.words import (
    ASIDE,
    DENIED,
    ENDS_A_CLAUSE,
    LISTED,
    NEGATION,
    NO,
    NONE_OF,
    RULED_OUT,
    SUPPOSED,
    TURN,
)

_ENDS = re.compile(r"(?<![^\w][a-z])[.!?][\"')]*(?:\s+|$)|\n+")  # "b. swimming" goes on
_NEAR = 6  # words before an option that may deny it


@dataclass(frozen=True, kw_only=True)
class _Mention:
    """An option named in a sentence. `aside`: only compared with, or thought possible."""

    index: int
    sentence: int
    closes: bool
    aside: bool


def meant_options(reply: str, options: Sequence[str]) -> tuple[int, ...]:
    """The options that a reply in lower case can mean; one where that is plain. `options`: their
    normalised texts.
    """
    sentences = tuple(_sentences(reply))
    said: list[_Mention] = []
    for ways in WAYS:
        for number, sentence in enumerate(sentences):
            found = [f for way in ways for f in way(sentence, options)]
            found += [other for f in found for other in joined_to(sentence, f[1], options)]
            said += _mentions(number, sentence, found)
        if said:
            break
    said = [m for m in said if not m.aside] or said
    found = tuple(dict.fromkeys(m.index for m in said))
    if len(found) < 2 or said[0].aside:
        return found
    first = said[0].sentence
    leading = {m.index for m in said if m.sentence == first}
    if len(leading) > 1 or not any(m.closes for m in said if m.sentence == first):
        return found
    taken_back = any(TURN.match(sentence) for sentence in sentences[first + 1 :])
    return found if taken_back else tuple(leading)


def _sentences(text: str) -> Iterator[str]:
    """Questions are left out: what they name is asked, not said."""
    start = 0
    for match in _ENDS.finditer(text):
        if "?" not in match[0]:
            yield text[start : match.start()]
        start = match.end()
    yield text[start:]


def _mentions(number: int, sentence: str, spans: Sequence[Found]) -> Iterator[_Mention]:
    """What a sentence names and does not deny, in order; of texts that overlap, the longest."""
    if SUPPOSED.search(sentence):
        return
    for start, end, index in sorted(set(spans)):
        within = any(a <= start and end <= b and b - a > end - start for a, b, _ in spans)
        if within or _is_denied(sentence, start, end):
            continue
        near = _near(sentence[:start])
        closes = ENDS_A_CLAUSE.match(sentence, end) is not None
        aside = ASIDE.search(near) is not None
        yield _Mention(index=index, sentence=number, closes=closes, aside=aside)


def _near(before: str) -> str:
    """The last words of a clause."""
    return " ".join(re.split(r"[;:,]|\bbut\b", before)[-1].split()[-_NEAR:])


def _is_denied(sentence: str, start: int, end: int) -> bool:
    """Whether a place of a sentence is denied, alone or in a list: "no A, B or C"."""
    if RULED_OUT.match(sentence, end):
        return True
    before = sentence[:start]
    near = _near(before)
    if LISTED.match(sentence, end) or re.search(r"\b(?:or|nor)\b", near):
        near = re.split(r"[;:]|\bbut\b", before)[-1]
        return any(word.search(near) for word in (NEGATION, DENIED, NONE_OF))
    return any(word.search(near) for word in (NEGATION, DENIED)) or NO.search(before) is not None
