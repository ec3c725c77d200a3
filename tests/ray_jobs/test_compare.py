"""The comparison as a command: without Ray, with the numbers of the evaluations that it reads."""

from __future__ import annotations

import base64
import csv
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from mustsee.errors import UserError
from mustsee.evaluate.answers import verdict_on_failure, with_answers
from mustsee.layouts import ours
from mustsee.recipes.neptune import layout as neptune
from mustsee.records import Question, Verdict
from ray_jobs.cli.launch import CONF, build, compose
from tests.evaluate.test_score import ask, right, wrong
from tests.ray_jobs.runtime.test_compared_runs import write_evaluation
from tests.ray_jobs.runtime.test_made_runs import ask as made
from tests.ray_jobs.runtime.test_made_runs import write_run
from tests.support.evaluation import questions


def run(job: str, **overrides: object) -> int:
    return build(compose(job, [f"{k}={v}" for k, v in overrides.items()]))()


def scores(out: Path) -> dict[tuple[str, str], float]:
    with (out / "scores.csv").open(newline="") as file:
        return {(r["row"], r["column"]): float(r["score"]) for r in csv.DictReader(file)}


@pytest.mark.slow  # It runs two evaluations.
def test_evaluations_become_a_page_with_their_numbers(tmp_path: Path) -> None:
    release, board = tmp_path / "neptune_full.json", tmp_path / "board"
    neptune.write(questions(), release)
    for answer in ("random", "longest"):
        guess = {"answer": "guess", "answer.by": answer}
        assert run("evaluate", questions=release, out=board / answer, **guess) == 0
    out = tmp_path / "compared"
    assert run("compare", evaluations=board, out=out) == 0
    found = scores(out)
    for answer in ("random", "longest"):
        (result,) = json.loads((board / answer / "results.json").read_text())["results"]
        assert found[f"guess {answer}", "all questions"] == result["weighted"]["value"]
        for kind, group in result["types"].items():
            assert found[f"guess {answer}", kind] == group["accuracy"]["value"]
    assert found["random", "all questions"] == pytest.approx(0.2)
    record = json.loads((out / "run.json").read_text())
    assert record["recipe"] == "compare"
    assert len(record["read"]) == 2
    page = (out / "report" / "index.html").read_text()
    assert "guess longest" in page
    assert run("compare", evaluations=board, out=out) == 0
    with pytest.raises(UserError, match="holds the tables of evaluate"):
        run("compare", evaluations=board, out=board / "random")


def test_no_ray_is_loaded() -> None:
    code = "import ray_jobs.compare, sys; print({'ray', 'jax', 'torch', 'cv2'} & {*sys.modules})"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=CONF.parent, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "set()"


def test_each_benchmark_of_a_folder_has_its_table_and_a_list_is_of_one(tmp_path: Path) -> None:
    one = write_evaluation(tmp_path / "board" / "one", [right(ask(0), "m")], "first")
    other = write_evaluation(tmp_path / "board" / "two", [right(ask(0, "Else"), "m")], "second")
    third = write_evaluation(tmp_path / "board" / "x", [right(ask(9), "n")], "third")
    out = tmp_path / "out"
    assert run("compare", evaluations=tmp_path / "board", out=out) == 0
    record = json.loads((out / "compare.json").read_text())
    assert [table["dataset"] for table in record["tables"]] == ["first", "third"]
    page = (out / "report" / "index.html").read_text()
    assert page.count('class="board"') == 2
    assert "has other labels of 1 questions" in page
    with pytest.raises(UserError, match="evaluate different questions"):
        run("compare", evaluations=f"[{one},{third}]", out=out)
    assert run("compare", evaluations=f"[{one},{other}]", out=out) == 0
    assert not list(out.glob("pictures/*"))


