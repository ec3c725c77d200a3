"""Forms: parsing of answers, settling of votes, and their effects on questions."""

import json
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mustsee.errors import UserError
from mustsee.raters import assignment
from mustsee.raters.assignment import deal_questions, items, needed_raters
from mustsee.raters.ballots import CastVote
from mustsee.raters.decision import decide, settle_field, shared_spans
from mustsee.raters.form import FormField, FormStep, RatingForm, Round
from mustsee.raters.results import results
from mustsee.raters.tasks import annotation_rows, video_tasks
from mustsee.raters.votes import apply_votes
from mustsee.recipes.mlvu.annotated import from_table, questions_of
from mustsee.records import Question, Span, Verdict, Video
from mustsee.run.browse import rulings
from mustsee.verify.repair import earlier_wordings
from ray_jobs.cli.launch import build, compose

QUESTION = Question(
    question_id="q1", video_id="v", recipe="neptune", question="Why?", question_type="Other",
    options=("red", "blue", "green"), answer_index=1, answer="blue", evidence=(Span(1, 2),),
)  # fmt: skip


def form(name: str) -> RatingForm:
    return build(compose("rate", ["questions=x", f"form={name}"])).form


def cast(name: str, rater: str, answers: dict[str, Any], question: str = "q1") -> CastVote:
    return CastVote(
        question_id=question, round=name, rater=rater, answers=answers, seconds=9.0, at=0.0
    )


FIELDS = {
    "pick": FormField(name="x", ask="?", options=("yes", "no")),
    "ticks": FormField(name="x", ask="?", kind="ticks", options=("a", "b")),
    "option": FormField(name="x", ask="?", kind="option"),
    "text": FormField(name="x", ask="?", kind="text", needed=False),
    "lines": FormField(name="x", ask="?", kind="lines", least=1, most=2),
    "spans": FormField(name="x", ask="?", kind="spans", least=1),
    "answer": FormField(name="x", ask="?", kind="text", fills="answer"),
    "decoys": FormField(name="x", ask="?", kind="lines", fills="decoys"),
}


@pytest.mark.parametrize(
    ("kind", "given", "answer"),
    [
        ("pick", "no", "no"),
        ("ticks", "b,a", ["a", "b"]),
        ("ticks", "", []),
        ("option", "2", 2),
        ("text", " so, so\r\nso ", "so, so\nso"),
        ("text", " ", None),
        ("lines", "a  b\n\nc\n", ["a b", "c"]),
        ("spans", "1-2.5\n 7.25 - 9", [[1.0, 2.5], [7.25, 9.0]]),
        ("spans", "1-2;3-4", [[1.0, 2.0], [3.0, 4.0]]),
        ("answer", "blue", None),  # unchanged
        ("answer", "dark blue", "dark blue"),
        ("decoys", "red\ngreen", None),
        ("decoys", "red\ngrey", ["red", "grey"]),
    ],
)
def test_answers_are_parsed_by_their_kind(kind: str, given: str, answer: Any) -> None:
    assert FIELDS[kind].read(given, QUESTION, 60) == answer


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("pick", ""), ("pick", "maybe"), ("pick", "yes,no"), ("pick", "<script>"),
        ("ticks", "a,a"), ("ticks", "a,c"), ("option", "3"), ("option", "-1"), ("option", "x"),
        ("option", ""), ("text", "x" * 4001), ("lines", ""), ("lines", "a\nb\nc"),
        ("spans", "2-1"), ("spans", "2"), ("spans", "a-b"), ("spans", "1-61"), ("spans", "nan-inf"),
        ("spans", "-1-2"), ("spans", ""), ("answer", ""), ("decoys", "red"),
    ],
)  # fmt: skip
def test_an_invalid_answer_has_one_fault(kind: str, given: str) -> None:
    answers, faults = FormStep(fields=(FIELDS[kind],)).read({"x": given}, QUESTION, 60)
    assert not answers
    assert len(faults) == 1


