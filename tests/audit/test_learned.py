"""The learned guess: it finds what is regular over videos and nothing else, and takes that out."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mustsee import schemas, stats
from mustsee.audit import learned
from mustsee.audit.guessers import hits
from mustsee.audit.learned import LearnedGuess, learned_guess, record_learned
from mustsee.errors import UserError
from mustsee.questions.balance import hit
from mustsee.records import Question, Video
from mustsee.run.decision import Decision
from mustsee.run.tables import Tables
from ray_jobs.runtime.barrier import DecisionWriter

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


def test_of_many_questions_it_learns_from_some_and_guesses_at_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    questions = drawn(longest, videos=40, each=5)
    monkeypatch.setattr(learned, "MAX_LEARNED", 60)
    monkeypatch.setattr(learned, "SCORED_AT_ONCE", 7)
    guesses = learned_guess(questions)
    assert all(abs(sum(guess) - 1) < 1e-9 and len(guess) == 5 for guess in guesses)
    low = accuracy(questions).low
    assert low is not None
    assert low > 0.3
    changed = [replace(q, answer_index=0) if q.video_id == "v3" else q for q in questions]
    of_v3 = [n for n, q in enumerate(questions) if q.video_id == "v3"]
    again = learned_guess(changed)
    assert [again[n] for n in of_v3] == [guesses[n] for n in of_v3]


def test_guesses_do_not_depend_on_the_order_of_sets() -> None:
    code = (
        "from tests.audit.test_learned import *\n"
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
    for guess, other in zip(guesses, learned_guess(questions[::-1])[::-1], strict=True):
        assert guess == pytest.approx(other, abs=1e-3)


def test_it_is_a_guesser_of_audits() -> None:
    questions = drawn(by_verb)
    right = hits(questions)["learned"]
    assert sum(right) / len(right) == accuracy(questions).value


def table(questions: Sequence[Question]) -> pa.Table:
    by_video: dict[str, list[Question]] = {}
    for question in questions:
        by_video.setdefault(question.video_id, []).append(question)
    rows = [Video(video_id=v, uri=v, questions=tuple(of)) for v, of in by_video.items()]
    return schemas.table(rows, Video)


def test_what_it_knows_leaves_the_subset() -> None:
    regular, random_ = drawn(by_verb), drawn(at_random, form="order")
    decision = LearnedGuess()(table([*regular, *random_]))
    by_form = Counter(name.partition("-")[0] for name in decision.leaves)
    assert by_form["after"] > 40 > 2 * by_form["order"]
    for name in decision.leaves:
        metrics = decision.metrics[name]
        assert metrics["learned"] >= 0.4
        assert (metrics["learned_guessed"], metrics["learned_passed"]) == (1, 0)
    assert len(decision.metrics) == 400
    assert not decision.drops
    assert not decision.questions


def test_nothing_leaves_where_it_is_at_chance_or_videos_are_few() -> None:
    assert LearnedGuess()(table(drawn(at_random))).leaves == {}
    assert LearnedGuess()(table(drawn(by_verb, videos=2))) == Decision()
    assert LearnedGuess(subset=None)(table(drawn(by_verb))) == Decision()
    with pytest.raises(UserError, match="sure"):
        LearnedGuess(sure=0.5)


def test_the_decision_is_written_and_summed_up(tmp_path: Path) -> None:
    rows = table(drawn(by_verb))
    decision = LearnedGuess()(rows)
    mark = DecisionWriter(decision=decision).open(None)  # type: ignore[arg-type]
    marked: list[Question] = []
    for row in rows.to_pylist():
        video = mark(schemas.load(Video, row))
        marked += video.questions or ()  # type: ignore[union-attr]
    gone = [q for q in marked if q.question_id in decision.leaves]
    assert {q.subsets for q in gone} == {("all",)}
    assert {q.subsets for q in marked if q not in gone} == {("mma", "all")}
    assert all(q.drop is None and "learned" in q.metrics for q in marked)
    pq.write_table(schemas.questions_table(marked), tmp_path / "questions.parquet")
    record = record_learned(Tables(tmp_path))
    found = accuracy(marked)
    assert record["learned"]["value"] == found.value
    assert record["learned"]["taken"] == len(gone)
    assert record["notes"] == [
        f"a text model fitted on the other videos answers {found.value:.0%} (95% {found.low:.0%} "
        f"to {found.high:.0%}) of 200 questions right, by chance 20%; {len(gone)} did not pass for "
        "it"
    ]
    pq.write_table(schemas.questions_table(drawn(by_verb)), tmp_path / "questions.parquet")
    assert record_learned(Tables(tmp_path)) == {}


@pytest.mark.parametrize(("rights", "warns"), [(9, True), (5, False)])
def test_a_lead_over_chance_that_takes_nothing_out_is_a_warning(
    tmp_path: Path, rights: int, warns: bool
) -> None:
    """With chance at a fifth, 9 of 20 are a lead of 25 points, and 5 of 20 one of 5."""
    asked = [
        replace(
            q, metrics={"learned": 0.3, "learned_guessed": float(n < rights), "learned_passed": 1.0}
        )
        for n, q in enumerate(drawn(at_random)[:20])
    ]
    pq.write_table(schemas.questions_table(asked), tmp_path / "questions.parquet")
    (note,) = record_learned(Tables(tmp_path))["notes"]
    assert note.startswith("warning: ") == warns
