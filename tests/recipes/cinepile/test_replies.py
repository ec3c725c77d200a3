"""Replies in CinePile's form: drifted ones are parsed, incomplete ones are refused."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mustsee.errors import Unparsed
from mustsee.recipes.cinepile.ask import shortlist
from mustsee.recipes.cinepile.mcq import choice, mcqs

FORM = """Template: Thing in hand
Question: What does he hold?
- A) A rope
- B) A lamp
- C) A book
- D) A cane
- E) A key
Correct Answer: D
Rationale: He leans on it."""


@pytest.mark.parametrize(
    "reply",
    [
        FORM,
        FORM.replace("Question:", "**Question:**").replace("Correct Answer: D", "**Answer:** D)"),
        FORM.replace("- ", "").replace(")", "."),
        "Sure, here it is:\n\n" + FORM.replace("Correct Answer: D", "Correct answer: A cane"),
        FORM.replace("- A)", "(A)").replace("Correct Answer: D", "Correct Answer: D) A cane"),
        FORM.replace("Question:", "3. Question 3:"),
    ],
)
def test_drifted_forms_are_parsed(reply: str) -> None:
    parsed = mcqs().read(reply)[0]
    assert (parsed.question, parsed.options[parsed.answer]) == ("What does he hold?", "A cane")
    assert parsed.rationale == "He leans on it."
    assert len(parsed.draft().decoys) == 4


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("", "no line 'Question"),
        (FORM.replace("- E) A key\n", ""), "options ABCD"),
        (FORM.replace("A key", "a book"), "option twice"),
        (FORM.replace("Answer: D", "Answer: F"), "Correct Answer"),
        (FORM.replace("Correct Answer: D\n", ""), "Correct Answer"),
        (FORM.replace("What does he hold?", ""), "no text"),
    ],
)
def test_an_incomplete_question_is_refused_with_a_reason(reply: str, reason: str) -> None:
    with pytest.raises(Unparsed, match=reason):
        mcqs().read(reply)


def test_a_complete_question_beside_a_broken_one_is_kept() -> None:
    broken = FORM.replace("- E) A key\n", "").replace("hold", "drop")
    assert [q.question for q in mcqs().read(f"{broken}\n\n{FORM}")] == ["What does he hold?"]


@given(st.text(max_size=300))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    for parse in (mcqs().read, choice(("a", "b", "c")).read):
        with contextlib.suppress(Unparsed):
            parse(text)


@pytest.mark.parametrize(
    ("reply", "place"),
    [
        ("B", 1),
        ("Answer: c", 2),
        ("**Answer:** A) foo\n**Rationale:** x", 0),
        ("the bar", 1),
        ("The answer is C) baz.", 2),
    ],
)
def test_choices(reply: str, place: int) -> None:
    assert choice(("foo", "the bar", "baz")).read(reply).place == place


@given(st.lists(st.integers(1, 40), min_size=1, max_size=30), st.integers(1, 25))
def test_a_shortlist_has_the_listed_numbers(numbers: list[int], count: int) -> None:
    places = shortlist(40, count).read("TEMPLATES: " + ", ".join(map(str, numbers)))
    assert places == tuple(n - 1 for n in list(dict.fromkeys(numbers))[:count])
    with pytest.raises(Unparsed, match="no template 41"):
        shortlist(40, 20).read("TEMPLATES: 3, 41")
