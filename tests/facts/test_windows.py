"""Of a long video facts are listed where most goes on, and of every stretch."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mustsee.calls.llm import Asker, Reply, Request
from mustsee.calls.usage import RequestTally
from mustsee.facts.extract import make_fact
from mustsee.facts.listing import (
    choose_windows,
    divide_overviews,
    list_facts,
    listed_spans,
    lists_all,
    score_windows,
)
from mustsee.facts.moments import MomentRules, moments_of, windows_of
from mustsee.facts.settings import FactSettings
from mustsee.prompts import Prompts
from mustsee.questions.fact_funnel import RunFunnel, funnel_of_video
from mustsee.records import Fact, Frame, Line, Span, Video
from tests.facts.tables import work_on

RULES = MomentRules(seconds=6.0, window=5, windows=12, overview_seconds=600.0)


def cut_every_six(seconds: float) -> Video:
    shots = tuple(Span(6.0 * n, 6.0 * n + 6) for n in range(int(seconds / 6)))
    return Video(video_id="v", uri="v.mp4", duration=seconds, shots=shots)


HOUR = cut_every_six(3600.0)
MOMENTS = moments_of(HOUR, RULES)


def frame(time: float, value: float) -> Frame:
    return Frame(time=time, brightness=0.5, motion=0.0, descriptor=(value,) * 96)


def chosen_at(video: Video, names: Sequence[Fact] = ()) -> list[Span]:
    return [
        Span(MOMENTS[first].start, MOMENTS[last - 1].end)
        for first, last in choose_windows(MOMENTS, RULES, names, video)
    ]


def are_near(spans: Sequence[Span], start: float, end: float) -> int:
    return sum(span.start < end and start < span.end for span in spans)


@given(st.integers(1, 400), st.integers(1, 40))
def test_windows_are_all_or_as_many_as_may_be_and_some_of_every_stretch(
    count: int, most: int
) -> None:
    moments = [Span(6.0 * n, 6.0 * n + 6) for n in range(count)]
    rules = replace(RULES, windows=most)
    video = replace(HOUR, duration=6.0 * count)
    every, chosen = windows_of(moments, rules), choose_windows(moments, rules, (), video)
    assert len(chosen) == min(most, len(every))
    assert set(chosen) <= set(every)
    assert list(chosen) == sorted(chosen)
    assert lists_all(moments, rules) == (chosen == every)
    places = [every.index(window) for window in chosen]
    gaps = [b - a for a, b in zip([-1, *places], [*places, len(every)], strict=True)]
    assert max(gaps) <= 2 * -(-len(every) // -(-most // 2))


def test_windows_are_taken_where_the_picture_changes() -> None:
    frames = [frame(t, (t % 2) * 0.9 if 1000 <= t < 1180 else 0.5) for t in range(3600)]
    spans = chosen_at(replace(HOUR, frames=tuple(frames)))
    assert are_near(spans, 1000, 1180) >= 6
    assert len(spans) == 12


def test_windows_are_taken_where_new_words_are_said() -> None:
    talk = [
        Line(start=t, end=t + 3.0, text=f"word{t} another{t} third{t} fourth{t}")
        for t in range(2000, 2180, 3)
    ]
    hum = [Line(start=t, end=t + 3.0, text="la la la la") for t in range(0, 1900, 3)]
    spans = chosen_at(replace(HOUR, lines=(*hum, *talk)))
    assert are_near(spans, 2000, 2180) >= 6


def test_windows_are_taken_where_people_come_again() -> None:
    """What is seen everywhere, and what is seen once, says nothing about where to look."""
    names = [
        make_fact("person", "the man in red", [Span(300, 390), Span(3000, 3090)], "m"),
        make_fact("place", "a street", [Span(0, 3600)], "m"),
        make_fact("person", "the boy", [Span(1505, 1508)], "m"),
    ]
    spans = [Span(MOMENTS[a].start, MOMENTS[b - 1].end) for a, b in windows_of(MOMENTS, RULES)]
    scores = score_windows(spans, names, HOUR)
    high = [span for span, score in zip(spans, scores.threads, strict=True) if score > 0]
    assert all(are_near([span], 300, 390) or are_near([span], 3000, 3090) for span in high)
    chosen = chosen_at(HOUR, names)
    assert are_near(chosen, 300, 390) >= 3
    assert are_near(chosen, 3000, 3090) >= 3


def test_all_overviews_of_one_person_are_one_thread() -> None:
    names = [
        make_fact("person", "the man in red", [Span(300, 330)], "m"),
        make_fact("person", "the man in red", [Span(3000, 3030)], "m"),
    ]
    spans = [Span(300.0, 330.0), Span(1000.0, 1030.0), Span(3000.0, 3030.0)]
    assert list(score_windows(spans, names, HOUR).threads) == [1.0, 0.0, 1.0]


class Model:
    """Lists one fact of each window; remembers the requests. `unread`: starts of windows without a
    readable reply.
    """

    identity = "model"

    def __init__(self, unread: Sequence[float] = ()) -> None:
        self.requests: list[Request] = []
        self.unread = unread

    async def complete(self, request: Request) -> Reply:
        self.requests.append(request)
        window = request.variables["window"]
        start = window.span.start
        kind = request.variables["kinds"][0]
        text = f"FACT 1: {kind} | the thing at {start:.0f} | {start + 1:.1f}-{start + 3:.1f}"
        return Reply(text="?" if start in self.unread else text, model="model")


class Frames:
    async def jpegs(self, times: Sequence[float], see: Any) -> tuple[bytes, ...]:
        return tuple(b"jpeg" for _ in times)


def list_video(video: Video, model: Model) -> tuple[Any, RequestTally]:
    settings = FactSettings(forms={}, moments=RULES, kinds=("person", "event"))
    asker, frames = Asker(llm=model, prompts=Prompts(), tries=1), Frames()
    shown: Any = frames
    work = work_on(video, shown, asker)
    done = asyncio.run(list_facts(work, moments_of(video, RULES), settings))
    return done, work.requests


def test_a_long_video_has_an_overview_of_each_part_and_says_what_was_listed() -> None:
    model = Model()
    listed, _ = list_video(HOUR, model)
    overviews = [r.variables["window"] for r in model.requests if r.variables["most"] == 16]
    assert [w.span for w in overviews[1:]] == list(divide_overviews(HOUR, MOMENTS, RULES))
    assert len(overviews) == 1 + 6
    assert overviews[1].names == ("the thing at 0",), "parts call people as the whole does"
    windows = [r.variables["window"] for r in model.requests if r.variables["most"] != 16]
    assert len(windows) == 12
    late = next(w for w in windows if w.span.start >= 3000)
    assert late.names == ("the thing at 0", "the thing at 3000")
    seconds = sum(span.seconds for span in listed.spans)
    assert seconds == pytest.approx(12 * 30, rel=0.1)
    video = replace(HOUR, facts=listed.facts, listed=listed.spans)
    note = RunFunnel(total=funnel_of_video(video)).listed_note
    assert note.startswith(f"facts were listed of {seconds / 3600:.0%} of 1 h of video")


def test_a_short_video_is_listed_whole_after_one_overview() -> None:
    video, model = cut_every_six(240.0), Model()
    listed, _ = list_video(video, model)
    assert divide_overviews(video, moments_of(video, RULES), RULES) == ()
    assert len(model.requests) == 1 + 10
    assert listed.spans == (Span(0.0, 240.0),)
    done = replace(video, facts=listed.facts, listed=listed.spans)
    assert RunFunnel(total=funnel_of_video(done)).listed_note == ""


def test_a_window_that_cannot_be_read_was_not_listed() -> None:
    video = cut_every_six(240.0)
    listed, requests = list_video(video, Model(unread=(24.0,)))
    assert Span(0.0, 30.0) in listed.spans
    assert sum(span.seconds for span in listed.spans) == 240.0 - 18.0
    assert requests.unread("windows") == 1


def test_windows_side_by_side_are_one_stretch() -> None:
    moments = [Span(6.0 * n, 6.0 * n + 6) for n in range(20)]
    assert listed_spans(moments, [(0, 5), (4, 9), (12, 17)]) == (Span(0, 54), Span(72, 102))
