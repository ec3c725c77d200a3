"""The summary names filters that drop almost everything, limits, damage, and why a run ended."""

import pytest
from rich.console import Console

from mustsee.calls.call_log import Spent
from mustsee.calls.usage import CallOutcome, UsageTotals
from mustsee.questions.fact_funnel import FactFunnel, RunFunnel
from mustsee.records import Problem, Video
from mustsee.run.pace import StageSeconds
from mustsee.run.record import FilterCounts, FunnelStep, QuestionCounts, RunRecord, StageCounts
from mustsee.run.report import RULES_NOTE
from ray_jobs.cli.launch import _say
from ray_jobs.runtime import outcome
from ray_jobs.runtime.summary import (
    MAX_NAMED_DAMAGED,
    ListedVideo,
    SummaryParts,
    _videos,
    ceilings,
    damaged_files,
    harsh_filters,
    left_out_lines,
    summarise,
)


def lines_on(**filters: FilterCounts) -> list[str]:
    return list(harsh_filters(QuestionCounts(made=20, kept=2, filters=filters)))


def test_a_filter_that_drops_more_than_four_fifths_is_named_with_reason_and_remedy() -> None:
    (line,) = lines_on(
        sight=FilterCounts(asked=20, dropped=17, marked=0, reason="undecidable"),
        blind=FilterCounts(asked=3, dropped=0, marked=1),
    )
    for part in ("sight dropped 17 of the 20", "undecidable", "vet/verifier="):
        assert part in line


@pytest.mark.parametrize(("marked", "lines"), [(16, 0), (17, 1), (20, 1)])
def test_a_filter_is_named_above_four_fifths_of_its_questions(marked: int, lines: int) -> None:
    assert len(lines_on(blind=FilterCounts(asked=20, dropped=0, marked=marked))) == lines


def test_marked_questions_are_reported_as_out_of_the_subset() -> None:
    (line,) = lines_on(blind=FilterCounts(asked=8, dropped=0, marked=8))
    assert line.startswith("blind kept out of the subset 8 of the 8")
    assert "vet.repair.rounds" in line
    (line,) = lines_on(own=FilterCounts(asked=8, dropped=8, marked=0, reason="too red"))
    assert "the settings of own are under vet.filters" in line


def test_a_filter_of_few_questions_is_not_named() -> None:
    assert lines_on(sight=FilterCounts(asked=4, dropped=4, marked=0, reason="x")) == []


def test_a_reported_quota_is_named_as_the_endpoints_own_limit() -> None:
    (line,) = ceilings({"x-ratelimit-limit-tokens=200000": 90.0}, 100.0)
    assert "endpoint's own limit" in line
    assert "x-ratelimit-limit-tokens=200000" in line
    assert "null" not in line


def test_a_configured_limit_is_named_only_if_it_slowed_the_run() -> None:
    (line,) = ceilings({"tokens_per_minute=200000": 90.0, "requests_per_minute=500": 2.0}, 100.0)
    assert line.startswith("calls waited 1:30 for limits.tokens_per_minute=200000")
    assert "llm.limits.tokens_per_minute=null" in line


def test_at_most_a_few_damaged_files_are_named() -> None:
    assert list(damaged_files({}, "runs/a/store")) == []
    (line,) = damaged_files({"look/ab/ab12.1": "empty"}, "runs/a/store")
    assert "look/ab/ab12.1 (empty); the damaged files are in runs/a/store/damaged" in line
    (line,) = damaged_files({f"llm/ab/ab{n}.1": "empty" for n in range(MAX_NAMED_DAMAGED + 3)}, "s")
    assert line.startswith(f"{MAX_NAMED_DAMAGED + 3} files of the store were damaged")
    assert "3 more in run.json" in line


