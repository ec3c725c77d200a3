"""Rates and times left cover recent rows; the log line names what a run waits for."""

import itertools
import signal
import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.engine.hardware import Hardware
from mustsee.calls.usage import CallOutcome, UsageTotals
from mustsee.errors import MustseeError
from mustsee.run.record import Snapshot, StageCounts
from ray_jobs.runtime.progress import Progress, RowRate


def snapshot(stages: Mapping[str, StageCounts], *entries: CallOutcome) -> Snapshot:
    usage = UsageTotals()
    for entry in entries:
        usage.add(entry)
    return Snapshot(stages=stages, counts={}, llm=usage)


def test_a_rate_covers_recent_rows_only() -> None:
    rate = RowRate()
    for second in range(600):  # no row for ten minutes, then one every 6 s
        rate.see(float(second), 0, begun=True)
    for second in range(600, 900):
        rate.see(float(second), (second - 600) // 6, begun=True)
    assert rate.per_second == pytest.approx(1 / 6, rel=0.1)


def test_a_rate_of_long_rows_covers_several_rows() -> None:
    rate = RowRate()
    for second in range(0, 4000, 10):  # one row every 600 s
        rate.see(float(second), second // 600, begun=True)
    assert rate.per_second == pytest.approx(1 / 600, rel=0.35)


def test_a_rate_begins_when_the_stage_does() -> None:
    rate = RowRate()
    for second in range(0, 1000, 5):
        rate.see(float(second), 0, begun=False)
    assert rate.per_second == 0
    for second in range(1000, 1021, 5):
        rate.see(float(second), (second - 1000) // 5, begun=True)
    assert rate.per_second == pytest.approx(0.2)


@given(st.lists(st.tuples(st.floats(0.1, 100), st.integers(0, 5)), min_size=2, max_size=60))
def test_a_rate_is_never_more_than_the_fastest_step(steps: list[tuple[float, int]]) -> None:
    rate, now, worked = RowRate(), 0.0, 0
    rate.see(now, worked, begun=True)
    for seconds, rows in steps:
        now, worked = now + seconds, worked + rows
        rate.see(now, worked, begun=True)
        fastest = max(n / s for s, n in steps)
        assert 0 <= rate.per_second <= fastest * (1 + 1e-6)


class Watched:
    """A progress display with a clock and counters that a test sets."""

    def __init__(
        self,
        stages: list[str],
        total: int,
        lacking: Mapping[str, str] | None = None,
        hardware: Mapping[str, Hardware] | None = None,
    ) -> None:
        self.now, self.seen = 0.0, snapshot({})
        self.shown = Progress(
            lambda: self.seen,
            stages,
            total,
            now=lambda: self.now,
            lacking=lambda stage: (lacking or {}).get(stage, ""),
            hardware=hardware,
        )

    def at(self, now: float, seen: Snapshot) -> Progress:
        self.now, self.seen = now, seen
        return self.shown


def test_the_line_shows_stages_cache_hits_and_cost() -> None:
    watched = Watched(["probe", "look", "ask"], 40)
    watched.at(0.0, snapshot({"probe": StageCounts(computed=20, reused=20)})).line()
    stages = {
        "probe": StageCounts(computed=20, reused=20, dropped=10),
        "look": StageCounts(computed=9, problem=1),
        "ask": StageCounts(started=1),
    }
    paid = CallOutcome(outcome="done", model="m", prompt="p", usd=0.5)
    again = CallOutcome(outcome="retry", model="m", prompt="p", retry_after=12.0)
    line = watched.at(60.0, snapshot(stages, paid, again)).line()
    assert line.startswith(
        "[1:00] probe 40/40, look 10/30 (1 failed) 10.0/min 2:00 left, ask 0/29 |"
    )
    assert "20 reused" in line
    assert line.count("failed") == 1
    assert "1 model call, 1 retried, 12 s of Retry-After waits, 0.50 USD" in line
    assert line.endswith("at least 2:00 left")  # The stage ask has not begun.
    held = replace(snapshot(stages, paid), held={"tokens_per_minute=200000": 31.4})
    assert "0.50 USD, 31 s held by tokens_per_minute=200000" in watched.at(61.0, held).line()


def test_an_endpoint_error_is_printed_once_while_it_lasts() -> None:
    watched, said = Watched(["ask"], 4), "model 'm' at http://h/v1: HTTP 429: slow down"
    silent = replace(snapshot({"ask": StageCounts(started=1)}), trouble={"m": said})
    line = watched.at(20.0, silent).line()
    assert line.endswith(f"| waiting for {said}")
    assert watched.at(21.0, silent).line().endswith(said)  # It has not been printed yet.
    watched.shown.mark_printed()
    assert said not in watched.at(40.0, silent).line()
    watched.at(60.0, replace(silent, trouble={})).line()
    watched.shown.mark_printed()
    assert watched.at(80.0, silent).line().endswith(said)  # The error came back.


def test_cached_results_do_not_count_for_the_rate() -> None:
    watched = Watched(["probe", "look"], 100)
    watched.at(0.0, snapshot({})).line()
    probed = StageCounts(reused=100)
    watched.at(1.0, snapshot({"probe": probed, "look": StageCounts(reused=90)})).line()
    seen = snapshot({"probe": probed, "look": StageCounts(reused=90, computed=2)})
    (_, look) = watched.at(21.0, seen).states(seen)
    assert look.per_second == pytest.approx(0.1)
    assert look.seconds_left == pytest.approx(80)


def left_of(seconds: int, finished: Mapping[int, int], rows: int) -> list[tuple[float, bool]]:
    """The time left of a stage in each second, and whether its next row is late.

    `finished`: number of finished rows, by the second from which it holds.
    """
    watched, times_left = Watched(["look"], rows), list[tuple[float, bool]]()
    for second in range(seconds):
        worked = max((n for at, n in finished.items() if at <= second), default=0)
        seen = snapshot({"look": StageCounts(started=1, computed=worked)})
        (look,) = watched.at(float(second), seen).states(seen)
        if look.seconds_left is not None:
            times_left.append((look.seconds_left, look.is_late))
    return times_left


def test_a_long_row_does_not_raise_the_time_left() -> None:
    """Of seven videos the last two are long; the time left once rose to 28, 58 and 88 s."""
    times = left_of(61, {3: 1, 6: 2, 9: 3, 12: 4, 15: 5}, 7)
    after = [left for left, _ in times[-46:]]
    assert after[0] == pytest.approx(6)
    assert after == sorted(after, reverse=True)
    assert [late for _, late in times[-46:]] == [False] * 4 + [
        True
    ] * 42  # From then on it is "at least 4 s".


@given(st.lists(st.integers(5, 8), min_size=10, max_size=40))
def test_the_time_left_of_similar_rows_is_close_to_the_actual_time(gaps: list[int]) -> None:
    ends = list(itertools.accumulate(gaps))
    times = left_of(ends[-1], {end: n for n, end in enumerate(ends, 1)}, len(gaps))
    for second, (left, _) in zip(range(ends[0], ends[-1]), times, strict=True):
        assert left == pytest.approx(ends[-1] - second, rel=0.7, abs=8)


def test_a_failed_row_counts_as_done_and_is_named() -> None:
    watched = Watched(["probe", "look"], 9)
    seen = snapshot({"probe": StageCounts(computed=8, problem=1), "look": StageCounts(started=1)})
    assert watched.at(15.0, seen).line() == "[0:15] probe 9/9 (1 failed), look 0/8"


def test_a_stage_without_a_worker_names_the_missing_resources() -> None:
    held = "waits for 1 CPU: others hold 2 of 2"
    watched = Watched(["synth", "ask"], 2, {"synth": held})
    assert watched.at(15.0, snapshot({})).line() == f"[0:15] synth 0/2 ({held})"
    up = snapshot({"synth": StageCounts(started=1)})
    assert watched.at(30.0, up).line() == "[0:30] synth 0/2"
    done = snapshot({"synth": StageCounts(started=1, computed=1)})
    assert "ask 0/2 (a worker is starting)" in watched.at(45.0, done).line()


@pytest.mark.parametrize("handler", [signal.default_int_handler, signal.SIG_IGN])
def test_a_run_without_its_coordinator_ends_at_once(
    handler: Any, request: pytest.FixtureRequest
) -> None:
    """This also holds in the background of a script, where Ctrl-C is ignored."""
    before = signal.signal(signal.SIGINT, handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))

    def lost() -> Snapshot:
        raise MustseeError("the coordinator is dead")

    went_on = threading.Event()
    timer = threading.Timer(60, went_on.set)
    timer.start()
    with pytest.raises(MustseeError, match="dead"), Progress(lost, ["look"], 1):
        went_on.wait()
    timer.cancel()
    assert not went_on.is_set()


def test_the_state_of_a_stage_is_recorded_while_rows_stream() -> None:
    """Two workers after one: waiting for rows, then one of them busy, then both."""
    watched = Watched(["probe", "look"], 10, hardware={"look": Hardware(workers=2)})
    look = watched.shown.watched["look"]
    up = StageCounts(started=2)
    watched.at(5.0, snapshot({})).line()
    watched.at(7.0, snapshot({"probe": StageCounts(started=1, computed=1), "look": up})).line()
    watched.at(10.0, snapshot({"probe": StageCounts(computed=3, dropped=1), "look": up})).line()
    done = StageCounts(started=2, computed=9)
    watched.at(14.0, snapshot({"probe": StageCounts(computed=10, dropped=1), "look": done})).line()
    assert look.seconds == {"starting": 5.0, "rows": 2.0, "full": 3.0, "done": 4.0}
    assert look.places == 2 * (2.0 + 3.0 + 4.0)
