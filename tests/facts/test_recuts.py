"""The re-cut's table is that of the video with moments moved; both keys are right."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from mustsee.errors import UserError
from mustsee.facts.forms.after import AfterForm
from mustsee.facts.forms.at import AtForm
from mustsee.facts.forms.before import BeforeForm
from mustsee.facts.recuts import Recut, draw_recut, find_borders, recut_rows, table_of
from mustsee.facts.settings import FactSettings
from mustsee.facts.table import TruthTable
from mustsee.records import PAIR, Line, Question, Span, Video
from mustsee.synth.insertions import plan_of, with_placement
from tests.facts.tables import MOMENT_S, moments_of, random_table

SETTINGS = FactSettings(
    forms={"after": AfterForm(), "before": BeforeForm(), "with": AtForm(of="person")}
)


def table(seed: int, unknown: float = 0.0) -> TruthTable:
    return random_table(Random(seed), {"event": 40, "person": 6}, unknown=unknown)


def row_of(table: TruthTable) -> Video:
    """A finished row with a cut at each border of moments."""
    spans: dict[str, dict[bool | None, list[Span]]] = {}
    for (name, moment), entry in sorted(table.truth.items(), key=lambda item: item[0]):
        found = spans.setdefault(name, {True: [], False: [], None: []})
        found[entry].append(table.moments[moment])
    facts = tuple(
        replace(
            fact,
            seen=tuple(spans[fact.fact_id][True]),
            unseen=tuple(spans[fact.fact_id][False]),
            unsure=tuple(spans[fact.fact_id][None]),
        )
        for fact in table.facts
    )
    end = table.moments[-1].end
    return Video(
        video_id="v", uri="v.mp4", duration=end, shots=table.moments, facts=facts, lines=()
    )


def test_the_table_of_a_finished_row_is_the_one_that_was_looked_at() -> None:
    known = table(0, unknown=0.2)
    again = table_of(row_of(known), SETTINGS)
    assert again.moments == known.moments
    assert again.truth == known.truth
    with pytest.raises(UserError, match=r"ask\.settings\.moments"):
        table_of(replace(row_of(known), shots=()), SETTINGS)


@pytest.mark.parametrize("seed", range(20))
def test_a_moved_moment_keeps_what_is_true_of_it(seed: int) -> None:
    known = table(seed, unknown=0.2)
    count = len(known.moments)
    recut = draw_recut(known.moments, range(1, count), Random(seed))
    moved = recut.move_table(known)
    order = [n for piece in recut.pieces for n in piece]
    assert sorted(order) == list(range(count)) != order
    assert (order[0], order[-1]) == (0, count - 1)
    assert moved.moments == moments_of(count)
    for new, old in enumerate(order):
        assert moved.scenes[new] == known.scenes[old]
        for fact in moved.facts:
            name = fact.fact_id
            assert moved.truth[name, new] == known.truth[name, old]
            assert (new in moved.claims[name]) == (old in known.claims[name])


def test_spans_move_with_their_pieces_and_the_plan_shows_them() -> None:
    moments = moments_of(6)
    recut = Recut(moments, (range(1), range(3, 5), range(1, 3), range(5, 6)))
    assert recut.move([Span(1, 2), Span(7, 8), Span(17, 20)]) == (
        Span(1, 2),
        Span(6, 8),  # the rest of what began before the cut at 18 s
        Span(19, 20),
        Span(29, 30),
    )
    plan = recut.plan("v.mp4")
    assert plan.seconds == moments[-1].end
    shown = [Span(plan.start, plan.end), *(Span(i.probe.start, i.probe.end)
             for i in plan.insertions)]  # fmt: skip
    assert shown == [Span(0, 6), Span(18, 30), Span(6, 18), Span(30, 36)]


def keys(question: Question, table: TruthTable) -> tuple[str, list[str]]:
    """The answer, and the options that are nearest to where the question asks."""
    facts = {fact.phrase: fact.fact_id for fact in table.facts}
    (given,) = (p for p in facts if question.question.endswith(f" {p}?"))

    def moments(phrase: str) -> list[int]:
        return [n for n in range(len(table.moments)) if table.truth[facts[phrase], n]]

    own, gaps = moments(given), dict[str, int]()
    for option in question.options:
        is_after = question.form == "after"
        ahead = [n - own[-1] if is_after else own[0] - n for n in moments(option)]
        gaps[option] = min((n for n in ahead if n > 0), default=99)
    return question.answer, [o for o, gap in gaps.items() if gap == min(gaps.values())]


def test_pairs_have_the_same_words_and_each_key_is_the_only_right_one() -> None:
    made = 0
    for seed in range(2):
        known = table(seed)
        rows = recut_rows(row_of(known), SETTINGS)
        if len(rows) == 1:
            continue
        video, recut = rows
        assert (recut.source, recut.duration) == ("v", video.duration)
        plan = plan_of(recut)
        assert plan.seconds == pytest.approx(video.duration)
        assert with_placement(recut, plan, plan.placements()) == recut
        tables = [table_of(row, SETTINGS) for row in rows]
        for one, other in zip(video.questions or (), recut.questions or (), strict=True):
            made += 1
            assert (one.question, one.options) == (other.question, other.options)
            assert one.answer != other.answer
            assert (one.group, one.relation) == (other.group, other.relation)
            assert (one.group, one.relation) == (one.question_id, PAIR)
            assert (one.video_id, other.video_id) == (video.video_id, recut.video_id)
            assert one.form in ("after", "before")  # Who is seen when X moves with X.
            for question, of_row in zip((one, other), tables, strict=True):
                answer, right = keys(question, of_row)
                assert right == [answer]
    assert made >= 4


def test_cuts_within_a_line_and_borders_without_a_cut_are_no_places_to_cut() -> None:
    moments = moments_of(5)
    video = Video(video_id="v", uri="v", shots=(moments[0], moments[1], moments[3], moments[4]))
    assert find_borders(moments, video) == [1, 3, 4]
    line = Line(start=3 * MOMENT_S - 1, end=3 * MOMENT_S + 1, text="x")
    assert find_borders(moments, replace(video, lines=(line,))) == [1, 4]
    ended = replace(line, end=3 * MOMENT_S)
    assert find_borders(moments, replace(video, lines=(ended,))) == [1, 3, 4]


def test_a_video_without_cuts_has_no_pairs_and_says_why() -> None:
    known = table(1)
    line = Line(start=0, end=known.moments[-1].end, text="x")
    (row,) = recut_rows(replace(row_of(known), lines=(line,)), SETTINGS)
    assert (row.questions, bool(row.unasked)) == ((), True)
