"""Movies are distinguished by name, and each is in training or in test."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mustsee.errors import UserError
from mustsee.recipes.cinepile.dataset import sides


@given(
    st.lists(st.text(min_size=1), min_size=1, max_size=12), st.integers(0, 5), st.floats(0.001, 0.9)
)
def test_a_movie_is_on_one_side(movies: list[str], seed: int, share: float) -> None:
    side_of = sides(movies, test_share=share, seed=seed)
    assert side_of == sides(movies[::-1], test_share=share, seed=seed)
    names = {" ".join(m.lower().split()) for m in movies}
    assert set(side_of.values()) == {"train", "test"} or len(names) == 1
    assert set(sides(movies, test_share=0.0, seed=seed).values()) == {"train"}
    assert set(sides(movies, test_share=1.0, seed=seed).values()) == {"test"}


def test_other_movies_and_chosen_sides() -> None:
    """A movie keeps its side when others are added; a chosen side wins; case does not matter."""
    many = [f"video {n}" for n in range(400)]
    side_of = sides(many, test_share=0.2)
    assert sum(side == "test" for side in side_of.values()) == pytest.approx(80, abs=30)
    assert {m: side_of[m] for m in many[:200]} == sides(many[:200], test_share=0.2)
    assert sides(["Up", "UP!", "Heat"], test_share=0.5, given={"up": "test"}) == {
        "Up": "test", "UP!": "test", "Heat": "train",
    }  # fmt: skip
    with pytest.raises(UserError, match="'dev'"):
        sides(["Up"], test_share=0.5, given={"Up": "dev"})


@given(st.integers(0, 9), st.floats(0.05, 0.5))
def test_strata_are_alike_on_both_sides(seed: int, share: float) -> None:
    strata = {f"movie {n}": ("drama", "comedy", "horror")[n % 3] for n in range(300)}
    side_of = sides(strata, test_share=share, seed=seed, strata=strata)
    tested = [strata[name] for name, side in side_of.items() if side == "test"]
    for genre in ("drama", "comedy", "horror"):
        assert abs(tested.count(genre) - 100 * share) <= 1.5
    chosen = sides(strata, test_share=share, seed=seed, strata=strata, given={"movie 0": "test"})
    assert chosen["movie 0"] == "test"


def test_descriptions_are_found_by_the_full_name(tmp_path: Path) -> None:
    """A full stop within a name does not end it; a language suffix does not belong to it."""
    from actors.stages.align import descriptions_in
    from mustsee.recipes.cinepile.dataset import plain

    names = ("Dr. No.srt", "Dr. Strangelove.srt", "Mr. Bean.en.vtt", "E.T..srt", "._Dr. No.srt",
             "Alien.srt", "Alien.Resurrection.srt", "Some Video.en.srt")  # fmt: skip
    for name in names:
        (tmp_path / name).touch()
    descriptions = descriptions_in(str(tmp_path))
    for movie, file in (("Dr. No", 0), ("Dr. Strangelove", 1), ("Mr. Bean", 2), ("E.T.", 3),
                        ("Alien", 5), ("Alien: Resurrection", 6), ("Some Video", 7)):  # fmt: skip
        assert Path(descriptions[plain(movie)]).name == names[file]
    assert "dr" not in descriptions


def test_a_movie_with_both_splits_is_refused(tmp_path: Path) -> None:
    from mustsee.errors import UserError
    from mustsee.run.inputs import read_videos
    from ray_jobs.cinepile import by_movie

    table = tmp_path / "clips.csv"
    table.write_text("uri,movie_name,split\na.mp4,Up,test\nb.mp4,UP ,test\nc.mp4,Up,\n")
    assert by_movie(read_videos(str(table)), 0.0, 0)["split"].to_pylist() == ["test"] * 3
    table.write_text("uri,movie_name,split\na.mp4,Up,test\nb.mp4,UP ,train\n")
    with pytest.raises(UserError, match="both splits, such as 'b'"):
        by_movie(read_videos(str(table)), 0.0, 0)


def test_strata_are_the_first_genre_and_the_decade(tmp_path: Path) -> None:
    from mustsee.run.inputs import read_videos
    from ray_jobs.cinepile import by_movie

    table = tmp_path / "clips.jsonl"
    rows = [
        {"uri": f"{n}.mp4", "movie_name": f"Movie {n}", "genre": [genre, "War"], "year": 1990 + n}
        for n, genre in enumerate(["Drama"] * 10 + ["Comedy"] * 10)
    ]
    table.write_text("\n".join(json.dumps(row) for row in rows))
    videos = read_videos(str(table))
    split = by_movie(videos, 0.5, 0, ["genre", "year"]).to_pylist()
    for genre in ("Drama", "Comedy"):
        sides_of = [row["split"] for row in split if row["genre"][0] == genre]
        assert (len(sides_of), sides_of.count("test")) == (10, 5)
    with pytest.raises(UserError, match="no column 'studio'"):
        by_movie(videos, 0.5, 0, ["studio"])


def test_rates_are_by_category_and_drawn(tmp_path: Path) -> None:
    from mustsee.evaluate.drawing import save_chart
    from mustsee.recipes.cinepile.dataset import draw_rates, rates_by_category
    from mustsee.records import Question

    questions = [
        Question(
            question_id=f"q{n}", video_id=f"v{n}", recipe="cinepile", question="?",
            question_type="Temporal" if n < 4 else "Setting", drop="x" if n == 5 else None,
            metrics={"vision_reliance": float(n < 1)} | ({"hardness": 1.0} if n < 4 else {}),
        )
        for n in range(6)
    ]  # fmt: skip
    setting, temporal = rates_by_category(questions)
    assert (setting.category, setting.questions, setting.hardness) == ("Setting", 1, None)
    assert temporal.vision_reliance is not None
    assert (temporal.vision_reliance.value, temporal.vision_reliance.n) == (0.25, 4)
    path = tmp_path / "categories.png"
    assert save_chart(path, lambda: draw_rates([setting, temporal])) is None
    assert path.stat().st_size > 2000
