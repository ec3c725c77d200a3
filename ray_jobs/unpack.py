"""Unpacks a GGUF file to a folder for `llm.model=O`, `train.fit.base=O` or `judge.engine.path=O`.

    python -m ray_jobs.unpack gguf=FILE out=O

Quantised weights are written at full size; the precision lost by quantising does not come back.
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
        model = unpack(self.gguf, self.out, self.dtype)
        chat = "with a chat template" if model.chat else "without a chat template"
        print(f"{self.out}: {model.kind}, {model.weights:,} weights in {self.dtype}, {chat}")
        return 0


if __name__ == "__main__":
    launch("unpack")
