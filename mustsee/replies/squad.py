"""SQuAD's token F1 of an answer and its reference."""

from __future__ import annotations

import re
import string
import unicodedata

from mustsee.replies.overlap import token_f1


def squad_f1(candidate: str, reference: str) -> float:
    """Return the F1 of the two bags of normalised words, 0 to 1."""
    return token_f1(candidate, reference, lambda text: normalize(text).split())


def normalize(text: str) -> str:
    """Normalise as SQuAD does: lower case, no punctuation, no articles, single spaces."""
    text = unicodedata.normalize("NFKC", text).lower()
    text = "".join(" " if c == "\u00a0" else c for c in text if c not in string.punctuation)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", text).split())
