"""How many questions an interval needs is said before rating, by the bound or by votes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mustsee.errors import UserError
from mustsee.raters.ballots import CastVote
from mustsee.raters.needed import (
    MeasuredWidth,
    check_within,
    half_width,
    needed_by_votes,
    needed_questions,
)
from mustsee.records import Question, Span, Video
from mustsee.stats import clustered_se
from tests.raters.test_rating_run import rating_run, save_run


@pytest.mark.parametrize("share", [0.05, 0.5, 0.8, 0.95])
@pytest.mark.parametrize("within", [0.01, 0.05, 0.1, 0.3])
def test_the_number_is_the_least_that_suffices(within: float, share: float) -> None:
    count = needed_questions(within, share)
    assert half_width(count, share) <= within
    assert count == 1 or half_width(count - 1, share) > within
    assert count <= needed_questions(within)


def test_five_points_take_what_textbooks_say() -> None:
    """Without Wilson's correction, 1.96^2 / 4 / 0.05^2 is 385."""
    assert 375 < needed_questions(0.05) <= 385


def test_clusters_take_more_and_the_number_then_suffices() -> None:
    """40 videos, of which each has five questions that all have one answer."""
    rng = np.random.default_rng(1)

    def se(videos: int) -> float:
        values = np.repeat(rng.random(videos) < 0.8, 5).astype(float)
        error = clustered_se(values, np.repeat(np.arange(videos), 5))
        assert error is not None
        return error

    now = MeasuredWidth(name="right", questions=200, value=0.8, half=0.14, se=se(40))
    wanted = needed_by_votes(now, 0.05)
    assert wanted > 2 * needed_questions(0.05, 0.8)
    assert 1.96 * se(wanted // 5) == pytest.approx(0.05, rel=0.3)


def test_where_all_votes_agree_the_interval_counts() -> None:
    same = MeasuredWidth(name="right", questions=30, value=1.0, half=0.1, se=0.0)
    assert needed_by_votes(same, 0.05) == 120


@pytest.mark.parametrize("within", [0.0, -1.0, 0.5, 5.0])
def test_impossible_widths_are_refused(within: float) -> None:
    with pytest.raises(UserError, match=f"within={within!r}"):
        check_within(within)


def rated_set(folder: Path) -> Path:
    videos = [Video(video_id=f"v{n}", uri=str(folder / f"v{n}.mp4")) for n in range(5)]
    questions = [
        Question(
            question_id=f"q{n}", video_id=f"v{n // 4}", recipe="r", question="?",
            question_type="k", answer="a", options=("a", "b"), answer_index=0,
            evidence=(Span(0, 1),),
        )
        for n in range(20)
    ]  # fmt: skip
    save_run(folder, questions, videos)
    return folder


def test_before_any_vote_the_bound_is_said_with_votes_and_videos(tmp_path: Path) -> None:
    rating = rating_run(rated_set(tmp_path), sample=8)
    lines = list(rating.describe_need(rating.open_items(), 0.05))
    assert "381 questions by 3 raters each (1,143 votes)" in lines[0]
    assert "if 95% is right" in lines[0]
    assert "the 8 drawn give ±" in lines[1]
    assert "binomial bound" in lines[1]
    assert "on 5 videos" in lines[2]
    assert len(lines) == 3


def test_votes_say_how_alike_the_questions_of_a_video_are(tmp_path: Path) -> None:
    names = ("a", "b", "c", "d", "e")
    rating = rating_run(rated_set(tmp_path), form="human_benchmark", names=names, spans=False)
    items = rating.open_items()
    votes = [
        CastVote(
            question_id=i.question_id, round=i.round, rater=i.rater or "", seconds=1.0, at=0.0,
            answers={"answer": int(int(i.question_id[1:]) >= 12)},
        )
        for i in items
    ]  # fmt: skip
    rating.ballots.import_votes(votes, 1.0)
    *bound, measured = rating.describe_need(items, 0.05)
    assert "381 questions, whatever" in bound[0]
    assert "60.0%" in measured
    assert "on 20 questions" in measured
    (need,) = (int(w.replace(",", "")) for w in measured.split("about ")[1].split()[:1])
    assert need == pytest.approx(20 * (1.96 * 0.2449 / 0.05) ** 2, rel=0.01)


def test_a_form_on_videos_needs_no_number(tmp_path: Path) -> None:
    rating = rating_run(rated_set(tmp_path), form="mlvu")
    assert list(rating.describe_need([], 0.05)) == []
