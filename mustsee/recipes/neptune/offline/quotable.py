"""Texts of a video that the rules may quote."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from mustsee.media.certainty import is_surely_read
from mustsee.offline.wording import likeness, without_spaces
from mustsee.prompts import neutral
from mustsee.questions.checks import holds, normal
from mustsee.records import ScreenText
from mustsee.text import terms, words

_CUT = re.compile(r"\d\.\d|\.\.|…|@|://|www\.|\.(?:com|org|ai|net)\b")
_LABEL = re.compile(
    r"\b((?:answer|evidence|question|shot|segment)\s*\w?\s*\**)\s*[:：]", re.IGNORECASE
)
MAX_LEGIBLE_LINES = 12  # on-screen texts of a frame; of more than these, none is quoted
_LEGIBLE = re.compile(r"[A-Za-zÀ-ž0-9][A-Za-zÀ-ž0-9 ,.'’!?:&-]*")


def quotable_texts(texts: Sequence[ScreenText]) -> tuple[ScreenText, ...]:
    """Return the on-screen texts that can be quoted: certain, complete and not too long; none of
    those that are visible together with too many others.
    """
    return tuple(
        replace(text, text=_clean(text.text))
        for text in texts
        if _is_quotable(text) and sum(other.at(text.time) for other in texts) <= MAX_LEGIBLE_LINES
    )


def _clean(text: str) -> str:
    return one_line(text).strip(" .:;,-_|'\"“”")


def _is_quotable(text: ScreenText) -> bool:
    clean = _clean(text.text)
    letters = sum(c.isalpha() for c in clean)
    is_complete = bool(_LEGIBLE.fullmatch(clean)) and not _CUT.search(text.text)
    is_certain = (
        is_surely_read(text) and letters >= 4 and letters >= 0.5 * len(without_spaces(clean))
    )
    return is_certain and is_complete and not _is_common(clean) and len(clean.split()) <= 12


def _is_common(text: str) -> bool:
    """Whether a text is a fragment that other lines may contain: stop words alone ("of the"), or
    one word in lower case ("dynamic").
    """
    return not terms(text) or (" " not in text and text[:1].islower())


def _same(one: str, other: str) -> bool:
    """Whether two texts are equal, nested, or as similar as two readings of the same words."""
    if normal(one) == normal(other) or holds(one, other) or holds(other, one):
        return True
    return likeness(one, other) >= 0.8


def one_line(text: str) -> str:
    """Return the text on one line, without marks that have a meaning in a reply."""
    text = _LABEL.sub(r"\1", re.sub(r"[*_`#>]+", " ", neutral(text)))
    return " ".join(text.split())


def lower(text: str) -> str:
    """Return the text in lower case at the start, unless its first word is "I" or in capitals."""
    first = text.split(" ")[0]
    return text if first == "I" or first[1:].lower() != first[1:] else text[:1].lower() + text[1:]


def pick(answer: str, others: Iterable[str], rng: random.Random, count: int = 4) -> tuple[str, ...]:
    """Pick `count` decoys from `others`, nearest to the answer in length. There are fewer if not
    enough of them differ from the answer and from each other.
    """
    candidates = list(dict.fromkeys(o for o in others if words(o)))
    rng.shuffle(candidates)
    size = len(answer.split())
    candidates.sort(key=lambda o: abs(len(o.split()) - size) // 2)
    chosen: list[str] = []
    for other in candidates:
        if all(not _same(other, taken) for taken in (answer, *chosen)):
            chosen.append(other)
        if len(chosen) == count:
            break
    return tuple(chosen)
