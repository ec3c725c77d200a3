"""The same questions in any layout have the same figures, and a clean version in that layout."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import mustsee
from mustsee.audit.audit import RepeatReport, audit
from mustsee.audit.show import write_clean
from mustsee.layouts import hugging_face, ours, tasks
from mustsee.recipes.cinepile import layout as cinepile
from mustsee.recipes.egoschema import layout as egoschema
from mustsee.recipes.mlvu import layout as mlvu
from mustsee.recipes.neptune import layout as neptune
from mustsee.records import Question
from tests.support.evaluation import questions


@pytest.mark.parametrize(
    "write", [neptune.write, cinepile.write, egoschema.write, mlvu.write, mlvu.write_test,
              hugging_face.write, tasks.write_lmms_eval, ours.write],
)  # fmt: skip
def test_audits_and_clean_versions_are_equal_in_every_layout(write: Any, tmp_path: Path) -> None:
    made, folder = questions(24), tmp_path / "release"
    folder.mkdir()
    write(made, folder)
    files = list(folder.iterdir())
    source = files[0] if write is mlvu.write_test else folder
    reading = mustsee.read(source)
    found = audit(reading.questions, reading.videos, [], RepeatReport(), drops=[])
    assert found.questions == 24
    longest = next(t for t in found.battery if t.name == "longest")
    assert longest.right.value == pytest.approx(share(made))
    half = {i.question_id for n, i in enumerate(found.items) if n % 2}
    items = [replace(i, fails=("blind",) if i.question_id in half else ()) for i in found.items]
    write_clean(tmp_path / "clean", reading, replace(found, items=tuple(items)), source)
    names = {str(p.relative_to(tmp_path / "clean")) for p in (tmp_path / "clean").rglob("*.*")}
    again = mustsee.read(tmp_path / "clean")
    kept = [q for q in again if q.drop is None]
    assert len(kept) == 12, names
    assert {q.question for q in kept} == {q.question for q in reading if q.question_id not in half}


def share(made: list[Question]) -> float:
    """How often the longest option is right, equals counting in parts."""
    total = 0.0
    for q in made:
        sizes = [len(o) for o in q.options]
        best = max(sizes)
        total += (len(q.answer) == best) / sizes.count(best)
    return total / len(made)
