"""Views, which only rules list: on-screen texts stand beside them in one question."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from mustsee.calls.llm import Asker
from mustsee.facts.cases import is_marked
from mustsee.facts.fact_looks import weigh_needs
from mustsee.facts.forms.after import AfterForm
from mustsee.facts.forms.whole import FirstForm, QuarterForm
from mustsee.facts.listing import list_facts
from mustsee.facts.settings import FactSettings
from mustsee.facts.table import TEXTS, VIEW, Entry, TruthTable, doubt_lost_things
from mustsee.prompts import Prompts
from mustsee.records import Fact, ScreenText, Span, Video
from tests.facts.tables import work_on
from tests.facts.test_recipe import Frames, Model

COLOURS = ("blue", "green", "yellow", "white")
SPANS = tuple(Span(6.0 * n, 6.0 * n + 6) for n in range(6))


def view(phrase: str, *places: int, source: str = "rules") -> Fact:
    spans = tuple(SPANS[n] for n in places)
    return Fact(fact_id=phrase, kind=VIEW, phrase=phrase, spans=spans, source=source)


def words(text: str, *places: int) -> Fact:
    return view(f"the words “{text}”", *places, source=TEXTS)


def table_with(facts: Sequence[Fact], unknown: Mapping[Entry, None] | None = None) -> TruthTable:
    """Return a table of six moments at which each fact holds where it is claimed."""
    table = TruthTable(facts=tuple(facts), moments=SPANS, scenes=(0,) * len(SPANS))
    truth: dict[Entry, bool | None] = {
        (fact.fact_id, n): n in table.claims[fact.fact_id]
        for fact in facts
        for n in range(len(SPANS))
    }
    return replace(table, truth={**truth, **(unknown or {})})


@pytest.mark.parametrize(
    ("identity", "listed", "kinds"),
    [
        ("offline 1", "FACT 1: view | a dog | 1.0-2.0", {VIEW}),
        ("offline 1", "NONE", {"text"}),
        ("model", "FACT 1: object | a dog | 1.0-2.0", {"object", "text"}),
    ],
)
def test_texts_are_views_where_rules_list_some(identity: str, listed: str, kinds: set[str]) -> None:
    model = Model(lambda request: listed)
    model.identity = identity
    text = ScreenText(time=1.0, end=5.0, text="PARTS LIST", score=1.0)
    video = Video(video_id="v", uri="v.mp4", duration=18.0, texts=(text,))
    frames: Any = Frames()
    asker = Asker(llm=model, prompts=Prompts(), tries=1)
    settings = FactSettings(forms={}, kinds=("object",))
    done = list_facts(work_on(video, frames, asker), SPANS[:3], settings)
    facts = asyncio.run(done).facts
    assert {fact.kind for fact in facts} == kinds
    assert "the words “PARTS LIST”" in {fact.phrase for fact in facts}


def test_words_and_things_never_stand_among_each_others_options() -> None:
    """Where some options are words on the screen and others are not, the odd ones are guessed."""
    facts = [
        words("OSLO", 1), view("a dog", 2), words("KEEP", 2), view("a car", 4), words("TWO", 5),
        words("END", 4), view("a large blue area", 4), view("a red hat", 5),
    ]  # fmt: skip
    table = table_with(facts)
    written = {fact.phrase for fact in facts if fact.source == TEXTS}
    forms = [AfterForm(given=VIEW, of=VIEW), FirstForm(of=VIEW)]
    stems = [stem for form in forms for stem in form.stems(table, Random(0))]
    assert {stem.answer in written for stem in stems} == {True, False}
    for stem in stems:
        assert {option in written for option in stem.pool} == {stem.answer in written}


def test_a_view_is_looked_for_everywhere_and_is_not_its_own_part() -> None:
    facts = [view("a person", 0, 3), view("a person left of the middle", 1)]
    table = table_with(facts)
    assert table.alike["a person"] == (facts[0],)
    assert table.places(facts[0]) == (0, 3)
    unknown = table_with(facts, {("a person", 5): None})
    assert unknown.doubts(facts[0]) == (5,)


def test_a_text_among_views_is_still_marked_by_its_place() -> None:
    facts = [words("OSLO", 0), words("KEEP", 2), view("a dog", 0)]
    table = table_with(facts)
    assert [is_marked(table, fact) for fact in facts] == [True, False, False]


def quarters(facts: Sequence[Fact], end: str, unknown: Mapping[Entry, None] | None = None) -> Any:
    stems = QuarterForm(end=end).stems(table_with(facts, unknown), Random(0))
    asked = [(s.question.removeprefix("In which quarter of the video "), s.answer) for s in stems]
    return {(text.split(" ", 1)[1].split(" seen")[0], answer) for text, answer in asked}


def test_the_quarter_of_what_appears_is_asked_where_nothing_before_is_open() -> None:
    area, dark = "a large red area", "a dark picture"
    facts = [view(area, 2, 3), view(dark, 0), view("a bicycle", 2)]
    assert quarters(facts, "first") == {(area, "the second quarter")}
    assert quarters(facts, "last") == {(area, "the third quarter"), (dark, "the first quarter")}
    assert not quarters(facts, "first", {(area, 1): None})
    assert quarters(facts, "first", {(area, 4): None}), "what comes later does not matter"
    assert not quarters([view(area, 3)], "first"), "it appears at the border of two quarters"


def test_the_quarter_of_words_is_asked_where_they_are_neither_title_nor_credit() -> None:
    oslo, milan = words("OSLO", 2), words("MILAN", 3, 4)
    assert quarters([oslo], "first") == {(oslo.phrase, "the second quarter")}
    assert quarters([milan], "last") == {(milan.phrase, "the last quarter")}
    assert not quarters([oslo], "first", {(oslo.fact_id, 1): None})
    at_ends = [words("A TITLE", 0), words("A CREDIT", 5), words("THE END", 2)]
    assert not quarters(at_ends, "first")
    assert not quarters(at_ends, "last")


def test_no_look_is_asked_for_what_has_no_quarter() -> None:
    facts = [view("a large red area", 2), view("a bicycle", 2), words("THE END", 2), words("IN", 0)]
    needs = weigh_needs(QuarterForm(), table_with(facts).as_claimed, Random(0))
    assert needs.keys() == {("a large red area", n) for n in range(3)}


def test_things_that_may_be_missed_are_no_wrong_answers_of_what_is_first() -> None:
    later = [words("OSLO", 3), words("MILAN", 3), words("LISBON", 4)]
    areas = [view(f"a large {colour} area", n) for n, colour in enumerate(COLOURS, 2)]
    facts = [view("a large red area", 0), view("a bicycle", 4), *areas, *later]
    (stem,) = FirstForm(of=VIEW).stems(table_with(facts), Random(0))
    assert set(stem.pool) == {fact.phrase for fact in areas}


def test_a_thing_that_is_seen_in_a_shot_is_not_known_to_be_absent_from_the_rest_of_it() -> None:
    facts = [view("a bicycle", 0), view("a large blue area", 0), words("OSLO", 0)]
    shots = (Span(0, 12), Span(12, 36))
    truth = doubt_lost_things(table_with(facts), shots)
    assert [truth["a bicycle", n] for n in range(4)] == [True, None, False, False]
    for other in ("a large blue area", "the words “OSLO”"):
        assert [truth[other, n] for n in range(4)] == [True, False, False, False]
