"""Certificates merge as the paper says; votes decide; raters' tasks are fair."""

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mustsee.errors import UserError
from mustsee.raters import marks
from mustsee.raters import votes as raters
from mustsee.raters.marks import Conventions
from mustsee.raters.votes import BAD, GOOD, MAYBE, Vote
from mustsee.records import Question, Span

span = st.tuples(st.floats(0, 170), st.floats(0, 10)).map(lambda p: Span(p[0], p[0] + p[1]))
spans = st.lists(span, max_size=12)


def covered(parts, time) -> bool:
    return any(p.start - 1e-9 <= time <= p.end + 1e-9 for p in parts)


@given(spans, st.randoms(use_true_random=False))
def test_merging(given_marks, shuffler) -> None:
    parts = marks.merge(given_marks, duration=180)
    shuffled = list(given_marks)
    shuffler.shuffle(shuffled)
    assert marks.merge(shuffled, duration=180) == parts
    assert marks.merge(parts, duration=180) == parts
    assert all(b.start - a.end >= 5 for a, b in pairwise(parts))
    for mark in given_marks:
        assert covered(parts, mark.start)
        assert covered(parts, mark.end)
    for part in parts:  # a part begins and ends with a mark, and holds no gap of 5 s without one
        assert part.seconds >= 0.1 - 1e-9
        inside = sorted(
            (m.start, m.end) for m in given_marks if part.start - 1 <= m.start <= part.end + 1
        )
        reach = inside[0][1]
        for start, end in inside:
            assert start - reach < 5 + 0.2
            reach = max(reach, end)
    assert marks.length(given_marks, duration=180) == pytest.approx(sum(p.seconds for p in parts))


def test_the_numbers_of_the_paper() -> None:
    assert marks.length([Span(3, 3)]) == pytest.approx(0.1)
    assert marks.merge([Span(0, 1), Span(6, 7)]) == [Span(0, 1), Span(6, 7)]
    assert marks.merge([Span(0, 1), Span(5.9, 7)]) == [Span(0, 7)]
    assert marks.widen(Span(180, 180), 0.1, 180).end == 180
    assert marks.long_enough([Span(0, 5), Span(50, 70), Span(100, 105)])
    assert not marks.long_enough([Span(0, 5), Span(50, 70), Span(100, 104.9)])
    with pytest.raises(ValueError, match="within the video"):
        marks.merge([Span(5, 4)])
    with pytest.raises(ValueError, match="within the video"):
        marks.merge([Span(5, 181)], Conventions(), 180)


def vote(label, round=1, **more) -> Vote:
    return Vote(rater="r", question_id="q", label=label, round=round, **more)


def test_a_form_that_contradicts_itself_is_sent_back() -> None:
    long = (Span(0, 40),)
    assert raters.faults(vote(GOOD, marks=long)) == []
    assert raters.faults(vote(BAD, failed=("C",))) == []
    assert raters.faults(vote(BAD, like="other")) == []
    assert raters.faults(vote(MAYBE, comment="second word")) == []
    for wrong in (
        vote(GOOD, marks=long, failed=("A",)),
        vote(GOOD, marks=(Span(0, 20),)),
        vote(BAD),
        vote(MAYBE),
        vote("FINE"),
        vote(BAD, failed=("F",)),
        vote(GOOD, marks=(Span(9, 3),)),
        vote(GOOD, marks=long, round=3),
    ):
        assert raters.faults(wrong), wrong


@pytest.mark.parametrize(
    ("votes", "state"),
    [
        ([vote(GOOD)], "next"),
        ([vote(MAYBE)], "next"),
        ([vote(BAD, failed=("D",))], "drop"),
        ([vote(GOOD), vote(BAD, failed=("B",))], "drop"),
        ([vote(MAYBE), vote(GOOD, 2)], "keep"),
        ([vote(GOOD), vote(GOOD, 2), vote(MAYBE, 2)], "drop"),
        ([vote(GOOD), vote(BAD, 2, failed=("C",))], "drop"),
    ],
)
def test_two_rounds(votes, state) -> None:
    assert raters.decide(votes).state == state


def test_votes_are_written_into_the_question() -> None:
    base = {"video_id": "v", "recipe": "egoschema", "question": "?", "question_type": "x"}
    questions = [Question(question_id=i, **base) for i in "qab"]
    kept = raters.curated(
        questions,
        [
            vote(GOOD, marks=(Span(0, 31),)),
            vote(GOOD, 2, marks=(Span(0, 33),)),
            Vote(rater="s", question_id="a", label=BAD, failed=("B", "A")),
        ],
    )
    assert [q.drop for q in kept] == [None, "curation: condition A, B", None]
    assert kept[0].evidence == (Span(0, 33),)
    assert [v.filter for v in kept[0].verdicts] == ["curation_1", "curation_2"]
    assert kept[2] == questions[2]
    with pytest.raises(ValueError, match="none of round 1"):
        raters.decide([vote(GOOD, 2)])


@given(st.integers(1, 120), st.integers(5, 12), st.integers(0, 9))
def test_nobody_meets_a_question_twice(n, people, seed) -> None:
    questions = {f"q{i}": 5 for i in range(n)}
    names = [f"r{i}" for i in range(people)]
    tasks = raters.assign(questions, names, seed=seed)
    assert tasks == raters.assign(dict(reversed(questions.items())), names[::-1], seed=seed)
    assert len({(t.rater, t.question_id) for t in tasks}) == len(tasks)
    for setting in raters.SETTINGS:
        mine = [t for t in tasks if t.setting == setting.name]
        assert len(mine) == (n if setting.hours is None else min(n, 60))
        load = Counter(t.rater for t in mine)
        assert max(load.values()) - min(load[r] for r in names) <= 1
    for task in tasks:
        assert sorted(task.order) == [0, 1, 2, 3, 4]
        assert raters.chosen_option(task, task.order.index(3)) == 3


def test_too_few_raters() -> None:
    with pytest.raises(UserError, match="at least as many raters"):
        raters.assign({"q": 5}, ["a", "b"])
