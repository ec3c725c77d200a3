"""Metrics of open-ended answers, by reference. The list `metrics=` of an evaluation names them.

A metric takes all answers of one model and the reference of each, and returns one score per answer.
It raises ValueError where these answers have no score. Its name in the results is the function's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pkgutil import resolve_name
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from mustsee.errors import UserError
from mustsee.evaluate import metrics
from mustsee.replies.overlap import squad_f1

if TYPE_CHECKING:
    from mustsee.nn.bert import Encoder

OpenMetric = Callable[[Sequence[str], Sequence[str]], Sequence[float]]


def token_f1(answers: Sequence[str], references: Sequence[str]) -> list[float]:
    """SQuAD's token F1, 0 to 1."""
    return [squad_f1(a, r) for a, r in zip(answers, references, strict=True)]


def rouge_l(answers: Sequence[str], references: Sequence[str]) -> list[float]:
    """ROUGE-L F1 with the words of Google's `rouge-score`, 0 to 1."""
    return [metrics.rouge_l(a, r) for a, r in zip(answers, references, strict=True)]


def cider_d(answers: Sequence[str], references: Sequence[str]) -> Sequence[float]:
    """CIDEr-D, 0 to 10, with word weights from all references. Raises ValueError for one answer."""
    return metrics.cider_d(answers, [[r] for r in references]).each


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
