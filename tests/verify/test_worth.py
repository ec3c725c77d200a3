"""A rater grades some kept questions; nothing is dropped or selected by it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from mustsee.calls.llm import Asker, Reply, Request
from mustsee.calls.usage import RequestTally
from mustsee.errors import BadRow, Transient
from mustsee.files import schemas
from mustsee.layouts.card import CardCounts, funnel
from mustsee.prompts import Prompts
from mustsee.records import Point, Provenance, Question, Span, Verdict, Video
from mustsee.run.tables import Tables, question_counts
from mustsee.verify.worth import (
    CONDITIONS_PROMPT,
    PROMPT,
    RATINGS,
    WorthRules,
    count_worth,
    draw_rated,
    rate_words,
    rate_worth,
)
from ray_jobs.cli.build import build
from ray_jobs.cli.compose import compose
from ray_jobs.runtime.outcome import outcome_lines


class Frames:
    async def jpegs(self, times: Sequence[float], see: Any) -> tuple[bytes, ...]:
        return tuple(b"jpeg" for _ in times)


FRAMES: Any = Frames()


class Rater:
    """Gives the number in a question as its worth; says that the third condition is not met."""

    identity = "rater"

    def __init__(self, unread: str = "", lost: str = "") -> None:
        self.requests: list[Request] = []
        self.unread, self.lost = unread, lost

    async def complete(self, request: Request) -> Reply:
        self.requests.append(request)
        if request.prompt == self.lost:
            raise Transient("lost")
        if request.prompt == self.unread:
            return Reply(text="I would rather not.", model="m")
        lines: list[str] = []
        for n, one in enumerate(request.variables["asked"], 1):
            worth = int(one["question"].split()[1]) % 5 + 1
            cells = (
                f"4 | {worth} | 3 | so"
                if request.prompt == PROMPT
                else ("YES | YES | NO | YES | YES | two fit")
            )
            lines.append(f"QUESTION {n}: {cells}")
        return Reply(text="\n".join(lines), model="m")

    def asker(self) -> Asker:
        return Asker(llm=self, prompts=Prompts(), tries=1)


def question(number: int, **values: Any) -> Question:
    given: dict[str, Any] = {
        "question_id": f"q{number}", "video_id": "v", "recipe": "facts", "answer": "It falls.",
        "question": f"Question {number} asks what?", "question_type": "Other",
        "evidence": (Span(10.0 * number, 10.0 * number + 4),),
        "points": (Point(text="It falls."),),
    }  # fmt: skip
    return Question(**(given | values))


VIDEO = Video(
    video_id="v", uri="v.mp4", duration=240.0,
    questions=tuple(question(n, drop="spare: enough" if n % 4 == 3 else None) for n in range(12)),
)  # fmt: skip


def rate(
    rater: Rater, video: Video = VIDEO, rules: WorthRules | None = None, *, looks: bool = True
) -> tuple[Video, RequestTally]:
    requests = RequestTally()
    done = rate_worth(
        video, rater.asker(), FRAMES, rules or WorthRules(), requests, seed=0, looks=looks
    )
    return asyncio.run(done), requests


def test_some_kept_questions_are_rated_and_none_is_dropped() -> None:
    rater = Rater()
    done, _ = rate(rater, rules=WorthRules(questions=6, together=4))
    rated = [q for q in done.questions or () if "rated_worth" in q.metrics]
    assert len(rated) == 6
    assert all(q.drop is None for q in rated)
    before = {q.question_id: (q.drop, q.subsets) for q in VIDEO.questions or ()}
    assert {q.question_id: (q.drop, q.subsets) for q in done.questions or ()} == before
    for one in rated:
        assert one.metrics["rated_worth"] == int(one.question.split()[1]) % 5 + 1
        assert (one.metrics["rated_c"], one.metrics["rated_d"]) == (0.0, 1.0)
        (verdict,) = one.verdicts
        assert (verdict.filter, verdict.model, verdict.correct) == ("worth", "rater", None)
        assert "two fit" in verdict.detail
    assert [r.prompt for r in rater.requests].count(PROMPT) == 1
    assert [r.prompt for r in rater.requests].count(CONDITIONS_PROMPT) == 2


def test_words_are_graded_without_the_video_and_conditions_from_the_evidence() -> None:
    rater = Rater()
    rate(rater, replace(VIDEO, questions=(question(5),)))
    words = next(r for r in rater.requests if r.prompt == PROMPT)
    looks = next(r for r in rater.requests if r.prompt == CONDITIONS_PROMPT)
    assert not words.messages[-1].images
    assert "It falls." not in words.messages[-1].text, "no answer is shown"
    assert looks.messages[-1].images
    assert all(49.0 <= time <= 55.0 for time in looks.variables["frames"])
    assert "It falls." in looks.messages[-1].text


def test_a_rater_without_eyes_grades_words_only() -> None:
    rater = Rater()
    done, _ = rate(rater, looks=False)
    counts = count_worth(done.questions or ())
    assert counts is not None
    assert (counts.rated, counts.checked) == (8, 0)
    assert {r.prompt for r in rater.requests} == {PROMPT}


def test_the_sample_does_not_depend_on_other_questions() -> None:
    some = [question(n) for n in range(40)]
    drawn = draw_rated(some, 8)
    assert draw_rated(reversed(some), 8) == drawn
    left = [q for q in some if q != drawn[0]]
    assert draw_rated(left, 8)[:7] == drawn[1:]
    assert [q.question_id for q in drawn] != [f"q{n}" for n in range(8)]


def test_ratings_that_cannot_be_read_are_counted_and_the_others_stay() -> None:
    done, requests = rate(Rater(unread=CONDITIONS_PROMPT))
    counts = count_worth(done.questions or ())
    assert counts is not None
    assert (counts.rated, counts.checked) == (8, 0)
    assert requests.unread(RATINGS) == 2
    nothing, requests = rate(Rater(unread=PROMPT), looks=False)
    assert nothing == VIDEO
    assert requests.unread(RATINGS) == 1
    with pytest.raises(Transient):
        rate(Rater(lost=PROMPT))


def test_means_and_conditions_are_said_with_whose_they_are() -> None:
    done, _ = rate(Rater())
    counts = count_worth(done.questions or ())
    assert counts is not None
    rated = [q for q in done.questions or () if q.verdicts]
    mean = sum(q.metrics["rated_worth"] for q in rated) / len(rated)
    assert counts.means == {"english": 4.0, "worth": round(mean, 3), "depth": 3.0}
    assert (counts.met["a"], counts.met["c"], counts.all_met) == (8, 0, 0)
    assert f"english 4.0, worth {mean:.1f}, depth 3.0 of 5 (8 questions)" in counts.summary_line
    assert "C 0" in counts.summary_line
    assert not counts.own
    assert "of the run itself" not in counts.summary_line


@pytest.mark.parametrize("by", ["provenance", "verdict"])
def test_a_rater_that_wrote_or_examined_the_questions_is_said(by: str) -> None:
    done, _ = rate(Rater())
    some = [
        replace(q, provenance=Provenance(llm="other + rater", prompts="p"))
        if by == "provenance"
        else replace(q, verdicts=(*q.verdicts, Verdict(filter="sight", model="rater")))
        for q in done.questions or ()
    ]
    counts = count_worth(some)
    assert counts is not None
    assert counts.own
    assert "a model of the run itself: set vet/rater=" in counts.summary_line


def test_without_ratings_there_is_nothing_to_say() -> None:
    assert count_worth(VIDEO.questions or ()) is None


@pytest.mark.parametrize(
    "text",
    ["QUESTION 1: 4 | 6 | 3 | so", "QUESTION 1: 4 | 3 | so", "QUESTION 1: good | 3 | 3 | so",
     "QUESTION 2: 4 | 3 | 3 | so"],
)  # fmt: skip
def test_grades_of_another_form_are_refused(text: str) -> None:
    class Odd(Rater):
        async def complete(self, request: Request) -> Reply:
            return Reply(text=text, model="m")

    with pytest.raises(BadRow, match=PROMPT):
        asyncio.run(rate_words([question(1)], Odd().asker(), seed=0))


def test_ratings_are_counted_of_tables_and_printed_in_summary_and_card(tmp_path: Path) -> None:
    done, _ = rate(Rater())
    pq.write_table(schemas.questions_table(done.questions or ()), tmp_path / "questions.parquet")
    pq.write_table(schemas.table([VIDEO], Video), tmp_path / "videos.parquet")
    counts = question_counts(Tables(tmp_path))
    assert counts.worth == count_worth(done.questions or ())
    assert counts.worth is not None
    line = counts.worth.summary_line
    printed = [str(each) for each in outcome_lines(counts, None, makes=True)]
    assert line in printed
    run = {"questions": {"made": 12, "dropped": {}, "worth": {"said": line}}}
    assert f"- {line}" in funnel(run, CardCounts())


def test_a_model_rates_and_rules_do_not() -> None:
    given = ["videos=none", "out=none"]
    rules = build(compose("make", given)).vet
    model = build(compose("make", [*given, "llm=openai"])).vet
    off = build(compose("make", [*given, "llm=openai", "vet.worth=null"])).vet
    assert (rules.used_worth, off.used_worth) == (None, None)
    assert model.used_worth == WorthRules(see=model.worth.see)
    assert [("rater" in part.roles) for part in (rules, model, off)] == [False, True, False]
    assert PROMPT in model.prompt_names
    assert PROMPT not in rules.prompt_names
