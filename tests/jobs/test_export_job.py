"""An export of nothing says what there is instead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from mustsee import schemas
from mustsee.errors import UserError
from mustsee.recipes.neptune import layout
from mustsee.records import Question
from ray_jobs.export import Export
from tests.support.evaluation import questions

KEPT = [replace(question, subsets=("full",)) for question in questions(4)]
DROPPED = [replace(question, drop="sight: two fit") for question in KEPT]


@pytest.mark.parametrize(
    ("written", "subset", "message"),
    [
        ([], None, "it has no questions$"),
        (DROPPED, None, "none of 4 questions is kept$"),
        ([*DROPPED[:3], KEPT[3]], "mma", r"none of 4 .* kept in subset=mma; kept in {'full': 1}$"),
    ],
)
def test_why_there_is_nothing_to_export(
    written: Sequence[Question], subset: str | None, message: str, tmp_path: Path
) -> None:
    pq.write_table(schemas.questions_table(written), tmp_path / "questions.parquet")
    job = Export(
        questions=str(tmp_path), out=str(tmp_path / "out"), format=None, subset=subset,
        layout=layout.write,
    )  # fmt: skip
    with pytest.raises(UserError, match=message):
        job()
    assert not (tmp_path / "out").exists()
