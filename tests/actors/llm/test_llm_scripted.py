"""The scripted model fills in the form of every prompt."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from actors.llm.scripted import ScriptedModel, fill_reply, quote
from mustsee.calls.llm import Message, Request
from mustsee.records import Line, Question, Span
from mustsee.replies.forms import Form
from mustsee.verify.guess.ask import ranking, rankings
from mustsee.verify.look_replies import CANNOT, look_form
from tests.support.every_prompt import calls

CALLS = calls()
LINES = (
    Line(start=3.0, end=5.0, text="Then Anna breaks three eggs into the bowl."),
    Line(start=9.0, end=12.0, text="The first pancake is black."),
)


@pytest.mark.parametrize("name", sorted(CALLS))
def test_a_filled_form_can_be_read(name: str) -> None:
    call = CALLS[name]
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


def test_strong_readers_guess_many_known_questions_and_cannot_tell_some() -> None:
    asked, known, right, open_looks = list[Any](), dict[str, Question](), 0, 0
    for n in range(200):
        text, options = f"What does she do at {n}?", ("runs", "sits", "sings", "reads", "sleeps")
        asked.append({"question": text, "options": options})
        known[text] = Question(
            question_id=text, video_id="v", recipe="neptune", question=text, options=options,
            question_type="Other", answer="sings", evidence=(Span(4.0, 6.0),),
        )  # fmt: skip

    def reply(prompt: str, form: Form[Any], **variables: Any) -> Any:
        request = Request(
            prompt=prompt, digest="", messages=(Message("user", "?"),), form=form.schema,
            variables=variables,
        )  # fmt: skip
        return form.read(fill_reply(request, known))

    for rank, _ in reply("filters/guess_set", rankings([5] * 200), asked=asked):
        right += rank[0] == 2
    alone = [reply("filters/blind", ranking(5), **one) for one in asked]
    assert sum(rank[0] == 2 for rank in alone) == right
    for one in asked:
        looked = reply("filters/sight", look_form(5), **one, cuts=(), lines=())
        assert looked.choice in (2, CANNOT)
        open_looks += looked.choice == CANNOT
        assert reply("filters/sight", look_form(5), **one, cuts=(Span(5, 9),)).choice == CANNOT
    assert 0.4 < right / 200 < 0.7
    assert 0.03 < open_looks / 200 < 0.15
