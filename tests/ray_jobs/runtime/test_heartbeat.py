"""A job prints a line at least every `HEARTBEAT_S` seconds."""

import contextlib
import itertools

from ray_jobs.runtime.heartbeat import (
    HEARTBEAT_S,
    Heartbeat,
    heartbeat,
    quiet,
    show_step,
    stop_heartbeat,
)


class Beating:
    """A heartbeat that is called each second of a simulated clock."""

    def __init__(self) -> None:
        self.now = 0.0
        self.heart = Heartbeat("templates", now=lambda: self.now)

    def lines(self, seconds: int) -> list[tuple[float, str]]:
        printed: list[tuple[float, str]] = []
        for _ in range(seconds):
            self.now += 1.0
            if line := self.heart.beat():
                printed.append((self.now, line))
        return printed


def test_each_interval_has_a_line_with_the_current_step() -> None:
    stop_heartbeat()  # as a job before this one in the same process does
    with heartbeat("templates"):
        beating, done = Beating(), 0
    assert [line for _, line in beating.lines(20)] == ["[0:15] templates: at work"]
    with show_step("embedding 5000 questions"):
        with show_step(lambda: f"{done} of 50 clusters"):
            done = 7
            printed = beating.lines(130)
        assert [line for _, line in beating.lines(20)][-1].endswith("embedding 5000 questions")
    assert printed[0][1].endswith("templates: 7 of 50 clusters")
    assert max(b - a for (a, _), (b, _) in itertools.pairwise(printed)) <= HEARTBEAT_S


def test_a_quiet_step_gets_no_heartbeat() -> None:
    beating = Beating()
    with quiet():
        assert beating.lines(100) == []
    assert [at for at, _ in beating.lines(20)] == [100 + HEARTBEAT_S]


def test_a_failed_step_is_closed() -> None:
    beating = Beating()
    with contextlib.suppress(ValueError), show_step("what fails"):
        raise ValueError
    assert beating.lines(16)[0][1].endswith("at work")


def test_the_heartbeat_is_silent_from_the_result_to_the_next_step() -> None:
    beating = Beating()
    stop_heartbeat()
    assert beating.lines(100) == []
    with show_step("starting Ray"):
        assert beating.lines(20)[0][1].endswith("starting Ray")
    assert beating.lines(20)[0][1].endswith("at work")
