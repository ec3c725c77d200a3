"""Unpack a GGUF file to a folder: `llm.model=O`, `train.fit.base=O`, `judge.engine.path=O`.

    python -m ray_jobs.unpack gguf=FILE out=O

Quantised weights are written out in full; what quantising lost stays lost.
"""

from __future__ import annotations

from dataclasses import dataclass

from actors.gguf import unpack
from ray_jobs.cli.launch import launch


@dataclass(frozen=True, kw_only=True)
class Unpack:
    gguf: str
    out: str
    dtype: str = "bfloat16"

    def __call__(self) -> int:
        found = unpack(self.gguf, self.out, self.dtype)
        chat = "with a chat template" if found.chat else "without a chat template"
        print(f"{self.out}: {found.kind}, {found.weights:,} weights in {self.dtype}, {chat}")
        return 0


if __name__ == "__main__":
    launch("unpack")
