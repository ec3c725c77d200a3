"""What a comparison of runs writes: CSV files with the numbers, and a page without foreign code."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

from rich.console import Console

from mustsee.run import compare_runs_show as show
from mustsee.run.compare_runs import RunsComparison
from mustsee.run.report import environment
from ray_jobs.runtime.compared_runs import read_runs
from tests.ray_jobs.runtime.test_made_runs import ask, read_two, write_run

EVIL = "</td><script>alert(1)</script>"


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def some(tmp_path: Path) -> RunsComparison:
    return read_two(
        tmp_path,
        [ask("s"), ask("lost", skill="cause"), ask("own", answer="x, \n y")],
        [ask("s"), ask("lost", drop="blind: 3 of 3, known"), ask("won")],
    )


def test_the_files_hold_the_numbers_of_the_comparison(tmp_path: Path) -> None:
    comparison, out = some(tmp_path), tmp_path / "out"
    out.mkdir()
    show.write(out, comparison, environment())
    rows = rows_of(out / "runs.csv")
    first, second = (run.name for run in comparison.runs)
    found = {(r["run"], r["group"], r["name"]): r for r in rows}
    assert found[first, "questions", "kept"]["value"] == "3"
    assert found[second, "questions", "kept"]["value"] == "2"
    assert found[second, "dropped questions", "dropped by blind"]["value"] == "1"
    cause = found[first, "kept by skill", "cause"]
    assert (cause["value"], cause["only_here"]) == ("1", "1")
    other = found[first, "kept by skill", "Other"]
    assert (other["value"], other["only_here"]) == ("2", "1")
    questions = {r["id A"] or r["id B"]: r for r in rows_of(out / "questions.csv")}
    assert set(questions) == {"s", "lost", "own", "won"}
    lost = questions["lost"]
    assert (lost["kept_in"], lost["matched_by"], lost["skill"]) == ("A", "id", "cause")
    assert (lost["fate B"], lost["reason B"]) == ("dropped by blind", "3 of 3, known")
    assert (questions["won"]["fate A"], questions["won"]["kept_in"]) == ("not written", "B")
    assert questions["s"]["kept_in"] == "A B"
    record = json.loads((out / "compare.json").read_text())
    assert [run["run"] for run in record["runs"]] == [first, second]
    assert [q["kept_in"] for q in record["questions"]] == ["A B", "A", "A", "B"]
    assert record["changes"] == [
        "kept in every run: 1 (0 of them matched by their words, 0 with another answer)",
        "kept only in A: 2; in B: 1 dropped by blind, 1 not written",
        "kept only in B: 1; in A: 1 not written",
        "kept in no run: 0",
    ]


def test_the_terminal_and_the_page_say_the_same(tmp_path: Path) -> None:
    comparison = some(tmp_path)
    console = Console(width=200)
    with console.capture() as said:
        console.print(show.terminal_table(comparison))
    text = said.get()
    assert re.search(r"dropped by blind +0 +1\b", text)
    assert re.search(r"cause +1 \(1 only here\) +0\b", text)
    page = show.render(comparison, environment())
    for line in show.change_lines(comparison):
        assert line in page
        assert line in list(show.terminal_lines(comparison))
    assert "dropped by blind</span><br>3 of 3, known" in page
    assert "No setting, version or prompt differs." in page


def hostile(tmp_path: Path) -> RunsComparison:
    given: Any = {"skill": EVIL, "form": EVIL, "drop": None}
    one = write_run(
        tmp_path / EVIL.replace("/", "_"), [ask(EVIL, EVIL, **given), ask("x", EVIL)],
        config={EVIL: EVIL}, versions={EVIL: EVIL}, counts={EVIL: 1}, recipe=EVIL,
        llm={"by_model": {EVIL: {}}}, fact_funnel={"missing": [EVIL]},
        without_questions={"w" + EVIL: EVIL},
    )  # fmt: skip
    other = write_run(tmp_path / "b", [ask("x", EVIL, drop=f"{EVIL}: {EVIL}")])
    return read_runs([one, other])


def test_texts_are_escaped_on_the_page_and_in_the_terminal(tmp_path: Path) -> None:
    comparison = hostile(tmp_path)
    page = show.render(comparison, environment())
    assert page.count("&lt;script&gt;") > 12
    assert "<script" not in page
    assert "default-src 'none'" in page
    assert not re.findall(r'(?:src|href)="', page)
    wild = read_two(tmp_path / "wild", [ask("x", skill="\x1b[31mred")], [])
    console = Console(width=200)
    with console.capture() as said:
        console.print(show.terminal_table(wild))
    assert "\x1b[31mred" not in said.get()
    assert "\\x1b[31mred" in said.get()


def test_a_page_names_how_much_it_leaves_out(tmp_path: Path) -> None:
    many = [ask(f"q{n}", f"v{n}") for n in range(show.MAX_QUESTIONS + 5)]
    page = show.render(read_two(tmp_path, many, [ask("q0", "v0", drop="blind: x")]), environment())
    assert f"Kept only in A: {len(many)}" in page
    assert "5 more are in questions.csv." in page
    assert f"{len(many) - show.MAX_TALLIES} more are in runs.csv." in page
    assert f"What of q{show.MAX_QUESTIONS - 1}?" in page
    assert f"What of q{show.MAX_QUESTIONS}?" not in page


def test_three_runs_say_what_several_kept_and_an_empty_run_has_zeros(tmp_path: Path) -> None:
    folders = [
        write_run(tmp_path / "a", [ask("x"), ask("y")]),
        write_run(tmp_path / "b", [ask("x")]),
        write_run(tmp_path / "c", [], without_questions={"v": "none was made"}),
    ]
    comparison = read_runs(folders)
    assert show.change_lines(comparison)[1:] == [
        "kept only in A: 1; in B: 1 not written; in C: 1 not written",
        "kept only in B: 0",
        "kept only in C: 0",
        "kept in several runs, not in all: 1",
        "kept in no run: 0",
    ]
    rows = {(row.group, row.name): row.values for row in show.figure_rows(comparison)}
    assert rows["questions", "kept"] == ["2", "1", "0"]
    assert rows["cost", "USD, a kept question"] == ["–"] * 3
    page = show.render(comparison, environment())
    assert "Kept in several runs, not in all: 1" in page
    assert page.count("none was made") == 2
