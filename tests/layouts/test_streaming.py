"""Layouts are written question by question, with few in memory and the same bytes as a list."""

import json
import tempfile
import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mustsee.files import schemas
from mustsee.files.folders import JsonItems, write_json
from mustsee.files.parquet import ROW_GROUP_ROWS, Parquet
from mustsee.layouts import chat, hugging_face, ours, read, shards, tasks
from mustsee.layouts.detect import open_streamed
from mustsee.layouts.reading import Rereadable
from mustsee.recipes.cinepile import layout as cinepile
from mustsee.recipes.egoschema import layout as egoschema
from mustsee.recipes.mlvu import layout as mlvu
from mustsee.recipes.neptune import layout as neptune
from mustsee.records import Question, Span, Video

WRITERS = {
    "neptune": neptune.write, "cinepile": cinepile.write, "egoschema": egoschema.write,
    "mlvu": mlvu.write, "mlvu_test": mlvu.write_test, "hf": hugging_face.write,
    "lmms_eval": tasks.write_lmms_eval, "vlmevalkit": tasks.write_vlmevalkit,
    "inspect": tasks.write_inspect,
    "sft": chat.write, "preference": chat.write_preference, "webdataset": shards.write,
    "ours": ours.write,
}  # fmt: skip


def question(number: int) -> Question:
    options = ("one", "two", "three")
    return Question(
        question_id=f"q{number}", video_id=f"v{number // 20}", recipe="r",
        question=f"Which, {number}?", question_type=("Counting", "Other")[number % 2],
        options=options, answer_index=number % 3, answer=options[number % 3],
        metrics={"sight_passed": 1.0}, evidence=(Span(1.0, 2.0),),
        subsets=("train" if number % 3 else "test", *(("mma",) if number % 2 else ())),
        drop="blind: guessed" if number % 7 == 0 else None,
    )  # fmt: skip


def videos(folder: Path, count: int) -> list[Video]:
    (folder / "video.mp4").write_bytes(b"video")
    return [Video(video_id=f"v{n}", uri=str(folder / "video.mp4")) for n in range(count)]


def files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_a_stream_gives_the_bytes_of_a_list(tmp_path: Path, write: Callable[..., None]) -> None:
    questions, video_rows = [question(n) for n in range(60)], videos(tmp_path, 3)
    ours.write(questions, tmp_path / "run", video_rows)
    write(questions, tmp_path / "list", video_rows)
    source = open_streamed(tmp_path / "run")
    write(source.questions, tmp_path / "stream", source.videos)
    assert files(tmp_path / "stream") == files(tmp_path / "list")
    assert files(tmp_path / "list")


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_few_questions_are_in_memory_at_once(tmp_path: Path, write: Callable[..., None]) -> None:
    count, alive, most = 3 * ROW_GROUP_ROWS, 0, 0

    def finalized() -> None:
        nonlocal alive
        alive -= 1

    def begin() -> Iterator[Question]:
        nonlocal alive, most
        for number in range(count):
            made = question(number)
            weakref.finalize(made, finalized)
            alive += 1
            most = max(most, alive)
            yield made
            del made

    write(Rereadable(begin), tmp_path / "out", videos(tmp_path, count // 20 + 1))
    assert 0 < most <= 2 * ROW_GROUP_ROWS + 8  # each split's parquet file holds a row group


@given(st.lists(st.recursive(
    st.text() | st.integers() | st.none() | st.booleans(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8)))  # fmt: skip
@settings(max_examples=40)
def test_json_written_by_item_has_the_bytes_of_json_written_at_once(values: list[object]) -> None:
    keyed = {str(n): value for n, value in enumerate(values)}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        with (
            JsonItems(folder / "list") as json_list,
            JsonItems(folder / "keys", keyed=True) as json_object,
        ):
            for key, value in keyed.items():
                json_list.add(value)
                json_object.add(value, key)
        for name, value in (("list", values), ("keys", keyed)):
            write_json(folder / "whole", value, indent=4)
            assert (folder / name).read_bytes() == (folder / "whole").read_bytes()
            assert json.loads((folder / name).read_bytes()) == value


def test_a_table_is_written_in_row_groups(tmp_path: Path) -> None:
    questions = [question(n) for n in range(10)]
    with Parquet(tmp_path / "grown", schemas.questions_table, group=4) as table:
        for one in questions:
            table.add(one)
    assert pq.read_metadata(tmp_path / "grown").num_row_groups == 3
    assert pq.read_table(tmp_path / "grown").equals(schemas.questions_table(questions))
    for few in (0, 10):
        with Parquet(tmp_path / "grown", schemas.questions_table) as table:
            for one in questions[:few]:
                table.add(one)
        pq.write_table(
            schemas.questions_table(questions[:few]),
            tmp_path / "whole",
            compression="zstd",
            write_page_checksum=True,
        )
        assert (tmp_path / "grown").read_bytes() == (tmp_path / "whole").read_bytes()


def test_findings_are_complete_before_the_questions_are_iterated(tmp_path: Path) -> None:
    questions = [question(1), question(1), replace(question(2), answer_index=7), question(3)]
    ours.write(questions, tmp_path, [Video(video_id="other", uri="o.mp4")])
    source, reading = open_streamed(tmp_path), read(tmp_path)
    assert [(f.row, f.what) for f in source.findings] == [
        (2, "answer is outside the options"), (1, "this id occurs again")
    ]  # fmt: skip
    for _ in range(2):
        streamed = list(source.questions)
        assert [q.question_id for q in streamed] == ["q1", "q1#2", "q2", "q3"]
        assert [q.answer_index for q in streamed] == [1, 1, None, 0]
    assert tuple(source.questions) == reading.questions
    assert tuple(source.videos) == reading.videos
    assert [v.video_id for v in reading.videos] == ["other", "v0"]
