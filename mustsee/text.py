"""Words, their weights, likeness and summaries: all that the rules know of language.

Stop words, endings and nouns are English; other languages fare worse, not wrongly. A script that
does not part its words (Chinese, Japanese, Thai, ...) has a word for each letter where texts are
compared, and for every two letters where they are measured.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"  # the names of options
_RANGES = (  # Kana, Han, Thai, Lao, Burmese, Khmer: these do not part their words
    "\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f"
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\U00020000-\U0003134f"
)
UNSPACED = re.compile(f"[{_RANGES}]")
LETTERS_PER_WORD = 2  # the mean length of a Chinese word, for want of a dictionary
_SPACED = rf"[^\W_{_RANGES}]+"
WORD = re.compile(rf"{UNSPACED.pattern}|{_SPACED}(?:['’]{_SPACED})*")
_MEASURED = re.compile(rf"\s*([{_RANGES}]|[^\s{_RANGES}]+)")
STOP_WORDS = frozenset(
    re.split(
        r"\s+",
        "a about above after again all also although always am an and any are aren't as at "
        "away back be became because become been before being below between both but by came "
        "can can't cannot come could did didn't do does doesn't doing don't down during each "
        "else even ever every everybody everything few first for from further get gets "
        "getting give given go goes going gone got had has have having he her here hers him "
        "his how however i i'm if in into is isn't it it's its itself just last later least "
        "less let let's like look made make makes many may maybe me might mine more most much "
        "must my near never new next no nor not nothing now of off often oh ok okay on once "
        "one only onto or other our ours out over own part put quite really right said same "
        "say see seen she should so some something sometimes soon still such take than that "
        "that's the their them themselves then there there's these they thing things this "
        "those though through time to today together too two under until up upon us use used "
        "very want was we we're well went were what when where which while who whole why will "
        "with within without won't would yes yet you you're your",
    )
)
_NUMBERS = re.split(
    r"\s+",
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen twenty",
)
NUMBERS = {name: value for value, name in enumerate(_NUMBERS)}
# what a terminal obeys, what turns the direction of writing, line ends, and halves of characters
_UNSHOWN = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """A text on one line of a terminal: what would steer the terminal stands as its escape."""
    return _UNSHOWN.sub(lambda found: ascii(found.group())[1:-1], text)


def words(text: str) -> list[str]:
    """The words of a text in lower case."""
    return [w.replace("’", "'") for w in WORD.findall(text.lower())]


def length(text: str) -> int:
    """How many words a text has, by the spaces between them where its script has any."""
    unspaced = len(UNSPACED.findall(text))
    return len(UNSPACED.sub(" ", text).split()) + math.ceil(unspaced / LETTERS_PER_WORD)


def first_words(text: str, most: int) -> str:
    """The first `most` words of a text."""
    room, end = most * LETTERS_PER_WORD, 0
    for match in _MEASURED.finditer(text):
        room -= 1 if UNSPACED.match(match[1]) else LETTERS_PER_WORD
        if room < 0:
            break
        end = match.end()
    return text[:end]


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """A word without the commonest English endings: boards -> board, mixing -> mix."""
    for ending, least in (("'s", 1), ("ies", 3), ("ing", 4), ("ed", 4), ("es", 4), ("s", 3)):
        if word.endswith(ending) and len(word) - len(ending) >= least and not word.endswith("ss"):
            bare = word[: -len(ending)]
            if ending == "ies":
                return bare + "y"
            if ending == "es" and not bare.endswith(("s", "x", "z", "ch", "sh", "o")):
                return word[:-1].rstrip("e")
            if ending in ("ing", "ed") and len(bare) > 3 and bare[-1] == bare[-2]:
                return bare[:-1]
            return bare.rstrip("e") if len(bare) > 3 else bare
    return word.rstrip("e") if len(word) > 4 else word


def terms(text: str) -> list[str]:
    """The stems of the words that carry meaning; number words as digits."""
    return [
        str(NUMBERS[w]) if w in NUMBERS and w not in STOP_WORDS else stem(w)
        for w in words(text)
        if w not in STOP_WORDS
    ]


class TermVectors:
    """Texts as weighted bags of terms (tf-idf), for likeness between them and to others."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._bags = [Counter(terms(text)) for text in texts]
        found = Counter(term for bag in self._bags for term in bag)
        self._places = {term: i for i, term in enumerate(sorted(found))}
        count = len(texts)
        self._weights = {t: math.log((1 + count) / (1 + n)) + 1 for t, n in found.items()}
        self._unseen = math.log(1 + count) + 1

    def weight(self, term: str) -> float:
        """How telling a term is: high for one that few of the texts hold."""
        return self._weights.get(term, self._unseen)

    @cached_property
    def _vectors(self) -> Any:
        """Texts x terms, sparse; rows of length 1 (or 0 for a text without terms)."""
        return self._rows(self._bags)

    def _rows(self, bags: Sequence[Counter[str]]) -> Any:
        from scipy.sparse import csr_array

        values: list[float] = []
        columns: list[int] = []
        ends = [0]
        for bag in bags:
            known = {
                self._places[t]: n * self._weights[t] for t, n in bag.items() if t in self._places
            }
            length = math.sqrt(sum(v * v for v in known.values())) or 1.0
            columns += known.keys()
            values += (v / length for v in known.values())
            ends.append(len(values))
        return csr_array((values, columns, ends), shape=(len(bags), len(self._places)))

    def likeness(self, text: str) -> NDArray[np.float64]:
        """Cosine, 0 to 1, of a text to each of the texts."""
        return (self._vectors @ self._rows([Counter(terms(text))]).T).toarray()[:, 0]

    @cached_property
    def cosines(self) -> NDArray[np.float64]:
        """Cosine of each text to each."""
        return (self._vectors @ self._vectors.T).toarray()


