"""An audit by a model that says nothing says so, and clears no question."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import mustsee
from mustsee.audit import show
from mustsee.audit.audit import FAILS, Audit, RepeatReport, audit
from mustsee.audit.battery import ConditionRun
from mustsee.audit.show import write_clean
from mustsee.evaluate.answers import FILTER, verdict_on_failure, verdict_on_reply
from mustsee.layouts import QuestionFile
from mustsee.records import Question, Verdict, Video
from tests.audit.test_show import pages, terminal
from tests.support.evaluation import questions

CUT = {"cut": True}
FAILED = {"error": "HTTP 400: no such parameter"}


def run_of(condition: str, model: str = "m") -> ConditionRun:
    return ConditionRun(name=f"{model} {condition}", answerer=model, condition=condition)


def asked(replies: Mapping[str, Sequence[tuple[str, Mapping[str, Any]]]]) -> list[Question]:
    """Questions with replies (text, detail) by condition; a letter of the text is read."""
    made = questions(len(next(iter(replies.values()))))
    for condition, given in replies.items():
        for n, (text, detail) in enumerate(given):
            name = f"m {condition}"
            verdict = verdict_on_reply(made[n], text, model=name, extra=detail)
            if "error" in detail:
                verdict = verdict_on_failure(detail["error"], model=name)
            made[n] = replace(made[n], verdicts=(*made[n].verdicts, verdict))
    return made


def audited(made: Sequence[Question], *conditions: str) -> Audit:
    return audit(made, [], [run_of(c) for c in conditions], RepeatReport())


SILENT = [
    ([("", CUT)] * 12, "12 cut off at the limit of tokens); a model that thinks needs llm.thought"),
    ([("Let me think about", CUT)] * 12, "12 cut off"),
    ([(" ", {})] * 12, "12 empty"),
    ([("I cannot see a video.", {})] * 12, "none of 12 replies names an option"),
    ([("", FAILED)] * 12, "all 12 calls failed (HTTP 400: no such parameter)"),
    ([("", FAILED)] * 6 + [("", CUT)] * 6, "6 failed: HTTP 400"),
]


@pytest.mark.parametrize(("replies", "said"), SILENT)
def test_a_condition_without_a_named_option_is_not_measured(
    tmp_path: Path, replies: Any, said: str
) -> None:
    made = asked({"blind": replies})
    found = audited(made, "blind")
    assert [each.condition for each in found.unmeasured] == ["blind"]
    assert found.figures == ()
    assert found.any.ratio is None
    assert not [one for one in found.battery if one.kind == "condition"]
    assert (found.fails["untested"], found.clean) == (12, 0)
    lines = show.unmeasured_sentences(found)
    assert len(lines) == 1
    assert lines[0].startswith("blind was not measured for m: ")
    assert said in lines[0]
    videos = tuple(Video(video_id=q.video_id, uri="") for q in made[::2])
    reading = QuestionFile(layout="ours", questions=tuple(made), videos=videos)
    page = pages(tmp_path, reading, found)
    assert "blind was not measured for m" in page
    assert FAILS["untested"] in page
    assert "0.0 % right" not in page
    assert "Only the guessers guessed" not in terminal(show.describe_rules(found))


def test_what_another_condition_measured_is_shown_and_nothing_is_cleared() -> None:
    named = [("ABCDE"[n % 5], {}) for n in range(12)]
    found = audited(asked({"blind": [("", CUT)] * 12, "one_frame": named}), "blind", "one_frame")
    assert [each.condition for each in found.unmeasured] == ["blind"]
    assert [one.name for one in found.battery if one.kind == "condition"] == ["one_frame"]
    assert found.fails["untested"] == 12


def test_a_model_that_answers_measures_for_one_that_does_not() -> None:
    made = asked({"blind": [("", CUT)] * 12})
    named = [
        replace(q, verdicts=(*q.verdicts, Verdict(
            filter=FILTER, model="n blind", reply="A",
            detail=json.dumps({"rotation": 0, "letter": "A"}))))
        for q in made
    ]  # fmt: skip
    found = audit(named, [], [run_of("blind"), run_of("blind", "n")], RepeatReport())
    assert [(each.answerer, each.condition) for each in found.unmeasured] == [("m", "blind")]
    assert found.fails["untested"] == 0


def test_only_questions_without_any_reply_are_left_out_of_a_measured_condition() -> None:
    """A reply in words that names no option is a model that cannot tell, which clears."""
    replies = [("", FAILED), ("", CUT), ("I cannot tell.", {}), *[("B", {})] * 9]
    found = audited(asked({"blind": replies}), "blind")
    assert found.unmeasured == ()
    untested = [item.question_id for item in found.items if "untested" in item.fails]
    assert untested == [q.question_id for q in questions(2)]
    (said,) = show.unmeasured_sentences(found)
    assert said == (
        "blind of m: 18% of the replies name no option, every call of 1 questions failed"
    )


def test_a_silent_model_that_saw_the_video_leaves_nothing_out() -> None:
    found = audited(asked({"whole": [("", CUT)] * 12}), "whole")
    assert found.fails["untested"] == 0
    assert [each.condition for each in found.unmeasured] == ["whole"]
    assert not found.keys_tested


def test_unmeasured_questions_are_not_in_the_clean_table(tmp_path: Path) -> None:
    file = tmp_path / "q.csv"
    rows = [[q.video_id, q.question, *q.options, "ABCDE"[q.answer_index or 0]]
            for q in questions(12)]  # fmt: skip
    lines = [["video", "question", *"ABCDE", "answer"], *rows]
    file.write_text("\n".join(",".join(f'"{cell}"' for cell in row) for row in lines))
    reading = mustsee.read(file)
    silent = [
        replace(q, verdicts=(Verdict(filter=FILTER, model="m blind",
                                     detail=json.dumps({"rotation": 0, **FAILED})),))
        for q in reading.questions
    ]  # fmt: skip
    found = audited(silent, "blind")
    write_clean(tmp_path / "clean", reading, found, file)
    assert found.kept_count == 0
    assert (tmp_path / "clean" / "q.csv").read_text().count("\n") <= 1