def test_answers_to_fields_that_a_step_does_not_have_are_refused() -> None:
    assert FormStep(fields=(FIELDS["text"],)).read({"y": "1"}, QUESTION)[1]
    open_question = Question(**{**vars(QUESTION), "options": (), "answer_index": None})
    assert FormStep(fields=(FIELDS["decoys"],)).read({}, open_question) == ({}, [])


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "a b"}, {"kind": "slider"}, {"options": ("a,b",)}, {"kind": "text"},
        {"labels": {"c": "C"}}, {"options": ()}, {"fills": "title"},
    ],
)  # fmt: skip
def test_an_invalid_field_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UserError):
        FormField(**{"name": "x", "ask": "?", "options": ("a", "b"), **wrong})


def test_a_form_with_a_rule_for_an_unknown_field_or_option_is_refused() -> None:
    one = Round(name="r", steps=(FormStep(fields=(FIELDS["pick"],)),))
    for wrong in (
        {"right": {"x": "maybe"}},
        {"rule": "coin"},
        {"rounds": (Round(name="r", steps=one.steps, falls={"x": ("maybe",)}),)},
        {"rounds": (Round(name="r", steps=one.steps, needs=("y",)),)},
        {"rounds": (Round(name="r", steps=one.steps, after="s"),)},
        {"rounds": (Round(name="r", steps=one.steps * 2),)},
    ):
        with pytest.raises(UserError):
            RatingForm(**{"name": "f", "title": "", "rounds": (one,), **wrong})
    with pytest.raises(UserError, match="shows"):
        FormStep(shows=("video", "secrets"))


@pytest.mark.parametrize(
    ("rule", "kind", "answers", "answer"),
    [
        ("majority", "pick", ["yes", "no", "yes"], "yes"),
        ("majority", "pick", ["yes", "no"], None),
        ("unanimous", "pick", ["yes", "yes", "no"], None),
        ("strictest", "pick", ["yes", "yes", "no"], "no"),
        ("majority", "ticks", [["a"], ["a", "b"], []], ["a"]),
        ("unanimous", "ticks", [["a"], ["a", "b"]], ["a"]),
        ("majority", "text", [None, "x", "x"], "x"),
        ("majority", "text", [None, "x", "y"], None),
        ("majority", "spans", [[[0, 4]], [[2, 6]], [[20, 30]]], [[2, 4]]),
        ("unanimous", "spans", [[[0, 4]], [[5, 6]]], None),
    ],
)
def test_votes_settle_by_the_rule(rule: str, kind: str, answers: list[Any], answer: Any) -> None:
    votes = [{} if value is None else {"x": value} for value in answers]
    assert settle_field(rule, FIELDS[kind], votes) == answer


span = st.tuples(st.floats(0, 100), st.floats(0.1, 9)).map(lambda p: Span(p[0], p[0] + p[1]))


@given(st.lists(st.lists(span, max_size=4), min_size=1, max_size=4))
def test_spans_marked_by_at_least_one_rater_are_the_union_of_all_spans(
    marked: list[list[Span]],
) -> None:
    every = shared_spans(marked, 1)
    for spans in marked:
        for one in spans:
            assert any(s - 1e-6 <= one.start and one.end <= e + 1e-6 for s, e in every)
    assert all(
        any(a <= s and e <= b for a, b in every) for s, e in shared_spans(marked, len(marked))
    )


SHEET = {
    "a_answerable": "yes", "b_answer_right": "yes", "c_others_wrong": "yes", "d_long": "yes",
    "e_no_counting": "yes",
}  # fmt: skip
LONG = {"parts": [[0.0, 31.0]]}
CHOICE = Question(
    question_id="q", video_id="v", recipe="r", question="Who rows?", question_type="k",
    options=("a man", "a cat"), answer_index=0, answer="a man",
)  # fmt: skip


@pytest.mark.parametrize(
    ("answers", "faults"),
    [
        ({**SHEET, **LONG, "label": "GOOD"}, 0),
        ({**SHEET, "d_long": "no", "label": "BAD"}, 0),
        ({**SHEET, **LONG, "label": "BAD", "like": "other"}, 0),
        ({**SHEET, **LONG, "label": "MAYBE", "comment": "a word"}, 0),
        ({**SHEET, **LONG, "c_others_wrong": "no", "label": "GOOD"}, 1),
        ({**SHEET, "parts": [[0, 10], [13, 29]], "label": "GOOD"}, 1),  # 29 s, with the 3 s between
        ({**SHEET, "parts": [[0, 10], [13, 30]], "label": "GOOD"}, 0),
        ({**SHEET, **LONG, "label": "BAD"}, 1),
        ({**SHEET, **LONG, "label": "MAYBE"}, 1),
    ],
)
def test_contradictory_answers_have_faults(answers: dict[str, Any], faults: int) -> None:
    assert len(form("egoschema").faults(answers, CHOICE)) == faults


