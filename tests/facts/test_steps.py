"""Videos that explain steps, and the questions that are not asked of them."""

from __future__ import annotations

import pytest

from mustsee.facts.extract import make_fact
from mustsee.facts.forms.at import AtForm, SaidForm
from mustsee.facts.recipe import make_stems, spoken_entries
from mustsee.facts.settings import FactSettings
from mustsee.facts.stem import FormTraits, Stem
from mustsee.facts.stems import explains_steps, is_of_words_alone
from mustsee.facts.table import TruthTable
from mustsee.records import Fact, Span

RECIPE = (
    "First, there are three eggs.",
    "The second step is to add the flour.",
    "Be careful with the shells.",
    "Then the mixture has to rest for a while.",
    "Now we mix everything together.",
    "It is brown already.",
)
STORY = (
    "The first frame cost more than the print.",
    "I found this one behind the cupboard.",
    "He then said no.",
    "My aunt keeps the next one in a tin.",
    "Nobody knows any more who took it.",
    "Helen printed it the wrong way round.",
)
WORDS = "the words “FLOUR”"


def lines_of(texts: tuple[str, ...]) -> tuple[Fact, ...]:
    return tuple(
        make_fact("line", f"“{text}”", [Span(6.0 * n + 1, 6.0 * n + 3)], "lines")
        for n, text in enumerate(texts, 1)
    )


def stem_of(question: str, answer: str, form: str) -> Stem:
    return Stem(
        form=form, question=question, question_type="t", answer=answer, evidence=(),
        traits=FormTraits(names_moment=form != "first", lists_order=form == "order"),
    )  # fmt: skip


def test_a_recipe_explains_steps_and_a_story_does_not() -> None:
    assert explains_steps(lines_of(RECIPE))
    assert not explains_steps(lines_of(STORY))
    assert not explains_steps(lines_of(RECIPE[:2])), "two lines are too few"
    assert not explains_steps(())
    long = RECIPE + tuple(f"We talk about the weather in {n}." for n in range(40))
    assert not explains_steps(lines_of(long))


@pytest.mark.parametrize(
    ("question", "answer", "form", "words_alone"),
    [
        ("Which of these is seen first?", WORDS, "first", True),
        ("Which of these is seen next after the words “EGGS” can be seen?", WORDS, "after", True),
        ("Which of these is said while the words “EGGS” can be seen?", "“One.”", "said", True),
        ("In which order are these seen? the words “A”; the words “B”",
         "the words “A”; the words “B”", "order", True),
        ("Which words are seen when much of the picture is clearly blue?", WORDS, "reads", False),
        ("Which of these is so when the words “ANNA” can be seen?",
         "the whole picture is bright", "state", False),
        ("Which of these happens first?", "a man sits", "first", False),
        ("What happens while this is said: “Now.”?", "a man sits", "while", False),
        ("In which order do these happen? a man sits; the words “B”",
         "the words “B”; a man sits", "order", False),
        ("In which order are these seen? the words “A”; a car; the words “B”",
         "a car; the words “A”; the words “B”", "order", True),
    ],
)  # fmt: skip
def test_questions_of_words_alone(question: str, answer: str, form: str, words_alone: bool) -> None:
    assert is_of_words_alone(stem_of(question, answer, form)) == words_alone


@pytest.mark.parametrize(("texts", "asked"), [(RECIPE, {"state"}), (STORY, {"said", "state"})])
def test_a_recipe_is_not_asked_of_words_alone(texts: tuple[str, ...], asked: set[str]) -> None:
    count = len(texts) + 2
    moments = tuple(Span(6.0 * n, 6.0 * n + 6) for n in range(count))
    shown = tuple(
        make_fact("text", f"the words “NUMBER {n * 17}”", [Span(6.0 * n + 1, 6.0 * n + 3)], "texts")
        for n in range(1, count - 1)
    )
    colours = ("red", "blue", "green", "brown", "purple", "yellow")
    states = tuple(
        make_fact("state", f"much of the picture is {c}", [Span(6.0 * n, 6.0 * n + 6)], "frames")
        for n, c in enumerate(colours, 1)
    )
    facts = (*lines_of(texts), *shown, *states)
    table = TruthTable(facts=facts, moments=moments, scenes=(0,) * count)
    truth = {
        (fact.fact_id, m): m in table.claims[fact.fact_id] for fact in facts for m in range(count)
    }
    table = TruthTable(
        facts=facts, moments=moments, scenes=(0,) * count, truth=truth | spoken_entries(table)
    )
    forms = {"said_text": SaidForm(given="text"), "state_text": AtForm(of="state", given="text")}
    assert {stem.form for stem in make_stems(table, FactSettings(forms=forms))} == asked
