"""Metrics of open-ended answers, by reference. The list `metrics=` of an evaluation names them.

A metric takes all answers of one model and the reference of each, and returns one score per answer.
It raises ValueError where these answers have no score. Its name in the results is the function's.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pkgutil import resolve_name
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from mustsee.errors import UserError
from mustsee.replies import overlap
from mustsee.replies.overlap import squad_f1
from mustsee.text import words

if TYPE_CHECKING:
    from mustsee.nn.bert import Encoder

OpenMetric = Callable[[Sequence[str], Sequence[str]], Sequence[float]]
_ASCII = re.compile(r"[a-z0-9]+")
_SIGMA = 6.0  # width of CIDEr-D's length penalty, bigrams


def token_f1(answers: Sequence[str], references: Sequence[str]) -> list[float]:
    """SQuAD's token F1, 0 to 1."""
    return [squad_f1(a, r) for a, r in zip(answers, references, strict=True)]


def rouge_l(answers: Sequence[str], references: Sequence[str]) -> list[float]:
    """ROUGE-L F1 with the words of Google's `rouge-score`, 0 to 1."""
    return [
        overlap.rouge_l(answer, reference, lambda text: _ASCII.findall(text.lower()))
        for answer, reference in zip(answers, references, strict=True)
    ]


def cider_d(answers: Sequence[str], references: Sequence[str]) -> Sequence[float]:
    """CIDEr-D, 0 to 10, with word weights from all references. Raises ValueError for one answer."""
    return score_by_cider(answers, [[r] for r in references])


def score_by_cider(candidates: Sequence[str], references: Sequence[Sequence[str]]) -> list[float]:
    """Return CIDEr-D of each item, 0 to 10. Its word weights come from the references of all items.
    Words are runs of letters and digits.

    Raises ValueError for one item, where every n-gram's weight is log(1) = 0, and so is the score.
    """
    if len(candidates) != len(references) or not all(references):
        raise ValueError(f"{len(candidates)} candidates, {len(references)} lists of references")
    if len(candidates) < 2:
        raise ValueError("CIDEr-D needs a corpus: one item alone always scores 0")
    candidate_grams = [_grams(c) for c in candidates]
    reference_grams = [[_grams(r) for r in refs] for refs in references]
    frequency: Counter[tuple[str, ...]] = Counter()  # n-gram -> items whose references have it
    for refs in reference_grams:
        frequency.update({gram for r in refs for gram in r})
    log_items = math.log(len(candidates))
    return [
        10 * sum(_similarity(c, r, frequency, log_items) for r in refs) / len(refs)
        for c, refs in zip(candidate_grams, reference_grams, strict=True)
    ]


def reference_hash(references: Sequence[Sequence[str]]) -> str:
    """Return the hash of a corpus of references, 16 hexadecimal digits."""
    corpus = json.dumps([list(r) for r in references], ensure_ascii=False)
    return hashlib.sha256(corpus.encode()).hexdigest()[:16]


def _grams(text: str) -> Counter[tuple[str, ...]]:
    """The n-grams of 1 to 4 words."""
    tokens = words(unicodedata.normalize("NFKC", text))
    return Counter(
        tuple(tokens[i : i + n]) for n in range(1, 5) for i in range(len(tokens) - n + 1)
    )


def _similarity(
    candidate: Counter[tuple[str, ...]],
    reference: Counter[tuple[str, ...]],
    frequency: Counter[tuple[str, ...]],
    log_items: float,
) -> float:
    """Mean over n = 1..4 of the clipped cosine, with the penalty for a different length. Lengths
    are counted in bigrams, as in the reference scorer.
    """

    def weights(grams: Counter[tuple[str, ...]], n: int) -> dict[tuple[str, ...], float]:
        return {
            g: times * (log_items - math.log(max(1, frequency[g])))
            for g, times in grams.items()
            if len(g) == n
        }

    def norm(vector: Mapping[tuple[str, ...], float]) -> float:
        return math.sqrt(sum(w * w for w in vector.values()))

    length = sum(t for g, t in candidate.items() if len(g) == 2) - sum(
        t for g, t in reference.items() if len(g) == 2
    )
    penalty, result = math.exp(-(length**2) / (2 * _SIGMA**2)), 0.0
    for n in range(1, 5):
        ours, theirs = weights(candidate, n), weights(reference, n)
        scale = norm(ours) * norm(theirs)
        if scale:
            shared = sum(min(w, theirs[g]) * theirs[g] for g, w in ours.items() if g in theirs)
            result += shared / scale * penalty
    return result / 4


def bert_score(answers: Sequence[str], references: Sequence[str]) -> list[float]:
    """BERTScore F1 (Zhang et al. 2019), -1 to 1: each token is matched with the likest one of the
    other text, by the last layer of all-MiniLM-L6-v2. Neither weighted by rarity nor rescaled, so
    it is not comparable with scores of other weights. Raises UserError without the weights.
    """
    encoder = _token_encoder()
    answered, expected = encoder.encode_tokens(answers), encoder.encode_tokens(references)
    return [_match_f1(a, r) for a, r in zip(answered, expected, strict=True)]


@cache
def _token_encoder() -> Encoder:
    from mustsee.nn.bert import Encoder
    from mustsee.nn.weights import MINILM

    return Encoder.load(MINILM)


def _match_f1(answer: NDArray[np.float32], reference: NDArray[np.float32]) -> float:
    if not len(answer) or not len(reference):
        return 0.0
    alike = answer @ reference.T
    precision, recall = float(alike.max(1).mean()), float(alike.max(0).mean())
    total = precision + recall
    return 2 * precision * recall / total if total > 0 else 0.0


DEFAULT_METRICS: dict[str, OpenMetric] = {
    "token_f1": token_f1,
    "rouge_l": rouge_l,
    "cider_d": cider_d,
}


def resolve_metrics(paths: Sequence[str]) -> dict[str, OpenMetric]:
    """Import metrics by their dotted paths; the keys are the functions' names.

    Raises UserError for a path that leads to no function, and for two metrics of one name.
    """
    chosen: dict[str, OpenMetric] = {}
    for path in paths:
        try:
            function = resolve_name(path)
        except (ValueError, ImportError, AttributeError) as error:
            raise UserError(
                f"metrics: cannot import {path!r} ({error}): name a function by its module, for "
                "example mustsee.evaluate.open_metrics.rouge_l"
            ) from error
        name = path.rpartition(".")[2]
        if not callable(function) or name in chosen:
            reason = "two metrics have this name" if name in chosen else "not a function"
            raise UserError(f"metrics: {path!r}: {reason}")
        chosen[name] = cast(OpenMetric, function)
    return chosen
