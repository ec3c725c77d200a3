"""Composed questions asked without their options."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mustsee.facts.forms.after import AfterForm
from mustsee.facts.forms.at import AtForm, WhileForm
from mustsee.facts.forms.order import OrderForm
from mustsee.facts.forms.whole import LongestForm
from mustsee.facts.recipe import open_sibling
from mustsee.facts.stem import QuestionForm
from mustsee.records import OPEN, SET, Question, Span, Verdict
from ray_jobs.cli.build import build
from ray_jobs.cli.compose import compose

OPTIONS = ("a woman in grey opens a door", "a man in red waves", "a dog runs off")
MEASURED = {"reach_seconds": 7.0, "apart_seconds": 1.0}
COMPOSED = Question(
    question_id="q0", video_id="v", recipe="facts", question_type="Temporal Ordering",
    question="What happens while this is said: “Sit down”?", options=OPTIONS, answer_index=1,
    answer=OPTIONS[1], evidence=(Span(1.0, 4.0), Span(5.0, 9.0)), form="while", group="q0",
    relation=SET, metrics={**MEASURED, "rank": 2.0}, subsets=("full",),
    verdicts=(Verdict(filter="blind", model="m"),),
)  # fmt: skip


def test_the_sibling_is_a_question_of_its_own_in_no_set() -> None:
    sibling = open_sibling(COMPOSED, WhileForm().traits)
    assert sibling is not None
    assert sibling.question_id != COMPOSED.question_id
    assert sibling == replace(
        COMPOSED, question_id=sibling.question_id, options=(), answer_index=None, verdicts=(),
        metrics=MEASURED, sibling_of="q0", relation=OPEN, group=None,
    )  # fmt: skip
    again = open_sibling(
        replace(COMPOSED, options=OPTIONS[::-1], question_id="q1"), WhileForm().traits
    )
    assert again is not None
    assert again.question_id == sibling.question_id  # the options are no part of it


def test_quoted_words_may_be_given_bare() -> None:
    said = "Which words are seen when a boy sits down?"
    read = replace(COMPOSED, form="reads", question=said, answer="the words “PARTS LIST”")
    sibling = open_sibling(read, AtForm(of="text").traits)
    assert sibling is not None
    assert sibling.references == ("the words “PARTS LIST”", "PARTS LIST")


@pytest.mark.parametrize(
    "change",
    [
        {"question": "What is seen while this is said: “Sit down”?"},
        {"question": "Which of these is so while a boy sits down?"},
        {"question": "Of these, which of the following is seen?"},
        {"question": "What happens while this is said: “A man in red waves”?"},
        {"question": "Who waves after a man in a red cap waves twice?"},
        {"question": "What happens while this is said at 1:05?"},
        {"answer": "a word " * 61},
        {"answer": ""},
    ],
)
def test_a_question_that_needs_its_options_has_no_sibling(change: dict[str, str | None]) -> None:
    assert open_sibling(replace(COMPOSED, **change), WhileForm().traits) is None  # type: ignore[arg-type]


@pytest.mark.parametrize("form", [OrderForm(), AfterForm(), LongestForm(), AtForm(of="object")])
def test_a_question_whose_form_needs_options_has_no_sibling(form: QuestionForm) -> None:
    assert open_sibling(COMPOSED, form.traits) is None


@pytest.mark.parametrize("job", ["make", "neptune"])
def test_a_job_that_asks_without_options_has_a_judge(job: str) -> None:
    overrides = ["videos=x", "out=y", "ask=facts", "vet=facts", "ask.settings.open=true"]
    assert build(compose(job, overrides)).vet.judge is not None