def overlap(first: str, second: str) -> float:
    """Share of the terms of the shorter text that the other holds too, 0 to 1."""
    one, two = set(terms(first)), set(terms(second))
    return len(one & two) / min(len(one), len(two)) if one and two else 0.0


def summary(sentences: Sequence[str], most: int) -> list[int]:
    """Places of the sentences, at most `most` words in all, that stand best for the rest, in order.

    Greedy: likeness to all others, less likeness to what is chosen already.
    """
    if not sentences:
        return []
    mutual = TermVectors(sentences).cosines
    centre = mutual.mean(axis=1)
    chosen: list[int] = []
    room = most
    left = set(range(len(sentences)))
    while left:
        best = max(
            left,
            key=lambda i: (centre[i] - 0.5 * max((mutual[i, j] for j in chosen), default=0.0), -i),
        )
        left.discard(best)
        size = length(sentences[best])
        if size <= room:
            chosen.append(best)
            room -= size
    return sorted(chosen)


UNITS = frozenset(
    f"{unit}{ending}"
    for unit in (
        "second",
        "minute",
        "hour",
        "day",
        "week",
        "month",
        "year",
        "percent",
        "degree",
        "time",
    )
    for ending in ("", "s")
)
_BEFORE_NOUNS = frozenset(
    (
        "the",
        "a",
        "an",
        "some",
        "my",
        "your",
        "our",
        "his",
        "her",
        "their",
        "this",
        "these",
        "of",
        "many",
    )
)


_AFTER_NOUNS = frozenset(
    (
        "and",
        "or",
        "of",
        "in",
        "on",
        "at",
        "with",
        "for",
        "from",
        "to",
        "is",
        "are",
        "was",
        "were",
        "has",
    )
)


def nouns(text: str) -> list[str]:
    """Light noun phrases, one or two words that carry meaning after an article or the like, in
    order. A second word counts where the clause ends after it or goes on as it does after nouns:
    "a green plate", but of "my mother gave me" only "mother".
    """
    found: list[str] = []
    for stretch in re.split(r"[^\w\s'’-]+", text.lower()):
        said = words(stretch)
        for place, word in enumerate(said):
            if word not in _BEFORE_NOUNS and word not in NUMBERS:
                continue
            start = place + 1
            while start < len(said) and said[start] in STOP_WORDS:
                start += 1  # "the first pancake", "the whole family"
            end = start
            while end < len(said) and said[end] not in STOP_WORDS and said[end] not in NUMBERS:
                end += 1
            closed = end == len(said) or said[end] in _AFTER_NOUNS
            run = said[max(start, end - 2) : end] if closed else said[start : start + 1]
            if start < end and len(run[-1]) > 2 and not {*run} & UNITS and run[-1].isalpha():
                found.append(" ".join(run))
    return found
