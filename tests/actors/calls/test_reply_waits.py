"""A late answer is waited for rather than paid for again."""

from __future__ import annotations

import pytest

from actors.calls.no_answer import FACTORS, ReplyWaits
from mustsee.calls.llm import Message, Request


def request(prompt: str = "p") -> Request:
    return Request(prompt=prompt, digest="", messages=(Message("user", "a"),))


def test_a_call_that_timed_out_waits_longer_and_no_other_does():
    waits = ReplyWaits(10.0)
    assert waits.lengthen(request(), 0) == request()
    assert [waits.lengthen(request(), n).wait for n in (1, 2, 3, 9)] == [30.0, 80.0, 80.0, 80.0]
    waits.record_timeout("p", 10.0)
    assert waits.seconds("p") == 10.0


def test_after_timeouts_in_a_row_the_calls_of_a_prompt_wait_longer():
    waits = ReplyWaits(10.0)
    waits.record_timeout("p", 10.0)
    waits.record_answer("p", 4.0)
    waits.record_timeout("p", 10.0)
    assert waits.seconds("p") == 10.0  # not in a row
    waits.record_timeout("p", 10.0)
    assert waits.seconds("p") == 30.0
    for _ in range(20):  # sent before: they say nothing on the longer wait
        waits.record_timeout("p", 10.0)
    assert waits.seconds("p") == 30.0
    waits.record_answer("other", 1.0)
    assert waits.seconds("other") == 10.0


def test_an_answer_that_came_late_lengthens_the_wait():
    waits = ReplyWaits(10.0)
    waits.record_answer("p", 31.0)
    assert waits.seconds("p") == 80.0
    waits.record_answer("p", 500.0)
    assert waits.seconds("p") == 10.0 * FACTORS[-1]


def test_a_prompt_without_an_answer_waits_as_long_as_the_slowest():
    waits = ReplyWaits(10.0)
    waits.record_answer("p", 12.0)
    assert waits.lengthen(request("new"), 0).wait == 30.0
    waits.record_answer("new", 2.0)
    assert waits.lengthen(request("new"), 0).wait is None


def test_other_failures_lengthen_nothing():
    waits = ReplyWaits(10.0)
    for _ in range(5):
        waits.record_timeout("p", 0.0)
    assert waits.seconds("p") == 10.0


def test_a_request_is_the_same_call_however_long_it_is_waited_for():
    waits = ReplyWaits(10.0)
    assert waits.lengthen(request(), 1).key("m") == request().key("m")


@pytest.mark.parametrize("timeouts", [0, 1, 5])
def test_a_model_without_a_timeout_is_waited_for(timeouts):
    wait = ReplyWaits(float("inf")).lengthen(request(), timeouts).wait
    assert wait in (None, float("inf"))