def test_control_characters_of_names_and_messages_are_escaped_in_the_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    hostile = "x\x01\x1b[31m\x9b2J\u202ey\rz"
    videos = [
        Video(video_id=hostile, uri="a.mp4"),
        Video(video_id="b", uri="b.mp4", problem=Problem(stage="s", error="E", message=hostile)),
        Video(video_id="c", uri="c.mp4", drop=hostile),
    ]
    counts = QuestionCounts(made=1, kept=1, filters={}, dropped={hostile: 1}, types={hostile: 1})
    console = Console()
    for shown in (
        *_videos([ListedVideo(video=v, made=0, passed=0) for v in videos], 3, ()),
        *outcome.outcome_lines(counts, None, makes=True),
    ):
        console.print(shown)
    _say(hostile, 2)
    printed = capsys.readouterr()
    assert "\\x1b[31m" in printed.out
    assert not {"\x01", "\x1b", "\x9b", "\u202e", "\r"} & {*printed.out, *printed.err}


def test_of_many_videos_without_questions_the_first_are_listed() -> None:
    counts = QuestionCounts(without={f"v{n}": "no fact could be listed of it" for n in range(100)})
    lines = [str(line) for line in outcome.outcome_lines(counts, None, makes=True)]
    assert len(lines) == 22
    assert "v19" in lines[-2]
    assert "report" in lines[-1]


def record(rows: int, problems: int, **more: object) -> RunRecord:
    usage = UsageTotals()
    usage.add(CallOutcome(outcome="done", model="m", prompt="p", usd=0.0523, stage="ask"))
    left = rows - problems
    whole = {
        "recipe": "neptune", "config": {"budget_usd": 0.05}, "git": "", "versions": {},
        "prompts": {}, "questions": QuestionCounts(), "transcribed_by": {}, "counts": {},
        "funnel": [FunnelStep(stage="ask", entered=rows, left=left, dropped={}, problems=problems)],
        "stages": {"ask": StageCounts(computed=left, problem=problems, seconds=1.0)},
        "llm": usage, "spent": Spent(total=usage.total), "total_seconds": 9.0,
        "video_seconds": 60.0, "watched": {"ask": StageSeconds(seconds={"full": 9.0}, places=9.0)},
    }  # fmt: skip
    return RunRecord(**{**whole, **more})  # pyright: ignore[reportArgumentType]


def parts_with(error: str, message: str, n: int, **more: object) -> SummaryParts:
    problem = Problem(stage="ask", error=error, message=message, attempts=1)
    videos = [
        ListedVideo(video=Video(video_id=f"v{i}", uri="x", problem=problem), made=0, passed=0)
        for i in range(n)
    ]
    stopped = {(error, message): n} if error in ("BudgetSpent", "NoCredit", "NoAnswer") else {}
    return SummaryParts(videos=videos, best=[], files=[], stopped=stopped, **more)  # pyright: ignore


