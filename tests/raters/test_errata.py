"""People decide on proposals: the page shows the doubt, and their votes become errata."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from mustsee.errors import UserError
from mustsee.files import schemas
from mustsee.layouts.errata import Erratum, read_errata, write_errata
from mustsee.raters.ballots import CastVote, UnfinishedVote
from mustsee.raters.rating_run import RatingRun
from mustsee.raters.transfer import write_votes
from mustsee.records import Question, Span, Video
from serve.rater_show import Tasks
from serve.rater_video import ServedVideos
from tests.raters.test_rating_run import rating_run

RULE = "rule:audit votes"


@pytest.fixture
def audited(tmp_path: Path) -> Path:
    questions = [
        Question(
            question_id=f"q{n}", video_id="v", recipe="r", question="Which?", question_type="k",
            options=("red", "green", "blue"), answer_index=0, answer="red",
            evidence=() if n == 1 else (Span(0, 1),), drop="x: y" if n == 5 else None,
        )
        for n in range(7)
    ]  # fmt: skip
    video = Video(video_id="v", uri=str(tmp_path / "v.mp4"), duration=60.0)
    Path(video.uri).write_bytes(b"a video")
    pq.write_table(schemas.table(questions, Question), tmp_path / "questions.parquet")
    pq.write_table(schemas.table([video], Video), tmp_path / "videos.parquet")
    entries = [
        Erratum(id=name, old="red", new="blue", span=Span(7, 9), evidence=f"{name} <b>", who=RULE)
        for name in ("q2", "q0", "q1", "q3", "q5", "gone")
    ]
    write_errata(entries, tmp_path / "errata.jsonl")
    return tmp_path


def vote(name: str, rater: str, **answers: Any) -> CastVote:
    return CastVote(
        question_id=name, round="errata", rater=rater, seconds=5.0, at=0.0, answers=answers
    )


def rate(folder: Path, /, **settings: Any) -> RatingRun:
    return rating_run(folder, form="errata", **settings)


def test_only_doubted_questions_are_asked_and_the_others_are_named(audited: Path) -> None:
    rating = rate(audited)
    rating.check()
    assert [*rating.question_by_id] == ["q2", "q0", "q1", "q3"]
    assert rating.lacking_proposals == ["q5", "gone"]
    assert [item.question_id for item in rating.open_items()] == ["q2", "q0", "q1", "q3"]
    few = rate(audited, sample=2, folder=str(audited / "few"))
    assert [item.question_id for item in few.open_items()] == ["q2", "q0"]
    assert rating.question_by_id["q1"].evidence == (Span(7, 9),)
    assert rating.question_by_id["q0"].evidence == (Span(0, 1),)


def test_the_page_shows_key_doubt_and_span(audited: Path) -> None:
    rating = rate(audited)
    item = next(i for i in rating.open_items() if i.question_id == "q1")
    pages = Tasks(
        form=rating.form, items={item.name: item}, questions=rating.question_by_id,
        videos=rating.video_by_id, served=ServedVideos(rating.video_by_id.values(), audited),
        doubts=rating.doubts,
    )  # fmt: skip
    values = pages.template_values(item.name, UnfinishedVote(), {}, ())
    assert values["answer"] == "red"
    assert values["doubt"] == f"{RULE}: q1 <b>"
    assert values["evidence"] == (Span(7, 9),)
    assert {text for _, text in values["choices"]} == {"red", "green", "blue"}


def test_another_option_must_be_marked(audited: Path) -> None:
    rating = rate(audited)
    question = rating.question_by_id["q0"]
    read = rating.form.rounds[0].steps[0].read
    assert rating.form.faults(read({"verdict": "other"}, question)[0], question) != []
    for right in ("0", "2"):
        answers, faults = read({"verdict": "other", "right": right}, question)
        assert faults == []
        assert rating.form.faults(answers, question) == []


def test_votes_become_errata_of_people(audited: Path) -> None:
    before = (audited / "questions.parquet").read_bytes()
    rating = rate(audited, names=("ana", "ben", "eve"))
    rating.open_items()
    other = {"verdict": "other", "right": 1, "evidence": [[3.0, 4.0]]}
    cast = [
        *(vote("q0", name, verdict="stands") for name in ("ana", "ben")),
        vote("q0", "eve", verdict="bad"),
        vote("q1", "ana", **other, note="it is green"), vote("q1", "ben", **other),
        vote("q1", "eve", verdict="other", right=2),
        vote("q2", "ana", verdict="other", right=0), vote("q2", "ben", verdict="other", right=1),
        vote("q2", "eve", verdict="other", right=2),
        vote("q3", "ana", verdict="bad"),
    ]  # fmt: skip
    rating.ballots.import_votes(cast, 1.0)
    line, *summary = write_votes(rating)
    assert "1 keys stand, 1 have another right option, 0 questions are bad" in line
    assert "do not agree on 1: q2" in line
    assert not any("right" in text and "%" in text and "pairs" not in text for text in summary)
    entries = read_errata(rating.folder / "errata.jsonl").entries
    assert {name: (e.old, e.new) for name, e in entries.items()} == {
        "q0": ("red", "red"), "q1": ("red", "green"),
    }  # fmt: skip
    assert entries["q0"].who == "rater:ana, rater:ben"
    assert (entries["q1"].span, entries["q1"].evidence) == (Span(3, 4), "ana: it is green")
    assert not any(e.is_proposal for e in entries.values())
    assert (audited / "questions.parquet").read_bytes() == before


def test_what_cannot_be_decided_is_refused(audited: Path) -> None:
    with pytest.raises(UserError, match="is for form=errata"):
        rating_run(audited, errata="x.jsonl").check()
    rows = [json.loads(line) for line in (audited / "errata.jsonl").read_text().splitlines()]
    (audited / "errata.jsonl").write_text(json.dumps({**rows[0], "old": "green"}) + "\n")
    with pytest.raises(UserError, match="the keys of 1 questions are not those"):
        _ = rate(audited).question_by_id
    (audited / "errata.jsonl").write_text("")
    with pytest.raises(UserError, match="the audit doubts no key"):
        rate(audited).check()
    (audited / "errata.jsonl").unlink()
    with pytest.raises(UserError, match="there are no proposals"):
        rate(audited).check()


def test_a_form_on_errata_needs_a_verdict(audited: Path) -> None:
    form = rate(audited).form
    with pytest.raises(UserError, match="verdict"):
        replace(form, rounds=(), checks=())
