"""Trains a judge of answer equivalence on human labels.

    python -m ray_jobs.judge_train train=mini evouna=[NQ.json] nq301=FOLDER out=O
    python -m ray_jobs.judge_train train=gem train.fit.base=GEMMA bem=[train.jsonl] out=O

Pairs are split by question. The dev part stops the training and chooses the threshold in
`ray_jobs.judge_calibrate`. NQ301 is never used for training.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from mustsee.judge.data import JudgeDataSources, LabelledPair
from ray_jobs.cli.launch import launch


class Trainer(Protocol):
    def __call__(
        self,
        train: list[LabelledPair],
        dev: list[LabelledPair],
        sources: JudgeDataSources,
        out: str,
    ) -> str:
        """Train, write to `out`, and return a line on the result."""
        ...


@dataclass(frozen=True, kw_only=True)
class JudgeTrain:
    train: Trainer
    sources: JudgeDataSources
    out: str
    pairs: int | None = None

    def __call__(self) -> int:
        sources = replace(
            self.sources, bem=tuple(self.sources.bem), evouna=tuple(self.sources.evouna)
        )
        train, dev = sources.split()
        print(f"{len(train)} pairs to train on, {len(dev)} held out")
        print(self.train(train[: self.pairs], dev, sources, self.out))
        return 0


if __name__ == "__main__":
    launch("judge_train")
