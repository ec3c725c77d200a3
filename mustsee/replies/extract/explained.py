"""The options that a reply without a letter may mean, read from its explanation.

"The man is climbing. There is no sign of a rope, so he is not abseiling": the sentence that repeats
the question names the answer, and the rest argues for it. An option that is denied, supposed or
asked about does not count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mustsee.replies.extract.reworded import MATCHERS, Match, joined_to
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
_NEAR_WORDS = 6  # a denial counts within as many words before an option


@dataclass(frozen=True, kw_only=True)
class _Mention:
    """An option that a sentence names.

    `closes`: a clause ends behind it. `aside`: it is only compared with, or called possible.
    """

    index: int
    sentence: int
    closes: bool
    aside: bool


def meant_options(reply: str, options: Sequence[str]) -> tuple[int, ...]:
    """Return the indices of the options that a reply may mean; a single one where it is clear.

    `reply`: in lower case. `options`: normalised texts.
    """
    sentences = tuple(_sentences(reply))
    mentions: list[_Mention] = []
    for matchers in MATCHERS:
        for number, sentence in enumerate(sentences):
            matches = [match for matcher in matchers for match in matcher(sentence, options)]
            matches += [other for m in matches for other in joined_to(sentence, m[1], options)]
            mentions += _mentions(number, sentence, matches)
        if mentions:
            break
    mentions = [m for m in mentions if not m.aside] or mentions
    named = tuple(dict.fromkeys(m.index for m in mentions))
    if len(named) < 2 or mentions[0].aside:
        return named
    first = mentions[0].sentence
    leading = {m.index for m in mentions if m.sentence == first}
    if len(leading) > 1 or not any(m.closes for m in mentions if m.sentence == first):
        return named
    is_taken_back = any(TURN.match(sentence) for sentence in sentences[first + 1 :])
    return named if is_taken_back else tuple(leading)


def _sentences(text: str) -> Iterator[str]:
    """Yield the sentences that are not questions, because a question claims nothing."""
    start = 0
    for match in _ENDS.finditer(text):
        if "?" not in match[0]:
            yield text[start : match.start()]
        start = match.end()
    yield text[start:]


def _mentions(number: int, sentence: str, spans: Sequence[Match]) -> Iterator[_Mention]:
    """Yield the options that a sentence names without denying them, in order.

    Of matches that overlap only the longest counts.
    """
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
    """Return the last words of the last clause."""
    return " ".join(re.split(r"[;:,]|\bbut\b", before)[-1].split()[-_NEAR_WORDS:])


def _is_denied(sentence: str, start: int, end: int) -> bool:
    """Whether the words between two places are denied, alone or in a list: "no A, B or C"."""
    if RULED_OUT.match(sentence, end):
        return True
    before = sentence[:start]
    near = _near(before)
    if LISTED.match(sentence, end) or re.search(r"\b(?:or|nor)\b", near):
        near = re.split(r"[;:]|\bbut\b", before)[-1]
        return any(word.search(near) for word in (NEGATION, DENIED, NONE_OF))
    return any(word.search(near) for word in (NEGATION, DENIED)) or NO.search(before) is not None
