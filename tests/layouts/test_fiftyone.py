"""The export for FiftyOne is read as its documentation describes the layout: `data/` with the
videos, `labels.json` with `classes` and, by a file's name without the ending, `label`,
`timestamps`, `attributes`.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mustsee.errors import UserError
from mustsee.layouts import fiftyone, ours
from mustsee.records import Fact, Question, Span, Video
from ray_jobs.cli.launch import build, compose

RESERVED = {"id", "tags", "label", "support", "confidence"}  # fields that a temporal detection has


def question(name: str, *spans: Span, **fields: Any) -> Question:
    base = Question(question_id=name, video_id="v", recipe="facts", question=f"What, {name}?",
                    question_type="Counting", options=("one", "two"), answer_index=1,
                    answer="two", evidence=spans)  # fmt: skip
    return replace(base, **fields)


def fact(name: str, **fields: Any) -> Fact:
    base = Fact(fact_id=name, kind="event", phrase="a boy rings a bell", spans=(Span(0.0, 9.0),),
                source="m", seen=(Span(2.0, 4.0),))  # fmt: skip
    return replace(base, **fields)


@pytest.fixture
def videos(tmp_path: Path) -> list[Video]:
    rows = [
        Video(video_id="v", uri=str(tmp_path / "my holiday.2.mkv"), duration=60.0,
              facts=(fact("f"), fact("unseen", seen=()), fact("dropped", drop="a reason"),
                     fact("why", kind="cause", of="the bell rings"))),
        Video(video_id="c1", uri=str(tmp_path / "long.mp4"), source="long", start=90.0, end=120.0,
              duration=30.0),
        Video(video_id="c2", uri=str(tmp_path / "long.mp4"), source="long", start=0.0, end=30.0,
              duration=30.0),
        Video(video_id="unasked", uri=str(tmp_path / "other.mp4")),
    ]  # fmt: skip
    for row in rows:
        Path(row.uri).write_bytes(row.uri.encode())
    return rows


ASKED = [
    question("a", Span(12.5, 18.0), Span(58.0, 61.5)),
    question("b", options=(), answer_index=None, skill="cause", answer="because"),
    question("c", Span(95.0, 101.0), video_id="c1"),
    question("d", Span(1.0, 2.0), video_id="c2", options=(), answer_index=None, skill="cause"),
    question("e", Span(1.0, 2.0), drop="a reason"),
]


def read_as_documented(folder: Path) -> dict[str, list[tuple[str, list[float], dict[str, Any]]]]:
    """Return file -> (label, timestamps, attributes), as the documentation says."""
    files = {os.path.splitext(p.name)[0]: p.name for p in (folder / "data").iterdir()}
    content = json.loads((folder / "labels.json").read_text(encoding="utf-8"))
    assert set(content) == {"classes", "labels"}
    read: dict[str, list[tuple[str, list[float], dict[str, Any]]]] = {}
    for uuid, detections in content["labels"].items():
        read[files[uuid]] = []
        for detection in detections:
            assert set(detection) == {"label", "timestamps", "attributes"}
            start, end = detection["timestamps"]
            assert 0 <= start <= end
            assert not RESERVED & set(detection["attributes"])
            label = content["classes"][detection["label"]]
            read[files[uuid]].append((label, [start, end], detection["attributes"]))
    return read


def test_it_is_read_as_documented(tmp_path: Path, videos: list[Video]) -> None:
    said = fiftyone.write(ASKED, tmp_path / "o", videos, videos="copy")
    read = read_as_documented(tmp_path / "o")
    assert set(read) == {"my holiday.2.mkv", "long.mp4"}
    first, *_ = [bar for bar in read["my holiday.2.mkv"] if bar[0] == "question: Counting"]
    asked = {"question_id": "a", "question": "What, a?", "answer": "two", "options": ["one", "two"]}
    assert first == ("question: Counting", [12.5, 18.0], asked)
    ends = [times for label, times, _ in read["my holiday.2.mkv"] if label.startswith("question")]
    assert ends == [[12.5, 18.0], [58.0, 60.0]], "no bar ends after its video"
    facts = [(label, more) for label, _, more in read["my holiday.2.mkv"] if "phrase" in more]
    assert facts == [
        ("fact: event", {"fact_id": "f", "phrase": "a boy rings a bell"}),
        ("fact: cause",
         {"fact_id": "why", "phrase": "a boy rings a bell", "of": "the bell rings"}),
    ]  # fmt: skip
    assert [(label, times) for label, times, _ in read["long.mp4"]] == [
        ("question: cause", [1.0, 2.0]), ("question: Counting", [95.0, 101.0]),
    ], "clips of one file share it, with the times of the file"  # fmt: skip
    assert said.startswith("3 questions and 2 facts have bars on 2 videos; 1 questions have no")
    assert (tmp_path / "o" / "data" / "long.mp4").read_bytes() == videos[1].uri.encode()


def test_facts_may_be_left_out_and_files_too(tmp_path: Path, videos: list[Video]) -> None:
    said = fiftyone.write(ASKED, tmp_path / "o", videos, facts=False)
    labels = json.loads((tmp_path / "o" / "labels.json").read_text())
    assert labels["classes"] == ["question: Counting", "question: cause"]
    assert not (tmp_path / "o" / "data").exists()
    assert "put long.mp4, my holiday.2.mkv into its data/" in said


def test_videos_without_a_file_are_counted(tmp_path: Path, videos: list[Video]) -> None:
    asked = [*ASKED, question("f", Span(1.0, 2.0), video_id="g")]
    line = fiftyone.write(asked, tmp_path / "out", videos, videos="copy")
    assert line.endswith("(2, layout.videos=copy); no file is known of 1 video")
    with pytest.raises(UserError, match=r"no video file is known for these questions: .* videos="):
        fiftyone.write(asked, tmp_path / "none", (), videos="copy")


def test_without_evidence_and_with_one_name_for_two_files_nothing_is_written(
    tmp_path: Path, videos: list[Video]
) -> None:
    with pytest.raises(UserError, match="no question has evidence"):
        fiftyone.write([ASKED[1]], tmp_path / "o", videos)
    twice = [replace(videos[0], uri="a/x.mp4"), replace(videos[1], uri="b/x.mkv")]
    with pytest.raises(UserError, match=r"'a/x\.mp4' and 'b/x\.mkv'|'b/x\.mkv' and 'a/x\.mp4'"):
        fiftyone.write([ASKED[0], ASKED[2]], tmp_path / "o", twice)
    assert not (tmp_path / "o").exists()


def test_the_job_exports_a_run(tmp_path: Path, videos: list[Video]) -> None:
    ours.write(ASKED, tmp_path / "run", videos)
    out = tmp_path / "out"
    arguments = [f"questions={tmp_path}/run", "layout=fiftyone", "layout.videos=link", f"out={out}"]
    assert build(compose("export", arguments))() == 0
    assert len(read_as_documented(out)["my holiday.2.mkv"]) == 4
