"""How much of one text's words another has: ROUGE-L, token F1 (SQuAD's, too), recall.

What a word is differs from one published measure to the next, so the tokenizer is an argument.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence

Tokenizer = Callable[[str], Sequence[str]]


def rouge_l(candidate: str, reference: str, words: Tokenizer) -> float:
    """F-measure of the longest common subsequence of words (Lin 2004), 0 to 1."""
    c, r = words(candidate), words(reference)
    length = common(c, r)
    return harmonic(share(length, len(c)), share(length, len(r)))


def token_f1(candidate: str, reference: str, words: Tokenizer) -> float:
    """F1 of the two bags of words, repeated words counted; 1 where both are empty (SQuAD 2.0)."""
    c, r = words(candidate), words(reference)
    if not c and not r:
        return 1.0
    both = shared_words(c, r)
    return harmonic(share(both, len(c)), share(both, len(r)))


def token_recall(candidate: str, reference: str, words: Tokenizer) -> float:
    """Share of the reference's words that the candidate has."""
    c, r = words(candidate), words(reference)
    return share(shared_words(c, r), len(r))


def common(a: Sequence[str], b: Sequence[str]) -> int:
    """Length of the longest common subsequence."""
    row = [0] * (len(b) + 1)
    for x in a:
        above = 0
        for j, y in enumerate(b, 1):
            above, row[j] = row[j], above + 1 if x == y else max(row[j], row[j - 1])
    return row[-1]


def shared_words(a: Sequence[str], b: Sequence[str]) -> int:
    """How many words both have, repeated ones counted."""
    return (Counter(a) & Counter(b)).total()


def harmonic(a: float, b: float) -> float:
    """The harmonic mean; 0 where both are 0."""
    return 2 * a * b / (a + b) if a + b else 0.0


def share(part: float, whole: float) -> float:
    """0 of nothing."""
    return part / whole if whole else 0.0


def squad_f1(candidate: str, reference: str) -> float:
    """Return the F1 of the two bags of normalised words, 0 to 1."""
    return token_f1(candidate, reference, lambda text: normalize(text).split())


def normalize(text: str) -> str:
    """Normalise as SQuAD does: lower case, no punctuation, no articles, single spaces."""
    text = unicodedata.normalize("NFKC", text).lower()
    text = "".join(" " if c == "\u00a0" else c for c in text if c not in string.punctuation)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", text).split())
