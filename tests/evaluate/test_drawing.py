"""A chart that cannot be drawn costs one line and no result."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from mustsee.evaluate import score, score_show
from mustsee.evaluate.certificate import (
    Certificate,
    CertificateClip,
    draw_certificates,
    write_certificates,
)
from mustsee.evaluate.drawing import new_axes, save_chart
from mustsee.judge.judge import Identity, Record
from mustsee.recipes.egoschema.clips import HeatMap
from mustsee.records import Span
from ray_jobs import egoschema, judge_calibrate
from tests.evaluate.test_score import two_models


@pytest.fixture
def without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment from before matplotlib was a requirement."""
    for name in [n for n in sys.modules if n.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)


def test_a_chart_is_saved_in_a_new_folder(tmp_path: Path) -> None:
    path = tmp_path / "pictures" / "a.png"
    assert save_chart(path, lambda: new_axes(2, 2)[0]) is None
    assert path.read_bytes().startswith(b"\x89PNG")


def test_any_failure_becomes_one_line_and_leaves_no_file(tmp_path: Path) -> None:
    path = tmp_path / "a.png"

    def fails():
        raise ValueError("no font")

    assert save_chart(path, fails) == (
        "no chart a.png: ValueError: no font; the figures are complete"
    )
    path.mkdir()  # nothing can be saved there
    line = save_chart(path, lambda: new_axes(2, 2)[0])
    assert line is not None
    assert "\n" not in line


@pytest.mark.usefixtures("without_matplotlib")
def test_scores_are_written_without_matplotlib(tmp_path: Path) -> None:
    questions = two_models()
    results = score.score(questions)
    score_show.write(tmp_path, results, questions)
    lines = score_show.draw(tmp_path, results)
    assert len(lines) == len(results)
    assert all("pip install matplotlib" in line for line in lines)
    assert len(json.loads((tmp_path / "results.json").read_text())["results"]) == len(results)
    assert (tmp_path / "replies.parquet").exists()
    assert not (tmp_path / "pictures").exists()
    assert "pictures" not in score_show.describe_folder(tmp_path)


@pytest.mark.usefixtures("without_matplotlib")
def test_other_charts_name_the_missing_package(tmp_path: Path) -> None:
    clip = CertificateClip(span=Span(start=0.0, end=1.0), fps=1.0, frames=1)
    one = Certificate(
        question_id="q", video_id="v", duration=2.0, clip=clip, most_wrong=0, calls=1, unanswered=0
    )
    write_certificates(tmp_path, [one])
    assert "certificate.png" in str(draw_certificates(tmp_path, [one]))
    assert (tmp_path / "certificate.json").exists()
    heat = HeatMap(lengths=(60.0,), densities=(5.0,), counts=((3,),))
    assert len(egoschema.draw_heat_map(tmp_path, heat)) == 1
    record = Record(threshold=0.5, identity=Identity(engine="e", weights="w", prompt="p"), dev="d")
    assert len(judge_calibrate.draw(tmp_path, [True, False], [0.9, 0.1], record)) == 2
