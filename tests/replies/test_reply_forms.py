"""Replies in the forms of many models: tokens, brackets, hedges, a verdict on each option."""

import json
from pathlib import Path

import pytest

from mustsee.extract import extract
from mustsee.replies import extract as own

CASES = [
    json.loads(line)
    for line in Path(__file__).with_name("reply_forms.jsonl").read_text("utf-8").splitlines()
]


@pytest.mark.parametrize(
    "form",
    [
        "token", "tag", "bracket", "language", "hedge", "verdict", "chinese", "option_is_verdict",
    ],
)  # fmt: skip
def test_replies_of_each_form_are_read(form: str) -> None:
    cases = [case for case in CASES if case["form"] == form]
    assert len(cases) >= 3
    for case in cases:
        got = extract(case["response"], case["options"])
        assert got.letter == case["expected"], (case["response"], got)


def test_the_public_name_is_the_one_that_the_package_uses() -> None:
    assert extract is own.extract
    got = extract("The answer is B.", ["a cat", "a dog"])
    assert (got.letter, got.rule) == ("B", "declaration")
