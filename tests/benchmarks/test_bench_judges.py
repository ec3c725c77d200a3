"""The benchmark of judges measures all configured judges on the same labels."""

import json
from pathlib import Path

import pytest

from actors.judge.baselines import Lexical
from benchmarks.bench import compose_bench
from benchmarks.judges import COLUMNS, JudgeTable
from mustsee.errors import UserError
from mustsee.judge import calibrate
from mustsee.judge.judge import JudgeConfig
from ray_jobs.cli.build import build


def evouna(path: Path, questions: int = 24) -> Path:
    """Pairs with short right answers, wrong answers, and long right answers."""
    rows = [
        {
            "question": f"who opened door {n}",
            "golden_answer": f"person number {n}",
            "improper": False,
            "answer_fid": f"number {n}" if n % 3 else f"somebody {n + 1}",
            "judge_fid": bool(n % 3),
            "answer_gpt4": f"It was person number {n} who opened the door on that cold morning.",
            "judge_gpt4": True,
        }
        for n in range(questions)
    ]
    path.write_text(json.dumps(rows))
    return path


def test_each_judge_has_a_row_for_each_label_set(tmp_path: Path) -> None:
    judges = {m: JudgeConfig(engine=Lexical(measure=m), uncalibrated=True)
              for m in ("token_recall", "rouge_l")}  # fmt: skip
    bench = JudgeTable(
        judges=judges, evouna=[str(evouna(tmp_path / "NQ.json"))], held_out=0.5, resamples=200
    )
    figures = bench()
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in figures.rows]
    assert [(r["set"], r["judge"], r["n"]) for r in rows] == [
        ("held out", "token_recall", 24),
        ("held out", "rouge_l", 24),
        ("held out: long reference", "token_recall", 12),
        ("held out: long reference", "rouge_l", 12),
    ]
    assert str(rows[0]["AUC"]).startswith("1.000 [1.000")
    assert float(str(rows[2]["recall"]).split()[0]) == 0.0  # Few words in common.
    for row in rows:
        value, low, high = (
            float(x) for x in str(row["accuracy"]).replace("[", "").replace(",", "")[:-1].split()
        )
        assert low <= value <= high
        assert row["not judged"] == 0
    assert bench().rows[0][:8] == figures.rows[0][:8]


def test_published_verdicts_are_listed_for_nq301(tmp_path: Path) -> None:
    head = "Question\tModel answer\tAcceptable?"
    lines = [(f"q {n}", f"a {n}", "Yes" if n % 2 else "No") for n in range(8)]
    human = [head, *("\t".join(row) for row in lines)]
    probs = ['[["a", 0.9]]' if n % 2 else '[["a", 0.2]]' for n in range(8)]
    bem = [f"{head}\tGold answers\tBEM probs per gold answer"]
    bem += ["\t".join((*row, row[1], p)) for row, p in zip(lines, probs, strict=True)]
    (tmp_path / "NQ301_human.tsv").write_text("\n".join(human))
    (tmp_path / "NQ301_BEM.tsv").write_text("\n".join(bem).replace('"', '""').replace('[[', '"[[').replace(']]', ']]"'))  # fmt: skip # noqa: E501
    judges = {"recall": JudgeConfig(engine=Lexical(), uncalibrated=True)}
    rows = JudgeTable(judges=judges, nq301=str(tmp_path), resamples=50)().rows
    assert [row[1] for row in rows] == ["recall", "BEM (published)"]
    assert str(rows[1][3]).startswith("1.000")
    assert rows[1][-1] is None
    assert calibrate.auc([True, False], [0.9, 0.2]) == 1


def test_the_command_accepts_further_judges_and_needs_labels() -> None:
    job = build(compose_bench(["what=judges", "+judge@what.judges.recall=lexical"]))
    assert set(job.what.judges) == {"mini", "token_recall", "recall"}  # type: ignore[attr-defined]
    with pytest.raises(UserError, match="no labels"):
        JudgeTable(judges={})()
