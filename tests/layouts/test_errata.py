"""Errata are applied to any layout, and what does not apply is named."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import mustsee
from mustsee.errors import UserError
from mustsee.layouts.errata import (
    Errata,
    correct_keys,
    key_of,
    option_index,
    option_value,
    read_errata,
)
from mustsee.recipes.neptune import layout as neptune
from mustsee.records import OPEN, Question, Span, Step, Trace

QUESTION = Question(
    question_id="q", video_id="v", recipe="r", question="Which?", question_type="k",
    options=("red", "green", "blue"), answer_index=0, answer="red", variants=("crimson",),
    rationale="It is red.", evidence=(Span(1, 2), Span(5, 6)),
    trace=Trace(steps=(Step(start=1, end=2, text="It is red."),), conclusion="red"),
)  # fmt: skip


def errata(folder: Path, *rows: dict[str, Any]) -> Errata:
    file = folder / "errata.jsonl"
    file.write_text("".join(json.dumps({"id": "q", "old": "red", **row}) + "\n" for row in rows))
    return read_errata(file)


def test_a_corrected_key_leaves_nothing_that_explains_the_old_one(tmp_path: Path) -> None:
    given = errata(tmp_path, {"new": "blue", "span": [3, 4], "who": "rater:ana", "evidence": "see"})
    fixed = given.apply(QUESTION)
    assert (fixed.answer_index, fixed.answer, fixed.evidence) == (2, "blue", (Span(3, 4),))
    assert (fixed.variants, fixed.rationale, fixed.trace) == ((), None, None)
    ((repair),) = fixed.repairs
    assert (repair.by, json.loads(repair.before)["answer"]) == ("errata: rater:ana", "red")
    assert given.outcome([QUESTION]).corrected == ("q",)
    assert given.outcome([fixed]).already == ("q",)
    assert given.apply(fixed) == fixed


def test_a_span_that_repeats_the_evidence_does_not_join_its_parts(tmp_path: Path) -> None:
    given = errata(tmp_path, {"new": "blue", "span": [1, 6]})
    assert given.apply(QUESTION).evidence == QUESTION.evidence


@pytest.mark.parametrize(
    ("row", "state"),
    [
        ({"new": "bad"}, "bad"), ({"new": "red"}, "confirmed"), ({"new": None}, "undecided"),
        ({"new": "B"}, "corrected"), ({"new": "pink"}, "mismatched"), ({"new": "D"}, "mismatched"),
        ({"old": "green", "new": "blue"}, "mismatched"), ({"old": "a", "new": "c"}, "corrected"),
        ({"old": "green", "new": "red"}, "already"), ({"old": None, "new": "red"}, "already"),
        ({"old": "pink", "new": "bad"}, "mismatched"), ({"id": "x", "new": "bad"}, None),
    ],
)  # fmt: skip
def test_what_an_entry_does(tmp_path: Path, row: dict[str, Any], state: str | None) -> None:
    given = errata(tmp_path, row)
    assert given.state(QUESTION) == state
    says = "\n".join(given.outcome([QUESTION, replace(QUESTION, question_id="x")]).lines())
    assert ("people decide: mustsee rate" in says) == (state == "undecided")
    changed = given.apply(QUESTION) != QUESTION
    assert changed == (state in ("bad", "corrected"))


def test_a_question_without_a_key_gets_one(tmp_path: Path) -> None:
    unknown = replace(QUESTION, answer_index=None, answer="")
    given = errata(tmp_path, {"old": None, "new": "green"})
    assert given.apply(unknown).answer_index == 1
    assert errata(tmp_path, {"old": "pink", "new": "green"}).state(unknown) == "mismatched"


def test_a_bad_question_and_its_twin_are_dropped_and_other_siblings_are_named(
    tmp_path: Path,
) -> None:
    twin = replace(QUESTION, question_id="t", options=(), answer_index=None, sibling_of="q",
                   relation=OPEN)  # fmt: skip
    other = replace(QUESTION, question_id="o", sibling_of="q", relation="other")
    bad = errata(tmp_path, {"new": "bad", "who": "rater:ana", "evidence": "two are right"})
    assert bad.apply(QUESTION).drop == "errata: bad question, rater:ana: two are right"
    assert bad.apply(twin).drop is not None
    assert bad.outcome([QUESTION, twin, other]).siblings == ("o",)
    fixed = errata(tmp_path, {"new": "blue"})
    assert fixed.apply(twin).answer == "blue"
    assert fixed.apply(other) == other
    assert fixed.apply(replace(twin, answer="rot")).answer == "rot"


def test_a_person_overrules_a_rule_and_contradictions_are_named(tmp_path: Path) -> None:
    rule, person = {"new": "blue", "who": "rule:audit votes"}, {"new": "red", "who": "rater:ana"}
    for rows in ((rule, person), (person, rule)):
        given = errata(tmp_path, *rows)
        assert (given.state(QUESTION), given.outcome([QUESTION]).proposals) == ("confirmed", 0)
    assert errata(tmp_path, rule).outcome([QUESTION]).proposals == 1
    twice = errata(tmp_path, person, {**person, "new": "bad"})
    assert twice.apply(QUESTION) == QUESTION
    assert twice.outcome([QUESTION]).contradictory == ("q",)


def test_an_option_is_written_so_that_it_is_read_back() -> None:
    for options in (("bad", "worse", "good"), ("B", "A", "C"), (" x ", "y", "bad")):
        question = replace(QUESTION, options=options)
        values = [option_value(question, i) for i in range(3)]
        assert [option_index(question, value) for value in values] == [0, 1, 2]
        assert "bad" not in values
    assert key_of(replace(QUESTION, answer_index=None)) is None


def test_outcomes_are_said_in_lines(tmp_path: Path) -> None:
    more = [replace(QUESTION, question_id=name) for name in ("a", "b", "c")]
    given = errata(
        tmp_path, {"new": "blue"}, {"id": "a", "new": "bad"}, {"id": "b", "old": "green",
        "new": "blue"}, {"id": "gone\x1b", "new": "bad"}, {"id": "c", "new": "red"},
    )  # fmt: skip
    text = "\n".join(given.outcome([QUESTION, *more]).lines())
    for part in ("2 entries applied (1 keys corrected, 1 bad", "1 keys confirmed", "of no question",
                 "gone\\x1b", "b (old 'green', key 'red')"):  # fmt: skip
        assert part in text
    assert "\x1b" not in text


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("", "no entries"), ("[1]", "line 1: not an object"), ("{", "line 1"),
        ('{"id": "q", "new": "x"}', "no old"), ('{"id": "q", "old": 1, "new": "x"}', "old=1"),
        ('{"id": true, "old": "a", "new": "b"}', "id=True"),
        ('{"id": "q", "old": "a", "new": "b", "span": [2, 1]}', "span=[2, 1]"),
        ('{"id": "q", "old": "a", "new": "b", "span": [0, Infinity]}', "span="),
        ('{"id": "q", "old": "a", "new": "b", "span": "0-1"}', "span="),
    ],
)  # fmt: skip
def test_an_unreadable_file_is_refused(tmp_path: Path, line: str, part: str) -> None:
    file = tmp_path / "errata.jsonl"
    file.write_text(line)
    with pytest.raises(UserError) as caught:
        read_errata(file)
    assert part in str(caught.value)
    assert "errata=" in str(caught.value)


def test_errata_of_other_questions_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="none of its 1 ids, such as 'x'"):
        errata(tmp_path, {"id": "x", "new": "bad"}).outcome([QUESTION])
    with pytest.raises(UserError, match="cannot read errata="):
        read_errata(tmp_path / "nowhere.jsonl")


def test_any_layout_is_corrected(tmp_path: Path) -> None:
    table, release = tmp_path / "mine.csv", tmp_path / "neptune_full.json"
    with table.open("w", newline="") as file:
        csv.writer(file).writerows([["video", "qid", "question", "a0", "a1", "a2", "answer"],
                                    ["v", "q", "Which?", "red", "green", "blue", "0"]])  # fmt: skip
    neptune.write([QUESTION], release)
    for path in (table, release):
        errata(tmp_path, {"id": mustsee.read(path)[0].question_id, "new": "green"})
        reading, applied = correct_keys(mustsee.read(path), str(tmp_path / "errata.jsonl"))
        assert applied is not None
        assert applied.outcome.applied_count == 1
        assert reading[0].options[reading[0].answer_index or 0] == "green"
