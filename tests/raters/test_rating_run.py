"""`RatingRun`: the raters of a form, the items of a sample, and mistakes in the settings."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from mustsee import schemas
from mustsee.errors import UserError
from mustsee.raters.form import RatingForm
from mustsee.raters.rating_run import RatingRun, check_share, count_questions
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
    pq.write_table(schemas.table(questions, Question), tmp_path / "questions.parquet")
    pq.write_table(schemas.table([video], Video), tmp_path / "videos.parquet")
    return tmp_path


def _form(name: str) -> RatingForm:
    return build(compose("rate", ["questions=x", f"form={name}"])).form


def rating_run(folder: Path, form: str = "verify", **settings: Any) -> RatingRun:
    defaults: dict[str, Any] = {
        "videos_source": None, "folder_setting": None, "votes": None, "raters": 3, "names": None,
        "seniors": None, "renew": (), "days": 30.0, "sample": None, "seed": 0, "wanted": 0.95,
        "training_source": None, "spans": True, "lease_minutes": 30.0,
    }  # fmt: skip
    return RatingRun(questions=str(folder), form=_form(form), **{**defaults, **settings})


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
