"""A table of many questions is a folder of files, and readers need not know."""

import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import mustsee
from mustsee.files import schemas
from mustsee.raters.votes import complete_replacement, replace_table
from mustsee.records import Question, Span, Video
from mustsee.run import browse, outputs, report
from mustsee.run.outputs import ScratchFile, publish, write_rows
from mustsee.run.tables import Tables

VIDEOS, EACH = 7, 3


def video(number: int) -> Video:
    name = f"v{number}"
    questions = [
        Question(
            question_id=f"{name}-{i}", video_id=name, recipe="r", question=f"What, {i}?",
            question_type="Other", options=("a", "b"), answer_index=i % 2, answer="ab"[i % 2],
            evidence=(Span(0.0, 1.0),),
        )
        for i in range(EACH)
    ]  # fmt: skip
    return Video(video_id=name, uri=f"{name}.mp4", questions=tuple(questions))


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set two questions per group and three groups per file: 21 questions are four files."""
    monkeypatch.setattr(outputs, "QUESTIONS_PER_GROUP", 2)
    monkeypatch.setattr(outputs, "GROUPS_PER_FILE", 3)


def written(folder: Path, videos: int = VIDEOS) -> Path:
    folder.mkdir(exist_ok=True)
    scratch = ScratchFile()
    scratch.add(schemas.table([video(i) for i in range(videos)], Video))
    write_rows(scratch, folder)
    scratch.close()
    return folder


@pytest.mark.usefixtures("small")
def test_many_questions_are_a_folder_of_files_in_order(tmp_path: Path) -> None:
    table = written(tmp_path / "many") / "questions.parquet"
    files = sorted(table.iterdir())
    assert [p.name for p in files] == [f"{i:05d}.parquet" for i in range(4)]
    assert [pq.read_metadata(p).num_rows for p in files] == [6, 6, 6, 3]
    questions = [q for i in range(VIDEOS) for q in video(i).questions or ()]
    assert list(Tables(table.parent).questions()) == questions
    assert list(mustsee.read(table.parent).questions) == questions
    from_table = mustsee.read(table)
    assert (from_table.layout, list(from_table.questions)) == ("ours", questions)
    assert {v.uri for v in from_table.videos} == {f"v{i}.mp4" for i in range(VIDEOS)}
    assert pq.read_table(table).num_rows == len(questions)


@pytest.mark.usefixtures("small")
def test_a_folder_replaces_a_file_and_a_file_a_folder(tmp_path: Path) -> None:
    out = tmp_path / "out"
    for videos, parts in ((2, 0), (VIDEOS, 4), (4, 2), (2, 0)):
        publish(str(out), lambda folder, n=videos: {"rows": bool(written(folder, n))})
        table = out / "questions.parquet"
        assert len(list(table.glob("*"))) == parts
        assert table.is_file() == (not parts)
        assert len(list(Tables(out).questions())) == videos * EACH


@pytest.mark.usefixtures("small")
def test_a_new_table_replaces_a_folder(tmp_path: Path) -> None:
    table = written(tmp_path / "many") / "questions.parquet"
    questions = list(Tables(table.parent).questions())
    assert replace_table(table, questions) is None
    kept = replace_table(table, questions[:-1])
    assert kept is not None
    assert kept.is_dir()
    assert list(Tables(table.parent).questions()) == questions[:-1]


@pytest.mark.usefixtures("small")
def test_a_kill_between_the_old_and_the_new_table_loses_no_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = written(tmp_path / "many") / "questions.parquet"
    questions = list(Tables(table.parent).questions())

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("mustsee.raters.votes.os.replace", killed)
        with pytest.raises(KeyboardInterrupt):
            replace_table(table, questions[:-1])
    assert not table.exists()
    complete_replacement(table)
    assert list(Tables(table.parent).questions()) == questions[:-1]
    kept = table.with_name("questions.1.parquet")
    assert sum(pq.read_metadata(p).num_rows for p in kept.glob("*")) == len(questions)
    complete_replacement(table)  # the table is complete
    assert list(Tables(table.parent).questions()) == questions[:-1]


def test_the_report_of_many_videos_shows_an_even_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = Tables(written(tmp_path / "run", videos=9))
    assert [v.video_id for v in tables.videos_among(3)] == ["v0", "v3", "v6"]
    assert len(tables.videos_among(9)) == len(tables.videos_among(100)) == 9
    monkeypatch.setattr(browse, "MAX_VIDEOS", 3)
    record = {
        "recipe": "r", "versions": {}, "git": "", "llm": {"usd_per_kept_question": None},
        "seconds": {"total": 1.0}, "computed": {}, "reused": {}, "config": {},
        "funnel": [{"stage": "ask", "in": 9, "out": 9, "dropped": {}, "problems": 0}],
        "questions": {"made": 27, "kept": 27, "dropped": {}, "subsets": {}, "types": {}},
    }  # fmt: skip
    page = report.write_report(tables.folder, record, None).read_text()
    assert "These are 3 of 9 videos, evenly spread" in page
    panels = re.findall(r'<details class="panel[^>]*data-panel[^>]*><summary><b>(\w+)</b>', page)
    assert panels == ["v0", "v3", "v6"]
