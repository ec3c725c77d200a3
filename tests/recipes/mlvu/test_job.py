"""MLVU's job: synthetic videos, balance, and the released layouts."""

import json
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from mustsee.files import schemas
from mustsee.media.video import facts
from mustsee.questions.decision import Decision
from mustsee.recipes.mlvu import ask as mlvu
from mustsee.recipes.mlvu import layout
from mustsee.recipes.mlvu.checks import GuesserBalance
from mustsee.records import Question, Video
from tests.support.mlvu import ACTIONS, BACKGROUNDS, CLIPS, making
from tests.support.sample_videos import FPS, cuts, scene, write


def question_fields(q: Question):
    return q.video_id, q.question, q.options, q.answer_index, q.question_type


def test_both_layouts_read_back(tmp_path) -> None:
    rows = [
        *mlvu.Order(making=making(items=6, options=6)).rows(BACKGROUNDS, CLIPS),
        *mlvu.Count(making=making(items=6, options=6)).rows(BACKGROUNDS, CLIPS),
    ]
    rows = [replace(row, uri=f"videos/{row.video_id}.mp4") for row in rows]
    questions = [q for row in rows for q in row.questions]
    layout.write(questions, tmp_path / "dev", rows)
    layout.write_test(questions, tmp_path / "test", rows)
    assert sorted(p.name for p in (tmp_path / "dev").iterdir()) == ["4_count.json", "5_order.json"]
    first = json.loads((tmp_path / "dev" / "4_count.json").read_text())[0]
    assert set(first) == {"video", "duration", "question", "candidates", "answer", "question_type"}
    for folder in ("dev", "test"):
        read = layout.read(tmp_path / folder)
        assert not read.findings
        assert set(map(question_fields, read)) == set(map(question_fields, questions))
    tested = {q.question_id for q in layout.read(tmp_path / "test")}
    assert tested == {q.question_id for q in questions}


def test_the_division_has_each_task_s_share_in_test(tmp_path) -> None:
    shares = {"count": 0.25, "summary": 0.5}
    drawn = [
        Question(
            question_id=f"{kind}{n}", video_id=f"v{n // 2}", recipe="mlvu", question=f"{kind} {n}?",
            question_type=kind, options=() if kind == "summary" else ("a", "b"),
            answer_index=None if kind == "summary" else 0, answer="a",
        )
        for kind in ("count", "summary", "order") for n in range(8)
    ]  # fmt: skip
    dropped = replace(drawn[0], question_id="dropped", drop="balance: x")
    layout.write_divided([*drawn, dropped], tmp_path, test_shares=shares)
    names = {p.name for p in (tmp_path / "test").iterdir()}
    assert names == {"test_mcq_gt.json", "test_vs_gt.json"}
    dev, test = layout.read(tmp_path / "dev"), layout.read(tmp_path / "test")
    assert Counter(q.question_type for q in test) == {"count": 2, "summary": 4}
    assert Counter(q.question_type for q in dev) == {"count": 6, "summary": 4, "order": 8}
    assert {q.question for q in test} | {q.question for q in dev} == {q.question for q in drawn}
    in_test = {q.video_id for q in test if q.question_type == "count"}
    assert in_test < {q.video_id for q in test if q.question_type == "summary"}
    assert len(in_test) == 1  # both questions on one video


@pytest.mark.slow
def test_the_job_counts_what_it_inserted(tmp_path: Path) -> None:
    """Drawn videos: two backgrounds, clips of two actions; the lists of the release, the files, and
    what balancing did.
    """
    videos = tmp_path / "videos"
    videos.mkdir()
    for n in range(2):
        write(videos / f"{n}.mp4", cuts([200 + n] * 3))
    rows = ["uri,label"]
    for n in range(4):
        path = write(tmp_path / f"clip{n}.mp4", [scene(90 + n, i) for i in range(40)])
        rows.append(f"{path},{ACTIONS[n % 2]}")
    (tmp_path / "clips.csv").write_text("\n".join(rows) + "\n")
    out = tmp_path / "out"
    arguments = [
        f"backgrounds={videos}", f"clips={tmp_path / 'clips.csv'}", f"out={out}", "items=4",
        f"store={tmp_path / 'store'}", "task=count", "task.plan.most=2", "gap=2", "margin=1",
        "background_seconds=20", "probe_seconds=1.5", "apart=null",
    ]  # fmt: skip
    command = [sys.executable, "-m", "ray_jobs.mlvu", *arguments]
    process = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[3])
    assert process.returncode == 0, process.stderr
    items = json.loads((out / "export/mlvu/4_count.json").read_text())
    assert sorted(a["answer"] for a in items) == ["1", "1", "2", "2"]
    for item in items:
        measured = facts(str(next(out.glob(f"videos/{Path(item['video']).stem}.mp4"))))
        assert measured.duration == pytest.approx(
            20 + 1.5 * int(item["answer"]), abs=1 / FPS + 0.01
        )
    assert "balance: 0 of" in process.stdout


def test_only_kept_videos_are_balanced() -> None:
    """Videos dropped for their needle do not decide which questions of others are dropped."""

    def rows(name: str, slot: int, drop: str | None) -> Video:
        question = Question(
            question_id=name, video_id=name, recipe="mlvu", question="How often?",
            question_type="count", options=("1", "2", "3", "4"), answer_index=slot,
        )  # fmt: skip
        return Video(video_id=name, uri="f.mp4", questions=(question,), drop=drop)

    even = [rows(f"a{n}", n % 4, None) for n in range(24)]
    skewed = [rows(f"b{n}", 0, "needle: seen") for n in range(24)]
    assert GuesserBalance()(schemas.table([*even, *skewed], Video)) == Decision()
