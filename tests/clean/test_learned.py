"""The learned guess at the rows of a training set: what it finds, in folds by video."""

import random
from dataclasses import replace

import pytest

from mustsee.clean import rule
from mustsee.clean.columns import TrainingRow
from mustsee.clean.rule import CommonAnswers, LearnedGuesser, as_choice
from mustsee.questions.learned import fit_folds, make_features


def choices(count: int, *, shortcut: str, seed: int = 0) -> list[TrainingRow]:
    """Return questions of four options: the answer is drawn, stands first, or has a word more."""
    rng = random.Random(seed)
    names = [f"thing{n}" for n in range(300)]
    rows: list[TrainingRow] = []
    for n in range(count):
        options, right = rng.sample(names, 4), rng.randrange(4)
        if shortcut == "position":
            right = 0
        if shortcut == "words":
            options[right] += " indeed"
        rows.append(
            TrainingRow(
                question_id=f"q{n}", video=f"v{n % 97}", source="s", question_type="",
                question=f"What is {rng.choice(names)}?", options=tuple(options),
                answer_index=right, answer=options[right], kind="choice",
            )
        )  # fmt: skip
    return rows


def known(rows: list[TrainingRow], size: int = 500) -> float:
    """Return the share of rows that the learned guess knows."""
    answers = CommonAnswers()
    for row in rows:
        if not row.options:
            answers.add(row)
    common, guesser = answers.by_group(), LearnedGuesser()
    asked = [as_choice(row, common) for row in rows]
    parts = [make_features(asked[n : n + size]) for n in range(0, len(rows), size)]
    models = fit_folds([lambda part=part: part for part in parts], guesser.rate, 0)
    hits = 0
    for part in parts:
        for right, guess in zip(part.rights, models.guess(part), strict=True):
            hits += right >= 0 and guesser.knows(float(guess[right]), len(guess))
    return hits / len(rows)


@pytest.mark.parametrize("shortcut", ["position", "words"])
def test_planted_shortcuts_are_found(shortcut: str) -> None:
    assert known(choices(2000, shortcut=shortcut)) >= 0.95


def test_a_shortcut_of_one_source_in_ten_is_found_in_a_small_set() -> None:
    """Rare words of the other rows must not explain away what 200 rows teach."""
    planted = [replace(row, source="planted") for row in choices(200, shortcut="words", seed=1)]
    plain = choices(1800, shortcut="none")
    mixed = [row for n in range(200) for row in (planted[n], *plain[9 * n : 9 * n + 9])]
    assert known(mixed) >= 0.095


def test_nothing_is_known_where_answers_are_drawn() -> None:
    assert known(choices(2000, shortcut="none")) <= 0.03


def test_an_open_answer_is_known_where_it_follows_from_the_question() -> None:
    rows = [
        TrainingRow(
            question_id=f"q{n}", video=f"v{n % 61}", source="s", question_type="colour",
            question=f"What colour has the {('grass', 'snow', 'coal', 'blood')[n % 4]} {n}?",
            answer=("Green", "white.", "black", "Red")[n % 4], kind="open",
        )
        for n in range(800)
    ]  # fmt: skip
    assert known(rows) >= 0.95


@pytest.mark.parametrize("apart", [False, True])
def test_rows_of_one_video_do_not_teach_each_other(apart: bool) -> None:
    """The answer is a word that is right on its video only: unknown, unless the rows count as of
    videos of their own (`apart`).
    """
    rng = random.Random(1)
    rows: list[TrainingRow] = []
    for n in range(2000):
        own, right = n % 100, rng.randrange(4)
        others = [k for k in range(100) if k != own]
        options = [f"word{k:02}" for k in rng.sample(others, 4)]
        options[right] = f"word{own:02}"
        rows.append(
            TrainingRow(
                question_id=f"q{n}", video=f"v{n if apart else own}", source="s", question_type="",
                question=f"Which of room{own:02}?", options=tuple(options), answer_index=right,
                answer=options[right], kind="choice",
            )
        )  # fmt: skip
    assert known(rows) >= 0.9 if apart else known(rows) <= 0.05


def test_rare_answers_are_forgotten_and_common_ones_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rule, "MAX_COUNTED", 50)
    answers = CommonAnswers()
    for n in range(1000):
        text = "yes" if n % 2 else f"rare {n}"
        row = TrainingRow(question_id="", video=f"v{n}", source="", question_type="", answer=text,
                          kind="open")  # fmt: skip
        answers.add(row)
    assert len(answers._counts) <= 51
    assert answers.by_group()["open "][0] == ["yes"]
