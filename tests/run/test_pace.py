"""Hours of film by hour of the clock, of a core, and of each stage's work."""

from typing import Any

import pytest

from mustsee.run.ledger import Ledger
from mustsee.run.record import QuestionCounts, RunRecord, StageCounts, Step


def record(stages: dict[str, StageCounts], **more: Any) -> RunRecord:
    return RunRecord(
        recipe="neptune", config={}, git="", versions={}, prompts={},
        funnel=[Step(stage="read", entered=10, left=10, dropped={}, problems=0)],
        questions=QuestionCounts(), heard_by={}, stages=stages, llm=Ledger(), counts={},
        film_seconds=36_000.0, cores=2.0, total_seconds=7200.0, **more,
    )  # fmt: skip


def test_ten_hours_in_two_on_two_cores() -> None:
    stages = {
        "look": StageCounts(computed=10, seconds=3600.0),
        "hear": StageCounts(computed=10, seconds=9000.0),
    }
    pace = record(stages).pace()
    assert pace["film_hours"] == pytest.approx(10.0)
    assert pace["per_hour"] == pytest.approx(5.0)
    assert pace["per_core_hour"] == pytest.approx(2.5)
    assert pace["stages"] == {"look": 10.0, "hear": 4.0}


def test_what_the_store_had_is_not_worked_on() -> None:
    half = {"look": StageCounts(computed=5, reused=5, seconds=3600.0)}
    assert record(half).pace()["film_hours"] == pytest.approx(5.0)
    assert record({"look": StageCounts(reused=10)}).pace() == {}
    assert record({}).plain()["pace"] == {}
