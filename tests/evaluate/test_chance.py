"""The chance level is shown beside accuracy, for the same questions."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from mustsee.evaluate import score, score_show
from mustsee.questions.chance import chance_level
from mustsee.records import Question
from tests.evaluate.test_score import ask, right, say, wrong

TWO, FIVE = ("yes", "no"), ("a b", "c d", "e f", "g h", "i j")


def mixed(model: str = "m") -> list[Question]:
    """Two questions of three options, one of two and one of five, of two types."""
    some = [ask(0), ask(3), ask(6, "Goal Reasoning", options=TWO),
            ask(9, "Goal Reasoning", options=FIVE)]  # fmt: skip
    return [right(q, model) if n % 2 else wrong(replace(q, answer_index=0), model)
            for n, q in enumerate(some)]  # fmt: skip


def test_each_group_has_the_chance_of_its_own_questions(tmp_path: Path) -> None:
    (found,) = score.score(mixed())
    assert found.types["Counting"].chance == pytest.approx(1 / 3)
    assert found.types["Goal Reasoning"].chance == pytest.approx((1 / 2 + 1 / 5) / 2)
    assert found.chance == pytest.approx((2 / 3 + 1 / 2 + 1 / 5) / 4)
    assert found.macro_chance == pytest.approx((1 / 3 + 7 / 20) / 2)
    score_show.write(tmp_path, [found], mixed())
    (written,) = json.loads((tmp_path / "results.json").read_text())["results"]
    assert written["chance"] == found.chance
    assert written["types"]["Counting"]["chance"] == pytest.approx(1 / 3)


def test_only_answered_questions_count_for_chance() -> None:
    unanswered = ask(12, options=TWO, answer_index=0)  # its call failed, or its video
    (found,) = score.score([*mixed(), unanswered])
    assert found.asked == 5
    assert found.chance == pytest.approx((2 / 3 + 1 / 2 + 1 / 5) / 4)


def test_open_ended_questions_have_no_chance_level() -> None:
    asked = ask(0, options=(), answer_index=None, answer="red")
    assert chance_level([asked]) is None
    (found,) = score.score([say(asked, "red")])
    assert (found.chance, found.macro_chance) == (None, None)
    assert "chance" not in score_show.headline([found])[0]


def print_table(*found: score.EvaluationResults) -> str:
    console = Console(width=80)
    with console.capture() as caught:
        heads = score_show.labels(found)
        console.print(score_show.table(found, heads))
        for line in score_show.legend(heads):
            console.print(line)
    return caught.get()


def test_the_table_and_the_last_line_show_chance() -> None:
    (found,) = score.score(mixed())
    (row,) = (line for line in print_table(found).splitlines() if line.startswith(" Counting"))
    assert row.split()[:3] == ["Counting", "2", "33.3"]
    assert "questions right (chance 34.2 %)" in score_show.headline([found])[0]


def test_long_model_names_are_numbered_and_listed_below() -> None:
    long = "openai gpt-4.1-mini at http://127.0.0.1:9800/v1 4 frames"
    (found,) = score.score(mixed(long))
    lines = print_table(found).splitlines()
    assert lines[1].split() == ["n", "chance", "model", "1"]
    assert lines[-1] == f"model 1: {long}"
    assert "model" not in print_table(*score.score(mixed("short")))
