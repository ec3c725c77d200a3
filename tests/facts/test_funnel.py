"""What became of facts and questions, which step lost most, and what a user can do about it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mustsee.facts.recipe import count_forms, explain_no_questions
from mustsee.facts.select import Chosen, ChosenGroup
from mustsee.facts.stem import Stem
from mustsee.questions.fact_funnel import (
    FactFunnel,
    RunFunnel,
    describe_unread,
    explain_loss,
    funnel_of_video,
)
from mustsee.records import Fact, FormCount, RequestCount, Span, Video
from ray_jobs.cli.compose import compose

MOMENTS = [Span(6.0 * n, 6.0 * n + 6) for n in range(5)]


def fact(number: int, **fate: Any) -> Fact:
    return Fact(
        fact_id=f"f{number}", kind="event", phrase=f"a man jumps {number} times", source="m",
        spans=(Span(6.0 * number + 1, 6.0 * number + 3),), **fate,
    )  # fmt: skip


VIDEO = Video(
    video_id="v", uri="v.mp4", duration=30.0,
    facts=(
        fact(0, seen=(MOMENTS[0],), unseen=(MOMENTS[1],)),
        fact(1, unseen=(MOMENTS[1],), drop="not seen where it is claimed"),
        fact(2, unsure=(MOMENTS[2],), drop="not settled where it is claimed"),
        fact(3, seen=(MOMENTS[1],)),  # The look at its own moment had no readable reply.
        replace(fact(4, seen=(MOMENTS[4],)), kind="line"),
    ),
    forms=(
        FormCount(form="after", possible=9, drafted=6, guessed=2, unread=1, chosen=3),
        FormCount(form="after_text", possible=2, drafted=1, guessed=1),
    ),
)  # fmt: skip


def test_only_what_was_looked_at_where_it_is_claimed_counts_as_looked_at() -> None:
    """Lines need no look, and a look elsewhere says nothing of the claim."""
    assert funnel_of_video(VIDEO, passed=2) == FactFunnel(
        listed=5, spoken=1, looked_at=3, seen=1, possible=11, drafted=7, guessed=3, unread=1,
        chosen=3, passed=2,
    )  # fmt: skip
    both = funnel_of_video(VIDEO) + funnel_of_video(VIDEO, passed=1)
    assert (both.listed, both.seen, both.passed) == (10, 2, 1)


def test_questions_are_counted_by_the_key_of_their_form() -> None:
    def group(question: str, key: str) -> ChosenGroup:
        stem = Stem(
            form="after", key=key, question=question, question_type="Other", answer="a",
            evidence=(Span(0, 1),),
        )  # fmt: skip
        return ChosenGroup(members=(Chosen(stem=stem, options=("a", "b"), rank=1),))

    a, b, c, d = (group(q, k) for q, k in zip("abcd", ("after", "after_text") * 2, strict=True))
    possible = [g.members[0].stem for g in (a, b, c, d)]
    assert count_forms(possible, [a, b, c], [a], [b], [a]) == (
        FormCount(form="after", possible=2, drafted=2, unread=1, chosen=1),
        FormCount(form="after_text", possible=2, drafted=1, guessed=1),
    )


LOST = {  # the step that lost most -> words of its sentence, and its key for a model
    "listed no fact": (FactFunnel(), "ask/writer="),
    "not seen where they are claimed: 19 of 20": (
        FactFunnel(listed=20, looked_at=20, seen=1, possible=1), "ask.settings.look.most",
    ),
    "not seen where they are claimed: 18 of 20": (
        FactFunnel(listed=20, looked_at=20, seen=2, claims=3, held=3), "ask.settings.look_own.fps",
    ),
    "the 6 facts that hold allow 0 questions": (
        FactFunnel(listed=6, spoken=2, looked_at=4, seen=4), "ask.settings.each",
    ),
    "1 of 22 possible questions": (
        FactFunnel(listed=29, looked_at=25, seen=25, possible=22, drafted=1, guessed=1),
        "ask.settings.select.options",
    ),
    "answered right without the video: 19 of 20": (
        FactFunnel(
            listed=9, looked_at=9, seen=9, possible=99, drafted=20, guessed=19, chosen=1, passed=1
        ),
        "ask.settings.drafts",
    ),
    "1 of 15 questions that the exam left": (
        FactFunnel(
            listed=9, looked_at=9, seen=9, possible=99, drafted=20, guessed=5, chosen=1, passed=1
        ),
        "ask.settings.select.of_form",
    ),
    "kept out by a filter: 15 of 20": (
        FactFunnel(
            listed=9, looked_at=9, seen=9, possible=99, drafted=90, guessed=9, chosen=20, passed=5
        ),
        "ask/writer=",
    ),
}  # fmt: skip


@pytest.mark.parametrize("words", LOST)
def test_the_step_that_lost_most_is_named_with_a_key(words: str) -> None:
    funnel, key = LOST[words]
    sentence = explain_loss(funnel, (), by_rules=False)
    assert words in sentence
    assert key in sentence
    assert "ask.settings" not in explain_loss(funnel, (), by_rules=True) or key.endswith("of_form")


@pytest.mark.parametrize("words", LOST)
def test_keys_that_are_named_exist(words: str) -> None:
    sentence = explain_loss(LOST[words][0], (), by_rules=False)
    named = [w.strip("();,") for w in sentence.split() if w.strip("(").startswith("ask.settings.")]
    compose("make", ["videos=x", "out=y", *named])


def test_a_video_whose_few_questions_all_failed_a_filter_says_why_there_were_few() -> None:
    few = FactFunnel(listed=9, looked_at=9, seen=9, possible=7, drafted=1, chosen=1)
    many = FactFunnel(listed=9, looked_at=9, seen=9, possible=99, drafted=90, chosen=20, passed=9)
    run = RunFunnel(total=few, videos={"a": few, "b": FactFunnel(), "c": many}, by_rules=True)
    reasons = {"a": "1 made, none passed", "b": "nothing listed"}
    assert run.explain_all(reasons)["b"] == "nothing listed"
    assert run.explain_all(reasons)["a"].startswith(
        "1 made, none passed; before that, too few wrong options: 1 of 7 possible questions"
    )
    assert run.explain_all(reasons).keys() == reasons.keys()


def test_a_run_that_loses_nothing_says_nothing() -> None:
    whole = FactFunnel(listed=9, looked_at=9, seen=9, possible=99, drafted=90, chosen=36, passed=36)
    assert explain_loss(whole, (), by_rules=False) == ""
    assert RunFunnel().most_lost == ""


def test_replies_that_could_not_be_read_come_before_what_follows_of_it() -> None:
    """A film of which most looks were refused has few facts that hold, but not for that reason."""
    funnel = FactFunnel(listed=50, looked_at=3, seen=3, possible=2)
    looks = RequestCount(stage="ask", what="looks", sent=40, unread=38, error="HTTP 400: too long")
    sentence = explain_loss(funnel, [looks], by_rules=False)
    assert sentence.startswith(
        "38 of 40 looks had no readable reply (the last: HTTP 400: too long)"
    )
    assert "retry_problems=true" in sentence
    vet = replace(looks, stage="vet")
    assert "retry_problems" not in RunFunnel(total=funnel, requests=[vet]).most_lost
    assert len(describe_unread(replace(looks, error="x " * 999))) < 300


def test_a_video_whose_lines_explain_steps_says_so() -> None:
    phrases = ("First we take an egg", "Then we break it", "Next comes the flour", "Now stir it")
    lines = tuple(
        replace(fact(n), kind="line", phrase=f"\u201c{phrase}.\u201d")
        for n, phrase in enumerate(phrases)
    )
    video = Video(video_id="v", uri="v.mp4", duration=30.0, facts=lines, forms=())
    assert "its lines explain steps" in explain_no_questions(video, "model")
    assert "its lines explain steps" not in explain_no_questions(replace(video, facts=()), "model")
    assert "llm=openai" in explain_no_questions(replace(video, facts=()), "offline 0")
