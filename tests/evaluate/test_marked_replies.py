"""Replies are marked by the key that a question has."""

from __future__ import annotations

from dataclasses import replace

from mustsee.evaluate.answers import (
    answers,
    mark_replies,
    verdict_on_failure,
    verdict_on_reply,
)
from mustsee.records import Question
from mustsee.text import LETTERS
from tests.support.evaluation import questions


def answered(question: Question, **chosen: int | None) -> Question:
    given = [
        verdict_on_failure("gone", model=model)
        if option is None
        else verdict_on_reply(question, LETTERS[option], model=model)
        for model, option in chosen.items()
    ]
    return replace(question, verdicts=(*question.verdicts, *given))


def test_replies_follow_a_corrected_key() -> None:
    (asked,) = questions(1)
    given = answered(replace(asked, answer_index=0, answer=asked.options[0]), a=0, b=1)
    turned = mark_replies(replace(given, answer_index=1, answer=asked.options[1]))
    assert [a.correct for a in answers(given)] == [True, False]
    assert [a.correct for a in answers(turned)] == [False, True]


def test_replies_without_an_option_and_answers_in_words_stay_as_they_are() -> None:
    (question,) = questions(1)
    given = answered(question, a=None)
    unread = replace(given, verdicts=(*given.verdicts, verdict_on_reply(given, "?", model="b")))
    assert mark_replies(unread) == unread
    assert [a.correct for a in answers(mark_replies(unread))] == [None, None]
    words = replace(question, options=(), answer_index=None)
    spoken = replace(words, verdicts=(verdict_on_reply(words, "red", model="c"),))
    assert mark_replies(spoken) == spoken
