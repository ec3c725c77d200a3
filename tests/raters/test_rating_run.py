"""`RatingRun`: the raters of a form, the items of a sample, and mistakes in the settings."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from mustsee.errors import UserError
from mustsee.files import schemas
from mustsee.raters.assignment import items
from mustsee.raters.ballots import CastVote, UnfinishedVote
from mustsee.raters.form import RatingForm
from mustsee.raters.rating_run import RatingRun, RatingSettings, check_share, count_questions
from mustsee.raters.results import results, summary_lines
from mustsee.records import Question, Span, Video
from ray_jobs.cli.launch import build, compose


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    video = Video(video_id="v", uri=str(tmp_path / "v.mp4"))
    Path(video.uri).write_bytes(b"a video")
    questions = [
        Question(
            question_id=f"q{n}", video_id="v", recipe="r", question="?", question_type="k",
            answer="a", evidence=(Span(0, 1),), drop="blind: right" if n == 3 else None,
        )
        for n in range(4)
    ]  # fmt: skip
    save_run(tmp_path, questions, [video])
    return tmp_path


def save_run(folder: Path, questions: Sequence[Question], videos: Sequence[Video]) -> None:
    pq.write_table(schemas.table(questions, Question), folder / "questions.parquet")
    pq.write_table(schemas.table(videos, Video), folder / "videos.parquet")


def _form(name: str) -> RatingForm:
    return build(compose("rate", ["questions=x", f"form={name}"])).form


def rating_run(folder: Path, /, form: str = "verify", **settings: Any) -> RatingRun:
    defaults: dict[str, Any] = {
        "videos": None, "folder": None, "votes": None, "raters": 3, "names": None,
        "seniors": None, "renew": (), "days": 30.0, "sample": None, "seed": 0, "wanted": 0.95,
        "training": None, "spans": True, "errata": None, "lease_minutes": 30.0,
    }  # fmt: skip
    given = {**defaults, **settings}
    return RatingRun(RatingSettings(questions=str(folder), form=_form(form), **given))


def test_raters_are_named_by_number_unless_names_are_given(run_folder: Path) -> None:
    assert rating_run(run_folder).people == ["rater_1", "rater_2", "rater_3"]
    assert rating_run(run_folder, form="neptune").senior_names == ["senior_1"]
    assert rating_run(run_folder, names=("ana",)).people == ("ana",)


def test_a_sample_holds_kept_questions_only_and_is_drawn_once(run_folder: Path) -> None:
    first = rating_run(run_folder, sample=2).open_items()
    assert count_questions(first) == 2
    assert "q3" not in {item.question_id for item in first}
    assert rating_run(run_folder).open_items() == first


def test_changed_settings_are_reported_only_if_asked_for(
    run_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rating_run(run_folder, sample=2).open_items()
    rating_run(run_folder).open_items()
    assert capsys.readouterr().out == ""
    rating_run(run_folder).open_items(report_changes=True)
    assert "continuing with the 2 questions drawn before" in capsys.readouterr().out


def test_an_expired_link_is_replaced_and_a_valid_one_is_kept(run_folder: Path) -> None:
    rating = rating_run(run_folder)
    rating.open_items()
    assert all("/r/" in line for line in rating.invite("http://host"))
    assert all("still valid" in line for line in rating.invite("http://host"))
    renewed = rating_run(run_folder, renew=("rater_2",))
    assert [line for line in renewed.invite("http://host") if "/r/" in line] != []


@pytest.mark.parametrize("value", [-0.1, 1.0, 2.0])
def test_a_share_is_at_least_0_and_below_1(value: float) -> None:
    check_share("wanted", 0.0)
    with pytest.raises(UserError, match=f"wanted={value!r}"):
        check_share("wanted", value)


def test_written_answers_are_rated_without_their_model_and_become_pairs(tmp_path: Path) -> None:
    from mustsee.evaluate.answers import verdict_on_reply
    from mustsee.judge.data import read_bem
    from mustsee.raters.transfer import write_votes

    asked = Question(
        question_id="q", video_id="v", recipe="r", question="Who rows?", question_type="k",
        answer="a man",
    )  # fmt: skip
    replies = {"one": "a man in a hat", "two": "a dog"}
    verdicts = tuple(verdict_on_reply(asked, text, model=name) for name, text in replies.items())
    asked = replace(asked, verdicts=verdicts)
    pq.write_table(schemas.table([asked], Question), tmp_path / "questions.parquet")
    pq.write_table(schemas.table([Video(video_id="v", uri="")], Video), tmp_path / "videos.parquet")
    rating = rating_run(tmp_path, form="equivalence", raters=1, names=("ana",))
    rating.check()
    rating.check_videos()
    rated = rating.open_items()
    assert [rating.question_by_id[i.question_id].rationale for i in rated] == [*replies.values()]
    votes = [
        CastVote(
            question_id=item.question_id, round=item.round, rater="ana", seconds=5.0, at=0.0,
            answers={"score": score},
        )
        for item, score in zip(rated, ("0.75", "0"), strict=True)
    ]  # fmt: skip
    rating.ballots.import_votes(votes, 1.0)
    assert "equivalence.jsonl: 2 ratings" in next(iter(write_votes(rating)))
    pairs = read_bem(rating.folder / "equivalence.jsonl")
    assert [(p.candidate, p.references, p.label) for p in pairs] == [
        ("a man in a hat", ("a man",), True), ("a dog", ("a man",), False),
    ]  # fmt: skip


def test_answers_to_questions_with_points_are_rated_point_by_point(tmp_path: Path) -> None:
    from mustsee.raters.transfer import write_votes
    from serve.rater_show import Tasks
    from serve.rater_video import ServedVideos
    from tests.evaluate.test_point_scores import ask, graded

    asked = graded(ask(), 1, -1, 1, 1, made=True)  # the last two points do not count
    pq.write_table(schemas.table([asked], Question), tmp_path / "questions.parquet")
    pq.write_table(schemas.table([Video(video_id="v", uri="")], Video), tmp_path / "videos.parquet")
    rating = rating_run(tmp_path, form="points", raters=1, names=("ana",))
    rating.check()
    (item,) = rating.open_items()
    task = rating.question_by_id[item.question_id]
    assert (task.rationale, len(task.points)) == ("It is in a boot.", 2)
    step = rating.form.rounds[0].steps[0]
    shown = [f.asked_of(task) for f in step.fields if f.applies_to(task)]
    assert [f.ask for f in shown] == [
        "Point 1: The cook hides the spoon in a boot",
        "Point 2: A goat eats the letter",
        "Wrong statement 1: The goat eats the spoon",
    ]
    pages = Tasks(form=rating.form, items={item.name: item}, questions=rating.question_by_id,
                  videos={}, served=ServedVideos([], tmp_path))  # fmt: skip
    values = pages.template_values(item.name, UnfinishedVote(), {}, ())
    assert [f.ask for f, _ in values["fields"]] == [f.ask for f in shown]
    assert step.read({"points_1": "ENTAILED", "points_3": "ABSENT"}, task)[1] == [
        "there is no field 'points_3'",
        "“Point 2: A goat eats the letter” is not answered",
        "“Wrong statement 1: The goat eats the spoon” is not answered",
    ]
    said = {"points_1": "ENTAILED", "points_2": "ABSENT", "contradictions_1": "NO"}
    vote = CastVote(
        question_id=item.question_id, round=item.round, rater="ana", seconds=5.0, at=0.0,
        answers=said,
    )  # fmt: skip
    rating.ballots.import_votes([vote], 1.0)
    line = next(iter(write_votes(rating)))
    assert "1 ratings, which agree with the evaluation's grader on 1 of 2 points" in line
    (row,) = map(json.loads, (rating.folder / "points.jsonl").read_text().splitlines())
    assert (row["verdicts"], row["grader"], row["made"]) == ([1, 0], [1, -1], [])
    assert row["score"] == 0.6


def test_a_question_with_more_points_than_fields_is_refused() -> None:
    from mustsee.raters.tasks import reply_tasks
    from mustsee.records import Point
    from tests.evaluate.test_point_scores import ask, graded

    many = graded(ask(), 1, 1, 1, 1)
    many = replace(many, points=tuple(Point(text=f"point {n}") for n in range(13)))
    with pytest.raises(UserError, match="13 points and 1 wrong statements"):
        reply_tasks([many], by_points=True)
    assert reply_tasks([many]) == []  # they are no pairs for a judge of equivalence


def test_each_person_of_a_study_gets_questions_on_two_videos_of_their_own() -> None:
    form = _form("cinepile_study")
    video_of = {f"v{v}q{q}": f"v{v}" for v in range(7) for q in range(8)}
    people = ("ana", "ben", "cem")
    dealt = items(form, list(video_of), raters=1, people=people, video_of=video_of)
    seen = {name: {video_of[i.question_id] for i in dealt if i.rater == name} for name in people}
    assert [len(videos) for videos in seen.values()] == [2, 2, 2]
    assert len(set().union(*seen.values())) == 6
    assert [sum(i.rater == name for i in dealt) for name in people] == [10, 10, 10]
    assert dealt == items(form, [*video_of][::-1], raters=1, people=people, video_of=video_of)
    with pytest.raises(UserError, match="4 raters with 2 videos each need 8 videos"):
        items(form, list(video_of), raters=1, people=(*people, "dan"), video_of=video_of)


def test_accuracy_is_told_by_type() -> None:
    form = _form("cinepile_study")
    questions = {
        f"q{n}": Question(
            question_id=f"q{n}", video_id=f"v{n}", recipe="r", question="?",
            question_type=("Temporal", "Setting")[n % 2], options=("a", "b"), answer_index=0,
        )
        for n in range(4)
    }  # fmt: skip
    rated = items(
        form, list(questions), raters=1, people=("ana", "ben"),
        video_of={name: q.video_id for name, q in questions.items()},
    )  # fmt: skip
    votes = [
        CastVote(
            question_id=i.question_id, round="study", rater=str(i.rater), seconds=5.0, at=0.0,
            answers={"answer": int(questions[i.question_id].question_type == "Setting")},
        )
        for i in rated
    ]  # fmt: skip
    outcome = results(form, questions, rated, votes, wanted=0.9)
    by_type = outcome.answered_by_type["study.answer"]
    assert {kind: share.value for kind, share in by_type.items()} == {"Setting": 0, "Temporal": 1}
    assert any("Temporal: 100.0% of 2 right" in line for line in summary_lines(outcome))
    assert outcome.types == {}  # nobody drops a question


def test_types_are_counted_before_and_after_raters() -> None:
    form = _form("verify")
    questions = {
        f"q{n}": Question(
            question_id=f"q{n}", video_id=f"v{n}", recipe="r", question="?",
            question_type=("Temporal", "Setting")[n % 2], options=("a", "b"), answer_index=0,
        )
        for n in range(5)
    }  # fmt: skip
    rated = items(form, list(questions), raters=1, people=("ana",))
    fine = {"answer_right": "yes", "only_answer": "yes", "needs_video": "yes"}
    votes = [
        CastVote(
            question_id=f"q{n}", round="verify", rater="ana", seconds=5.0, at=0.0,
            answers={**fine, "answer_right": "yes" if n < 2 else "no"},
        )
        for n in range(4)
    ]  # fmt: skip
    outcome = results(form, questions, rated, votes, wanted=0.9)
    assert outcome.types == {"Setting": (2, 1), "Temporal": (2, 1)}  # q4 has no vote
    assert outcome.plain()["types"]["Setting"] == {"rated": 2, "kept": 1}
    assert "  Setting: 1 of 2 kept" in summary_lines(outcome)
