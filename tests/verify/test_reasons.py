"""Why a question did not pass, by filter: of its present wording, in the filters' own words."""

from __future__ import annotations

import json
from dataclasses import replace

from mustsee.records import Question, Repair, Verdict, passed_metric, unverified_metric
from mustsee.verify.guess.counts import RIGHT_IN_SET
from mustsee.verify.reasons import NO_REPLY, failure_reasons, undecided_reasons

ASKED = Question(
    question_id="q", video_id="v", recipe="people", question="What is red?", question_type="",
    options=("a hat", "a shoe"), answer_index=0, answer="a hat",
)  # fmt: skip


def failed(name: str, *verdicts: Verdict, **changes: object) -> Question:
    metrics = {passed_metric(name): 0.0, passed_metric("other"): 1.0}
    return replace(ASKED, metrics=metrics, verdicts=verdicts, **changes)


def by(name: str, **fields: object) -> Verdict:
    return Verdict(**{"filter": name, "model": "m", **fields})


def test_a_dropped_question_has_the_reason_of_its_drop_once() -> None:
    dropped = failed("sight", by("sight", reply="* OPTION A: WRONG"), drop="sight: none is seen")
    assert failure_reasons(dropped) == {"sight": "none is seen"}
    assert failure_reasons(ASKED) == {}


def test_guesses_are_counted_with_what_was_shown_and_why() -> None:
    run = by("asr", correct=True, reply="* ANSWER: B > A\n* EXPLANATION: They say (B).",
             detail="options shown as BA")  # fmt: skip
    missed = by("asr", correct=False, reply="* ANSWER: A > B\n* EXPLANATION: (A), I guess.",
                detail="options shown as BA")  # fmt: skip
    guessed = failed("asr", run, missed, faults={"asr": "heard"})
    assert failure_reasons(guessed) == {
        "asr": "answered right from the transcript alone, in 1 of 2 runs: They say “a hat”."
    }


def test_filters_without_a_model_say_what_they_found() -> None:
    form = failed("giveaways", by("giveaways", reply="by far the longest", passed=False))
    assert failure_reasons(form) == {"giveaways": "by far the longest"}
    matched = failed("match", by("match", correct=True, reply="a hat",
                                 detail="3 of 4 in its set right"))  # fmt: skip
    matched = replace(matched, metrics={**matched.metrics, f"match{RIGHT_IN_SET}": 3.0})
    assert failure_reasons(matched)["match"].endswith(
        "matched to the questions without the video: 3 of 4 in its set right"
    )
    learned = failed("learned")
    sure = replace(learned, metrics={**learned.metrics, "learned": 0.62})
    assert failure_reasons(sure)["learned"].endswith("which is 62% sure of it")


def test_replies_on_an_earlier_wording_do_not_count() -> None:
    before = json.dumps({"verdicts": 1})
    reworded = Repair(kind="wording", filter="blind", reason="r", before=before, by="hand")
    now = by("blind", correct=True, reply="* EXPLANATION: new words")
    earlier = by("blind", correct=True, reply="* EXPLANATION: old words")
    asked = failed("blind", earlier, now, repairs=(reworded,), faults={"blind": "guessed"})
    assert failure_reasons(asked) == {
        "blind": "answered right without the video, in 1 of 1 runs: new words"
    }


def test_a_filter_that_could_not_decide_says_why() -> None:
    metrics = {unverified_metric("sight"): 1.0, unverified_metric("blind"): 1.0}
    looked = by("sight", detail=json.dumps({"unread": "no frames", "replies": []}))
    asked = replace(ASKED, metrics=metrics, verdicts=(looked,))
    assert undecided_reasons(asked) == {"sight": "no frames", "blind": NO_REPLY}
