"""People's questions stand beside those of a run; what cannot be added is named."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest

from mustsee.errors import UserError
from mustsee.layouts import QuestionFile
from mustsee.layouts.added import (
    MOVED,
    NO_KEY,
    NO_VIDEO,
    NOT_MADE,
    NOT_WITHIN,
    PEOPLE,
    AddedQuestions,
    add_questions,
    describe_verdicts,
    is_edited,
    write_verdicts,
)
from mustsee.layouts.detect import read
from mustsee.layouts.ticks import Tick, apply_tick
from mustsee.media.video_names import SEVERAL
from mustsee.records import (
    Point,
    Question,
    Repair,
    Span,
    Verdict,
    Video,
    passed_metric,
    unverified_metric,
)
from mustsee.verify.repair import wording_fields

VIDEOS = (
    Video(video_id="aa", uri="/films/pan.mp4", duration=60.0),
    Video(video_id="bb", uri="/films/other.mp4", duration=60.0, drop="probe: too short"),
)
MINE = Question(
    question_id="m1", video_id="pan", recipe="table", question="Who?", question_type="",
    options=("a", "b"), answer_index=1, evidence=(Span(1, 2),),
)  # fmt: skip
OLD = replace(MINE, question_id="old", video_id="aa", recipe="facts", subsets=("mma",))


def file_of(*questions: Question) -> QuestionFile:
    return QuestionFile(layout="table", questions=questions)


def test_questions_are_added_by_the_id_or_file_of_their_video() -> None:
    by_id = replace(MINE, question_id="m2", video_id="aa")
    added = add_questions(file_of(MINE, by_id), VIDEOS, [OLD])
    row, other = added.rows
    assert row.questions is not None
    assert row.questions[0] == OLD
    assert [(q.question_id, q.video_id, q.recipe) for q in row.questions[1:]] == [
        ("m1", "aa", PEOPLE), ("m2", "aa", PEOPLE),
    ]  # fmt: skip
    assert (row.questions[1].question, row.questions[1].options) == (MINE.question, MINE.options)
    assert row.questions[1].answer == "b"
    assert other.questions == ()
    assert added.lines() == ["2 questions by people added"]


def test_what_cannot_be_added_is_named_with_its_reason() -> None:
    others = {
        "gone": (replace(MINE, video_id="gone"), NO_VIDEO),
        "drop": (replace(MINE, video_id="other"), NOT_MADE),
        "key": (replace(MINE, answer_index=None), NO_KEY),
        "late": (replace(MINE, evidence=(Span(59, 61),)), NOT_WITHIN),
    }
    questions = [replace(q, question_id=name) for name, (q, _) in others.items()]
    added = add_questions(file_of(MINE, *questions), VIDEOS, [OLD])
    assert added.left_out == {name: reason for name, (_, reason) in others.items()}
    assert f"1 not added, {NO_VIDEO}: gone (gone)" in added.lines()
    assert (added.plain()["added"], added.plain()["left_out"]) == (("m1",), added.left_out)
    with pytest.raises(UserError, match=r"none of 4 questions.*has no such video \(1\).*as aa, bb"):
        add_questions(file_of(*questions), VIDEOS, [OLD])
    with pytest.raises(UserError, match="ids of questions of the run: m1"):
        add_questions(file_of(MINE), VIDEOS, [replace(OLD, question_id="m1")])


@pytest.mark.parametrize("written", ["b.mp4", "cuts/b.mp4", "/elsewhere/cuts/b.MP4", "b"])
def test_a_table_may_name_a_video_by_any_path_to_its_file(written: str, tmp_path: Path) -> None:
    videos = [
        Video(video_id="a-1", uri="/films/cuts/a.mp4", duration=9.0),
        Video(video_id="a-2", uri="/films/whole/a.mp4", duration=9.0),
        Video(video_id="b", uri="/films/cuts/b.mp4", duration=9.0),
    ]
    file = tmp_path / "mine.csv"
    rows = f"whole/a.mp4,1,Who?,a,b,0\n{written},2,Who?,a,c,0\na.mp4,3,Who?,a,d,0\n"
    file.write_text(f"vid,qid,q,a0,a1,answer\n{rows}")
    added = add_questions(read(file), videos, [])
    by_video = {v.video_id: [q.question_id for q in v.questions or ()] for v in added.rows}
    # Row 3 names no folder, and the table has one file a.mp4 only: the same as in row 1.
    assert by_video == {"a-1": [], "a-2": ["1", "3"], "b": ["2"]}
    file.write_text("vid,qid,q,a0,a1,answer\na.mp4,1,Who?,a,b,0\nb.mp4,2,Who?,a,c,0\n")
    added = add_questions(read(file), videos, [])
    assert added.added == ("2",)
    assert added.lines()[-1] == f"1 not added, {SEVERAL}: 1 (a.mp4)"


def test_broken_rows_of_a_table_are_left_out(tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    file.write_text(
        "vid,qid,q,a0,a1,answer\npan,1,Who?,a,b,0\npan,2,Who?,a,a,0\npan,3,Who?,c,d,1\n"
    )
    added = add_questions(read(file), VIDEOS, [OLD])
    assert added.added == ("1", "3")
    assert added.left_out == {"2": "two options are the same"}


def guessed(question: Question, reply: str, order: str = "BA") -> Question:
    """A question that was guessed right in two runs, whose options were shown in an order."""
    verdicts = [
        Verdict(
            filter="blind", model="m", correct=True, reply=reply, detail=f"options shown as {o}"
        )
        for o in (order[::-1], order)
    ]
    metrics = {passed_metric("blind"): 0.0}
    return replace(question, verdicts=tuple(verdicts), metrics=metrics, faults={"blind": "guessed"})


def test_each_question_that_did_not_pass_is_named_with_filter_and_reason(tmp_path: Path) -> None:
    mine = replace(MINE, recipe=PEOPLE)
    known = guessed(replace(mine, question_id="m2"), "* ANSWER: A > B\n* EXPLANATION: A fits best.")
    detail = json.dumps({"unread": "no frames"})
    open_ = replace(
        mine, question_id="m3", metrics={unverified_metric("sight"): 1.0}, drop="x: y",
        verdicts=(Verdict(filter="sight", model="m", detail=detail),),
    )  # fmt: skip
    changed = replace(OLD, question_id="old2")
    tested = dict.fromkeys(("m1", "m2", "m3"), "questions by people") | {"old2": "edited questions"}
    asked = [mine, known, open_, OLD, changed]
    assert describe_verdicts(asked, tested) == [
        "questions by people: 1 of 3 passed every filter; 1 dropped; did not pass blind (1); "
        "unverified by sight (1)",
        "  m2: Who?",
        "    did not pass blind: answered right without the video, in 2 of 2 runs: “b” fits best.",
        "  m3: Who?",
        "    dropped by x: y",
        "    sight could not decide: no frames",
        "edited questions: 1 of 1 passed every filter",
    ]
    write_verdicts(tmp_path, asked, tested)
    with (tmp_path / "added.csv").open(newline="") as file:
        rows = [(r["question_id"], r["result"], r["filter"]) for r in csv.DictReader(file)]
    assert rows == [
        ("m1", "passed", ""), ("m2", "did not pass", "blind"), ("m3", "dropped", "x"),
        ("m3", "dropped", "sight"), ("old2", "passed", ""),
    ]  # fmt: skip


def test_of_many_that_did_not_pass_the_file_has_all() -> None:
    many = [guessed(replace(MINE, question_id=f"m{n}"), "") for n in range(23)]
    lines = describe_verdicts(many, dict.fromkeys([q.question_id for q in many], "mine"))
    assert lines[-1] == "  and 3 more, in added.csv"
    assert sum("did not pass blind:" in line for line in lines) == 20


TRIED = replace(
    OLD, answer="b", subsets=("full", "mma", "train"), faults={"blind": "known"},
    verdicts=(Verdict(filter="blind", model="m", correct=False),),
    metrics={passed_metric("blind"): 1.0, "rank": 2.0, "reach_seconds": 1.0},
)  # fmt: skip


def tick(before: Question, *, question: str) -> Question:
    edit = Tick(
        question_id=before.question_id, verdict="edit", question=question, options=before.options
    )
    return apply_tick(before, {before.question_id: edit})


def first_of(added: AddedQuestions) -> Question:
    return next(iter(added.rows[0].questions or ()))


def table_of(*questions: Question) -> QuestionFile:
    return QuestionFile(layout="ours", questions=questions)


def test_what_a_tick_or_a_vote_has_changed_is_edited_until_filters_have_tried_it() -> None:
    same = tick(TRIED, question=f"{TRIED.question} ")
    assert same == TRIED
    edited = tick(TRIED, question="Who then?")
    assert [is_edited(q) for q in (TRIED, edited)] == [False, True]
    assert not is_edited(replace(edited, question=TRIED.question)), "taken back"
    again = (*edited.verdicts, Verdict(filter="blind", model="m"))
    assert not is_edited(replace(edited, verdicts=again))
    by_voter = (*edited.verdicts, Verdict(filter="people_verify", model="rater:ana"))
    assert is_edited(replace(edited, verdicts=by_voter))
    before = {**wording_fields(TRIED), "parts": {}}
    vote = Repair(kind="wording", reason="r", by="people_neptune", before=json.dumps(before))
    corrected = replace(TRIED, options=("a", "c"), answer="c", repairs=(vote,))
    assert is_edited(corrected)
    assert not is_edited(replace(corrected, repairs=(replace(vote, by="gpt-x"),)))


def test_an_edited_question_loses_what_was_found_of_its_earlier_words() -> None:
    edited = tick(TRIED, question="Who then?")
    other = replace(TRIED, question_id="other")
    added = add_questions(None, VIDEOS, [edited, other], stored=[TRIED, other], subset="mma")
    assert (added.edited, added.added, added.untested) == (("old",), (), ())
    row = added.rows[0].questions
    assert row is not None
    assert row[1] == other
    assert (row[0].question, row[0].metrics, row[0].faults) == (
        "Who then?", {"reach_seconds": 1.0}, {},
    )  # fmt: skip
    assert row[0].subsets == ("full", "train")
    assert row[0].earlier_verdicts == len(row[0].verdicts) == 1
    assert added.lines() == ["1 edited, tested again: old"]


def test_rows_of_a_copy_of_the_table_are_compared_with_the_run() -> None:
    far = replace(TRIED, evidence=(Span(1.0000004, 2),))  # as another program writes a number
    short = replace(TRIED, evidence=(), metrics={}, verdicts=(), answer="")
    key = replace(TRIED, question_id="key", answer_index=0)  # its answer is still the old one
    moved = replace(TRIED, question_id="moved")
    spans = replace(TRIED, question_id="spans", evidence=(Span(3, 4),))
    dropped = replace(TRIED, question_id="dropped", drop="by me")
    run = [replace(TRIED, question_id=n) for n in ("old", "key", "moved", "spans", "dropped")]
    changed = [
        key, replace(moved, video_id="bb", question="Where?"), spans, dropped,
        replace(MINE, question_id="new"),
    ]  # fmt: skip
    for unchanged in (far, short):
        added = add_questions(table_of(unchanged, *changed), VIDEOS, run)
        assert added.edited == ("key", "spans")
        assert added.added == ("new",)
        assert added.left_out == {"moved": MOVED}
        assert added.not_taken == ("dropped",)
    done = {q.question_id: q for q in added.rows[0].questions or ()}
    assert (done["key"].answer_index, done["key"].answer) == (0, "a")
    assert done["key"].metrics == {"reach_seconds": 1.0}
    assert (done["spans"].evidence, done["spans"].metrics) == ((Span(3, 4),), {})
    assert (done["old"], done["moved"], done["dropped"]) == (run[0], run[2], run[4])
    with pytest.raises(UserError, match="none of 1 questions can be added: none is new"):
        add_questions(table_of(far), VIDEOS, run)
    with pytest.raises(UserError, match="nothing to test: no question of the run was edited"):
        add_questions(None, VIDEOS, run)


def test_one_question_is_edited_in_one_place() -> None:
    edited = tick(TRIED, question="Who then?")
    copy = add_questions(table_of(TRIED), VIDEOS, [edited], stored=[TRIED])
    assert copy.edited == ("old",)
    assert first_of(copy).question == "Who then?"
    other = replace(TRIED, question="Who last?")
    with pytest.raises(UserError, match="old was edited twice"):
        add_questions(table_of(other), VIDEOS, [edited], stored=[TRIED])


def test_edited_questions_that_no_filter_tests_are_named() -> None:
    points = replace(TRIED, question_id="p", points=(Point(text="x"),), options=(),
                     answer_index=None)  # fmt: skip
    edited = tick(points, question="Why then?")
    lost = tick(replace(TRIED, question_id="lost", video_id="bb"), question="Who then?")
    added = add_questions(None, VIDEOS, [edited, lost], stored=[points], subset="mma")
    assert (added.untested, added.edited, added.left_out) == (("p",), (), {"lost": NOT_MADE})
    assert first_of(added).subsets == ("full",)
    assert "1 edited questions are open or ask when" in added.lines()[0]


def test_nothing_new_is_enough_where_runs_are_merged() -> None:
    added = add_questions(None, VIDEOS, [OLD], may_be_none=True)
    assert (added.rows[0].questions, added.lines()) == ((OLD,), [])
