"""Accuracy over the thresholds of the guessers."""

from dataclasses import replace
from pathlib import Path

from mustsee.evaluate.answers import verdict_on_reply
from mustsee.evaluate.drawing import save_chart
from mustsee.evaluate.thresholds import accuracy_by_threshold, draw_thresholds
from mustsee.records import Question, Verdict


def guessed(number: int, blind: str, asr: str, reply: str) -> Question:
    """A question whose runs were right ("r"), wrong ("w") or unparseable ("u")."""
    base = Question(
        question_id=f"q{number}", video_id=f"v{number}", recipe="neptune", question="?",
        question_type="k", options=("a", "b"), answer_index=0,
    )  # fmt: skip
    runs = tuple(
        Verdict(filter=name, model="g", correct={"r": True, "w": False, "u": None}[run])
        for name, given in (("blind", blind), ("asr", asr))
        for run in given
    )
    return replace(base, verdicts=(*runs, verdict_on_reply(base, reply, model="m")))


QUESTIONS = [
    guessed(0, "rrr", "rrr", "A"),
    guessed(1, "rrw", "rrr", "A"),
    guessed(2, "www", "rww", "B"),
    guessed(3, "www", "www", "A"),
    guessed(4, "wwu", "www", "A"),  # a run that told nothing: not counted
]


def test_the_accuracy_is_that_on_the_questions_left(tmp_path: Path) -> None:
    rows = accuracy_by_threshold(QUESTIONS, ["m", "other"], {})
    found = {
        (r.filters, r.min_failures): (r.questions, e.value if (e := r.accuracy["m"]) else None)
        for r in rows
    }
    assert found == {
        ("blind", 0): (4, 0.75), ("blind", 1): (3, 2 / 3), ("blind", 2): (2, 0.5),
        ("blind", 3): (2, 0.5), ("blind+asr", 0): (4, 0.75), ("blind+asr", 1): (2, 0.5),
        ("blind+asr", 2): (2, 0.5), ("blind+asr", 3): (1, 1.0),
    }  # fmt: skip
    assert {r.accuracy["other"] for r in rows} == {None}
    path = tmp_path / "thresholds.png"
    assert save_chart(path, lambda: draw_thresholds(rows)) is None
    assert path.stat().st_size > 2000


def test_the_rater_test_comes_before_the_guessers_where_raters_marked_the_modality() -> None:
    shares = (1.0, 0.0, 1.0, 0.5, None)  # share of raters for whom sound alone is enough
    marked = [
        q if share is None else replace(q, metrics={"audio_only": share})
        for q, share in zip(QUESTIONS, shares, strict=True)
    ]
    assert all(not r.filters.startswith("raters") for r in accuracy_by_threshold(QUESTIONS, [], {}))
    rows = accuracy_by_threshold(marked, ["m"], {})
    found = [(r.min_failures, r.questions) for r in rows if r.filters == "raters+blind"]
    assert found == [(0, 2), (1, 2), (2, 1), (3, 1)]  # q1 (one wrong run) and q3 (three)


def test_one_run_of_a_guesser_gives_no_thresholds() -> None:
    assert accuracy_by_threshold([guessed(0, "w", "w", "A")], ["m"], {}) == []
    assert accuracy_by_threshold([], ["m"], {}) == []


def test_runs_that_stop_once_a_vote_is_decided_give_no_empty_chart() -> None:
    """Questions with the third run are those on which the first two were not of one mind."""
    decided = [guessed(n, "ww", "ww", "A") for n in range(8)]
    contested = [guessed(n, "wrw", "rww", "A") for n in range(8, 11)]
    assert accuracy_by_threshold([*decided, *contested], ["m"], {}) == []
    assert accuracy_by_threshold([*decided[:3], *contested], ["m"], {}) != []


def test_a_filter_of_one_run_takes_no_question_out() -> None:
    once = [
        replace(q, verdicts=(*q.verdicts, Verdict(filter="options", model="g", correct=False)))
        for q in QUESTIONS
    ]
    rows = accuracy_by_threshold(once, ["m"], {})
    assert rows == accuracy_by_threshold(QUESTIONS, ["m"], {})
