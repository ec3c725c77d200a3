"""A judge that a run serves by itself."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from actors.judge.served import Served
from mustsee.errors import UserError
from mustsee.judge.judge import JudgeConfig
from ray_jobs.cli.launch import build, compose
from ray_jobs.runtime.serve_judges import serve_judges
from tests.support.addresses import free_port

COLOURS = ("red", "blue", "green", "black")


def run(job: str, *overrides: str, **more: object) -> int:
    return build(compose(job, [*overrides, *(f"{k}={v}" for k, v in more.items())]))()


def verdicts(out: Path) -> dict[str, list[object]]:
    return {
        q["question_id"]: [v["correct"] for v in q["verdicts"] if v["filter"] == "grade"]
        for q in pq.read_table(out / "questions.parquet").to_pylist()
    }


@pytest.mark.slow
def test_answers_are_judged_alike_by_a_served_judge_and_in_the_stage(tmp_path: Path) -> None:
    questions, replies = tmp_path / "q.csv", tmp_path / "replies.jsonl"
    with questions.open("w") as table, replies.open("w") as given:
        writer = csv.writer(table)
        writer.writerow(["video", "question", "answer"])
        for n in range(24):
            colour = COLOURS[n % 4]
            writer.writerow([f"v{n % 3}", f"What colour is door number {n}?", f"It is {colour}."])
            reply = (colour, "It is white.", f"The door is {colour}.")[n % 3]
            given.write(json.dumps({"id": f"_{n}", "reply": reply}) + "\n")
    asked = {"questions": questions, "answer": "file", "answer.path": replies}
    served = ("judge=serve", "+judge@judge.engine.start=mini",
              f"judge.engine.url=http://127.0.0.1:{free_port()}")  # fmt: skip
    here, there = tmp_path / "here", tmp_path / "there"
    assert run("evaluate", *served, **asked, out=there, store=tmp_path / "a") == 0
    assert run("evaluate", **asked, judge="mini", out=here, store=tmp_path / "b") == 0
    assert verdicts(there) == verdicts(here)
    assert {v for (v,) in verdicts(there).values()} == {True, False}


def test_only_the_address_of_each_node_itself_can_be_served() -> None:
    judge = JudgeConfig(engine=Served(url="http://0.0.0.0:1", timeout=0.2, start=JudgeConfig(
        engine=Served(), uncalibrated=True)))  # fmt: skip
    with (
        pytest.raises(UserError, match=r"answers at 127\.0\.0\.1 of each node"),
        serve_judges([judge]),
    ):
        pass


def test_parts_that_start_no_judge_start_no_serve() -> None:
    with serve_judges([JudgeConfig(engine=Served(url="http://10.255.255.1:9"))]):
        pass