@pytest.mark.parametrize(
    ("error", "message", "last"),
    [
        (
            "BudgetSpent", "budget_usd is reached by the runs of this out=",
            "stopped: budget_usd=0.05 reached (0.0523 USD spent), 3 of 4 videos are unfinished; "
            "the same command with a higher budget_usd continues from here",
        ),
        (
            "NoCredit", "model 'm': the account has no credit left (x); add credit",
            "stopped: model 'm': the account has no credit left (x); add credit; 3 of 4 videos are "
            "unfinished",
        ),
        (
            "NoAnswer", "model 'm': no answer for 300 s; its last error: HTTP 429",
            "stopped: model 'm': no answer for 300 s; its last error: HTTP 429; 3 of 4 "
            "videos are unfinished; the same command continues from here",
        ),
    ],
)  # fmt: skip
def test_the_last_line_is_why_a_run_stopped_and_blames_no_video(
    error: str, message: str, last: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert summarise(record(4, 3), parts_with(error, message, 3), "out", 0.5) == 3
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == last
    assert not any("failed in ask" in line or "max_problem_share" in line for line in lines)


def test_videos_that_failed_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert summarise(record(4, 3), parts_with("BadRow", "no sound", 3), "out", 0.5) == 3
    lines = capsys.readouterr().out.splitlines()
    assert sum("failed in ask: no sound" in line for line in lines) == 3
    assert lines[-1].startswith("3 of 4 rows failed")


@pytest.mark.parametrize(
    ("rows", "verbose", "shown"), [(4, False, 0), (4, True, 1), (101, False, 1)]
)
def test_the_pace_of_stages_is_shown_for_large_runs(
    rows: int, verbose: bool, shown: int, capsys: pytest.CaptureFixture[str]
) -> None:
    summarise(record(rows, 0), parts_with("", "", 0, verbose=verbose), "out", 0.5)
    printed = capsys.readouterr().out
    assert printed.count("workers busy") == shown
    assert printed.count("is the slowest stage") == shown


def test_the_reason_of_idle_time_names_the_limit_that_calls_waited_for() -> None:
    usage = UsageTotals()
    entry = CallOutcome(outcome="done", model="m", prompt="p", stage="ask", seconds=2.0, held=190.0)
    usage.add(entry)
    watched = {"ask": StageSeconds(seconds={"few": 200.0}, places=400.0)}
    held_seconds = {"tokens_per_minute=200000": 190.0}
    pace = record(1, 0, llm=usage, held=held_seconds, watched=watched).pace()
    assert pace["stages"]["ask"]["why"] == "its calls wait for tokens_per_minute=200000"


@pytest.mark.parametrize(("done", "code"), [(False, 3), (True, 0)])
def test_a_run_whose_calls_all_fail_exits_3_with_the_reason(
    done: bool, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    usage = UsageTotals()
    for outcome_of in ("failed", "failed", *(("done",) if done else ())):
        usage.add(CallOutcome(outcome=outcome_of, model="m", prompt="p"))  # pyright: ignore
    parts = parts_with("BadRow", "HTTP 400: broken template", 1)
    assert summarise(record(4, 1, llm=usage), parts, "out", 0.5) == code
    said = "all 2 model calls failed: HTTP 400: broken template" in capsys.readouterr().out
    assert said is not done


@pytest.mark.parametrize(
    ("language", "composed", "said"),
    [("German", 3, True), ("German", 0, False), ("English", 3, False)],
)
def test_composed_questions_in_another_language_are_named(
    language: str, composed: int, said: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = record(
        1, 0, config={"language": language}, questions=QuestionCounts(made=5, kept=5),
        facts=RunFunnel(total=FactFunnel(listed=9, chosen=composed)),
    )  # fmt: skip
    summarise(asked, parts_with("", "", 0), "out", 0.5)
    assert (f"{composed} questions were composed" in capsys.readouterr().out) is said


def test_what_an_endpoint_refuses_is_named() -> None:
    changes = {"seed": "", "top_p": "", "max_completion_tokens": "max_tokens"}
    assert list(left_out_lines({"m at http://h/v1": changes, "n": {"top_p": ""}})) == [
        "m at http://h/v1 refuses parameters: seed, top_p left out; max_completion_tokens is sent "
        "as max_tokens; without a seed, the same call may get another reply",
        "n refuses parameters: top_p left out",
    ]


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        (RunFunnel(total=FactFunnel(), by_rules=True), 1),
        (RunFunnel(total=FactFunnel(), by_rules=False), 0),
        (RunFunnel(by_rules=True), 0),
    ],
    ids=["facts by rules", "facts by a model", "a recipe without facts"],
)
def test_a_run_by_rules_says_in_one_line_that_nothing_deep_is_asked(
    capsys: pytest.CaptureFixture[str], facts: RunFunnel, said: int
) -> None:
    summarise(record(1, 0, facts=facts), SummaryParts(videos=[], best=[], files=[]), "out", 0.5)
    assert capsys.readouterr().out.splitlines().count(RULES_NOTE) == said