def test_of_a_question_without_options_nobody_asks_whether_other_answers_are_wrong() -> None:
    egoschema, asked = form("egoschema"), replace(CHOICE, options=(), answer_index=None)
    sheet = {name: value for name, value in SHEET.items() if name != "c_others_wrong"}
    given = {**sheet, "label": "GOOD", "parts": "0-31"}
    answers, faults = egoschema.rounds[0].steps[0].read(given, asked)
    assert (faults, egoschema.faults(answers, asked)) == ([], [])
    assert egoschema.rounds[0].steps[0].read(given, CHOICE)[1] == [
        "“C: each of the other answers is less correct” is not answered"
    ]
    assert egoschema.faults(answers, CHOICE) != []


@pytest.mark.parametrize(
    ("first", "second", "state"),
    [
        (["GOOD"], [], "open"),
        (["BAD"], [], "dropped"),
        (["MAYBE"], ["GOOD"], "kept"),
        (["GOOD"], ["MAYBE"], "dropped"),
        (["GOOD", "BAD"], [], "dropped"),
        (["GOOD", "MAYBE"], ["GOOD", "GOOD"], "kept"),
        (["GOOD", "GOOD"], ["GOOD", "BAD"], "dropped"),
    ],
)
def test_the_second_round_replaces_the_first(
    first: list[str], second: list[str], state: str
) -> None:
    votes = {
        name: [cast(name, f"{name}{i}", {"label": label}) for i, label in enumerate(labels)]
        for name, labels in (("round_1", first), ("round_2", second))
    }
    wanted = {"round_1": len(first), "round_2": len(first)}
    assert decide(form("egoschema"), votes, wanted).state == state


GOOD = {"valuable": ["clear", "right", "video", "long"], "needs": "both"}


def neptune(*votes: CastVote) -> Question:
    neptune_form = form("neptune")
    (done,) = apply_votes(
        neptune_form, [QUESTION], items(neptune_form, ["q1"], raters=3, people=()), votes
    )
    return done


def test_a_required_tick_without_a_majority_drops_the_question() -> None:
    some = [cast("raters", r, {**GOOD, "valuable": ["clear", "right"]}) for r in "ab"]
    assert neptune(*some).drop is None  # the third vote is missing
    assert neptune(*some, cast("raters", "c", GOOD)).drop == "people_neptune: not video; not long"
    assert neptune(some[0], *(cast("raters", r, GOOD) for r in "bc")).drop is None


def test_the_senior_s_corrections_are_a_new_version_with_the_old_one_in_repairs() -> None:
    votes = [cast("raters", r, {**GOOD, "question": "Why so?"}) for r in "abc"]
    assert neptune(*votes) == neptune(*votes)
    assert neptune(*votes).question == "Why?"  # the senior's vote is missing
    senior = cast("senior", "s", {**GOOD, "needs": "audio", "answer": "navy", "decoys": ["x", "y"]})
    done = neptune(*votes, senior)
    assert (done.question, done.options, done.answer) == ("Why?", ("x", "navy", "y"), "navy")
    (repair,) = done.repairs
    assert (repair.kind, repair.by) == ("wording", "people_neptune")
    before = json.loads(repair.before)
    assert before["parts"] == {"answer": "blue", "decoys": ["red", "green"]}
    (was,) = earlier_wordings(done)  # as for any repaired wording
    assert (was.question, was.answer) == (QUESTION.question, QUESTION.answer)
    assert {r.earlier for r in rulings(done)} >= {False}
    assert [v.model for v in done.verdicts] == [f"rater:{r}" for r in "abcs"]
    assert (done.subsets, done.metrics["audio_only"]) == ((), 1.0)  # the senior alone counts
    assert neptune(*votes, cast("senior", "s", GOOD)).subsets == ("mmh",)


