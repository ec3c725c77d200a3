"""The share of prompt tokens that an endpoint's prefix cache would hit.

An endpoint (vLLM, SGLang, OpenAI, Gemini) keeps the computed beginning of a prompt in blocks, and a
later prompt with the same beginning costs less. So the common text of a row's prompts comes first.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

BLOCK = 64  # characters of a block; vLLM's have 16 tokens


@dataclass(frozen=True, kw_only=True)
class Reuse:
    """Number of calls of a prompt, of their blocks, and of the blocks in the cache."""

    calls: int = 0
    blocks: int = 0
    hits: int = 0

    @property
    def share(self) -> float:
        return self.hits / self.blocks if self.blocks else 0.0

    def __add__(self, other: Reuse) -> Reuse:
        return Reuse(
            calls=self.calls + other.calls,
            blocks=self.blocks + other.blocks,
            hits=self.hits + other.hits,
        )


def reuse(calls: Iterable[tuple[str, Sequence[Mapping[str, Any]]]]) -> dict[str, Reuse]:
    """Return the reuse by prompt. `calls`: (prompt, messages as sent) in order; the cache is
    unbounded.
    """
    cached: set[int] = set()
    results: dict[str, Reuse] = {}
    for prompt, messages in calls:
        text = "".join(f"<{m['role']}>{_plain(m['content'])}" for m in messages)
        whole = len(text) // BLOCK
        marks = [hash(text[: (i + 1) * BLOCK]) for i in range(whole)]
        hits = next((i for i, mark in enumerate(marks) if mark not in cached), whole)
        cached.update(marks)
        results[prompt] = results.get(prompt, Reuse()) + Reuse(calls=1, blocks=whole, hits=hits)
    return results


def _plain(content: Any) -> str:
    return content if isinstance(content, str) else json.dumps(content, sort_keys=True)
