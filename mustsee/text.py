"""Words, their weights and text similarity, without a model.

Stop words and endings are English; in other languages the rules work less well. In a script
without spaces between words (Chinese, Japanese, Thai, ...) each character is a word where texts are
compared, and every two characters are a word where length is measured.
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
_RANGES = (  # Kana, Han, Thai, Lao, Burmese, Khmer: scripts without spaces between words
    "\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f"
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\U00020000-\U0003134f"
)
UNSPACED = re.compile(f"[{_RANGES}]")
LETTERS_PER_WORD = 2  # mean length of a Chinese word, since no dictionary is used
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
# Control characters, marks of writing direction, line ends, and lone surrogates.
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """Return a text as one safe line for a terminal, with control characters escaped."""
    return _UNPRINTABLE.sub(lambda match: ascii(match.group())[1:-1], text)


def name_some(names: Sequence[str], most: int = 3) -> str:
    """Return the first names, and how many more there are: "a, b, c and 4 more"."""
    more = len(names) - most
    listed = ", ".join(names[:most])
    return f"{listed} and {more} more" if more > 0 else listed


def clock(seconds: float) -> str:
    """Format seconds as 1:02:03 or 2:03."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def words(text: str) -> list[str]:
    """Return the words of a text in lower case."""
    return [w.replace("’", "'") for w in WORD.findall(text.lower())]


def length(text: str) -> int:
    """Return the number of words of a text, by its spaces if its script has spaces."""
    unspaced = len(UNSPACED.findall(text))
    return len(UNSPACED.sub(" ", text).split()) + math.ceil(unspaced / LETTERS_PER_WORD)


def first_words(text: str, most: int) -> str:
    """Return the first `most` words of a text."""
    letters_left, end = most * LETTERS_PER_WORD, 0
    for match in _MEASURED.finditer(text):
        letters_left -= 1 if UNSPACED.match(match[1]) else LETTERS_PER_WORD
        if letters_left < 0:
            break
        end = match.end()
    return text[:end]


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """Return a word without the most common English endings: boards -> board, mixing -> mix."""
    for ending, min_letters in (("'s", 1), ("ies", 3), ("ing", 4), ("ed", 4), ("es", 4), ("s", 3)):
        long_enough = len(word) - len(ending) >= min_letters
        if word.endswith(ending) and long_enough and not word.endswith("ss"):
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
    """Return the stems of all words but stop words, with number words as digits."""
    return [
        str(NUMBERS[w]) if w in NUMBERS and w not in STOP_WORDS else stem(w)
        for w in words(text)
        if w not in STOP_WORDS
    ]


class TermVectors:
    """Texts as weighted bags of terms (tf-idf), to compare them with each other and with others."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._bags = [Counter(terms(text)) for text in texts]
        frequency = Counter(term for bag in self._bags for term in bag)
        self._columns = {term: i for i, term in enumerate(sorted(frequency))}
        count = len(texts)
        self._weights = {t: math.log((1 + count) / (1 + n)) + 1 for t, n in frequency.items()}
        self._unseen_weight = math.log(1 + count) + 1

    def weight(self, term: str) -> float:
        """Return the inverse document frequency of a term: high if few texts contain it."""
        return self._weights.get(term, self._unseen_weight)

    @cached_property
    def _vectors(self) -> Any:
        """Sparse matrix of texts x terms; rows have length 1, or 0 for a text without terms."""
        return self._rows(self._bags)

    def _rows(self, bags: Sequence[Counter[str]]) -> Any:
        from scipy.sparse import csr_array

        values: list[float] = []
        columns: list[int] = []
        ends = [0]
        for bag in bags:
            row = {
                self._columns[t]: n * self._weights[t] for t, n in bag.items() if t in self._columns
            }
            length = math.sqrt(sum(v * v for v in row.values())) or 1.0
            columns += row.keys()
            values += (v / length for v in row.values())
            ends.append(len(values))
        return csr_array((values, columns, ends), shape=(len(bags), len(self._columns)))

    def likeness(self, text: str) -> NDArray[np.float64]:
        """Return the cosine, 0 to 1, of a text with each of the texts."""
        return (self._vectors @ self._rows([Counter(terms(text))]).T).toarray()[:, 0]

    @cached_property
    def cosines(self) -> NDArray[np.float64]:
        """Matrix of the cosines of all pairs of texts."""
        return (self._vectors @ self._vectors.T).toarray()


@lru_cache(maxsize=8)
def term_vectors(texts: tuple[str, ...]) -> TermVectors:
    """Return the vectors of the texts of a video, computed once for all of its questions."""
    return TermVectors(texts)


@lru_cache(maxsize=16384)
def _term_set(text: str) -> frozenset[str]:
    return frozenset(terms(text))


def overlap(first: str, second: str) -> float:
    """Return the share of the terms of the shorter text that the other contains, 0 to 1."""
    one, two = _term_set(first), _term_set(second)
    return len(one & two) / min(len(one), len(two)) if one and two else 0.0


def with_article(noun: str) -> str:
    """Return a noun with "a" or "an" before it."""
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def money(usd: float) -> str:
    return f"{usd:.2f}" if usd >= 1 or not usd else f"{usd:.4f}"
