"""Replies in the forms that models send; incomplete ones are not guessed."""
# ruff: noqa: E501  (a reply stands on one line)

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest

from mustsee.errors import Unparsed
from mustsee.questions.drafts import Draft, plain
from mustsee.questions.replies import decoys, questions
from mustsee.questions.rows import numbered_texts
from mustsee.recipes.cinepile.ask import shortlist
from mustsee.recipes.cinepile.mcq import mcqs
from mustsee.recipes.mlvu.ask import needle_form
from mustsee.recipes.neptune.replies import PROSE, topics
from mustsee.records import Span
from mustsee.replies.forms import Form
from mustsee.verify.guess.ask import ranking
from mustsee.verify.look_replies import CANNOT, look_form

ASKED = (
    Draft(question="What burns?", answer="A lamp"),
    Draft(question="Who is at sea?", answer="He"),
)


@dataclass(frozen=True)
class Case:
    """A reply as a model may send it, and its parsed value."""

    form: Form[Any]
    reply: str
    means: Any


PLAIN = (Draft(question="What burns?", answer="A lamp", tag="identification",
               evidence=(Span(1.0, 2.5),)),)  # fmt: skip
LOOK = look_form(2)
TWO = {"evidence": [{"start": 1, "end": 2.5}], "kind": "identification"}
CASES = {
    "a ranking escaped for Markdown": Case(ranking(3), r"* ANSWER: B \> A \> C", (1, 0, 2)),
    "for HTML": Case(ranking(3), "* ANSWER: B &gt; A &gt; C", (1, 0, 2)),
    "as a list in JSON": Case(ranking(3), '["B", "A", "C"]', (1, 0, 2)),
    "as a numbered list": Case(ranking(3), "Sure!\n\n**Ranking:**\n1. **B** - so\n2. A\n3. (C)\n", (1, 0, 2)),
    "in brackets": Case(ranking(3), "1) B. Milk\n2) A. Eggs\n3) C. Salt\n\nHope this helps!", (1, 0, 2)),
    "with a full-width colon": Case(ranking(3), "ANSWER：B > A > C", (1, 0, 2)),
    "as an object": Case(ranking(3), '{"answer": ["B", "A", "C"], "explanation": "so"}', (1, 0, 2)),
    "in parts of its own": Case(ranking(3), '{"ranking": "B > A > C"}', (1, 0, 2)),
    "in a fence": Case(ranking(3), 'Here:\n```json\n{"answer": ["b", "a", "c"], "explanation": ""}\n```\nBye!', (1, 0, 2)),
    "fenced text": Case(ranking(3), "```\n* ANSWER: B > A > C\n```", (1, 0, 2)),
    "runs in brackets": Case(topics(4), "SEGMENT 1: [1-4]: The boat", (((0, 4, "The boat"),), (), "story")),
    "runs in Windows' lines": Case(topics(4), "Sure!\r\nSEGMENT 1: 1-2: a\r\nSEGMENT 2: 3-4: b\r\n", (((0, 2, "a"), (2, 4, "b")), (), "story")),
    "emphasis in pairs": Case(numbered_texts(2), "1: **A man** walks\n2: He *sits*.", ("A man walks", "He sits.")),
    "emphasis of the line": Case(numbered_texts(2), "**1: A man walks**\n**2:** He sits", ("A man walks", "He sits")),
    "numbers of all kinds": Case(numbered_texts(3), "1) a\n2. b\n3：c", ("a", "b", "c")),
    "dashes": Case(numbered_texts(2), "1 - a\n2 – b", ("a", "b")),
    "pleasantries around": Case(numbered_texts(2), "Sure! Here are the captions:\n\n1: a\n2: b\n\nLet me know!", ("a", "b")),
    "captions as objects": Case(numbered_texts(2), '{"sentences": [{"number": 2, "sentence": "b"}, {"number": 1, "sentence": "a"}]}', ("a", "b")),
    "captions as a bare list": Case(numbered_texts(2), '[{"number": 1, "sentence": "a"}, {"number": 2, "sentence": "b"}]', ("a", "b")),
    "a bold heading": Case(questions(evidence=True), "**QUESTION:** (identification) What burns?\n**CORRECT ANSWER:** A lamp\n**EVIDENCE:** 1.0-2.5", PLAIN),
    "a heading with hashes": Case(questions(evidence=True), "Certainly!\n\n### QUESTION 1: (identification) What burns?\nCORRECT ANSWER： A lamp\nEVIDENCE: 1.0-2.5\n\nLet me know if you need more.", PLAIN),
    "a question as an object": Case(questions(evidence=True), json.dumps({"questions": [{**TWO, "question": "What burns?", "correct_answer": "A lamp"}]}), PLAIN),
    "none": Case(questions(), "**NONE**", ()),
    "none as an object": Case(questions(), '{"questions": []}', ()),
    "an open look": Case(LOOK, "* SEEN: x\n* PREMISE: OPEN\n* OPTION A: WRONG\n* OPTION B: OPEN 3-4", CANNOT),
    "a look in JSON": Case(LOOK, '{"seen": "x", "premise": "HOLDS", "option_a": {"verdict": "WRONG", "spans": []}, "option_b": {"verdict": "right", "spans": [{"start": 1, "end": 2}]}}', 1),
    "a look in bold": Case(LOOK, "Sure!\r\n**SEEN:** x\r\n**PREMISE:** HOLDS.\r\n**OPTION A:** WRONG\r\n**OPTION B: RIGHT**, 1:00-1:02", 1),
    "a look as a list": Case(LOOK, "- Seen: x\n- Premise: Holds\n- Option A: wrong (3.0-4.0)\n- Option B: right (1.0-2.0)", 1),
    "a look with letters alone": Case(LOOK, "SEEN: x\nPREMISE: HOLDS\nA: WRONG\n(B): RIGHT 1-2", 1),
    "a story with an offer": Case(PROSE, "Here is the text:\n\nA boat **sinks**.\n\nLet me know if you want more.", "A boat sinks."),
    "kinds below the label": Case(shortlist(9, 3), "TEMPLATES:\n1. 4\n2. 7\n3. 2", (3, 6, 1)),
    "kinds with words behind": Case(shortlist(9, 3), "**TEMPLATES:** 4, 7\n\nThese 2 fit best.", (3, 6)),
    "options in full width": Case(mcqs(options=2), "**Question：** Who?\n**A)** he\nB：she\n**Correct Answer：** B", 1),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_common_replies_are_parsed(name: str) -> None:
    case = CASES[name]
    value = case.form.read(case.reply)
    if case.form is LOOK:
        value = value.choice
    if name == "options in full width":
        value = value[0].answer
    assert value == case.means


@pytest.mark.parametrize(
    "listed",
    [
        "WRONG ANSWERS:\n1. A boat\n2. A drum",
        "**Wrong Answers:**\n\n- A boat\n- **A drum**",
        "Wrong answers：\na) A boat\nb) A drum\n\nI hope this helps!",
        "WRONG ANSWERS:\n1) A boat\n\n2) A drum",
        "WRONG ANSWER 1: A boat\nWRONG ANSWER 2: A drum",
    ],
)
def test_wrong_answers_in_a_list_are_parsed(listed: str) -> None:
    reply = f"QUESTION 1: What burns?\nCORRECT ANSWER: A lamp\n{listed}\n\nEVIDENCE: 1-2"
    (draft,) = questions(wrong=2, evidence=True).read(reply)
    assert (draft.decoys, draft.evidence) == (("A boat", "A drum"), (Span(1.0, 2.0),))
    both = f"{reply}\nQUESTION 2: Who is at sea?\nCORRECT ANSWER: He\n{listed}"
    assert [d.decoys for d in decoys(ASKED, 2).read(both)] == [("A boat", "A drum")] * 2


@pytest.mark.parametrize(
    ("form", "reply"),
    [
        (ranking(3), '{"answer": ["B", "A"], "explanation": ""}'),
        (ranking(3), '{"answer": ["B", "A", "A"], "explanation": ""}'),
        (ranking(3), '{"answer": ["B", "A", "D"], "explanation": ""}'),
        (ranking(3), "1. B\n2. A"),
        (ranking(3), "1. A man walks\n2. B is likely\n3. C"),
        (ranking(3), '{"answer": ["B", "A", "C"'),
        (ranking(3), '{"answer": "B", "explanation": ""} or {"answer": "C", "explanation": ""}'),
        (numbered_texts(2), '{"frames": [{"frame": 1, "sentence": "a"}]}'),
        (numbered_texts(2), '{"frames": [{"frame": 1, "sentence": "a"}, {"frame": 1, "sentence": "b"}]}'),
        (numbered_texts(2), '{"frames": [{"frame": "one", "sentence": "a"}]}'),
        (questions(wrong=1), '{"questions": [{"kind": "", "question": "", "correct_answer": "x", "wrong_answer_1": "y"}]}'),
        (questions(evidence=True), '{"questions": [{"kind": "", "question": "Who?", "correct_answer": "x", "evidence": [{"start": 1}]}]}'),
        (questions(evidence=True), '{"questions": [{"kind": "", "question": "Who?", "correct_answer": "x", "evidence": [{"start": 1, "end": 1e999}]}]}'),
        (LOOK, '{"seen": "", "premise": "HOLDS", "option_a": {"verdict": "RIGHT", "spans": []}}'),
        (LOOK, '{"seen": "", "premise": "HOLDS", "option_a": {"verdict": "WRONG", "spans": []}, "option_b": {"verdict": "RIGHT", "spans": []}}'),
        (LOOK, '{"seen": "", "premise": "", "option_a": {"verdict": "WRONG", "spans": []}, "option_b": {"verdict": "OPEN", "spans": []}}'),
        (topics(3), '{"cast": [], "segments": [{"first": 7, "last": 9, "topic": "a"}]}'),
        (needle_form(2, 2), "QUESTION 1: Who?\nCORRECT ANSWER: he\nWRONG ANSWERS: she; it"),
        (shortlist(9, 3), '{"templates": [3, 12]}'),
        (PROSE, "I'm sorry, I can't help with that."),
    ],
)  # fmt: skip
def test_incomplete_replies_are_not_guessed(form: Form[Any], reply: str) -> None:
    with pytest.raises(Unparsed):
        form.read(reply)


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("**A man** walks", "A man walks"), ("__A man__ *walks*", "A man walks"),
        ("***Both*** of `them`", "Both of them"), ("A man** walks", "A man walks"),
        ("2 * 3 * 4 = 24", "2 * 3 * 4 = 24"), ("a snake_case_name", "a snake_case_name"),
        ("“Quoted”", "Quoted"),
    ],
)  # fmt: skip
def test_markdown_emphasis_is_removed(text: str, bare: str) -> None:
    assert plain(text) == bare


def test_a_lone_surrogate_is_refused() -> None:
    """It could neither be stored nor sent in the next prompt."""
    (draft,) = questions().read(
        '{"questions": [{"kind": "", "question": "Who \\ud83d?", "correct_answer": "\\ud83d\\ude00"}]}'
    )
    assert (draft.question, draft.answer) == ("Who ??", "\U0001f600")
