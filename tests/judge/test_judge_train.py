"""A tiny Gemma 2 is trained by the job, calibrated and served, with the same verdicts."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from actors.judge.gem import Gem
from actors.judge.gem_fit import GemFit, TrainingWorker, fit
from actors.judge.gem_shard import (
    ModelSize,
    TrainingMemory,
    check_memory,
    estimate_memory,
    read_size,
)
from mustsee.errors import UserError
from mustsee.judge import calibrate
from mustsee.judge import data as equivalence_data
from mustsee.judge.client import JudgeClient
from mustsee.judge.data import JudgeDataSources
from mustsee.judge.judge import JudgeConfig, JudgeItem, Record
from ray_jobs.judge_calibrate import JudgeCalibrate
from serve.judge_batch import LocalBackend
from serve.judge_guard import Keys, RequestLimits
from serve.judge_http import create_app
from tests.support import tiny_gemma
from tests.support.addresses import free_port
from tests.support.serving import served

pytestmark = pytest.mark.slow

COLOURS = ("red", "blue", "green")
KEY = "a-key-of-the-tests-0001"


def bem(path: Path, count: int, seed: int) -> Path:
    """Write BEM's layout with a rule in place of raters: equivalent if the colour is the same."""
    rng = random.Random(seed)
    lines = []
    for i in range(count):
        candidate = rng.choice(COLOURS)
        reference = candidate if rng.random() < 0.5 else rng.choice(COLOURS)
        row = {
            "qid": f"q{i // 2}",
            "gold_index": i,
            "question": f"what colour is house {i // 2}",
            "reference": reference,
            "candidate": candidate,
            "label": "equivalent" if candidate == reference else "not_equivalent",
            "score": float(candidate == reference),
        }
        lines.append(json.dumps(row))
    path.write_text("\n".join(lines))
    return path


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return (the judge's folder, its data), written by the job as a user starts it."""
    folder = tmp_path_factory.mktemp("train")
    base = tiny_gemma.checkpoint(folder / "base", attention=None, width=48, layers=2, spread=0.05)
    data = bem(folder / "train.jsonl", 500, seed=0)
    command = [
        sys.executable, "-m", "ray_jobs.judge_train", "train=gem", f"train.fit.base={base}",
        "train.gpu=false", "train.fit.rank=0", "train.fit.rate=0.004", "train.fit.steps=120",
        "train.fit.batch=32", "train.fit.every=60", "train.fit.checkpointing=false",
        "train.fit.bf16=false", f"bem=[{data}]", f"out={folder / 'judge'}",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder / "judge", data


def test_a_tiny_model_learns_a_rule_is_calibrated_and_served(
    trained: tuple[Path, Path],
) -> None:
    folder, data = trained
    metrics = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert metrics[-1]["dev_loss"] < metrics[0]["dev_loss"]
    assert [m["step"] for m in metrics] == sorted(m["step"] for m in metrics)

    engine = Gem(path=str(folder), device="cpu")
    uncalibrated = JudgeConfig(engine=engine, uncalibrated=True)
    calibrated = folder / "calibrated"
    assert (
        JudgeCalibrate(
            judge=uncalibrated, sources=JudgeDataSources(bem=(str(data),)), out=str(calibrated)
        )()
        == 0
    )
    config = JudgeConfig(engine=engine, record=str(calibrated / "record.json"))
    fresh = equivalence_data.read_bem(bem(folder / "fresh.jsonl", 60, seed=9))
    items = [
        JudgeItem(question=p.question, candidate=p.candidate, references=p.references)
        for p in fresh
    ]
    scores_direct = config.open().score(items)
    verdicts = [bool(s.equivalent) for s in scores_direct]
    assert calibrate.f1([p.label for p in fresh], verdicts) > 0.9

    with served(
        create_app(LocalBackend(config.open(), "tiny"), Keys.read(KEY), RequestLimits())
    ) as url:
        client = JudgeClient(url, KEY, batch=16)
        scores, description = client.score(items), client.models()
    logits = [s.logit_diff for s in scores_direct]
    assert [s.logit_diff for s in scores] == pytest.approx(logits, abs=1e-5)
    assert [s.equivalent for s in scores] == verdicts
    assert description["record"]["identity"]["attention"] == "prefix"
    assert description["threshold"] == Record.read(calibrated / "record.json").threshold


@pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing:FutureWarning")  # of peft
def test_a_resumed_training_has_the_losses_of_an_uninterrupted_one(tmp_path: Path) -> None:
    base = tiny_gemma.checkpoint(tmp_path / "base", attention=None, width=16, layers=1, spread=0.05)
    pairs = equivalence_data.read_bem(bem(tmp_path / "a.jsonl", 40, seed=1))

    class Stop(Exception):
        pass

    def stop(figures: dict[str, float]) -> None:
        if figures["step"] == 4:
            raise Stop

    settings = GemFit(
        base=str(base), attention="causal", rank=2, steps=8, batch=4, every=2, checkpointing=False,
        bf16=False, rate=0.01,
    )  # fmt: skip
    fit(settings, pairs, pairs, str(tmp_path / "whole"), TrainingWorker())
    with pytest.raises(Stop):
        fit(settings, pairs, pairs, str(tmp_path / "parts"), TrainingWorker(report=stop))
    fit(settings, pairs, pairs, str(tmp_path / "parts"), TrainingWorker())

    def losses(name: str) -> list[float]:
        lines = (tmp_path / name / "metrics.jsonl").read_text().splitlines()
        return [json.loads(line)["dev_loss"] for line in lines]

    assert losses("parts") == pytest.approx(losses("whole"), abs=1e-5)
    assert len(losses("whole")) == 4
    early = dataclasses.replace(settings, patience=1, rate=0.0)  # so that it learns nothing
    for _ in range(2):  # a run that stopped early does not continue when it is started again
        fit(early, pairs, pairs, str(tmp_path / "early"), TrainingWorker())
        assert len(losses("early")) == 2
    other = GemFit(base=str(base), steps=9, rank=2)
    with pytest.raises(UserError, match="other settings"):
        fit(other, pairs, pairs, str(tmp_path / "parts"), TrainingWorker())
    # The adapters are merged, so that the engine reads a plain checkpoint.
    assert Gem(path=str(tmp_path / "whole"), device="cpu").open().identity.attention == "causal"


@pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing:FutureWarning")  # of peft
def test_caching_the_instructions_does_not_change_the_losses(tmp_path: Path) -> None:
    """With checkpointing no states are cached, so every prompt runs the instructions itself."""
    base = tiny_gemma.checkpoint(
        tmp_path / "base", attention=None, layers=3, third=True, window=40, spread=0.1
    )
    pairs = equivalence_data.read_bem(bem(tmp_path / "a.jsonl", 24, seed=1))

    def losses(name: str, *, checkpointing: bool) -> list[float]:
        settings = GemFit(
            base=str(base), attention="causal", rank=0, steps=4, batch=4, every=2, warmup=1,
            checkpointing=checkpointing, bf16=False, rate=0.003,
        )  # fmt: skip
        fit(settings, pairs, pairs, str(tmp_path / name), TrainingWorker())
        lines = map(json.loads, (tmp_path / name / "metrics.jsonl").read_text().splitlines())
        return [m[kind] for m in lines for kind in ("train_loss", "dev_loss")]

    once = losses("once", checkpointing=False)
    assert once[-1] < once[0]
    assert once == pytest.approx(losses("each", checkpointing=True), abs=1e-4)


@pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing:FutureWarning")  # of peft
def test_only_the_configured_upper_layers_change(tmp_path: Path) -> None:
    from safetensors.numpy import load_file

    base = tiny_gemma.checkpoint(tmp_path / "base", attention=None, layers=3, spread=0.1)
    pairs = equivalence_data.read_bem(bem(tmp_path / "a.jsonl", 24, seed=1))
    settings = GemFit(
        base=str(base), attention="causal", rank=2, layers=1, steps=2, batch=4, every=2, warmup=1,
        checkpointing=False, bf16=False, rate=0.01,
    )  # fmt: skip
    fit(settings, pairs, pairs, str(tmp_path / "judge"), TrainingWorker())
    before = load_file(base / "model.safetensors")
    after = load_file(tmp_path / "judge" / "model.safetensors")
    changed = {name for name in before if (before[name] != after[name]).any()}
    assert changed
    assert all(".layers.2." in name for name in changed)


def _train_one(rank: int, world: int, port: int, settings: GemFit, pairs: object, out: str) -> None:
    """A worker of a distributed training, in a process of its own."""
    import torch

    torch.set_num_threads(1)
    torch.distributed.init_process_group(
        "gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world
    )
    me = TrainingWorker(rank=rank, world=world, report=stop_at(4) if "stopped" in out else ignore)
    with contextlib.suppress(Stopped):
        fit(settings, pairs, pairs, out, me)  # type: ignore[arg-type]
    torch.distributed.destroy_process_group()


class Stopped(Exception):
    """A training was stopped."""


def stop_at(step: int) -> Callable[[dict[str, Any]], None]:
    def stop(figures: dict[str, Any]) -> None:
        if figures["step"] == step:
            raise Stopped

    return stop


def ignore(figures: dict[str, Any]) -> None:
    """Take no notice."""


def test_workers_that_share_the_weights_learn_what_one_learns(tmp_path: Path) -> None:
    from safetensors.numpy import load_file
    from torch.multiprocessing.spawn import spawn

    base = tiny_gemma.checkpoint(tmp_path / "base", attention=None, width=16, layers=2, spread=0.05)
    pairs = equivalence_data.read_bem(bem(tmp_path / "a.jsonl", 40, seed=1))
    settings = GemFit(
        base=str(base), rank=0, steps=8, batch=4, every=2, warmup=1, bf16=False, rate=0.003
    )

    def train(name: str, world: int) -> list[float]:
        out = str(tmp_path / name)
        if world == 1:
            fit(settings, pairs, pairs, out, TrainingWorker())
        else:
            spawn(_train_one, (world, free_port(), settings, pairs, out), nprocs=world)
        lines = Path(out, "metrics.jsonl").read_text().splitlines()
        return [json.loads(line)["dev_loss"] for line in lines]

    alone = train("alone", 1)
    assert alone[-1] < alone[0]
    assert train("two", 2) == pytest.approx(alone, abs=1e-5)
    assert len(train("stopped", 2)) == 2
    (tmp_path / "stopped").rename(tmp_path / "resumed")  # by one worker, what two had begun
    assert train("resumed", 1) == pytest.approx(alone, abs=1e-5)
    one, two = (load_file(tmp_path / name / "model.safetensors") for name in ("alone", "two"))
    assert one.keys() == two.keys()
    assert all(abs(one[name] - two[name]).max() < 1e-5 for name in one)


def test_a_plan_that_does_not_fit_its_gpus_is_refused_with_what_would_do(tmp_path: Path) -> None:
    gemma2_9b = ModelSize(
        weights=9_241_705_984, gathered=1_313_000_000, layers=42, hidden=3584, heads=16
    )

    def needed(workers: int, *, adapters: bool = False) -> TrainingMemory:
        return estimate_memory(
            gemma2_9b, workers=workers, adapters=adapters, rows=4, tokens=1024, checkpointing=True
        )

    assert needed(1).kept == pytest.approx(147.9, abs=0.1)
    assert needed(8).kept == pytest.approx(18.5, abs=0.1)
    assert needed(8).gathered > 5
    assert needed(1, adapters=True).total < 40
    with pytest.raises(UserError, match=r"1 workers needs about 1.* has 80 .*train.gpu_gb"):
        check_memory(needed(1), gemma2_9b, 1, 80)
    with pytest.raises(UserError, match=r"needs about .* 7 workers would do"):
        check_memory(needed(4), gemma2_9b, 4, 36)
    check_memory(needed(8), gemma2_9b, 8, 40)
    base = tiny_gemma.checkpoint(tmp_path / "base", attention=None, width=16, layers=3, spread=0.05)
    size = read_size(str(base))
    assert (size.layers, size.hidden) == (3, 16)
    assert 0 < size.gathered < size.weights