def test_changed_questions_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    write_evaluation(tmp_path / "board" / "a", [right(ask(0), "m")])
    write_evaluation(tmp_path / "board" / "b", [right(ask(0, question="Else?"), "n")])
    with pytest.raises(UserError, match=r"different versions of 1 of 1 questions.*text in q0"):
        run("compare", evaluations=tmp_path / "board", out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_what_is_not_compared_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    board, base = tmp_path / "board", [ask(3 * i) for i in range(4)]
    write_evaluation(board / "a", [right(q, "a") for q in base])
    write_evaluation(board / "b", [wrong(q, "b") for q in base[:3]])
    write_evaluation(board / "torn", base)
    (board / "torn" / "results.json").write_text("{")
    out = tmp_path / "out"
    assert run("compare", evaluations=board, out=out) == 0
    said = capsys.readouterr()
    assert "1 of 4 are left out" in said.out
    assert "b: 1 without a score (not in its evaluation, or dropped there): q9" in said.out
    assert "torn is not in any table" in said.err
    page = (out / "report" / "index.html").read_text()
    for part in ("torn", "results.json cannot be read", "q9"):
        assert part in page


def test_evaluations_without_a_score_are_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    failed = with_answers(ask(0), [verdict_on_failure("down", model="f")])
    keyless = right(ask(3, answer_index=None), "m")
    write_evaluation(tmp_path / "board" / "failed", [failed], "first")
    with pytest.raises(UserError, match="no model has a score"):
        run("compare", evaluations=tmp_path / "board", out=tmp_path / "out")
    write_evaluation(tmp_path / "board" / "good", [right(ask(9), "m"), keyless], "second")
    assert run("compare", evaluations=tmp_path / "board", out=tmp_path / "out") == 0
    said = capsys.readouterr()
    assert "failed is not in any table: no model has a score" in said.err
    assert "1 questions have no public answer" in said.out
    assert "no model has a score" in (tmp_path / "out" / "report" / "index.html").read_text()


def voted(question: Question, *picks: int) -> Question:
    votes = [
        Verdict(filter="people_human_benchmark", model=f"rater:{n}", detail="unlimited, 3 s",
                reply=json.dumps({"answer": pick}), correct=pick == question.answer_index)
        for n, pick in enumerate(picks)
    ]  # fmt: skip
    return replace(question, verdicts=tuple(votes))


def test_people_have_a_row_and_their_corrections_do_not_count(tmp_path: Path) -> None:
    base = [ask(3 * i) for i in range(4)]
    write_evaluation(tmp_path / "a", [right(q, "a") for q in base])
    rated = [voted(base[0], 0, 0, 1), voted(base[1], 0), voted(replace(base[2], question="!"), 0)]
    ours.write(rated, tmp_path / "rated")
    out = tmp_path / "out"
    given = {"evaluations": f"[{tmp_path}/a]", "out": out}
    assert run("compare", **given, rated=tmp_path / "rated") == 0
    assert scores(out)["human benchmark, unlimited", "all questions"] == pytest.approx(5 / 6)
    page = (out / "report" / "index.html").read_text()
    assert "people: human benchmark, unlimited" in page
    assert "1 questions of" in page
    ours.write(base, tmp_path / "unrated")
    with pytest.raises(UserError, match="has no person's answer"):
        run("compare", **given, rated=f"[{tmp_path}/unrated]")
    with pytest.raises(UserError, match="rated='/nowhere'"):
        run("compare", **given, rated="/nowhere")


def test_a_model_shown_several_numbers_of_frames_has_its_curve(tmp_path: Path) -> None:
    for frames in (4, 8):
        some = [right(ask(3 * i), f"m {frames} frames") for i in range(6)]
        write_evaluation(tmp_path / "board" / str(frames), some, frames=frames)
    assert run("compare", evaluations=tmp_path / "board", out=tmp_path / "out") == 0
    assert [p.name for p in (tmp_path / "out" / "pictures").iterdir()] == ["frames-0.png"]
    assert "data:image/png" in (tmp_path / "out" / "report" / "index.html").read_text()


def test_each_benchmark_has_a_curve_over_frames_of_its_own(tmp_path: Path) -> None:
    """Neptune's Fig. 7: one model on several benchmarks, by its number of frames."""
    curves = {"first": {4: 1, 8: 5}, "second": {4: 6, 8: 2}}  # right ones of 6
    for n, (benchmark, curve) in enumerate(curves.items()):
        for frames, count in curve.items():
            asked = [ask(100 * n + 3 * i) for i in range(6)]
            some = [(right if i < count else wrong)(q, f"m {frames} frames")
                    for i, q in enumerate(asked)]  # fmt: skip
            write_evaluation(tmp_path / "board" / f"{n}-{frames}", some, benchmark, frames=frames)
    out = tmp_path / "out"
    assert run("compare", evaluations=tmp_path / "board", out=out) == 0
    tables = json.loads((out / "compare.json").read_text())["tables"]
    found = {
        t["dataset"]: {row["frames"]: row["estimates"][0]["value"] for row in t["rows"]}
        for t in tables
    }
    assert found == {
        name: {frames: pytest.approx(count / 6) for frames, count in curve.items()}
        for name, curve in curves.items()
    }
    charts = [(out / "pictures" / f"frames-{n}.png").read_bytes() for n in range(2)]
    assert charts[0] != charts[1]
    assert len(list((out / "pictures").iterdir())) == 2
    page = (out / "report" / "index.html").read_text()
    _, first, second = page.split("<h2>")[:3]
    assert (first[:5], second[:6]) == ("first", "second")
    for section, own, other in ((first, *charts), (second, *charts[::-1])):
        assert base64.b64encode(own).decode() in section
        assert base64.b64encode(other).decode() not in section


def test_a_title_heads_the_page_the_terminal_and_the_captions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_evaluation(tmp_path / "board" / "a", [right(ask(0), "m")], "set_one.csv")
    write_evaluation(tmp_path / "board" / "b", [right(ask(9), "m")], "second")
    out, given = tmp_path / "out", {"evaluations": tmp_path / "board"}
    assert run("compare", **given, out=out) == 0
    plain = capsys.readouterr().out
    page, tex = (out / "report" / "index.html").read_text(), (out / "tables.tex").read_text()
    assert "<h1>2 models on 2 benchmarks</h1>" in page
    assert "\\caption" not in tex
    assert run("compare", **given, out=out, title='"Models & <films>,  50 %"') == 0
    assert capsys.readouterr().out == f"Models & <films>, 50 %\n\n{plain}"
    page, titled = (out / "report" / "index.html").read_text(), (out / "tables.tex").read_text()
    assert "<title>Models &amp; &lt;films&gt;, 50 %</title>" in page
    assert "<h1>Models &amp; &lt;films&gt;, 50 %</h1>" in page
    assert "2 models on 2 benchmarks" in page
    caption = r"\caption{Models \& \textless{}films\textgreater{}, 50 \%. set\_one.csv: multiple"
    assert caption in titled
    assert [titled.count(part) for part in (r"\begin{table}", r"\end{table}")] == [2, 2]
    assert all(line in titled.splitlines() for line in tex.splitlines())
    assert json.loads((out / "compare.json").read_text())["title"] == "Models & <films>, 50 %"
    record = json.loads((out / "run.json").read_text())
    assert record["config"]["title"] == "Models & <films>, 50 %"


def test_runs_are_compared_by_the_same_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = write_run(tmp_path / "a", [made("x"), made("y")])
    other = write_run(tmp_path / "b", [made("x"), made("y", drop="sight: two fit")])
    out = tmp_path / "out"
    assert run("compare", runs=f"[{one},{other}]", out=out, title="'Two prompts'") == 0
    said = capsys.readouterr().out
    assert said.startswith("Two prompts\n")
    assert "<h1>Two prompts</h1>" in (out / "report" / "index.html").read_text()
    assert "kept only in A: 1; in B: 1 dropped by sight" in said
    assert "two fit" in (out / "report" / "index.html").read_text()
    record = json.loads((out / "run.json").read_text())
    assert record["recipe"] == "compare_runs"
    assert record["config"] == {"runs": [one, other], "title": "Two prompts"}
    assert {p.name for p in out.iterdir()} == {"report", "runs.csv", "questions.csv", "run.json",
                                               "compare.json"}  # fmt: skip


def test_either_evaluations_or_runs_are_given(tmp_path: Path) -> None:
    one, other = (write_run(tmp_path / name, [made("x")]) for name in "ab")
    given, out = f"[{one},{other}]", tmp_path / "out"
    for wrong_keys, message in (
        ({}, "needs evaluations= or runs="),
        ({"runs": given, "evaluations": one}, "give one of the two"),
        ({"runs": given, "rated": one}, "give one of the two"),
        ({"runs": given, "seed": 1}, "give one of the two"),
        ({"runs": one}, "give the out= of two runs"),
        ({"runs": given, "out": one, "overwrite": "true"}, "is one of runs="),
        ({"runs": given, "out": one}, "holds the tables of make"),
    ):
        with pytest.raises(UserError, match=message):
            run("compare", **{"out": out, **wrong_keys})
    assert not out.exists()
    write_evaluation(tmp_path / "board" / "a", [right(ask(0), "m")])
    assert run("compare", evaluations=tmp_path / "board", out=out) == 0
    with pytest.raises(UserError, match="holds the tables of compare"):
        run("compare", runs=given, out=out)
