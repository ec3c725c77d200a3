"""An audit shows the file's broken rows, the reasons of drops, and what was not measured."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from rich.console import Console

import mustsee
from mustsee.audit import repeats, show
from mustsee.audit.audit import Audit, RepeatReport, audit
from mustsee.audit.battery import ConditionRun
from mustsee.audit.show import write_clean
from mustsee.errors import UserError
from mustsee.evaluate.answers import FILTER
from mustsee.files import schemas
from mustsee.layouts import QuestionFile
from mustsee.records import UNTESTED, Question, Verdict, Video
from ray_jobs.cli.launch import build, compose
from tests.layouts.test_odd_rows import ODD
from tests.support.evaluation import questions

BLIND = ConditionRun(name="offline 1 blind", answerer="offline 1", condition="blind", frames=0)


@pytest.fixture
def reading(tmp_path: Path) -> QuestionFile:
    (tmp_path / "mine.csv").write_text(ODD)
    return mustsee.read(tmp_path / "mine.csv")


def audited(reading: QuestionFile, *asked: ConditionRun) -> Audit:
    twice = RepeatReport(duplicates=repeats.repeats_within(list(reading.questions)))
    return audit(reading.questions, reading.videos, asked, twice, broken=reading.unusable_reasons)


def terminal(*shown: Any) -> str:
    held = io.StringIO()
    for each in shown:
        Console(file=held, width=200).print(each)
    return held.getvalue()


def pages(folder: Path, reading: QuestionFile, found: Audit) -> str:
    pq.write_table(schemas.questions_table(reading.questions), folder / "questions.parquet")
    pq.write_table(schemas.table(reading.videos, Video), folder / "videos.parquet")
    about = {"dataset": "d/mine.csv", "layout": "table", "against": [],
             "findings": [f.plain() for f in reading.findings]}  # fmt: skip
    show.write(folder, found, about)
    record = {"config": {}, "llm": {}, "seconds": {"total": 1}, "versions": {}, "git": ""}
    return show.write_page(folder, record).read_text()


def test_broken_and_duplicate_questions_are_dropped_and_reasons_are_shown(
    reading: QuestionFile, tmp_path: Path
) -> None:
    found = audited(reading)
    assert found.left_out == {"answer is outside the options": 2, "no known answer": 1}
    assert {k: n for k, n in found.fails.items() if n} == {"duplicate": 1, "broken": 7}
    assert (found.all, found.kept_count) == (12, 4)
    write_clean(tmp_path / "clean", reading, found, tmp_path / "mine.csv")
    with (tmp_path / "clean" / "mine.csv").open(newline="") as file:
        left = [row["q"] for row in csv.DictReader(file)]
    assert left == ["What is poured?", "What does the\nman dig with?", "What is built?",
                    "What colour is it?"]  # fmt: skip
    said = terminal(
        show.count_sentence(found),
        show.findings_table(reading.findings),
        show.drop_reasons_table(found),
    )
    for part in ("9 of 12 questions audited", "2 answer is outside", "1 no known answer",
                 "9 questions: too few to distinguish", "line 7", "'E'", "line 11",
                 "4 of 12 questions", "another question of the dataset is the same"):  # fmt: skip
        assert part in said
    shown = pages(tmp_path, reading, found)
    for part in ("line 7", "&#39;E&#39;", "too few to distinguish", "it is unusable"):
        assert part in shown
    record = json.loads((tmp_path / "audit.json").read_text())
    assert record["findings"][2]["place"] == "line 7"
    assert record["kept"] == 4


def test_only_the_chosen_reasons_drop_questions(reading: QuestionFile, tmp_path: Path) -> None:
    found = audit(
        reading.questions,
        reading.videos,
        [],
        RepeatReport(),
        broken=reading.unusable_reasons,
        drops=[],
    )
    write_clean(tmp_path / "clean", reading, found, tmp_path / "mine.csv")
    assert len(mustsee.read(tmp_path / "clean" / "mine.csv")) == found.kept_count == 12


def guessed(right: int, count: int = 200) -> list[Question]:
    """Questions of which a blind model gets the first `right` in its turns, and no other."""
    made: list[Question] = []
    for n, q in enumerate(questions(count)):
        key = q.answer_index or 0
        letter = "ABCDE"[
            key if n < right else (key + 1 + n % (len(q.options) - 1)) % len(q.options)
        ]
        detail = json.dumps({"rotation": 0, "letter": letter})
        verdict = Verdict(filter=FILTER, model=BLIND.name, correct=n < right, reply=letter,
                          detail=detail)  # fmt: skip
        made.append(Question(**{**vars(q), "verdicts": (verdict,)}))
    return made


@pytest.mark.parametrize(("right", "leave"), [(40, 0), (120, 120)])
def test_lucky_guesses_are_kept_and_shortcuts_dropped(right: int, leave: int) -> None:
    found = audit(guessed(right), [], [BLIND], RepeatReport(), drops=["blind"])
    assert found.fails["blind"] == leave
    assert found.lucky == right - leave
    assert sum(i.shortcuts == ("blind",) for i in found.items) == right


def test_negative_ratios_and_untested_keys_are_shown_as_not_measured(tmp_path: Path) -> None:
    asked = guessed(10)
    found = audit(asked, [], [BLIND], RepeatReport())
    ratio = found.figures[0].shortcuts.ratio
    assert ratio is not None
    assert ratio.value < 0
    said = terminal(show.figures_table(found), show.describe_rules(found))
    assert "none measured (-" in said
    assert f"{UNTESTED} Rules were asked in its place: blind." in said
    assert "keys in doubt" not in said
    reading = QuestionFile(
        layout="ours", questions=tuple(asked),
        videos=tuple(Video(video_id=v, uri="") for v in {q.video_id for q in asked}),
    )  # fmt: skip
    shown = pages(tmp_path, reading, found)
    for part in (UNTESTED, "not tested, no model saw a frame", '<b class="">none</b>measured'):
        assert part in shown


def test_a_guesser_with_equal_scores_has_an_interval() -> None:
    found = audit(questions(12), [], [], RepeatReport())
    (prior,) = (t.right for t in found.battery if t.name == "prior")
    assert prior.low is not None
    assert prior.high is not None
    assert prior.low < prior.value < prior.high


def test_a_table_without_a_usable_row_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "q.csv"
    file.write_text("vid,q,a,b,right\nv,who,x,y,0\n")
    job = build(compose("audit", [f"questions={file}", f"out={tmp_path / 'out'}"]))
    with pytest.raises(UserError) as caught:
        job()
    for part in ("none of 1 questions", "no known answer (1)", "answer: K}"):
        assert part in str(caught.value)
