"""Near-duplicate questions, within a clip and across clips: one of each family is kept (EgoSchema,
11.1, edge case 2).

Two questions are alike when the cosine of their embeddings reaches `alike` and so does that of
their answers; families are the connected components. The one kept is the first by a seeded order,
so that no clip is favoured.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mustsee.records import Question

Embed = Callable[[Sequence[str]], NDArray[np.float32]]
BLOCK_QUESTIONS = 1024  # questions compared with all others at once: 20 MB of similarities at 5,000


@dataclass(frozen=True, kw_only=True)
class Duplicates:
    """`alike`: cosine from which two texts say the same (0.95: near word for word with MiniLM).
    `answers`: whether the answers must be alike too; else two clips may not share a question.
    """

    alike: float = 0.95
    answers: bool = True
    seed: int = 0

    def __call__(self, questions: Sequence[Question], embed: Embed) -> dict[str, str]:
        """Question id -> id of the question that it repeats, for those that fall. Questions that
        are dropped already take no part.
        """
        standing = sorted(
            (q for q in questions if q.drop is None),
            key=lambda q: random.Random(f"{self.seed}/{q.question_id}").random(),
        )
        if len(standing) < 2:
            return {}
        asked = _unit(embed([q.question for q in standing]))
        given = _unit(embed([q.answer for q in standing])) if self.answers else None
        leader = list(range(len(standing)))
        for low in range(0, len(standing), BLOCK_QUESTIONS):
            alike = asked[low : low + BLOCK_QUESTIONS] @ asked.T >= self.alike
            if given is not None:
                alike &= given[low : low + BLOCK_QUESTIONS] @ given.T >= self.alike
            for row, column in np.argwhere(alike).tolist():
                if low + row < column:
                    _join(leader, low + row, column)
        roots = [_root(leader, n) for n in range(len(standing))]
        return {
            q.question_id: standing[root].question_id
            for n, (q, root) in enumerate(zip(standing, roots, strict=True))
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
    """The earlier of two families' leaders leads both."""
    first, second = sorted((_root(leader, one), _root(leader, two)))
    leader[second] = first
