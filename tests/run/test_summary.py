"""What the summary says of filters that leave almost nothing, and of limits that slow a run."""

import pytest

from mustsee.run.record import QuestionCounts, Sieve
from ray_jobs.running.summary import ceilings, harsh


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


def test_a_limit_that_the_endpoint_told_is_no_ceiling_of_conf() -> None:
    (line,) = ceilings({"x-ratelimit-limit-tokens=200000": 90.0}, 100.0)
    assert "endpoint's own limit" in line
    assert "x-ratelimit-limit-tokens=200000" in line
    assert "null" not in line


def test_a_ceiling_that_slowed_the_run_is_named_and_one_that_hardly_did_is_not() -> None:
    (line,) = ceilings({"tokens_per_minute=200000": 90.0, "requests_per_minute=500": 2.0}, 100.0)
    assert line.startswith("calls waited 1:30 for limits.tokens_per_minute=200000")
    assert "llm.limits.tokens_per_minute=null" in line
