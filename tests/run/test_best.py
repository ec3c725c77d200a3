"""The best questions of a run, which are shown first."""

from dataclasses import replace
from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mustsee.media.frames import encode
from mustsee.records import Keyframe, Question, Span
from mustsee.run.best import best, of_evidence


def question(
    name: str, video: str = "v", kind: str = "Other", *, needed: float = 1.0, reach: float = 0.0,
    drop: str | None = None, evidence: bool = True,
) -> Question:  # fmt: skip
    return Question(
        question_id=name, video_id=video, recipe="r", question="?", question_type=kind, drop=drop,
        evidence=(Span(0.0, 1.0),) if evidence else (),
        metrics={"sight_needed": needed, "reach_seconds": reach},
    )  # fmt: skip


def test_questions_that_need_the_video_and_join_distant_spans_come_first() -> None:
    questions = [
        question("a", needed=0.0, reach=90.0),
        question("b", reach=5.0),
        question("c", reach=60.0),
        question("d", drop="sight: x", reach=99.0),
        question("e", evidence=False, reach=99.0),
    ]
    assert [q.question_id for q in best(questions)] == ["c", "b", "a"]


def test_the_questions_are_of_different_videos_and_types_if_possible() -> None:
    questions = [question(f"a{n}", "a", "Order", reach=90.0 - n) for n in range(5)]
    questions += [question("b1", "b", "Order", reach=50.0), question("b2", "b", "Count", reach=1.0)]
    assert [q.question_id for q in best(questions)] == ["a0", "b2", "a1"]


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=20))
def test_at_most_three_kept_questions_are_chosen(rows: list[tuple[int, bool]]) -> None:
    questions = [
        question(str(n), f"v{video}", drop="x" if dropped else None)
        for n, (video, dropped) in enumerate(rows)
    ]
    chosen = best(questions)
    assert len(chosen) == min(3, sum(not dropped for _, dropped in rows))
    assert all(q.drop is None for q in chosen)
    assert len({q.question_id for q in chosen}) == len(chosen)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), max_size=40), st.randoms())
def test_the_choice_equals_a_choice_among_all_questions(
    rows: list[tuple[int, int]], random: Random
) -> None:
    """`best` keeps few questions in memory while it reads many."""
    worths = random.sample(range(100), len(rows))
    questions = [
        question(f"{n}", f"v{video}", f"k{kind}", reach=float(worth))
        for n, ((video, kind), worth) in enumerate(zip(rows, worths, strict=True))
    ]
    expected: list[Question] = []
    while len(expected) < min(3, len(questions)):
        videos, kinds = ({getattr(q, c) for q in expected} for c in ("video_id", "question_type"))
        expected.append(
            max(
                (q for q in questions if q not in expected),
                key=lambda q, f=videos, k=kinds: (
                    q.video_id not in f, q.question_type not in k, q.metrics["reach_seconds"],
                ),
            )
        )  # fmt: skip
    assert best(iter(questions)) == expected


def test_a_black_frame_stands_for_evidence_only_where_there_is_no_other() -> None:
    def keyframe(time: float, shade: int) -> Keyframe:
        return Keyframe(time=time, shot=0, jpeg=encode(np.full((36, 64, 3), shade, np.uint8), 90))

    frames = [keyframe(time, 0 if time == 15.0 else 200) for time in (11.0, 13.0, 15.0, 40.0)]
    shown = replace(question("q", "v"), evidence=(Span(10.0, 20.0),))
    assert [k.time for k in of_evidence(shown, frames)] == [11.0, 13.0]
    assert [k.time for k in of_evidence(shown, frames[2:])] == [15.0]
