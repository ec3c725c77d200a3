"""ROUGE-L, CIDEr-D, and the averages that the papers print.

ROUGE-L follows Google's `rouge-score`. CIDEr-D takes a whole corpus at once, because its word
weights come from all references of a run. `mustsee.evaluate.open_metrics` lists the metrics that an
evaluation computes.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mustsee.replies import overlap
from mustsee.text import words

MLVU_7 = ("topic_reasoning", "anomaly_reco", "findNeedle", "ego", "plotQA", "order", "count")
MLVU_9 = (*MLVU_7, "sports_qa", "tutorial_qa")  # the released test adds two tasks
MLVU_WRITTEN = ("subPlot", "summary")  # question types that a model grades by rubrics
_ASCII = re.compile(r"[a-z0-9]+")
_SIGMA = 6.0  # width of CIDEr-D's length penalty, bigrams


def rouge_l(candidate: str, reference: str) -> float:
    """ROUGE-L F1 with the words of Google's `rouge-score`: runs of a-z and 0-9, no stemmer."""
    return overlap.rouge_l(candidate, reference, lambda text: _ASCII.findall(text.lower()))


@dataclass(frozen=True, kw_only=True)
class Cider:
    """CIDEr-D of a corpus (`score`, 0 to 10) and of each item in it. `references`: hash of the
    reference corpus, without which the score cannot be compared.
    """

    score: float
    each: tuple[float, ...]
    references: str


def cider_d(candidates: Sequence[str], references: Sequence[Sequence[str]]) -> Cider:
    """CIDEr-D over a corpus of at least two items. Words are runs of letters and digits.

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
    each = [
        10 * sum(_similarity(c, r, frequency, log_items) for r in refs) / len(refs)
        for c, refs in zip(candidate_grams, reference_grams, strict=True)
    ]
    return Cider(
        score=sum(each) / len(each), each=tuple(each), references=reference_hash(references)
    )


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


def macro(task_means: Mapping[str, float], tasks: Sequence[str] | None = None) -> float:
    """Return the mean of task means: Neptune's Task-avg, MLVU's M-Avg (`MLVU_7` or `MLVU_9`) and
    G-Avg. Raises ValueError that names the missing tasks.
    """
    names = list(task_means) if tasks is None else list(tasks)
    missing = [t for t in names if t not in task_means]
    if missing or not names:
        raise ValueError(f"no mean of these tasks: {', '.join(missing) or 'no tasks given'}")
    return sum(task_means[t] for t in names) / len(names)
