"""The filter `course`."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from mustsee.errors import UserError
from mustsee.records import Line, Question, Video
from mustsee.verify.conditions.video_frames import VideoFrames
from mustsee.verify.told_course import ToldCourse, is_of_words_alone, tells_course
from mustsee.verify.vetting import VettingContext

RECIPE = (
    "First, there are three eggs.",
    "The second step is to add the flour.",
    "Be careful with the shells.",
    "Then the mixture has to rest for a while.",
    "Now we mix everything together.",
    "It is brown already.",
)
STORY = (
    "The first frame cost more than the print.",
    "I found this one behind the cupboard.",
    "He then said no.",
    "My aunt keeps the next one in a tin.",
)
WORDS = ("the words “FLOUR”", "the words “ANNA”", "the words “YOU NEED”")


def lines_of(texts: tuple[str, ...]) -> tuple[Line, ...]:
    return tuple(Line(start=n, end=n + 1, text=text) for n, text in enumerate(texts))


def question_of(text: str, options: tuple[str, ...], form: str, answer: int = 0) -> Question:
    return Question(
        question_id="q", video_id="v", recipe="facts", question=text, question_type="t",
        options=options, answer_index=answer, answer=options[answer], form=form,
    )  # fmt: skip


def check(question: Question, texts: tuple[str, ...], *, drops: bool = False) -> Question:
    video = Video(video_id="v", uri="v.mp4", lines=lines_of(texts))
    vetting = VettingContext(askers={}, video_frames=VideoFrames(video))
    return asyncio.run(ToldCourse(drops=drops)(question, video, vetting))


def test_a_recipe_tells_a_course_and_a_story_does_not() -> None:
    assert tells_course(lines_of(RECIPE), 0.15)
    assert not tells_course(lines_of(STORY), 0.15)
    assert not tells_course(lines_of(RECIPE[:2]), 0.15), "two lines are too few"
    long = RECIPE + tuple(f"We talk about the weather in {n}." for n in range(40))
    assert not tells_course(lines_of(long), 0.15)


@pytest.mark.parametrize(
    ("text", "options", "form", "words_alone"),
    [
        ("Which of these is seen first?", WORDS, "first", True),
        ("Which of these is seen next after the words “EGGS” can be seen?", WORDS, "after", True),
        ("Which of these is said while the words “EGGS” can be seen?", ("“One.”", "“Two.”"),
         "said", True),
        ("In which order are these seen? the words “A”; the words “B”",
         ("the words “A”; the words “B”", "the words “B”; the words “A”"), "order", True),
        ("Which words are seen when much of the picture is clearly blue?", WORDS, "reads", False),
        ("Which of these is so when the words “ANNA” can be seen?",
         ("the whole picture is bright", "much of the picture is clearly blue"), "state", False),
        ("Which of these happens first?", ("a man sits", "a dog barks"), "first", False),
        ("What happens while this is said: “Now.”?", ("a man sits", "a dog barks"), "while", False),
    ],
)  # fmt: skip
def test_questions_on_words_alone(
    text: str, options: tuple[str, ...], form: str, words_alone: bool
) -> None:
    asked = question_of(text, options, form)
    assert is_of_words_alone(asked) == words_alone
    checked = check(asked, RECIPE)
    assert checked.metrics["course_passed"] == float(not words_alone)
    assert checked.drop is None, "it marks"
    assert check(asked, STORY).metrics["course_passed"] == 1.0
    assert (check(asked, RECIPE, drops=True).drop is not None) == words_alone


def test_a_video_without_a_transcript_gets_no_verdict() -> None:
    asked = question_of("Which of these is seen first?", WORDS, "first")
    assert check(asked, ()) == replace(asked)


def test_a_share_must_be_a_share() -> None:
    with pytest.raises(UserError, match=r"vet\.filters\.course\.share=0"):
        ToldCourse(share=0)
