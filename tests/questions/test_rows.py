"""Rows of replies: the same from words and from JSON, and none that is cut, doubled or missing."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mustsee.errors import Unparsed
from mustsee.questions.rows import Row, numbered_rows, rows_form

KINDS = {"claim": {"kind": "its kind", "statement": "what it says"}, "altered": {"text": "it"}}
FORM = rows_form(KINDS, optional=("altered",))
words = st.lists(
    st.sampled_from(("amber", "boat", "cliff", "drum", "eel")), min_size=1, max_size=5
).map(" ".join)
claims = st.lists(st.tuples(st.integers(1, 99), words, words), min_size=1, max_size=4)
versions = st.lists(st.tuples(st.integers(1, 99), words), max_size=4)


@given(claims, versions)
def test_rows_are_the_same_in_words_and_in_json(
    claims: list[tuple[int, str, str]], versions: list[tuple[int, str]]
) -> None:
    lines = [f"CLAIM {n}: {kind} | {text}" for n, kind, text in claims]
    lines += [f"ALTERED {n}: {text}" for n, text in versions]
    said = {
        "claim": [{"number": n, "kind": kind, "statement": text} for n, kind, text in claims],
        "altered": [{"number": n, "text": text} for n, text in versions],
    }
    rows = FORM.read(json.dumps(said))
    assert [(r.number, r["kind"], r["statement"]) for r in rows["claim"]] == claims
    assert FORM.read("\n".join(lines)) == FORM.read("\n\n".join(lines)) == rows


def test_rows_are_read_with_marks_of_a_model() -> None:
    reply = "Here they are:\n\n**Claim 1:** goal | he looks for | a door\n- altered 1 - it falls\n"
    rows = FORM.read(reply + "and breaks\n\nI hope this helps.")
    assert rows["claim"] == (Row(1, {"kind": "goal", "statement": "he looks for | a door"}),)
    assert [row["text"] for row in rows["altered"]] == ["it falls and breaks"]


@pytest.mark.parametrize("reply", ["", "nothing", "ALTERED 1: it falls", "1: goal | a door"])
def test_a_reply_without_the_rows_is_refused(reply: str) -> None:
    with pytest.raises(Unparsed, match=r"no row 'CLAIM 1: kind \| statement'"):
        FORM.read(reply)


def test_no_row_at_all_is_the_word_none() -> None:
    form = rows_form(KINDS, optional=KINDS)
    assert form.read("NONE.") == form.read('{"claim": [], "altered": []}')
    for reply in ("", "I cannot tell.", "None of these hang together, because it is dark."):
        with pytest.raises(Unparsed, match="no row"):
            form.read(reply)


def test_a_row_with_too_few_cells_is_refused() -> None:
    cells = {"point": {"a": "x", "b": "y", "c": "z"}}
    three = rows_form(cells, brief=("point",))
    assert three.read("POINT 1: p | q")["point"] == (Row(1, {"a": "p", "b": "q", "c": ""}),)
    with pytest.raises(Unparsed, match="POINT 1 has 1 of 3 parts"):
        three.read("POINT 1: p")
    with pytest.raises(Unparsed, match="POINT 1 has 2 of 3 parts"):
        rows_form(cells).read("POINT 1: p | q")


def test_a_row_goes_on_behind_an_empty_line_where_paragraphs_are_expected() -> None:
    cells = {"answer": {"answer": "it"}}
    reply = "ANSWER 1: He looks.\n\nThen he leaves.\n\nANSWER 2: She stays."
    texts = [r["answer"] for r in rows_form(cells, paragraphs=True).read(reply)["answer"]]
    assert texts == ["He looks. Then he leaves.", "She stays."]
    assert rows_form(cells).read(reply)["answer"][0]["answer"] == "He looks."


@pytest.mark.parametrize(
    ("numbers", "reason"),
    [((1, 1), "1 is answered twice"), ((1,), "2 is not answered"), ((1, 2, 3), "3 is not one")],
)
def test_each_number_has_one_row(numbers: tuple[int, ...], reason: str) -> None:
    rows = [Row(number, {}) for number in numbers]
    with pytest.raises(Unparsed, match=reason):
        numbered_rows(rows, 2, "point")


def test_rows_come_in_the_order_of_their_numbers() -> None:
    rows = [Row(2, {}), Row(1, {})]
    assert [row.number for row in numbered_rows(rows, 2, "point")] == [1, 2]


@pytest.mark.parametrize(
    "line",
    ["POINT 1: stated by A, C | contradicted by: NONE | words: no", "POINT 1: A, C | NONE | no"],
)
def test_the_names_of_cells_that_a_model_copies_are_no_part_of_them(line: str) -> None:
    cells = dict.fromkeys(("stated_by", "contradicted_by", "words"), "")
    (row,) = rows_form({"point": cells}).read(line)["point"]
    assert dict(row.cells) == {"stated_by": "A, C", "contradicted_by": "NONE", "words": "no"}


def test_a_text_that_begins_with_the_name_of_its_cell_keeps_it() -> None:
    (row,) = rows_form({"point": {"words": ""}}).read("POINT 1: words fail her")["point"]
    assert row["words"] == "words fail her"
