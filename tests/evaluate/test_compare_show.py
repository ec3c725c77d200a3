"""What a comparison writes: CSV files with the numbers, LaTeX and a page without foreign code."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from mustsee.evaluate import compare_page, compare_show
from mustsee.evaluate.answers import NOT_IN_FILE, verdict_on_failure, with_answers
from mustsee.evaluate.compare import (
    BLIND,
    CHOICE,
    GUESS,
    RUBRIC,
    ComparisonTable,
    Measure,
    PeopleScores,
    compare_models,
)
from mustsee.run.report import environment
from mustsee.stats import Difference, Estimate
from tests.evaluate.test_compare import answered, evaluate
from tests.evaluate.test_score import ask, right, two_models, wrong

GOLDEN = Path(__file__).parents[1] / "golden" / "compared.txt"
FILES = (compare_show.SCORES, compare_show.PAIRS, compare_show.MISSING, compare_show.LATEX)
EVIL = "</td><script>alert(1)</script>"
TEX = r"50 % of \input{x} & a_b #1 $y$ ~ ^ {z} <s>"


def some() -> ComparisonTable:
    people = [PeopleScores(name="study", scores={"q0": 1.0})]
    evaluations = [
        evaluate(answered((0.9, 0.9, 0.8), "a", 1), "A"),
        evaluate(answered((0.2, 0.3, 0.3), "b", 2), "B", shown=BLIND),
    ]
    return compare_models(evaluations, people)[0]


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_the_tables_are_shown_as_before(tmp_path: Path) -> None:
    table = some()
    output = io.StringIO()
    Console(file=output, width=100).print(compare_show.terminal_table(table))
    compare_show.write(tmp_path, [table, replace(table, people={})], {}, title="Two & two")
    texts = [output.getvalue(), *((tmp_path / name).read_text(encoding="utf-8") for name in FILES)]
    # The last digits of a float are those of the processor.
    text = re.sub(r"\d\.\d{9,}", lambda found: f"{float(found[0]):.8f}", "\n".join(texts))
    assert text == GOLDEN.read_text(encoding="utf-8")


def test_the_files_hold_the_numbers_of_the_tables(tmp_path: Path) -> None:
    table = some()
    compare_show.write(tmp_path, [table], {"gone": "why"})
    rows = rows_of(tmp_path / "scores.csv")
    for row in table.rows:
        for column, estimate in zip(table.columns, row.estimates, strict=True):
            assert estimate is not None
            (found,) = [r for r in rows if (r["row"], r["column"]) == (row.name, column.name)]
            assert float(found["score"]) == estimate.value
            assert float(found["low"]) == estimate.low
            assert found["n"] == str(estimate.n)
    kinds = {r["row"]: r["kind"] for r in rows}
    assert kinds == {"a": "model", "b": "blind", "random": "random", "study": "people"}
    (first,) = [r for r in rows if r["row"] == "a" and r["column"] == "all questions"]
    assert (first["rank"], first["differs_from_next"], first["evaluation"]) == ("1", "true", "A")
    (pair,) = rows_of(tmp_path / "pairs.csv")
    assert float(pair["p_holm"]) == table.pairs[0].difference.p_holm
    assert pair["beyond_noise"] == "true"
    record = json.loads((tmp_path / "compare.json").read_text())
    assert record["unread"] == {"gone": "why"}
    assert [r["name"] for r in record["tables"][0]["rows"]] == ["a", "b"]


def test_every_question_that_is_left_out_is_in_a_file_and_on_the_page(tmp_path: Path) -> None:
    base = [ask(3 * i) for i in range(80)]
    failed = [with_answers(q, [verdict_on_failure("down", model="b")]) for q in base[:60]]
    left = [evaluate([right(q, "a") for q in base], "A"),
            evaluate([*failed, *(wrong(q, "b") for q in base[60:])], "B")]  # fmt: skip
    (table,) = compare_models(left)
    compare_show.write(tmp_path, [table], {})
    rows = rows_of(tmp_path / "missing.csv")
    assert [row["question_id"] for row in rows] == [q.question_id for q in base[:60]]
    assert {(row["model"], row["reason"]) for row in rows} == {("b", "the call failed")}
    page = compare_page.render([table], {}, {}, environment())
    assert "60 questions are left out" in page
    assert "q0, q3, " in page
    assert "and 10 more, in missing.csv" in page
    assert "60 of 80 are left out, since not every model has a score of them" in page
    assert "Fewer than half of the 80 questions" in page


def test_a_question_that_a_file_of_replies_lacks_is_no_failed_call(tmp_path: Path) -> None:
    base = [ask(3 * i) for i in range(4)]
    lacking = [with_answers(q, [verdict_on_failure(NOT_IN_FILE, model="b")]) for q in base[:1]]
    left = [evaluate([right(q, "a") for q in base], "A"),
            evaluate([*lacking, *(wrong(q, "b") for q in base[1:])], "B")]  # fmt: skip
    compare_show.write(tmp_path, compare_models(left), {})
    assert [row["reason"] for row in rows_of(tmp_path / "missing.csv")] == ["not in the file"]


def test_texts_are_escaped_on_the_page() -> None:
    evaluations = [
        evaluate([right(ask(3 * i, EVIL if i else "x", form=EVIL if i > 1 else None), EVIL)
                  for i in range(4)], EVIL, dataset=EVIL),
        evaluate([wrong(ask(3 * i, EVIL if i else "x", form=EVIL if i > 1 else None), "b")
                  for i in range(3)], "B"),
    ]  # fmt: skip
    tables = compare_models(evaluations, [PeopleScores(name=EVIL, scores={"q0": 1.0})],
                            notes=[EVIL])  # fmt: skip
    page = compare_page.render(tables, {0: b"png"}, {EVIL: EVIL}, environment())
    assert page.count("&lt;/td&gt;&lt;script&gt;") > 8
    assert "<script" not in page
    assert "default-src 'none'" in page
    assert set(re.findall(r'(?:src|href)="([^"]{5})', page)) == {"data:"}


def test_texts_are_escaped_for_latex() -> None:
    (table,) = compare_models([evaluate([right(ask(0, TEX), TEX), right(ask(3), TEX)], "A")])
    text = compare_show.latex(table)
    escaped = (r"50 \% of \textbackslash{}input\{x\} \& a\_b \#1 \$y\$ \textasciitilde{} "
               r"\textasciicircum{} \{z\} \textless{}s\textgreater{}")  # fmt: skip
    assert text.count(escaped) == 2
    assert "\\input" not in text.replace("\\textbackslash{}input", "")
    assert compare_show.escape_latex("a\n\\end{tabular}") == (r"a \textbackslash{}end\{tabular\}")


def test_a_table_for_latex_has_a_cell_for_each_column() -> None:
    table = some()
    lines = compare_show.latex(table).splitlines()
    rows = [line for line in lines if line.endswith(r"\\")]
    assert {len(re.findall(r"(?<!\\)&", row)) for row in rows} == {1 + len(table.columns)}
    assert len(rows) == 1 + 2 + 2
    assert rows[1].startswith(r"1\textsuperscript{*} (1) & a & ")
    assert rows[-1].startswith(" & random & 33.3")


def test_the_terminal_shows_ranks_and_tags() -> None:
    evaluations = [evaluate(two_models(), "A")]
    evaluations += [evaluate([wrong(q, "longest") for q in map(ask, range(240))], "L", shown=GUESS)]
    (table,) = compare_models(evaluations)
    console = Console(width=120)
    with console.capture() as shown:
        console.print(compare_show.terminal_table(table))
    text = shown.get()
    assert re.search(r"1\* +1 +good", text)
    assert re.search(r"2 +2–3 +", text)
    assert "longest, guess without a model" in text
    assert "random" in text
    assert compare_show.verdict(table) == "5 of 6 pairs of models differ beyond noise."


@pytest.mark.parametrize(
    ("models", "said"),
    [("a", "One model"), ("ab", "None of 1 pair of models differs beyond noise.")],
)
def test_what_the_pairs_say(models: str, said: str) -> None:
    questions = [ask(3 * i) for i in range(3)]
    for model in models:
        questions = [right(q, model) for q in questions]
    assert compare_show.verdict(compare_models([evaluate(questions)])[0]).startswith(said)


def test_intervals_end_where_the_scale_does() -> None:
    def estimate(low: float, high: float) -> Estimate:
        return Estimate(value=0.9, low=low, high=high, n=3, clusters=3, method="clustered t")

    choice, rubric = Measure(CHOICE), Measure(RUBRIC, "grader")
    assert compare_show.interval(estimate(-0.2, 1.2), choice) == "0.0–100.0"
    assert compare_show.interval(estimate(1.5, 9.25), rubric) == "2.00–9.25"
    gap = Difference(value=0.5, low=-0.25, high=1.5, p=0.2, n=3, clusters=3, method="clustered t")
    assert compare_show.interval(gap, choice) == "-25.0 to 100.0"
    assert compare_show.interval(replace(gap, high=9.0), rubric) == "-0.25 to 8.00"
    assert compare_show.interval(replace(gap, low=None), choice) == ""
