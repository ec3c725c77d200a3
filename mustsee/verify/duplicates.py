"""Near-duplicate questions, within a clip and across clips (EgoSchema, 11.1, edge case 2).

Two questions are duplicates if the cosine of their embeddings is at least `alike`, and so is that
of their answers. Of each connected component one question is kept: the first in a seeded order, so
that no clip is favoured.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mustsee.records import Question

Embed = Callable[[Sequence[str]], NDArray[np.float32]]
BLOCK_QUESTIONS = 1024  # questions compared with all others at once; 20 MB for 5,000 questions


@dataclass(frozen=True, kw_only=True)
class Duplicates:
    """The rule for duplicates.

    `alike`: cosine from which two texts are equal (0.95: nearly the same words, with MiniLM).
    `answers`: whether the answers must be equal too.
    """

    alike: float = 0.95
    answers: bool = True
    seed: int = 0

    def __call__(self, questions: Sequence[Question], embed: Embed) -> dict[str, str]:
        """Return id -> id of the question that it repeats. Dropped questions are ignored."""
        kept = sorted(
            (q for q in questions if q.drop is None),
            key=lambda q: random.Random(f"{self.seed}/{q.question_id}").random(),
        )
        if len(kept) < 2:
            return {}
        question_vectors = _unit(embed([q.question for q in kept]))
        answer_vectors = _unit(embed([q.answer for q in kept])) if self.answers else None
        leader = list(range(len(kept)))
        for low in range(0, len(kept), BLOCK_QUESTIONS):
            block = slice(low, low + BLOCK_QUESTIONS)
            alike = question_vectors[block] @ question_vectors.T >= self.alike
            if answer_vectors is not None:
                alike &= answer_vectors[block] @ answer_vectors.T >= self.alike
            for row, column in np.argwhere(alike).tolist():
                if low + row < column:
                    _join(leader, low + row, column)
        roots = [_root(leader, n) for n in range(len(kept))]
        return {
            q.question_id: kept[root].question_id
            for n, (q, root) in enumerate(zip(kept, roots, strict=True))
            if root != n
        }


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.maximum(norms, 1e-12)).astype(np.float32)


def _root(leader: list[int], item: int) -> int:
    while leader[item] != item:
        leader[item] = leader[leader[item]]
        item = leader[item]
    return item


def _join(leader: list[int], one: int, two: int) -> None:
    """Merge the components of two items under the earlier of their leaders."""
    first, second = sorted((_root(leader, one), _root(leader, two)))
    leader[second] = first