def test_applying_votes_is_idempotent_and_follows_changed_votes() -> None:
    neptune_form = form("neptune")
    assigned = items(neptune_form, ["q1"], raters=3, people=())
    verified = Question(**{**vars(QUESTION), "verdicts": (Verdict(filter="sight", model="m"),)})
    votes = [cast("raters", r, GOOD) for r in "abc"]
    changed = cast("senior", "s", {**GOOD, "answer": "navy"})
    once = apply_votes(neptune_form, [verified], assigned, [*votes, changed])
    assert apply_votes(neptune_form, once, assigned, [*votes, changed]) == once
    (withdrawn,) = apply_votes(
        neptune_form, once, assigned, [*votes, cast("senior", "s", {**GOOD, "valuable": []})]
    )
    assert (withdrawn.answer, withdrawn.options, withdrawn.repairs) == (
        "blue",
        QUESTION.options,
        (),
    )
    assert withdrawn.drop == "people_neptune: not clear; not right; not video; not long"
    assert withdrawn.verdicts[0].filter == "sight"


def test_marked_spans_become_the_evidence() -> None:
    certificate = form("certificate")
    marks = ([[0, 10], [12, 20]], [[5, 20]], [[50, 60]])
    votes = [
        cast("certificate", f"r{i}", {"parts": spans, "sure": "yes"})
        for i, spans in enumerate(marks)
    ]
    assigned = items(certificate, ["q1"], raters=3, people=())
    (done,) = apply_votes(certificate, [QUESTION], assigned, votes)
    assert done.evidence == (Span(5, 20),)
    assert done.metrics["people_certificate_seconds"] == 15
    assert json.loads(done.repairs[0].before) == [[1, 2]]
    field_agreement = results(certificate, {"q1": QUESTION}, assigned, votes, wanted=0.9).fields[
        "certificate.parts"
    ]
    assert field_agreement.same is not None
    assert field_agreement.same.value == pytest.approx(0.25)  # pairs: 15/20, 0, 0


def test_accuracy_of_people_s_answers_is_by_round() -> None:
    benchmark = form("human_benchmark")
    votes = [
        cast("unlimited", "a", {"answer": 1}),
        cast("one_minute", "b", {"answer": 2}),
    ]
    late = CastVote(**{**vars(votes[1]), "seconds": 90.0})
    assigned = deal_questions(benchmark.rounds, ["q1"], "abcde")
    outcome = results(benchmark, {"q1": QUESTION}, assigned, [votes[0], late], wanted=0.9)
    assert {k: v.value for k, v in outcome.answered.items()} == {
        "unlimited.answer": 1.0,
        "one_minute.answer": 0.0,
    }
    assert outcome.late == {"one_minute": 1, "three_minutes": 0}
    (done,) = apply_votes(benchmark, [QUESTION], assigned, votes)
    assert [v.correct for v in done.verdicts] == [True, False]
    assert done.drop is None


@pytest.mark.parametrize("name", ["egoschema", "mlvu"])
def test_every_step_of_a_paper_s_annotation_says_what_to_do(name: str) -> None:
    assert all(step.note for r in form(name).rounds for step in r.steps)


def test_nobody_has_to_guess_before_the_video_in_the_human_benchmark() -> None:
    for each in BENCHMARK.rounds:
        first = next(step for step in each.steps if step.fields)
        seen = {shown for step in each.steps[: each.steps.index(first) + 1] for shown in step.shows}
        assert "video" in seen
    seconds = {each.name: each.seconds for each in BENCHMARK.rounds}
    assert (seconds["one_minute"], seconds["three_minutes"]) == (60, 180)


@given(st.integers(1, 120), st.integers(5, 12), st.integers(0, 9))
def test_no_rater_is_dealt_a_question_twice(n: int, people: int, seed: int) -> None:
    rounds = BENCHMARK.rounds
    questions, names = [f"q{i}" for i in range(n)], [f"r{i}" for i in range(people)]
    dealt = deal_questions(rounds, questions, names, seed=seed)
    assert dealt == deal_questions(rounds, questions[::-1], names[::-1], seed=seed)
    assert len({(i.rater, i.question_id) for i in dealt}) == len(dealt)
    for each in rounds:
        mine = [i for i in dealt if i.round == each.name]
        assert len(mine) == n
        load = Counter(i.rater for i in mine)
        assert max(load.values()) - min(load[r] for r in names) <= 1


