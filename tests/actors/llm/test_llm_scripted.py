"""The scripted model fills in every form that a paper's job and the filters ask for."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from actors.llm.scripted import ScriptedModel, fill_reply, quote
from mustsee.calls.llm import Message, Request
from mustsee.papers import papers
from mustsee.records import Line, Span
from mustsee.verify.look_replies import CANNOT, look_form
from tests.support.every_prompt import calls

CALLS = calls()
# In what is asked about facts a dry run makes replies up, and these are asked about facts alone.
FACTS_ONLY = ("filters/match", "filters/worth", "filters/conditions")
FOLDERS = (*papers(), "caption", "enrich", "filters")
FILLED = [
    name for name in sorted(CALLS) if name.split("/")[0] in FOLDERS and name not in FACTS_ONLY
]
LINES = (
    Line(start=3.0, end=5.0, text="Then Anna breaks three eggs into the bowl."),
    Line(start=9.0, end=12.0, text="The first pancake is black."),
)


@pytest.mark.parametrize("name", FILLED)
def test_a_filled_form_can_be_read(name: str) -> None:
    call = CALLS[name]
    if name == "filters/repair":  # of more than its own question, which would name its answer
        call = replace(call, given={**call.given, "others": [line.text for line in LINES]})
    call.form.read(fill_reply(call.request()))


def test_a_reply_depends_on_the_request_alone() -> None:
    request = CALLS["filters/blind"].request()
    replies = {fill_reply(replace(request, seed=seed)) for seed in range(20)}
    assert len(replies) > 10
    assert asyncio.run(ScriptedModel().open().complete(request)).text == fill_reply(request)


def test_a_question_quotes_the_request_with_the_times_of_its_rows() -> None:
    rows = "\n".join(f"[{line.start}-{line.end}]: {line.text}" for line in LINES)
    assert [(q.words, q.span) for q in quote(rows)] == [
        ("Then Anna breaks three eggs into the bowl", Span(3.0, 5.0)),
        ("The first pancake is black", Span(9.0, 12.0)),
    ]


def test_as_many_questions_as_are_asked_for_have_answers_and_evidence_of_the_script() -> None:
    call = CALLS["neptune/questions"]
    _, drafts = call.form.read(fill_reply(call.request()))
    assert len(drafts) == call.given["target"]
    texts = call.text()
    assert all(draft.answer in texts for draft in drafts)
    assert all(f"{draft.evidence[0].start}-{draft.evidence[0].end}" in texts for draft in drafts)
    assert len({draft.question for draft in drafts}) == len(drafts)


@pytest.mark.parametrize(
    ("lines", "choice"), [(LINES, 1), (LINES[:1], 1), (LINES[1:], CANNOT), ((), CANNOT)]
)
def test_a_verifier_finds_an_option_that_a_line_holds(
    lines: tuple[Line, ...], choice: int | str
) -> None:
    options = ("bowl the into eggs", "Anna breaks three eggs", "a pancake in a pan")
    schema = look_form(3).schema
    request = Request(
        prompt="filters/sight", digest="", messages=(Message("user", "?"),), form=schema,
        variables={"options": options, "lines": lines},
    )  # fmt: skip
    look = look_form(3).read(fill_reply(request))
    assert look.choice == choice
    assert look.evidence == ((Span(3.0, 5.0),) if choice == 1 else ())
