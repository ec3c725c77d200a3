"""Questions that ask when: only where no other time can be right, with ends that looks set."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mustsee.calls.llm import Asker, Reply, Request
from mustsee.calls.usage import RequestTally
from mustsee.errors import UserError
from mustsee.facts.fact_looks import plan_table_looks
from mustsee.facts.forms.when import WhenForm
from mustsee.facts.settings import FactSettings
from mustsee.facts.stem import Stem
from mustsee.facts.table import TruthTable
from mustsee.facts.when import END_LOOKS, ENDS_OPEN, ENDS_SET, WhenQuestions, ask_when
from mustsee.offline import facts as offline
from mustsee.prompts import Prompts
from mustsee.records import RULES, Span, Video
from tests.facts.tables import MOMENT_S, random_table, table_of, work_on
from tests.offline.test_sight import plain, shown

RING, HOLD = "a boy in red rings a bell", "a woman in grey lifts a basket"
MOMENTS = 20
ASKED = WhenForm(questions=9)
Truth = Callable[[str, float], bool]  # of a phrase at a time


def stems_of(table: TruthTable, form: WhenForm = ASKED) -> list[Stem]:
    return list(form.stems(table, Random(0)))


def seen_at(places: Sequence[int], unknown: int | None = None) -> TruthTable:
    truth = {} if unknown is None else {(RING, unknown): None}
    return table_of([("event", RING, places)], [0] * MOMENTS, truth=truth)


def test_a_fact_is_asked_for_only_if_every_moment_is_known() -> None:
    (stem,) = stems_of(seen_at([4]))
    assert stem.question.startswith(f"When does this happen: {RING}?")
    assert stem.evidence == (Span(24.0, 30.0),)
    for unknown in (0, 5, 19):
        assert not stems_of(seen_at([4], unknown))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([0.0, 0.01]))
def test_no_time_but_the_answer_may_be_right(seed: int, unknown: float) -> None:
    table = random_table(Random(seed), {"event": 8, "state": 6}, unknown=unknown)
    for stem in stems_of(table):
        inside = {
            n for n, m in enumerate(table.moments) for s in stem.evidence
            if s.start <= m.start and m.end <= s.end
        }  # fmt: skip
        entries = {n: table.truth[stem.centre, n] for n in range(len(table.moments))}
        assert all(entries[n] is (n in inside) for n in entries)


def test_all_times_are_asked_for_if_it_comes_again_but_not_too_many() -> None:
    (stem,) = stems_of(seen_at([4, 9, 10]))
    assert stem.evidence == (Span(24.0, 30.0), Span(54.0, 66.0))
    assert "more than once" in stem.question
    assert not stems_of(seen_at([4, 9, 12]), WhenForm(questions=9, times=2))


@pytest.mark.parametrize("places", [[0], [19], [4, 5, 6, 7, 8, 9]])
def test_what_its_place_tells_or_lasts_long_is_not_asked_for(places: Sequence[int]) -> None:
    assert not stems_of(seen_at(places))


def test_things_and_phrases_within_others_are_not_asked_for() -> None:
    facts = [("view", "a bicycle", [4]), ("text", "the words “PARTS”", [6]),
             ("text", "the words “PARTS” LIST", [7])]  # fmt: skip
    assert not stems_of(table_of(facts, [0] * MOMENTS))


def test_no_entry_is_wanted_unless_it_is_set_and_then_all_are() -> None:
    table = replace(seen_at([4]), truth={})
    assert not plan_table_looks(table, FactSettings(forms={"when": WhenForm()}))
    looks = plan_table_looks(table, FactSettings(forms={"when": WhenForm(questions=1)}))
    assert {moment for one in looks for _, moment in one.entries} == set(range(MOMENTS))


@pytest.mark.parametrize(
    "given", [{"questions": -1}, {"times": 0}, {"share": 0.0}, {"share": 1.5}, {"ends": 0.0}]
)
def test_settings_that_make_no_sense_are_refused(given: Mapping[str, Any]) -> None:
    with pytest.raises(UserError, match=f"ask.settings.forms.when.{next(iter(given))}="):
        WhenForm(**given)


class Viewer:
    """Says of each phrase whether it is so at one of the frames. `lie`: turns verdicts round."""

    identity = "model"

    def __init__(self, truth: Truth, lie: Callable[[Span, str], str | None]) -> None:
        self.truth, self.lie, self.spans = truth, lie, list[Span]()

    async def complete(self, request: Request) -> Reply:
        shown = request.variables
        self.spans.append(shown["span"])
        said: list[str] = []
        for fact in shown["phrases"]:
            seen = any(self.truth(fact.phrase, time) for time in shown["frames"])
            told = self.lie(shown["span"], fact.phrase)
            said.append(told or ("SEEN" if seen else "NOT SEEN"))
        lines = [f"{n}: {verdict}" for n, verdict in enumerate(said, 1)]
        return Reply(text="\n".join(lines), model="model")


class Frames:
    async def jpegs(self, times: Sequence[float], see: Any) -> tuple[bytes, ...]:
        return tuple(b"jpeg" for _ in times)


def ask(
    spans: Mapping[str, Sequence[tuple[float, float]]],
    lie: Callable[[Span, str], str | None] = lambda span, phrase: None,
    moments: int = MOMENTS,
) -> tuple[WhenQuestions, Counter[str], Viewer, RequestTally]:
    def is_seen(phrase: str, n: int) -> bool:
        here = Span(n * MOMENT_S, (n + 1) * MOMENT_S)
        return any(min(e, here.end) - max(s, here.start) > 0.4 for s, e in spans[phrase])

    facts = [("event", p, [n for n in range(moments) if is_seen(p, n)]) for p in spans]
    viewer = Viewer(lambda p, t: any(s <= t < e for s, e in spans[p]), lie)
    counts, requests = Counter[str](), RequestTally()
    frames: Any = Frames()
    work = work_on(
        Video(video_id="v", uri="v.mp4", duration=moments * MOMENT_S), frames,
        Asker(llm=viewer, prompts=Prompts(), tries=1),
        requests=requests, count=lambda name, n: counts.update({name: n}),
    )  # fmt: skip
    settings = FactSettings(forms={"when": WhenForm(questions=4)})
    asked = asyncio.run(ask_when(work, table_of(facts, [0] * moments), settings))
    return asked, counts, viewer, requests


@settings(max_examples=30, deadline=None)
@given(st.floats(7.0, 90.0), st.floats(1.7, 20.0))
def test_closer_looks_set_the_ends_to_half_a_second(start: float, seconds: float) -> None:
    asked, counts, _, _ = ask({RING: [(start, start + seconds)]})
    (question,) = asked.questions
    (span,) = question.evidence
    assert abs(span.start - start) <= 0.5
    assert abs(span.end - (start + seconds)) <= 0.5
    assert question.answer == f"{span.start:.1f} to {span.end:.1f} s"
    assert question.asks_when
    assert not question.options
    assert "when" in question.subsets
    assert counts == {ENDS_SET: 1, ENDS_OPEN: 0}


def test_each_time_of_several_has_its_own_ends_and_looks_are_shared() -> None:
    times = [(25.2, 28.4), (55.0, 64.1)]
    both, _, shared, _ = ask({RING: times, HOLD: times})
    first, second = both.questions
    assert first.evidence == second.evidence
    for span, (start, end) in zip(first.evidence, times, strict=True):
        assert abs(span.start - start) <= 0.5
        assert abs(span.end - end) <= 0.5
    _, _, alone, _ = ask({RING: times})
    assert len(shared.spans) == len(alone.spans)


@pytest.mark.parametrize("number", range(10))
def test_one_wrong_verdict_moves_no_end(number: int) -> None:
    """A turned verdict gives an end that is right nevertheless, or no question."""
    real = (25.2, 33.4)
    _, _, plain, _ = ask({RING: [real]})
    turned = plain.spans[number % len(plain.spans)]

    def lie(span: Span, phrase: str) -> str | None:
        if span != turned:
            return None
        times = [span.start + (n + 0.5) * span.seconds / 8 for n in range(8)]
        return "NOT SEEN" if any(real[0] <= t < real[1] for t in times) else "SEEN"

    asked, counts, _, _ = ask({RING: [real]}, lie)
    assert counts[ENDS_SET] + counts[ENDS_OPEN] == 1
    for question in asked.questions:
        (span,) = question.evidence
        assert abs(span.start - real[0]) <= 0.75
        assert abs(span.end - real[1]) <= 0.75


def test_a_viewer_who_cannot_tell_leaves_the_question_out_and_it_is_counted() -> None:
    asked, counts, _, _ = ask({RING: [(25.2, 33.4)]}, lambda span, phrase: "UNSURE")
    assert not asked.questions
    assert counts == {ENDS_SET: 0, ENDS_OPEN: 1}
    (form,) = asked.forms
    assert (form.possible, form.drafted, form.chosen) == (1, 1, 0)


def test_looks_that_cannot_be_read_are_counted() -> None:
    asked, _, _, requests = ask({RING: [(25.2, 33.4)]}, lambda span, phrase: "perhaps")
    assert not asked.questions
    assert requests.unread(END_LOOKS) > 0


def test_another_fact_is_tried_where_one_has_no_ends() -> None:
    spans = {f"a man of kind {n} jumps": [(12.0 * n + 7, 12.0 * n + 11)] for n in range(8)}
    first = ask(spans)[0].questions
    assert len(first) == 4
    lost = first[0].question.split(": ")[1].split("?")[0]
    second = ask(spans, lambda span, phrase: "UNSURE" if phrase == lost else None)[0].questions
    assert len(second) == 4
    assert first[0].question not in {q.question for q in second}


def test_without_the_form_nothing_is_looked_at() -> None:
    frames: Any = Frames()
    viewer = Viewer(lambda p, t: True, lambda span, phrase: None)
    asked = asyncio.run(
        ask_when(
            work_on(
                Video(video_id="v", uri="v.mp4", duration=120.0), frames,
                Asker(llm=viewer, prompts=Prompts()),
            ),
            seen_at([4]), FactSettings(),
        )
    )  # fmt: skip
    assert asked == WhenQuestions()
    assert not viewer.spans


class Rules:
    """The rules in the model's place: they measure the frames that they are shown."""

    identity = RULES

    async def complete(self, request: Request) -> Reply:
        return Reply(text=offline.RULES[request.prompt](request), model=RULES)


