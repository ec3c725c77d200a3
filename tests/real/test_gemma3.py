"""Gemma 3 270M, quantised: our JAX decoder and both judges against transformers, and a judge
that is trained from it and served.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from actors.judge.gem import Gem
from actors.judge.gem_fit import GemFit, TrainingWorker, fit
from actors.judge.gem_jax import GemJax
from benchmarks.cuts import theirs
from mustsee.judge.client import JudgeClient
from mustsee.judge.data import LabelledPair
from mustsee.judge.judge import ForwardPass, JudgeConfig, JudgeItem
from mustsee.judge.prompt import triple
from serve.judge_batch import LocalBackend
from serve.judge_guard import Keys, RequestLimits
from serve.judge_http import create_app
from tests.nn.test_gemma import logits
from tests.support.serving import served

KEY = "a-key-of-the-tests-0001"
Keep = Callable[[str, Any], None]
TRIPLES = [
    triple("What is the capital of France?", said, "Paris")[0]
    for said in ("Paris", "It is London, the largest city of England.", "the city of Paris")
]


@pytest.mark.parametrize(("days", "most"), [(3, 1e-3), (32, 3e-3)])
def test_logits_are_those_of_transformers(
    days: int, most: float, gemma3: Path, figure: Keep
) -> None:
    """Rounding errors add up along a text; a wrong window or rotation is far beyond them."""
    from transformers import AutoTokenizer

    tokenizer: Any = AutoTokenizer.from_pretrained(gemma3)
    said = (f"On day {n} the fox jumps over {n} lazy dogs and rests in Paris." for n in range(days))
    ids = np.array([tokenizer.encode(" ".join(said))])
    assert (ids.shape[1] > 512) == (days == 32)  # the window of the sliding layers binds
    expected, found = theirs(gemma3, ids), logits(gemma3, ids)
    worst = float(np.abs(found - expected).max())
    figure(f"gemma3_270m_worst_logit_of_{ids.shape[1]}_tokens", worst)
    assert worst < most
    assert (found.argmax(-1) == expected.argmax(-1)).all()


def test_the_judges_parse_the_models_replies(gemma3: Path, figure: Keep) -> None:
    """`gem` with its kept instructions, `gem_jax`, and a plain pass of transformers."""
    plain = {"path": str(gemma3), "zero_shot": True, "dtype": "float32"}
    one = Gem(**plain, device="cpu").open()
    two = GemJax(**plain, limit=320, lengths=(), batches=(1,)).open()
    prepared = [one.prepare(t) for t in TRIPLES]
    found: dict[str, list[ForwardPass]] = {
        "gem": one.score(prepared),
        "gem_jax": two.score(prepared),
    }
    for at, item in enumerate(prepared):
        last = theirs(gemma3, np.array([item.payload]))[0, -1].astype(np.float64)
        true, false = one.tokens.labels
        for name, readings in found.items():
            assert readings[at].logit_diff == pytest.approx(last[true] - last[false], abs=1e-3), (
                name
            )
    figure("gemma3_270m_untrained_judge", [round(r.logit_diff, 3) for r in found["gem"]])


@pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing:FutureWarning")  # of peft
def test_a_judge_is_trained_from_it_and_served(gemma3: Path, tmp_path: Path, figure: Keep) -> None:
    """Two steps of LoRA on four pairs lower the loss; the saved adapter is served."""
    cities = (("France", "Paris"), ("Spain", "Madrid"))
    pairs = [
        LabelledPair(question=f"What is the capital of {land}?", candidate=said, references=(city,),
             label=said == city, group=land)
        for land, city in cities for said in (city, "Berlin")
    ]  # fmt: skip
    settings = GemFit(
        base=str(gemma3), attention="causal", rank=4, rate=3e-4, steps=2, batch=4, every=2,
        warmup=1, checkpointing=False,
    )  # fmt: skip
    fit(settings, pairs, pairs, str(tmp_path), TrainingWorker())
    (metrics,) = map(json.loads, (tmp_path / "metrics.jsonl").read_text().splitlines())
    figure("gemma3_270m_loss_before_and_after", [metrics["train_loss"], metrics["dev_loss"]])
    assert metrics["dev_loss"] < metrics["train_loss"]
    engine = Gem(path=str(tmp_path), device="cpu", dtype="float32")
    judge = JudgeConfig(engine=engine, uncalibrated=True).open()
    items = [JudgeItem(question=p.question, candidate=p.candidate, references=p.references)
             for p in pairs[:2]]  # fmt: skip

    direct = judge.score(items)
    app = create_app(LocalBackend(judge, "gemma3"), Keys.read(KEY), RequestLimits())
    with served(app) as url:
        scores = JudgeClient(url, KEY).score(items)
    assert [s.logit_diff for s in scores] == pytest.approx([s.logit_diff for s in direct], abs=1e-4)
