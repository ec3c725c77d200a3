"""Runs beside each other: figures as a short script counts them, matched questions, differences."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from mustsee.errors import UserError
from mustsee.records import Question
from mustsee.run.compare_runs import (
    NO_VIDEO,
    SAME_ID,
    SAME_WORDS,
    ComparedRun,
    MatchedQuestion,
    compare_runs,
    figures_of,
    find_differences,
    match_questions,
)
from ray_jobs.runtime.compared_runs import read_runs
from tests.ray_jobs.runtime.test_made_runs import ask, read_two, record_of, write_run

WORTH = {"rated": 4, "means": {"english": 4.5}, "checked": 4, "met": {"a": 3}, "all_met": 1,
         "raters": ["r"]}  # fmt: skip
GUESSES = {"filters": {"blind": {"questions": 8, "right": 2, "chance": 0.25},
                       "asr": {"questions": 0, "right": 0, "chance": 0.0}}}  # fmt: skip


def as_run(name: str, *questions: Question, **changes: Any) -> ComparedRun:
    return ComparedRun(name=name, record=record_of(**changes), questions=questions)


def match(*runs: list[Question]) -> list[MatchedQuestion]:
    return match_questions([as_run(str(n), *run) for n, run in enumerate(runs)])


def figures(run: ComparedRun) -> dict[tuple[str, str], Any]:
    return {(figure.group, figure.name): figure.value for figure in figures_of(run)}


def test_figures_are_those_of_a_short_script(tmp_path: Path) -> None:
    shares = [(0.9, 0.1, 0.2, 40.0), (0.7, 0.0, 0.3, 12.0), (0.5, 0.4, 0.4, 30.0)]
    names = ("points_seen", "points_blind", "points_in_view", "reach_seconds")
    questions = [
        ask(f"q{n}", metrics=dict(zip(names, shares[n % 3], strict=True)),
            drop=None if n % 4 else "blind: known" if n else "exam: unread",
            skill=("cause", "goal")[n % 2], form="points" if n % 3 else None)
        for n in range(13)
    ] + [ask("bare")]  # fmt: skip
    bills = {"calls": 70, "usd": 1.5, "unknown": 0}
    folder = write_run(tmp_path / "a", questions, llm={"all_runs": bills})
    comparison = read_runs([folder, write_run(tmp_path / "b", [])])
    # The script.
    rows = pq.read_table(f"{folder}/questions.parquet").to_pylist()
    kept = [r for r in rows if r["drop"] is None]
    with_metrics = [{m["name"]: m["value"] for m in r["metrics"]} for r in kept if r["metrics"]]
    mean = {n: sum(m[n] for m in with_metrics) / len(with_metrics) for n in names}
    long = sum(m["reach_seconds"] >= 30 for m in with_metrics) / len(with_metrics)
    causes = [r["drop"].split(":")[0] for r in rows if r["drop"]]
    skills = [r["skill"] or r["question_type"] for r in kept]

    found = figures(comparison.runs[0])
    assert found["questions", "written"] == len(rows) == 14
    assert found["questions", "kept"] == len(kept) == 10
    assert found["dropped questions", "dropped by blind"] == causes.count("blind") == 3
    assert found["dropped questions", "dropped by exam"] == causes.count("exam") == 1
    assert found["cost", "model calls, a kept question"] == 70 / len(kept)
    assert found["cost", "USD, a kept question"] == 1.5 / len(kept)
    seen = found["points", "share of points that a viewer said"]
    assert seen == pytest.approx(mean["points_seen"])
    blind = found["points", "share of points that a blind reader said, each question alone"]
    assert blind == pytest.approx(mean["points_blind"])
    in_view = found["points", "share of points that a blind reader said, all questions in view"]
    assert in_view == pytest.approx(mean["points_in_view"])
    assert found["reach", "needs 30 s of video or more"] == pytest.approx(long)
    tallies = {(t.group, t.name): t.kept for t in comparison.tallies}
    for skill in ("cause", "goal", "Other"):
        assert tallies["skill", skill] == (skills.count(skill), 0)
    assert tallies["form", "points"][0] == sum(r["form"] == "points" for r in kept)
    assert tallies["video", "v"] == (10, 0)


def test_worth_guesses_and_exams_are_figures_where_the_run_has_them() -> None:
    total = {"drafted": 8, "guessed": 3, "unread": 1, "chosen": 4}
    found = figures(as_run("a", questions={"worth": WORTH, "guesses": GUESSES},
                           fact_funnel={"total": total}, counts={"sent back": 4}))  # fmt: skip
    assert found["worth", "english"] == 4.5
    assert found["worth", "meets all conditions"] == 0.25
    assert (found["guesses", "blind: right"], found["guesses", "blind: by chance"]) == (0.25, 0.25)
    assert not any(name.startswith("asr") for _, name in found)
    assert found["exam of drafts", "guessed without the video"] == 3
    assert found["counts", "sent back"] == 4
    without = figures(as_run("a"))
    assert not {"worth", "guesses", "exam of drafts", "counts"} & {group for group, _ in without}
    assert without["cost", "USD, a kept question"] is None
    assert without["points", "share of points that a viewer said"] is None


def test_questions_match_by_id_then_by_words() -> None:
    one = ask("a", question="Where does the cat go?")
    for other, by in (
        (replace(one, question="Repaired?"), SAME_ID),
        (replace(one, question_id="b", question="where does a CAT go"), SAME_WORDS),
        (replace(one, question_id="b", question="Where does the dog go?"), None),
        (replace(one, question_id="b", options=("x", "y")), None),
        (replace(one, video_id="w", question_id="b"), None),
        (replace(one, question_id="b", question="猫去哪?"), None),
    ):
        found = match([one], [other])
        assert len(found) == (1 if by else 2), other
        assert found[0].matched == (by or "")


def test_each_question_of_a_run_is_matched_once_the_same_answer_first() -> None:
    first = [ask(n, question="Who?", answer=n) for n in ("a", "b", "c")]
    second = [ask(n, question="who", answer=answer) for n, answer in (("x", "c"), ("y", "d"))]
    found = match(first, second)
    pairs = [tuple(q and q.question_id for q in one.questions) for one in found]
    assert pairs == [("a", "y"), ("b", None), ("c", "x")]
    assert [one.answers_differ for one in found] == [True, False, False]
    twice = match(first[:1], [ask("x", question="Who?", answer="a"), ask("y", question="Who?")])
    pairs = [tuple(q and q.question_id for q in one.questions) for one in twice]
    assert pairs == [("a", "x"), (None, "y")]
    # A third run meets a question by the id that only the second gave it.
    (one,) = match([first[0]], [replace(first[0], question_id="n")], [ask("n", question="New?")])
    assert [q.question_id for q in one.questions if q] == ["a", "n", "n"]
    assert one.matched == SAME_WORDS


def test_the_fate_in_the_other_run_says_who_dropped_it_or_why_it_is_missing() -> None:
    run = as_run("a", ask("x"), ask("y"), ask("z", "w"), ask("u", "t"), ask("o", drop=""))
    other = as_run("b", ask("x", drop="sight: two fit"), read=3,
                   without_questions={"w": "none was made"})  # fmt: skip
    fates = {one.sample.question_id: [str(f) for f in one.fates]
             for one in match_questions([run, other])}  # fmt: skip
    assert fates == {
        "x": ["kept", "dropped by sight: two fit"],
        "y": ["kept", "not written"],
        "z": ["kept", "not written: none was made"],
        "u": ["kept", "not written: no question on its video"],
        "o": ["dropped by an unnamed filter", "not written"],
    }
    (one,) = match_questions([as_run("a", ask("u", "t")), as_run("b", read=0)])
    assert one.fates[1].what == NO_VIDEO


def test_gained_and_lost_questions_are_counted_by_skill(tmp_path: Path) -> None:
    shared = ask("s", skill="goal")
    found = read_two(
        tmp_path,
        [shared, ask("lost", skill="cause"), ask("both", skill="cause", drop="blind: x")],
        [replace(shared, skill="plan"), ask("won", skill="cause"), ask("won 2", skill="cause"),
         ask("lost", drop="sight: y"), ask("both", drop="sight: z")],
    )  # fmt: skip
    assert [one.sample.question_id for one in found.kept_only_in(0)] == ["lost"]
    assert [one.sample.question_id for one in found.kept_only_in(1)] == ["won", "won 2"]
    assert [one.sample.question_id for one in found.kept_by(2, 2)] == ["s"]
    assert [one.sample.question_id for one in found.kept_by(0, 0)] == ["both"]
    tallies = {t.name: (t.kept, t.only_here) for t in found.tallies if t.group == "skill"}
    assert tallies == {"cause": ((1, 2), (1, 2)), "goal": ((1, 0), (0, 0)),
                       "plan": ((0, 1), (0, 0))}  # fmt: skip


def test_settings_that_differ_are_named_and_those_that_differ_alike_together() -> None:
    one = {"out": "a", "store": "a/store", "llm": {"model": "m", "n": 1}, "rater": {"model": "m"},
           "worth": None, "same": [1, {"x": 2}]}  # fmt: skip
    other = {"out": "b", "store": "b/store", "llm": {"model": "k"}, "rater": {"model": "k"},
             "worth": {"questions": 8}, "same": [1, {"x": 2}]}  # fmt: skip
    found = find_differences([
        record_of(config=one, versions={"ray": "1", "numpy": "2"}, prompts={"ask": "x"}),
        record_of(config=other, versions={"ray": "2", "numpy": "2"}, prompts={"ask": "y"}, git="g"),
    ])  # fmt: skip
    assert [(d.part, d.names, d.values) for d in found] == [
        ("config", ("llm.model", "rater.model"), ("m", "k")),
        ("config", ("llm.n",), ("1", "(not set)")),
        ("config", ("worth",), ("null", '{"questions": 8}')),
        ("git", ("git",), ("", "g")),
        ("versions", ("ray",), ("1", "2")),
        ("prompts", ("ask",), ("x", "y")),
    ]


def test_runs_without_a_common_video_are_refused_by_name() -> None:
    runs = [as_run("A", ask("x", "one")), as_run("B", ask("y", "two"))]
    with pytest.raises(UserError, match=r"runs='A' and 'B' have no common video.*'one'.*'two'"):
        compare_runs(runs)
    empty = as_run("C", without_questions={"two": "none was made"})
    with pytest.raises(UserError, match="'A' and 'C'"):
        compare_runs([runs[0], empty])
    assert "C has no question" in compare_runs([runs[1], empty]).notes


def test_what_limits_the_figures_is_noted() -> None:
    bills = {"calls": 5, "usd": 1.0, "unknown": 2, "unknown_usd": 0.5}
    one = as_run("A", ask("x"), ask("y", "w"), read=4, reused={"ask": 3}, incomplete_videos=1,
                 llm={"all_runs": bills}, fact_funnel={"missing": ["1 missing"]})  # fmt: skip
    notes = "\n".join(compare_runs([one, as_run("B", ask("x"))]).notes)
    for part in (
        "A has 1 of 2 videos that are not in every run: 'w'",
        "2 of 4 videos have no question",
        "reused 3 results",
        "2 calls without a reply cost at most 0.50 USD",
        "A: of 1 videos",
        "A: 1 missing",
    ):
        assert part in notes
    assert "B" not in notes.replace("USD", "")