BENCHMARK = form("human_benchmark")


def test_too_few_raters_are_refused_and_the_needed_number_is_given() -> None:
    with pytest.raises(UserError, match="at least as many raters"):
        deal_questions(BENCHMARK.rounds, ["q"], ["a", "b"])
    names = ("verify", "neptune", "egoschema", "mlvu", "human_benchmark")
    assert [needed_raters(form(name), 3) for name in names] == [
        (3, 0),
        (3, 1),
        (6, 0),
        (3, 0),
        (5, 0),
    ]


def test_answers_to_mlvu_tasks_become_questions() -> None:
    mlvu_form = form("mlvu")
    made = video_tasks(
        mlvu_form, [Video(video_id="v", uri="v.mp4"), Video(video_id="w", uri="", drop="x")]
    )
    assert [q.question_id for q in made] == [
        "v/topic_reasoning", "v/summary", "v/plotQA", "v/subPlot",
    ]  # fmt: skip
    assigned = items(mlvu_form, [q.question_id for q in made], raters=1, people=())
    assert [i.name for i in assigned] == [f"{q.question_id}/{q.question_type}" for q in made]
    answers_of = {
        "plotQA": {"question": "What does the man in red open?", "answer": "a box",
                   "wrong": ["a door", "a letter", "a can"], "evidence": [[3, 5]]},
        "subPlot": {"question": "What happens as the hat falls?", "answer": "A boy picks it up.",
                    "points": ["a boy", "picks it up"], "evidence": [[7, 9]]},
        "summary": {"answer": "A man opens a box. A boy picks up a hat."},
    }  # fmt: skip
    votes = [cast(kind, "ana", answers, f"v/{kind}") for kind, answers in answers_of.items()]
    table = annotation_rows({q.question_id: q for q in made}, votes)
    lengths = {"short": 100.0, "long": 1000.0, "fit": 300.0}
    by_length = video_tasks(
        mlvu_form, [Video(video_id=v, uri="", duration=s) for v, s in lengths.items()]
    )
    summaries = [q for q in by_length if q.question_type == "summary"]
    assert [(q.question_id, q.evidence) for q in summaries] == [
        ("long/summary_first_180", (Span(0, 180),)),
        ("long/summary_first_360", (Span(0, 360),)),
        ("fit/summary", ()),
        ("fit/summary_first_180", (Span(0, 180),)),
    ]
    early = cast("summary_first_180", "ana", {"answer": "A man runs."}, "fit/summary_first_180")
    (row,) = annotation_rows({q.question_id: q for q in summaries}, [early])
    assert (row["kind"], row["start"], row["end"]) == ("summary", 0.0, 180.0)
    questions = {q.question_type: q for q in questions_of(from_table(table))["v"]}
    assert [q.drop for q in questions.values()] == [None, None, None]
    assert set(questions["plotQA"].options) == {"a box", "a door", "a letter", "a can"}
    assert questions["subPlot"].scoring_points == ("a boy", "picks it up")
    assert questions["subPlot"].evidence == (Span(7, 9),)


def test_training_rows_are_checked() -> None:
    verify_form, questions = form("verify"), {"q1": QUESTION}
    row = {"question_id": "q1", "answers": {"answer_right": "no"}, "why": "It is red."}
    item = assignment.from_rows([row], verify_form, questions)["q1"]
    assert item.missed_fields({"answer_right": "yes"}) == ["answer_right"]
    assert item.missed_fields({"answer_right": "no", "only_answer": "yes"}) == []
    for wrong in (
        {"question_id": "q9"}, {"answers": {}}, {"answers": {"other": "yes"}},
        {"answers": {"answer_right": "maybe"}}, {"answers": {"comment": "x"}},
    ):  # fmt: skip
        with pytest.raises(UserError, match="row 1"):
            assignment.from_rows([{**row, **wrong}], verify_form, questions)
