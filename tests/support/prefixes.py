"""The share of prompt tokens that an endpoint's prefix cache would hit.

An endpoint (vLLM, SGLang, OpenAI, Gemini) keeps what it made of the beginning of a prompt, in
blocks, and a later prompt that begins alike costs less. So what a row's prompts share comes first.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

BLOCK = 64  # characters: vLLM's blocks have 16 tokens


@dataclass(frozen=True, kw_only=True)
class Reuse:
    """Blocks of one prompt's calls, and how many of them an earlier call had begun with."""

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
    """By prompt, of (prompt, messages as an endpoint is sent them) in the order of the calls, for a
    cache without bounds.
    """
    seen: set[int] = set()
    found: dict[str, Reuse] = {}
    for prompt, messages in calls:
        text = "".join(f"<{m['role']}>{_plain(m['content'])}" for m in messages)
        whole = len(text) // BLOCK
        marks = [hash(text[: (i + 1) * BLOCK]) for i in range(whole)]
        hits = next((i for i, mark in enumerate(marks) if mark not in seen), whole)
        seen.update(marks)
        found[prompt] = found.get(prompt, Reuse()) + Reuse(calls=1, blocks=whole, hits=hits)
    return found


def _plain(content: Any) -> str:
    return content if isinstance(content, str) else json.dumps(content, sort_keys=True)
