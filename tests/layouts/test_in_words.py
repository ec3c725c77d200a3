"""Open-ended questions in exported tasks have the scores that `evaluate` gives them."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import mustsee
from actors.judge.baselines import Lexical
from mustsee.evaluate import answers
from mustsee.evaluate.score import OpenEndedScore, score
from mustsee.judge.judge import JudgeConfig, JudgeItem
from mustsee.layouts import tasks
from mustsee.records import OPEN, Question, Verdict
from tests.layouts.test_lmms_eval import INSIDE, loaded, made, outside
from tests.support.judge_app import KEY, make_app
from tests.support.serving import served

REPLIES = {
    "q5": "A red barn.",
    "q6": "<think>the barn? no</think>two white dogs",
    "q7": "I cannot say",
}


def questions() -> list[Question]:
    """Return multiple-choice questions, three open-ended ones (the second with a variant), and a
    twin.
    """
    known = {"q5": "a red barn", "q6": "dogs", "q7": "the tide"}
    some = [
        replace(q, options=(), answer_index=None, answer=known[q.question_id],
                variants=("two white dogs",) if q.question_id == "q6" else ())
        if q.question_id in known else q
        for q in made()
    ]  # fmt: skip
    twin = replace(some[0], question_id="t0", options=(), answer_index=None, sibling_of="q0",
                   relation=OPEN)  # fmt: skip
    return [*some, twin]


@pytest.fixture
def judge() -> Iterator[str]:
    with served(make_app()) as address:
        yield address


def ours(folder: Path) -> OpenEndedScore:
    """Return the score of `ray_jobs.evaluate` for the replies, without the twin, by that judge."""
    scores = JudgeConfig(engine=Lexical(), uncalibrated=True).open()
    graded: list[Question] = []
    for question in (q for q in mustsee.read(folder) if q.question_id in REPLIES):
        reply = REPLIES[question.question_id].rpartition("</think>")[2]
        item = JudgeItem(
            question=question.question, candidate=reply, references=question.references
        )
        (result,) = scores.score([item])
        grade = Verdict(filter=answers.GRADE, model="judge", correct=result.equivalent,
                        detail=json.dumps({"of": "m", "rotation": 0}))  # fmt: skip
        answer = answers.verdict_on_reply(question, reply, model="m")
        graded.append(replace(question, verdicts=(answer, grade)))
    (result,) = score(graded, [])
    assert result.written is not None
    assert result.written.judged is not None
    assert 0 < result.written.judged.value < 1
    return result.written


def f1(score: OpenEndedScore) -> float:
    mean = score.metrics["token_f1"]
    assert mean is not None
    return mean.value


def test_the_lmms_eval_task_scores_open_answers_as_evaluate_does(
    tmp_path: Path, judge: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks.write_lmms_eval(questions(), tmp_path, name="our_task")
    task = loaded(tmp_path, "our_task_open")
    rows = pq.read_table(task["dataset_kwargs"]["data_files"]["test"]).to_pylist()
    assert [r["question_id"] for r in rows if r["options"]] == ["q0", "q1", "q2", "q3", "q4", "q8"]
    rows = [r for r in rows if not r["options"]]
    assert [r["question_id"] for r in rows] == ["q5", "q6", "q7", "t0"]
    assert "A." not in task["doc_to_text"](rows[0])
    expected = ours(tmp_path)
    all_replies = {**REPLIES, "t0": "C picks it up"}

    def means(rows: list[dict[str, Any]]) -> Mapping[str, float]:
        made = [task["process_results"](r, [all_replies[r["question_id"]]]) for r in rows]
        return {m["metric"]: m["aggregation"]([row[m["metric"]] for row in made])
                for m in task["metric_list"] if m["metric"] in made[0]}  # fmt: skip

    monkeypatch.delenv("MUSTSEE_JUDGE", raising=False)
    assert means(rows[:3]) == {"token_f1": pytest.approx(f1(expected))}
    monkeypatch.setenv("MUSTSEE_JUDGE", judge)
    with pytest.raises(RuntimeError, match="MUSTSEE_JUDGE_KEY is one of its keys"):
        means(rows)
    monkeypatch.setenv("MUSTSEE_JUDGE_KEY", KEY)
    assert expected.judged is not None
    assert means(rows[:3])["judged"] == pytest.approx(expected.judged.value)
    assert means(rows[3:]) == {"judged": 1.0, "token_f1": 1.0}


@pytest.mark.slow
def test_lmms_eval_itself_scores_open_answers_as_evaluate_does(tmp_path: Path, judge: str) -> None:
    if importlib.util.find_spec("lmms_eval") is None:
        pytest.skip("lmms-eval is not installed")
    expected = exported(tmp_path, tasks.write_lmms_eval)
    results = outside(INSIDE, tmp_path / "task", tmp_path, REPLIES, "our_task_open",
                    MUSTSEE_JUDGE=judge, MUSTSEE_JUDGE_KEY=KEY)  # fmt: skip
    assert expected.judged is not None
    assert results["judged,none"] == pytest.approx(expected.judged.value)
    assert results["token_f1,none"] == pytest.approx(f1(expected))
    assert results["judged_stderr_clustered,none"] > 0


def exported(tmp_path: Path, write: Any) -> OpenEndedScore:
    """Write the task without the twin, and the videos; return the score of `evaluate`."""
    write(questions()[:-1], tmp_path / "task", name="our_task")
    (tmp_path / "videos").mkdir()
    for number in range(5):
        (tmp_path / "videos" / f"v{number}.mp4").touch()
    return ours(tmp_path / "task")


INSPECT = """
import json, sys
from inspect_ai import eval
from inspect_ai.model import ModelOutput, ModelUsage, get_model
folder, replies = sys.argv[1], json.load(open(sys.argv[2]))
sys.path.insert(0, folder)
import our_task_open
def answer(input, *_):
    text = input[0].content[-1].text
    (name,) = [n for n, asked in questions.items() if text.startswith(asked)]
    output = ModelOutput.from_content("mockllm/model", replies[name])
    output.usage = ModelUsage()  # else tokens are counted by a table from the network
    return output
rows = [json.loads(l) for l in open(folder + "/our_task_open.jsonl")]
questions = {r["question_id"]: r["question"] for r in rows}
model = get_model("mockllm/model", custom_outputs=answer)
(log,) = eval(our_task_open.our_task_open(), model=model, display="none", log_dir=folder + "/logs")
assert log.status == "success", log.error
assert "mustsee" not in sys.modules
print(json.dumps({s.name: {k: m.value for k, m in s.metrics.items()} for s in log.results.scores}))
"""


@pytest.mark.slow
def test_inspect_itself_scores_open_answers_as_evaluate_does(tmp_path: Path, judge: str) -> None:
    if importlib.util.find_spec("inspect_ai") is None:
        pytest.skip("inspect_ai is not installed")
    expected = exported(tmp_path, tasks.write_inspect)
    results = outside(INSPECT, tmp_path / "task", tmp_path, REPLIES,
                    MUSTSEE_JUDGE=judge, MUSTSEE_JUDGE_KEY=KEY)  # fmt: skip
    assert expected.judged is not None
    assert results["judged"]["mean"] == pytest.approx(expected.judged.value)
    assert results["f1"]["mean"] == pytest.approx(f1(expected))
    assert results["judged"]["stderr"] > 0
