"""What the summary says of filters that leave almost nothing, and of limits that slow a run."""

import pytest
from rich.console import Console

from mustsee.records import Problem, Video
from mustsee.run.record import QuestionCounts, Sieve
from ray_jobs.running import outcome
from ray_jobs.running.launch import _say
from ray_jobs.running.summary import (
    NAMED,
    Listed,
    _videos,
    ceilings,
    damaged_files,
    harsh,
)


def said(**filters: Sieve) -> list[str]:
    return list(harsh(QuestionCounts(made=20, kept=2, filters=filters)))


def test_a_filter_that_takes_more_than_four_fifths_says_so_with_its_reason_and_a_way_out() -> None:
    (line,) = said(
        sight=Sieve(asked=20, dropped=17, marked=0, reason="cannot be told"),
        blind=Sieve(asked=3, dropped=0, marked=1),
    )
    for part in ("sight dropped 17 of the 20", "cannot be told", "vet/looker="):
        assert part in line


@pytest.mark.parametrize(("fell", "lines"), [(16, 0), (17, 1), (20, 1)])
def test_more_than_four_fifths_of_what_it_saw(fell: int, lines: int) -> None:
    assert len(said(blind=Sieve(asked=20, dropped=0, marked=fell))) == lines


def test_what_is_only_marked_is_said_to_be_out_of_the_subset() -> None:
    (line,) = said(blind=Sieve(asked=8, dropped=0, marked=8))
    assert line.startswith("blind kept out of the subset 8 of the 8")
    assert "vet.repair.rounds" in line
    (line,) = said(own=Sieve(asked=8, dropped=8, marked=0, reason="too red"))
    assert "the settings of own are under vet.filters" in line


def test_of_few_questions_nothing_is_said() -> None:
    assert said(sight=Sieve(asked=4, dropped=4, marked=0, reason="x")) == []


def test_a_ceiling_that_slowed_the_run_is_named_and_one_that_hardly_did_is_not() -> None:
    (line,) = ceilings({"tokens_per_minute=200000": 90.0, "requests_per_minute=500": 2.0}, 100.0)
    assert line.startswith("calls waited 1:30 for limits.tokens_per_minute=200000")
    assert "llm.limits.tokens_per_minute=null" in line


def test_damaged_files_are_named_and_no_more_than_a_few() -> None:
    assert list(damaged_files({}, "runs/a/store")) == []
    (line,) = damaged_files({"look/ab/ab12.1": "empty"}, "runs/a/store")
    assert "look/ab/ab12.1 (empty); kept in runs/a/store/damaged" in line
    (line,) = damaged_files({f"llm/ab/ab{n}.1": "empty" for n in range(NAMED + 3)}, "s")
    assert line.startswith(f"{NAMED + 3} files of the store were damaged")
    assert "3 more in run.json" in line


def test_no_name_and_no_message_reaches_the_terminal_as_a_command(
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
        *_videos([Listed(video=v, made=0, kept=0) for v in videos], 3),
        *outcome.told(counts, None, makes=True),
    ):
        console.print(shown)
    _say(hostile, 2)
    said = capsys.readouterr()
    assert "\\x1b[31m" in said.out
    assert not {"\x01", "\x1b", "\x9b", "\u202e", "\r"} & {*said.out, *said.err}
