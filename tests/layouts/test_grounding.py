"""Exports for temporal grounding are read as the tools of these datasets read them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from mustsee.errors import UserError
from mustsee.layouts import grounding, ours
from mustsee.layouts.portable import open_tasks
from mustsee.layouts.task_scoring import is_open_ended
from mustsee.questions.templates import word_question, word_spans
from mustsee.records import WHEN, Question, Span, Video
from ray_jobs.cli.launch import build, compose

RING = "a boy in red rings a bell"
VIDEOS = [Video(video_id="v", uri="videos/v.mp4", duration=60.0),
          Video(video_id="w", uri="more/my holiday.mkv")]  # fmt: skip


def when(name: str, *spans: Span, phrase: str = RING, **fields: object) -> Question:
    question = Question(
        question_id=name, video_id="v", recipe="facts", question_type="Temporal Grounding",
        question=word_question(phrase, "event", len(spans)), answer=word_spans(spans),
        evidence=spans, form=WHEN, subsets=("full", WHEN),
    )  # fmt: skip
    return replace(question, **fields)  # type: ignore[arg-type]


ASKED = [
    when("a", Span(12.4, 18.0)),
    when("b", Span(1.0, 2.0), Span(40.0, 44.5), phrase="a dog barks"),
    when("c", Span(0.0, 3.5), phrase="a sign\nsays ## 5", video_id="w"),
    when("d", Span(5.0, 6.0), drop="a reason"),
    when("e", Span(5.0, 6.0), form="first", options=("x", "y"), answer_index=0),
]


def test_charades_sta_is_read_line_by_line(tmp_path: Path) -> None:
    said = grounding.write_charades_sta(ASKED, tmp_path, VIDEOS)
    read: list[tuple[str, float, float, str]] = []
    for line in (tmp_path / "charades_sta.txt").read_text(encoding="utf-8").splitlines():
        head, sentence = line.split("##")
        name, start, end = head.split(" ")
        read.append((name, float(start), float(end), sentence))
    assert read[0] == ("v", 12.4, 18.0, RING)
    (_, (name, *rest)) = read
    assert rest == [0.0, 3.5, "a sign says # # 5"]
    assert name.startswith("my_holiday")
    assert said.startswith("of these 2 ask when")
    assert "1 with several spans left out" in said
    assert "1 videos need files of other names" in said
    assert f"{name}.mkv" in said


def test_timelens_has_a_line_for_each_video_with_all_spans(tmp_path: Path) -> None:
    said = grounding.write_timelens(ASKED, tmp_path, VIDEOS)
    lines = (tmp_path / "timelens.jsonl").read_text(encoding="utf-8").splitlines()
    first, second = map(json.loads, lines)
    assert first == {
        "source": "mustsee",
        "video_path": "v.mp4",
        "duration": 60.0,
        "events": [
            {"query": RING, "span": [[12.4, 18.0]]},
            {"query": "a dog barks", "span": [[1.0, 2.0], [40.0, 44.5]]},
        ],
    }
    assert second["events"] == [{"query": "a sign says ## 5", "span": [[0.0, 3.5]]}]
    assert said.startswith("of these 3 ask when")
    assert "1 of 2 videos have no known length" in said


@pytest.mark.parametrize("write", [grounding.write_charades_sta, grounding.write_timelens])
def test_without_such_questions_and_with_one_name_for_two_videos_nothing_is_written(
    tmp_path: Path, write: object
) -> None:
    assert callable(write)
    with pytest.raises(UserError, match=r"forms\.when\.questions"):
        write(ASKED[3:], tmp_path, VIDEOS)
    twice = [*VIDEOS, Video(video_id="x", uri="other/v.mp4")]
    with pytest.raises(UserError, match="'v' and 'x'"):
        write([ASKED[0], replace(ASKED[0], video_id="x")], tmp_path, twice)


def test_several_spans_alone_are_refused_where_a_line_has_one(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="layout=timelens"):
        grounding.write_charades_sta(ASKED[1:2], tmp_path, VIDEOS)


def test_tasks_that_compare_words_hold_none_of_them() -> None:
    spoken = Question(question_id="o", video_id="v", recipe="facts", question="Who?",
                      question_type="", answer="a boy")  # fmt: skip
    assert list(open_tasks([ASKED[0], spoken])["open"]) == [spoken]
    rows = [{"options": [], "answer": q.answer, "form": q.form} for q in (ASKED[0], spoken)]
    assert [is_open_ended(row) for row in rows] == [False, True]


@pytest.mark.parametrize(
    ("layout", "file"), [("charades_sta", "charades_sta.txt"), ("timelens", "timelens.jsonl")]
)
def test_the_job_exports_a_run(tmp_path: Path, layout: str, file: str) -> None:
    ours.write(ASKED, tmp_path / "run", VIDEOS)
    out = tmp_path / "out"
    arguments = [f"questions={tmp_path}/run", f"layout={layout}", f"out={out}"]
    assert build(compose("export", arguments))() == 0
    assert RING in (out / file).read_text(encoding="utf-8")
