"""The learned guess: it finds what is regular over videos and nothing else, in any order."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mustsee import stats
from mustsee.questions import learned
from mustsee.questions.balance import hit
from mustsee.questions.learned import ChoiceText, learned_guess, make_features
from mustsee.records import Question

ROOT = Path(__file__).parents[2]
NOUNS = ["lamp", "door", "horse", "river", "candle", "tower", "bottle", "wagon", "hammer", "ladder"]
VERBS = ["opens", "lifts", "paints", "drops", "follows", "counts", "cleans", "breaks"]
Chooses = Callable[[random.Random, str, list[str]], int]


def drawn(
    chooses: Chooses, videos: int = 20, each: int = 10, form: str = "after"
) -> list[Question]:
    """Questions on videos, of whose random options `chooses` says which is right."""
    rng = random.Random(1)
    made: list[Question] = []
    for video in range(videos):
        for n in range(each):
            pairs = rng.sample([(a, b) for a in VERBS for b in NOUNS], 5)
            options = [f"a man {a} the {b}" for a, b in pairs]
            answer = chooses(rng, f"v{video}", options)
            made.append(
                Question(
                    question_id=f"{form}-{video}-{n}", video_id=f"v{video}", recipe="facts",
                    question=f"What happens after a man {rng.choice(VERBS)} a thing?",
                    question_type="Other", options=tuple(options), answer_index=answer,
                    answer=options[answer], form=form, subsets=("mma", "all"),
                )
            )  # fmt: skip
    return made


def at_random(rng: random.Random, video: str, options: list[str]) -> int:
    return rng.randrange(len(options))


def by_verb(rng: random.Random, video: str, options: list[str]) -> int:
    """Things that are broken or dropped are right, as in a film; else any."""
    dramatic = [n for n, text in enumerate(options) if "breaks" in text or "drops" in text]
    return rng.choice(dramatic or range(len(options)))


def longest(rng: random.Random, video: str, options: list[str]) -> int:
    return max(range(len(options)), key=lambda n: len(options[n]))


def of_the_video(rng: random.Random, video: str, options: list[str]) -> int:
    """Each video has an answer of its own that no other one has."""
    answer = rng.randrange(len(options))
    options[answer] = f"a man opens box number {video}"
    return answer


def accuracy(questions: Sequence[Question]) -> stats.Estimate:
    guesses = learned_guess(questions)
    rights = [hit(q, guess) for q, guess in zip(questions, guesses, strict=True)]
    return stats.mean(rights, [q.video_id for q in questions])


@pytest.mark.parametrize("chooses", [by_verb, longest])
def test_it_learns_what_is_regular_over_videos(chooses: Chooses) -> None:
    low = accuracy(drawn(chooses)).low
    assert low is not None
    assert low > 0.3


def test_three_videos_teach_each_other() -> None:
    assert accuracy(drawn(longest, videos=3, each=40)).value > 0.3


@pytest.mark.parametrize("chooses", [at_random])
def test_it_knows_nothing_where_there_is_nothing(chooses: Chooses) -> None:
    found = accuracy(drawn(chooses))
    assert found.low is not None
    assert found.high is not None
    assert found.low <= 0.2 <= found.high


def test_it_never_learns_from_the_video_that_it_guesses_at() -> None:
    """What is right on one video says nothing of it on others: only "box" does."""
    questions = [
        replace(q, options=tuple(o.replace("box number ", "") for o in q.options))
        for q in drawn(of_the_video)
    ]
    two = [q for q in questions if q.video_id in ("v1", "v2")]
    assert all(len(set(guess)) == 1 for guess in learned_guess(two))
    # The own answers of half the videos are wrong on the other half, where they stand as decoys.
    crossed = [
        replace(q, options=(f"a man opens {q.video_id}", f"a man opens v{(n + 7) % 20}"),
                answer_index=0)
        for n, q in enumerate(questions)
    ]  # fmt: skip
    shuffled = [
        replace(q, options=q.options[::-1], answer_index=1) if n % 2 else q
        for n, q in enumerate(crossed)
    ]
    high = accuracy(shuffled).high
    assert high is not None
    assert high < 0.75


def test_parts_are_read_again_and_a_videos_answers_do_not_matter_to_its_guesses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    questions = drawn(longest, videos=40, each=5)
    monkeypatch.setattr(learned, "PART", 30)
    held = learned_guess(questions)
    monkeypatch.setattr(learned, "HELD_PARTS", 1)
    assert learned_guess(questions) == held
    low = accuracy(questions).low
    assert low is not None
    assert low > 0.3
    changed = [replace(q, answer_index=0) if q.video_id == "v3" else q for q in questions]
    of_v3 = [n for n, q in enumerate(questions) if q.video_id == "v3"]
    again = learned_guess(changed)
    assert [again[n] for n in of_v3] == [held[n] for n in of_v3]
    assert again != held


def test_guesses_do_not_depend_on_the_order_of_sets() -> None:
    code = (
        "from tests.questions.test_learned import *\n"
        "print(learned_guess(drawn(by_verb, videos=6, each=4)))"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(printed) == 1


def test_probabilities_are_shares_and_do_not_depend_on_the_order_of_the_questions() -> None:
    questions = drawn(by_verb, videos=6, each=4)
    guesses = learned_guess(questions)
    assert [len(guess) for guess in guesses] == [5] * 24
    assert [sum(guess) for guess in guesses] == pytest.approx([1] * 24)
    assert learned_guess(questions[::-1])[::-1] == guesses


def choice_text(question: Question, fold: int) -> ChoiceText:
    return ChoiceText(
        question=question.question, question_type="", choices=question.options,
        right=question.answer_index or 0, fold=fold,
    )  # fmt: skip


def test_some_questions_taken_from_a_part_keep_their_features() -> None:
    asked = [choice_text(q, n % 5) for n, q in enumerate(drawn(at_random, videos=4, each=5))]
    whole, some = make_features(asked), np.array([3, 17, 4])
    taken, alone = whole.take(some), make_features([asked[n] for n in some])
    for name in ("folds", "counts", "rights", "edges", "places", "values"):
        assert np.array_equal(getattr(taken, name), getattr(alone, name)), name
    assert make_features([]).take(np.array([], int)).rows.shape == (0,)
    assert make_features([None, asked[0]]).rows.tolist() == [1]


def test_some_features_are_left_of_each_option() -> None:
    features = make_features([choice_text(q, 0) for q in drawn(at_random, videos=2, each=3)])
    kept = np.arange(1 << learned.BITS) % 3 == 0
    left = features.with_features(kept)
    for n in range(len(features.edges) - 1):
        before, after = (slice(*f.edges[n : n + 2]) for f in (features, left))
        chosen = kept[features.places[before]]
        assert np.array_equal(left.places[after], features.places[before][chosen])
        assert np.array_equal(left.values[after], features.values[before][chosen])
