"""Evaluations are found in a folder, read, and named where they cannot be."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from mustsee.errors import UserError
from mustsee.evaluate.compare import BLIND, CHOICE, FRAMES, Measure
from mustsee.layouts import ours
from mustsee.records import Question, Video
from ray_jobs.runtime.compared_runs import find_folders, read_evaluations
from tests.evaluate.test_score import ask, right, wrong


def write_evaluation(
    folder: Path,
    questions: Sequence[Question],
    dataset: str = "d",
    shown: str = FRAMES,
    frames: int | None = None,
    names: Sequence[str] = (),
) -> Path:
    """Write what `mustsee evaluate` leaves, as far as a comparison reads it."""
    models = dict.fromkeys([*names, *(v.model for q in questions for v in q.verdicts)])
    videos = [Video(video_id=v, uri="", source=f"film {v[1]}")
              for v in dict.fromkeys(q.video_id for q in questions)]  # fmt: skip
    ours.write(questions, folder, videos)
    results = {"questions": dataset, "frames": frames, "shown": shown,
               "results": [{"model": m} for m in models]}  # fmt: skip
    (folder / "results.json").write_text(json.dumps(results))
    (folder / "run.json").write_text('{"recipe": "evaluate"}')
    return folder


def test_an_evaluation_is_read_with_its_scores_and_clusters(tmp_path: Path) -> None:
    given = [right(ask(0), "m"), wrong(ask(33), "m"), right(ask(6, drop="blind: known"), "m")]
    write_evaluation(tmp_path, given, shown=BLIND, frames=0, names=["silent"])
    (found,) = read_evaluations([str(tmp_path)]).evaluations
    assert (found.dataset, found.shown, found.frames) == ("d", BLIND, 0)
    assert {m.model: m.by_measure for m in found.models} == {
        "silent": {},
        "m": {Measure(CHOICE): {"q0": 1.0, "q33": 0.0}},
    }
    assert found.clusters == {"q0": "film 0", "q33": "film 1"}
    assert all(not q.verdicts for q in found.questions.values())


def test_all_evaluations_of_a_folder_are_found_at_any_depth(tmp_path: Path) -> None:
    some = [right(ask(0), "m")]
    for name in ("b", "a/deep/er", "board", ".hidden", "store/x", "b/inside"):
        write_evaluation(tmp_path / name, some)
    made = tmp_path / "made"
    write_evaluation(made / "within", some)
    (made / "run.json").write_text('{"recipe": "make"}')
    (tmp_path / "run.json").write_text('{"recipe": "compare"}')
    (tmp_path / "file.txt").write_text("no folder")
    found = [str(f.relative_to(tmp_path)) for f in find_folders(tmp_path)]
    assert found == ["a/deep/er", "b", "board"]
    assert len(read_evaluations(str(tmp_path)).evaluations) == 3


def test_what_cannot_be_read_in_a_folder_is_named_with_the_reason(tmp_path: Path) -> None:
    some = [right(ask(0), "m")]
    for name in ("good", "torn", "odd", "bare", "half", "lost"):
        write_evaluation(tmp_path / name, some)
    (tmp_path / "torn" / "results.json").write_text('{"questions": ')
    (tmp_path / "odd" / "run.json").write_text("[]")
    (tmp_path / "bare" / "results.json").write_text('{"questions": "d"}')
    (tmp_path / "half" / "run.json").unlink()
    (tmp_path / "half" / "lease").mkdir()
    (tmp_path / "lost" / "questions.parquet").write_bytes(b"no table")
    found = read_evaluations(str(tmp_path))
    assert [Path(one.folder).name for one in found.evaluations] == ["good"]
    unread = {Path(folder).name: reason for folder, reason in found.unread.items()}
    assert {*unread} == {"torn", "odd", "bare", "half", "lost"}
    for name, part in (("torn", "results.json cannot be read"), ("odd", "not a JSON object"),
                       ("bare", "'results'"), ("half", "its run has not ended")):  # fmt: skip
        assert part in unread[name]
        assert "leave it out" in unread[name]


def test_a_list_must_be_readable(tmp_path: Path) -> None:
    good = str(write_evaluation(tmp_path / "good", [right(ask(0), "m")]))
    made = tmp_path / "made"
    made.mkdir()
    (made / "run.json").write_text('{"recipe": "make"}')
    (made / "results.json").write_text("{}")
    for given, parts in (
        ([good, f"{good}/"], ["twice"]),
        ([], ["names no evaluation"]),
        ([good, str(tmp_path / "none")], ["none", "is not a folder"]),
        ([good, str(made)], ["the output of mustsee make"]),
        (str(made), ["holds no evaluation"]),
        (["s3://bucket/x"], ["on this machine"]),
    ):
        with pytest.raises(UserError) as caught:
            read_evaluations(given)
        assert all(part in str(caught.value) for part in parts), str(caught.value)
