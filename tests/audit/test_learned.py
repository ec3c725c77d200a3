"""What the learned guess knows better than chance is taken out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mustsee.audit.guessers import LearnedGuess, hits, record_learned
from mustsee.errors import UserError
from mustsee.files import schemas
from mustsee.questions.decision import Decision
from mustsee.records import Question, Video
from mustsee.run.tables import Tables
from ray_jobs.runtime.stream import DecisionWriter
from tests.questions.test_learned import accuracy, at_random, by_verb, drawn


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
