"""Hours of video per hour, per core hour and per hour of a stage's work; the money, the ceiling and
the idle time of each stage.
"""

from typing import Any

import pytest

from mustsee.calls.call_log import Spent
from mustsee.calls.usage import CallOutcome, UsageTotals
from mustsee.run.pace import EndpointLimits, StageSeconds, stage_state
from mustsee.run.record import FunnelStep, QuestionCounts, RunRecord, StageCounts


def record(stages: dict[str, StageCounts], **more: Any) -> RunRecord:
    given: dict[str, Any] = {"questions": QuestionCounts(), "llm": UsageTotals(), **more}
    return RunRecord(
        recipe="neptune", config={}, git="", versions={}, prompts={},
        funnel=[FunnelStep(stage="read", entered=10, left=10, dropped={}, problems=0)],
        transcribed_by={}, stages=stages, counts={},
        video_seconds=36_000.0, cores=2.0, total_seconds=7200.0, **given,
    )  # fmt: skip


def watched(places: int, **seconds: float) -> StageSeconds:
    stage = StageSeconds()
    for name, value in seconds.items():
        stage.see(name, value, places)  # pyright: ignore[reportArgumentType]
    return stage


def usage_of(
    stage: str, calls: int, *, seconds: float, held: float = 0.0, model: str = "m"
) -> UsageTotals:
    usage = UsageTotals()
    for _ in range(calls):
        usage.add(
            CallOutcome(
                outcome="done", model=model, prompt="p", stage=stage, usd=0.01, tokens_in=900,
                tokens_out=100, seconds=seconds, held=held,
            )
        )  # fmt: skip
    return usage


LOOK_AND_HEAR = {
    "look": StageCounts(computed=10, seconds=3600.0, residence=3600.0),
    "hear": StageCounts(computed=10, seconds=9000.0, residence=9000.0),
}


def test_pace_of_ten_hours_of_video_in_two_hours_on_two_cores() -> None:
    pace = record(LOOK_AND_HEAR).pace()
    assert pace["video_hours"] == pytest.approx(10.0)
    assert pace["per_hour"] == pytest.approx(5.0)
    assert pace["per_core_hour"] == pytest.approx(2.5)
    assert [each["per_hour_of_work"] for each in pace["stages"].values()] == [10.0, 4.0]


def test_reused_rows_do_not_count_as_work() -> None:
    half = {"look": StageCounts(computed=5, reused=5, seconds=3600.0, residence=3600.0)}
    assert record(half).pace()["video_hours"] == pytest.approx(5.0)
    assert record({"look": StageCounts(reused=10)}).pace() == {}
    assert record({}).plain()["pace"] == {}


def test_the_ceiling_of_a_stage_is_its_pace_with_all_places_busy() -> None:
    seconds_of = {
        "look": watched(1, starting=400.0, full=3600.0, done=3200.0),
        "hear": watched(2, starting=400.0, rows=2000.0, full=4800.0),
    }
    look, hear = record(LOOK_AND_HEAR, watched=seconds_of).pace()["stages"].values()
    assert (look["busy"], hear["busy"]) == (0.5, 0.625)  # 3600 of 7200 s, 9000 of 2 * 7200
    assert (look["per_hour"], look["ceiling"]) == (5.0, 10.0)
    assert (hear["per_hour"], hear["ceiling"]) == (5.0, 8.0)
    assert look["idle"] == {"done": 0.444, "starting": 0.056}
    assert hear["why"] == "other stages wait for it"


@pytest.mark.parametrize(
    ("seconds", "why"),
    [
        ({"starting": 5.0, "full": 1.0}, "its workers were starting"),
        ({"rows": 5.0, "full": 1.0}, "waits for rows of look"),
        ({"few": 5.0, "full": 1.0}, "fewer rows than its workers could do at once"),
        ({"done": 5.0, "full": 1.0}, "done before the other stages"),
    ],
)
def test_the_reason_of_idle_time_is_its_longest_cause(seconds: dict[str, float], why: str) -> None:
    seconds_of = {"hear": watched(1, **seconds)}
    assert record(LOOK_AND_HEAR, watched=seconds_of).pace()["stages"]["hear"]["why"] == why


@pytest.mark.parametrize(
    ("held", "why"),
    [
        (1.0, "waits for the endpoint's replies"),
        (30.0, "its calls wait for the endpoint's limits"),
    ],
)
def test_a_stage_with_calls_waits_for_replies_or_limits(held: float, why: str) -> None:
    stages = {"ask": StageCounts(computed=10, seconds=3600.0, residence=3600.0)}
    llm = usage_of("ask", 300, seconds=10.0, held=held)
    pace = record(stages, llm=llm, watched={"ask": watched(1, full=7200.0)}).pace()
    assert pace["stages"]["ask"]["why"] == why


def test_a_stage_whose_calls_rules_answer_waits_for_no_endpoint() -> None:
    stages = {"ask": StageCounts(computed=10, seconds=3600.0, residence=3600.0)}
    llm = usage_of("ask", 300, seconds=10.0, model="offline 0123")
    pace = record(stages, llm=llm, watched={"ask": watched(1, full=7200.0)}).pace()
    assert pace["stages"]["ask"]["why"] == "other stages wait for it"
    assert llm.total.seconds == 3000.0


def test_the_limits_of_an_endpoint_lower_the_ceiling() -> None:
    """600 calls of 1,000 tokens take 10 minutes at one call per second, and 60 minutes at 10,000
    tokens per minute.
    """
    stages = {"ask": StageCounts(computed=10, seconds=1800.0, residence=1800.0)}
    more: dict[str, Any] = {
        "llm": usage_of("ask", 600, seconds=3.0), "watched": {"ask": watched(1, full=7200.0)}
    }  # fmt: skip
    free = record(stages, **more).pace()["stages"]["ask"]
    bound = record(stages, allowed={"ask": EndpointLimits(calls=60, tokens=10_000)}, **more)
    assert free["ceiling"] == 20.0
    assert bound.pace()["stages"]["ask"]["ceiling"] == 10.0


def test_money_per_kept_question_covers_all_runs() -> None:
    spent = Spent(runs=2, by_stage={"ask": 3.0, "vet": 1.0, "": 0.5})
    kept = QuestionCounts(made=20, kept=10)
    pace = record({"ask": StageCounts(reused=10)}, spent=spent, questions=kept).pace()
    assert {name: each["usd"] for name, each in pace["stages"].items()} == {
        "ask": 3.0, "vet": 1.0, "job": 0.5
    }  # fmt: skip
    assert pace["stages"]["ask"]["usd_per_kept_question"] == 0.3
    assert pace["stages"]["ask"]["per_hour_of_work"] is None


def test_the_state_of_a_stage_follows_from_row_counts() -> None:
    assert stage_state(started=0, waiting=5, left=5, places=0) == "starting"
    assert stage_state(started=1, waiting=1, left=5, places=2) == "rows"
    assert stage_state(started=1, waiting=2, left=5, places=2) == "full"
    assert stage_state(started=1, waiting=3, left=3, places=32) == "few"
    assert stage_state(started=1, waiting=0, left=0, places=2) == "done"
