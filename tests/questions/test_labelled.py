"""Replies with labelled lines: questions, answers, wrong answers."""

from contextlib import suppress

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mustsee.errors import Unparsed
from mustsee.questions import labelled
from mustsee.questions.checks import normal

words = st.text("abcdefgh ", min_size=3, max_size=30).map(lambda t: f"x{t.strip()}z")


@given(
    st.lists(
        st.tuples(words, words, st.lists(words, min_size=4, max_size=4, unique=True)),
        min_size=1,
        max_size=4,
    ),
    st.sampled_from(["Wrong answer {n}: ", "Wrong Answer {a} : ", "**Wrong answer {n}:** "]),
    st.booleans(),
)
def test_replies_are_parsed_whatever_their_labels(groups, label, blank) -> None:
    lines = []
    for number, (question, answer, wrong) in enumerate(groups, 1):
        lines += [f"Question {number}: {question}", f"Correct answer: {answer}"]
        lines += [label.format(n=n, a="ABCD"[n - 1]) + text for n, text in enumerate(wrong, 1)] + [
            ""
        ] * blank
    text = "\n".join(lines)
    assert labelled.is_malformed(text) is (label != "Wrong answer {n}: ")
    assume(all(len({normal(o) for o in (a, *w)}) == 5 for _, a, w in groups))
    found = labelled.drafts(len(groups), wrong=4, with_question=True).read(text)
    assert [(d.question, d.answer, list(d.decoys)) for d in found] == [
        (" ".join(q.split()), " ".join(a.split()), [" ".join(w.split()) for w in ws])
        for q, a, ws in groups
    ]


@given(st.text(max_size=300))
def test_any_reply_is_parsed_or_refused(text) -> None:
    for call in (
        lambda: labelled.questions_in(2).read(text),
        lambda: labelled.drafts(1, wrong=4, with_question=False).read(text),
    ):
        with suppress(Unparsed):
            call()


def test_a_reply_may_say_none_in_place_of_a_question() -> None:
    said = "Question 1: What is cut?\nQuestion 2: None.\nQuestion 3: none"
    assert labelled.questions_in(3).read(said) == ["What is cut?"]
    assert labelled.questions_in(1).read("Question 1: none") == []
    for silent in ("Question 1: What is cut?", "", "Question 1: the full question"):
        with pytest.raises(Unparsed, match="expected 3"):
            labelled.questions_in(3).read(silent)
    whole = "Question 1: q\nCorrect answer: a\nWrong answer 1: b\n\nQuestion 2: none"
    (draft,) = labelled.drafts(2, wrong=1, with_question=True).read(whole)
    assert draft.answer == "a"


def test_answers_and_wrong_answers_are_parsed_without_questions() -> None:
    sets = "\n".join(
        [
            f"Correct answer: a{n}\n" + "\n".join(f"Wrong answer {w}: w{n}{w}" for w in (1, 2))
            for n in (1, 2)
        ]
    )
    found = labelled.drafts(2, wrong=2, with_question=False).read(sets)
    assert [(d.answer, d.decoys) for d in found] == [("a1", ("w11", "w12")), ("a2", ("w21", "w22"))]
    alone = "Wrong answer A: p\nWrong answer B: q\nWrong answer A: r\nWrong answer B: s"
    both = labelled.drafts(2, wrong=2, with_question=False, with_answer=False).read(alone)
    assert [d.decoys for d in both] == [("p", "q"), ("r", "s")]
    for wrong in (
        "Correct answer: [Output disregarded]\nWrong answer 1: x\nWrong answer 2: y",
        "Correct answer: x\nWrong answer 1: y",
        "Correct answer: x\nWrong answer 1: X.\nWrong answer 2: y",
        "none",
    ):
        with pytest.raises(Unparsed):
            labelled.drafts(1, wrong=2, with_question=False).read(wrong)
