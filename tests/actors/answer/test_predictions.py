"""Replies from a file as an answerer: read, scored and missed as a model's are."""

from __future__ import annotations

import asyncio
import io
import json
import re
from pathlib import Path

import pytest
from rich.console import Console

from actors.answer.no_model import Predictions
from mustsee.errors import UserError
from mustsee.evaluate import score_show
from mustsee.evaluate.answers import NOT_IN_FILE, answers, count_answers
from mustsee.evaluate.score import score
from mustsee.files.store import identity
from mustsee.records import Question, Video
from tests.actors.answer.test_answer import context, question

GIVEN = {"q1": "The answer is C.", "q2": "(A)", "other": "B"}


def part(folder: Path, name: str = "preds.json") -> Predictions:
    (folder / name).write_text(json.dumps(GIVEN))
    return Predictions(path=str(folder / name))


def test_replies_are_scored_and_missing_ones_are_no_failed_calls(tmp_path: Path) -> None:
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
    assert (three.correct, three.failed) == (None, NOT_IN_FILE)
    count = count_answers(found.values(), ["preds"])
    assert (count.sent, count.unread) == (2, 0)
    (scored,) = score(list(found.values()))
    assert (scored.asked, scored.failed, scored.not_in_file) == (3, 1, 1)
    says = part(tmp_path).describe_missing(list(found))
    assert re.search(r"not in the file .*: 1 of 3 questions; .* of the other 2$", says)
    assert part(tmp_path).describe_missing(["q1"]) == ""
    printed = io.StringIO()
    Console(width=200, file=printed).print(score_show.table([scored]))
    assert re.search(r"failed calls +0 *\n not in the file +1\b", printed.getvalue())


def test_the_same_replies_in_another_file_are_the_same_work(tmp_path: Path) -> None:
    one, other = part(tmp_path), part(tmp_path, "again.json")
    assert identity(one) == identity(other)
    (tmp_path / "again.json").write_text(json.dumps({**GIVEN, "q1": "B"}))
    assert identity(one) != identity(Predictions(path=other.path))


def test_a_file_for_other_questions_is_refused(tmp_path: Path) -> None:
    assert part(tmp_path).count_unknown(["q1", "q9"]) == 2
    with pytest.raises(UserError, match="none of its 3 ids is one of"):
        part(tmp_path).count_unknown(["x"])
