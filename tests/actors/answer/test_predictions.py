"""Replies from a file as an answerer: read, scored and missed as a model's are."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from actors.answer.predictions import Predictions
from mustsee.errors import UserError
from mustsee.evaluate.answers import answers
from mustsee.records import Question, Video
from mustsee.store import identity
from tests.actors.answer.test_answer import context, question

GIVEN = {"q1": "The answer is C.", "q2": "(A)", "other": "B"}


def part(folder: Path, name: str = "preds.json") -> Predictions:
    (folder / name).write_text(json.dumps(GIVEN))
    return Predictions(path=str(folder / name))


def test_replies_are_scored_and_missing_ones_are_failed_calls(tmp_path: Path) -> None:
    rows = tuple(question(name) for name in ("q1", "q2", "q3"))
    video = Video(video_id="v", uri="v.mp4", questions=rows)
    done = part(tmp_path).open(context(tmp_path))(video)
    if asyncio.iscoroutine(done):
        done = asyncio.run(done)
    assert isinstance(done, Video)
    found: dict[str, Question] = {q.question_id: q for q in done.questions or ()}
    ((one,), (two,), (three,)) = (answers(found[name]) for name in ("q1", "q2", "q3"))
    assert (one.model, one.letter, one.correct) == ("preds", "C", True)
    assert (two.letter, two.correct) == ("A", False)
    assert (three.correct, three.failed) == (None, "no reply in the file")


def test_the_same_replies_in_another_file_are_the_same_work(tmp_path: Path) -> None:
    one, other = part(tmp_path), part(tmp_path, "again.json")
    assert identity(one) == identity(other)
    (tmp_path / "again.json").write_text(json.dumps({**GIVEN, "q1": "B"}))
    assert identity(one) != identity(Predictions(path=other.path))


def test_a_file_for_other_questions_is_refused(tmp_path: Path) -> None:
    assert part(tmp_path).count_unknown(["q1", "q9"]) == 2
    with pytest.raises(UserError, match="none of its 3 ids is one of"):
        part(tmp_path).count_unknown(["x"])