class ColouredFrames:
    """Frames that are red from 25.2 to 33.4 s, and blue before and after."""

    async def jpegs(self, times: Sequence[float], see: Any) -> tuple[bytes, ...]:
        return tuple(shown([plain("red" if 25.2 <= t < 33.4 else "blue") for t in times]))


@pytest.mark.parametrize(
    ("kind", "phrase", "is_asked"), [("view", "a large red area", True), ("event", RING, False)]
)
def test_rules_ask_only_for_what_they_can_look_for(kind: str, phrase: str, is_asked: bool) -> None:
    frames: Any = ColouredFrames()
    video = Video(video_id="v", uri="v.mp4", duration=MOMENTS * MOMENT_S)
    asked = asyncio.run(
        ask_when(
            work_on(video, frames, Asker(llm=Rules(), prompts=Prompts())),
            table_of([(kind, phrase, [4, 5])], [0] * MOMENTS),
            FactSettings(forms={"when": WhenForm(questions=4)}),
        )
    )  # fmt: skip
    assert bool(asked.questions) is is_asked
    for question in asked.questions:
        assert question.question.startswith("When is a large red area seen?")
        (span,) = question.evidence
        assert abs(span.start - 25.2) <= 0.5
        assert abs(span.end - 33.4) <= 0.5
