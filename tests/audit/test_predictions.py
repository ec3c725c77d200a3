"""Votes are read from files of replies and from evaluations, and what is not read is counted."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from mustsee.audit.doubts import read_predicted_votes
from mustsee.errors import UserError
from mustsee.evaluate.answers import verdict_on_reply, with_answers
from mustsee.layouts import ours
from tests.support.evaluation import questions


def test_replies_of_a_file_vote_and_the_others_are_counted(tmp_path: Path) -> None:
    asked = questions(4)
    replies = {asked[0].question_id: "B", asked[1].question_id: "I do not know.", "x": "A",
               asked[2].question_id: asked[2].options[3]}  # fmt: skip
    file = tmp_path / "gpt.json"
    file.write_text(json.dumps(replies))
    (read,) = read_predicted_votes([str(file)], asked)
    assert read.votes == {asked[0].question_id: 1, asked[2].question_id: 3}
    assert (read.model, read.unknown, read.unread) == ("gpt", 1, 1)
    assert "2 questions answered, 1 replies name no option, 1 are to questions" in read.sentence


def test_an_evaluation_votes_by_the_texts_of_its_options(tmp_path: Path) -> None:
    asked = questions(3)
    given = [
        with_answers(q, [verdict_on_reply(q, letter, model="m", rotation=0) for letter in letters])
        for q, letters in zip(asked, ("C", "AB", "A"), strict=True)
    ]
    ours.write(given, tmp_path / "evaluated")
    turned = [replace(q, options=q.options[1:] + q.options[:1]) for q in asked]
    (read,) = read_predicted_votes([str(tmp_path / "evaluated")], turned)
    assert read.votes == {asked[0].question_id: 1, asked[2].question_id: 4}
    assert read.unread == 1


def test_files_that_cannot_vote_are_refused(tmp_path: Path) -> None:
    asked = questions(2)
    (tmp_path / "a").mkdir()
    files = [tmp_path / "m.json", tmp_path / "a" / "m.json"]
    for file in files:
        file.write_text(json.dumps({asked[0].question_id: "A"}))
    with pytest.raises(UserError, match=r"\['m'\] are named twice"):
        read_predicted_votes([*map(str, files)], asked)
    files[0].write_text(json.dumps({"x": "A"}))
    with pytest.raises(UserError, match=r"predictions=.*none of its 1 ids, such as 'x'"):
        read_predicted_votes([str(files[0])], asked)
    (tmp_path / "p.csv").write_text("nr,words\n1,A\n")
    with pytest.raises(
        UserError, match=r"predictions=.*rename the column with the id.*evaluate answer=file"
    ):
        read_predicted_votes([str(tmp_path / "p.csv")], asked)
    ours.write(asked, tmp_path / "run")
    with pytest.raises(UserError, match="not the output folder of an evaluation"):
        read_predicted_votes([str(tmp_path / "run")], asked)
