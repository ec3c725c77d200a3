"""Trains a judge of answer equivalence on human labels.

    python -m ray_jobs.judge_train train=mini evouna=[NQ.json] nq301=FOLDER out=O
    python -m ray_jobs.judge_train train=gem train.fit.base=GEMMA bem=[train.jsonl] out=O

Pairs are split by question. The dev part stops the training and chooses the threshold in
`ray_jobs.judge_calibrate`. NQ301 is never used for training.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from actors.judge.gem_fit import GemFit, TrainingWorker, fit
from actors.judge.gem_shard import check_memory, describe, estimate_memory, read_size
from mustsee.errors import need
from mustsee.judge import calibrate, contrast
from mustsee.judge import data as equivalence_data
from mustsee.judge import mini as cross
from mustsee.judge import mini_fit as cross_fit
from mustsee.judge.data import JudgeDataSources, LabelledPair
from mustsee.judge.mini_fit import MiniTraining
from mustsee.nn import weights
from ray_jobs.cli.launch import launch

Pairs = list[LabelledPair]


class Trainer(Protocol):
    def __call__(self, train: Pairs, dev: Pairs, sources: JudgeDataSources, out: str) -> str:
        """Train, write to `out`, and return a line on the result."""
        ...


LICENCES = {
    "NQ.json": "EVOUNA, Wang et al. 2023, Apache-2.0",
    "NQ301": "Kamalloo et al. 2023, MIT (test only)",
    "jsonl": "BEM answer equivalence, Bulian et al. 2022, Apache-2.0",
}


@dataclass(frozen=True, kw_only=True)
class MiniTrainer:
    """Trains adapters and a head on MiniLM in this process."""

    fit: MiniTraining
    encoder: str | None = None
    """Folder with MiniLM; null: the installed package."""

    def __call__(self, train: Pairs, dev: Pairs, sources: JudgeDataSources, out: str) -> str:
        base = cross.Base(self.encoder or str(weights.find(weights.MINILM)))
        short_answers, long_answers = contrast.contrast_pairs(train, self.fit.seed)
        rows = cross_fit.examples(base, [*train, *short_answers, *long_answers], self.fit)
        # The head on words alone cannot find the answer in a long reference, and such pairs make it
        # worse.
        plain = cross_fit.examples(base, [*train, *short_answers], self.fit)
        figures: list[dict[str, Any]] = []
        heads: list[dict[str, Any]] = []

        def each_epoch(epoch: int, trained: dict[str, Any]) -> None:
            words = cross_fit.words_alone(plain, self.fit, trained)
            head = cross_fit.average_heads(trained, words)
            figures.append(measure(base, head, dev))
            heads.append(head)
            print(f"dev after epoch {epoch + 1}: AUC {figures[-1]['auc']:.4f}", flush=True)

        cross_fit.train(base, rows, self.fit, each_epoch=each_epoch)
        best = max(range(len(heads)), key=lambda i: figures[i]["auc"])
        path = Path(out, "judge_mini.safetensors")
        path.parent.mkdir(parents=True, exist_ok=True)
        description = {
            "encoder": base.digest,
            "fit": asdict(self.fit),
            "sources": {name: {"sha256": h, "licence": licence(name)}
                        for name, h in sources.hashes().items()},
            "train": {"pairs": len(train), "sha256": equivalence_data.digest(train),
                      "contrasted": [len(short_answers), len(long_answers)], "rows": len(rows)},
            "dev": {"pairs": len(dev), "sha256": equivalence_data.digest(dev),
                    "by_epoch": figures, "kept_epoch": best + 1},
        }  # fmt: skip
        cross.save(path, heads[best], description)
        chosen = figures[best]
        return (
            f"{path}: dev AUC {chosen['auc']:.4f}, F1 {chosen['f1']:.4f}, {path.stat().st_size} "
            "bytes"
        )


def licence(name: str) -> str:
    """The source and licence of a data file."""
    return next((text for key, text in LICENCES.items() if key in name), "not known")


def measure(base: cross.Base, head: Mapping[str, Any], pairs: Pairs) -> dict[str, Any]:
    """AUC, best F1 and Brier score on pairs, each with its nearest reference."""
    import jax

    examples = cross_fit.examples(base, pairs, MiniTraining(easy_share=1.0, longest=512))
    rows, labels = [e.encoded for e in examples], [e.label > 0 for e in examples]

    params, shape = base.model
    run = jax.jit(partial(cross.forward, shape))
    order = sorted(range(len(rows)), key=lambda i: len(rows[i].ids))
    logits = np.zeros(len(rows))
    for at in range(0, len(order), 64):
        batch = order[at : at + 64]
        length = cross_fit.bucket(max(len(rows[i].ids) for i in batch))
        outputs = run(params, head, cross.pad([rows[i] for i in batch], length, 64))
        logits[batch] = np.asarray(outputs)[: len(batch)]
    scores = 1 / (1 + np.exp(-logits))
    return {
        "auc": calibrate.auc(labels, scores),
        "f1": calibrate.choose(labels, scores).f1,
        "brier": calibrate.brier(labels, scores),
    }


@dataclass(frozen=True, kw_only=True)
class GemTrainer:
    """Trains a Gemma 2 or 3 with Ray Train in `workers` processes, each with a GPU if `gpu`. If
    every weight is trained (`fit.rank=0`), they share the weights and the optimiser's state.
    """

    fit: GemFit
    workers: int = 1
    """Processes, one GPU each."""
    gpu: bool = False
    """Train on GPUs; false: on the CPU, for tiny models."""
    gpu_gb: float | None = None
    """Memory of each GPU in GB; a training that needs more is refused. null: it is only said."""

    def __call__(self, train: Pairs, dev: Pairs, sources: JudgeDataSources, out: str) -> str:
        need("train=gem", "mustsee[torch]", "torch", "peft")
        self._say_memory()
        from ray.train import RunConfig, ScalingConfig
        from ray.train.torch import TorchTrainer

        from ray_jobs.runtime.cluster import connect_ray

        folder = str(Path(out).absolute())
        settings = {"fit": self.fit, "train": train, "dev": dev, "out": folder, "gpu": self.gpu}
        name = hashlib.sha256(folder.encode()).hexdigest()[:12]
        with connect_ray():
            result = TorchTrainer(
                _worker,
                train_loop_config=settings,
                scaling_config=ScalingConfig(num_workers=self.workers, use_gpu=self.gpu),
                run_config=RunConfig(name=name, storage_path=f"{folder}/ray"),
            ).fit()
        if result.error is not None:
            raise result.error
        *_, last = Path(folder, "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        figures: dict[str, Any] = json.loads(last)
        return f"{folder}: " + ", ".join(
            f"{k} {v:.4g}" for k, v in figures.items() if v is not None
        )

    def _say_memory(self) -> None:
        """Print what a worker needs. Raises UserError if it does not fit."""
        fit, size = self.fit, read_size(self.fit.base)
        needed = estimate_memory(
            size,
            workers=self.workers,
            adapters=fit.rank > 0,
            rows=math.ceil(fit.batch / self.workers / fit.passes),
            tokens=fit.limit,
            checkpointing=fit.checkpointing,
        )
        if self.gpu_gb is not None:
            check_memory(needed, size, self.workers, self.gpu_gb)
        print(
            f"{size.weights / 1e9:.3g} billion weights; each of {self.workers} workers needs about "
            f"{needed.total:.3g} GB: {describe(needed)}",
            flush=True,
        )


def _worker(settings: dict[str, Any]) -> None:
    from ray import train
    from ray.train import torch as ray_torch

    context = train.get_context()
    is_distributed = context.get_world_size() > 1
    fit(
        settings["fit"],
        settings["train"],
        settings["dev"],
        settings["out"],
        TrainingWorker(
            rank=context.get_world_rank(),
            world=context.get_world_size(),
            device=str(ray_torch.get_device()) if settings["gpu"] else "cpu",
            wrap=ray_torch.prepare_model if is_distributed else lambda model: model,
            report=lambda figures: train.report(figures),
        ),
    )


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
