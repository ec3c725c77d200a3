"""Movements of the body that a look may miss."""

from __future__ import annotations

import pytest

from mustsee.facts.extract import make_fact
from mustsee.facts.table import TruthTable, find_fleeting
from mustsee.records import Fact, Span
from tests.facts.tables import table_of


def event(phrase: str, start: float, kind: str = "event") -> Fact:
    return make_fact(kind, phrase, [Span(start, start + 2)], "m")


LONG = (event("a man in grey opens a door", 3), event("a man in grey lifts a can", 90))


@pytest.mark.parametrize(
    ("phrase", "fleeting"),
    [
        ("a man in grey turns round", True),
        ("a man in grey lowers his hands", True),
        ("a man in grey leans forward", True),
        ("a man in grey smiles", True),
        ("a man in grey lowers a sheet of paper", False),
        ("a man in grey turns a wheel", False),
        ("a man in grey leans over a counter", False),
        ("a man in grey walks past some crates", False),
        ("a dog turns round", False),
    ],
)
def test_a_movement_of_somebody_who_stays_is_fleeting(phrase: str, fleeting: bool) -> None:
    fact = event(phrase, 40)
    assert (fact.fact_id in find_fleeting([*LONG, fact])) == fleeting
    assert not find_fleeting([LONG[0], fact]), "somebody seen for a short time is looked at well"
    assert not find_fleeting([*LONG, event(phrase, 40, "state")])


def test_somebody_told_from_others_is_not_one_of_them() -> None:
    fact = event("a man turns round", 40)
    assert not find_fleeting([*LONG, fact]), "two men in grey say nothing of another man"
    assert find_fleeting([*LONG, fact, event("a man opens a can", 120)])


def test_no_question_is_made_of_a_fleeting_event() -> None:
    acts = ["opens a red door", "turns round", "pours milk", "paints a wall", "rides a horse"]
    table: TruthTable = table_of(
        [("event", f"a baker {act}", [3 * n + 1]) for n, act in enumerate(acts)], scenes=[0] * 16
    )
    assert [f.phrase for f in table.of_kind("event")] == [
        f"a baker {act}" for act in acts if act != "turns round"
    ]
    assert table.fleeting_ids
