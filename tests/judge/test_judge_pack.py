"""Judges on published checkpoints use their authors' prompt and readout, alone and in batches.

The weights here are random, in the same architecture.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from actors.judge.baselines import Bem
from mustsee.errors import UserError
from mustsee.judge.data import JudgeDataSources, LabelledPair
from mustsee.judge.judge import Engine
from mustsee.judge.prompt import Triple
from ray_jobs import judge_calibrate
from tests.support import tiny_judges as tiny

pytestmark = pytest.mark.slow  # Torch and transformers take seconds to load.
TRIPLES = (
    Triple("what colour is the car", "it is red", "red car"),
    Triple("what colour is the car", "blue", "red"),
    Triple("what is it", "a red car and a blue car, and not a green one at all", "a car"),
    Triple("who", "The Queen!", "queen"),
)


@pytest.fixture(autouse=True)
def _no_gradients() -> Iterator[None]:
    try:
        import torch
    except ModuleNotFoundError:  # tests that need torch skip themselves
        yield
        return
    with torch.inference_mode():
        yield


def logits(engine: Engine) -> list[float]:
    """Return the logit differences of the triples, which are equal alone and in a batch."""
    prepared = [engine.prepare(t) for t in TRIPLES]
    alone = [engine.score([p])[0].logit_diff for p in prepared]
    together = [r.logit_diff for r in engine.score(prepared[::-1])][::-1]
    assert together == pytest.approx(alone, abs=1e-4)
    return alone


def test_bem_uses_the_prompt_and_readout_of_its_authors(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    folder = tiny.bert(tmp_path / "m")
    logit_diffs = logits(Bem(model=str(folder), device="cpu").open())
    model: Any = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    for triple, ours in zip(TRIPLES, logit_diffs, strict=True):
        first = f"[CLS] {triple.candidate} [SEP]"
        second = f"{triple.reference} [SEP] {triple.question} [SEP]"
        token_ids = [tokenizer(t, add_special_tokens=False)["input_ids"] for t in (first, second)]
        ids = torch.tensor([[*token_ids[0], *token_ids[1]]])
        kinds = torch.tensor([[0] * len(token_ids[0]) + [1] * len(token_ids[1])])
        theirs = torch.softmax(model(ids, token_type_ids=kinds).logits[0], 0)[1]
        assert torch.sigmoid(torch.tensor(ours)).item() == pytest.approx(float(theirs), abs=1e-4)
    with pytest.raises(UserError, match="has 3 classes"):
        Bem(model=str(tiny.bert(tmp_path / "3", classes=3)), device="cpu").open()


def test_calibration_shows_cider_and_bem_beside_the_judge(tmp_path: Path) -> None:
    answers = [("person number {}", True), ("nobody", False), ("the person of number {}", True)]
    pairs = [
        LabelledPair(
            question=f"who is {n}",
            candidate=a.format(n),
            references=(f"person number {n}",),
            label=y,
            group=f"q{n}",
        )
        for n in range(6)
        for a, y in answers
    ]
    scores = [float(p.label) for p in pairs]
    arguments = ("me", pairs, scores, [s > 0.5 for s in scores], JudgeDataSources())
    rows = judge_calibrate.table(*arguments, bem=str(tiny.bert(tmp_path / "m")))
    assert list(rows) == ["me", "rouge_l", "token_f1", "token_recall", "cider_d", "BEM"]
    assert rows["cider_d"]["auc"][0] == 1.0
    assert 0 <= rows["BEM"]["auc"][0] <= 1
    assert "BEM" not in judge_calibrate.table(*arguments)
