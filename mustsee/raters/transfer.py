"""Write a `RatingRun`'s votes into its questions or annotations; exchange them with Label Studio.

Each function writes its files and yields the lines to print.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from mustsee.errors import UserError
from mustsee.files.folders import write_json_lines
from mustsee.layouts.errata import write_errata
from mustsee.raters import label_studio, tasks
from mustsee.raters.rating_run import RatingRun
from mustsee.raters.results import summary_lines
from mustsee.raters.votes import apply_votes, record_results, replace_table
from mustsee.run.outputs import check_writable
from mustsee.text import printable


def write_votes(rating: RatingRun) -> Iterator[str]:
    """Write the votes into `questions.parquet` and `run.json`, or into `annotations.jsonl` for a
    form on videos, `equivalence.jsonl` or `points.jsonl` for one on replies, and `errata.jsonl` for
    one on errata. The old table
    of questions is kept under a number.
    """
    rated, votes = rating.rated_items(), rating.ballots.votes()
    if rating.form.videos:
        path = rating.folder / "annotations.jsonl"
        rows = tasks.annotation_rows(rating.question_by_id, votes)
        write_json_lines(path, rows)
        yield f"{path}: {len(rows)} annotations, for ray_jobs.mlvu task=annotated annotations="
        return
    if rating.form.replies:
        by_points = rating.form.points
        path = rating.folder / ("points.jsonl" if by_points else "equivalence.jsonl")
        rows = (tasks.point_rows if by_points else tasks.rating_rows)(rating.question_by_id, votes)
        write_json_lines(path, rows)
        use = (
            tasks.describe_agreement(rows)
            if by_points
            else "for ray_jobs.judge_calibrate bem=[...] held_out=1"
        )
        yield f"{path}: {len(rows)} ratings, {use}"
        yield from summary_lines(rating.results(rated))
        return
    if rating.form.errata:
        decided = tasks.decided_keys(rating.form, rating.question_by_id, rated, votes)
        path = rating.folder / "errata.jsonl"
        write_errata(decided.entries, path)
        yield f"{path}: {decided.sentence}; for errata= of evaluate, export and audit"
        yield from summary_lines(rating.results(rated))
        return
    questions = apply_votes(rating.form, list(rating.question_by_id.values()), rated, votes)
    table = rating.run_folder / "questions.parquet"
    old_table = replace_table(table, questions)
    outcome = rating.results(rated)
    record = rating.run_folder / "run.json"
    if record.is_file():
        record_results(record, outcome)
    change = "unchanged" if old_table is None else f"the old table is {old_table}"
    yield f"{table}: verdicts of {outcome.votes} votes; {change}"
    yield from summary_lines(outcome)


def export_tasks(rating: RatingRun, folder: Path) -> Iterator[str]:
    """Write the questions of the form's first round as tasks of Label Studio."""
    first_round = rating.form.rounds[0].name
    questions = [
        rating.question_by_id[item.question_id]
        for item in rating.open_items()
        if item.round == first_round
    ]
    check_writable("file", str(folder))
    label_studio.write(rating.form, questions, rating.video_by_id, folder)
    yield f"{folder}: {len(questions)} tasks of round {first_round!r} for Label Studio"


def import_votes(rating: RatingRun, path: Path) -> Iterator[str]:
    """Read the votes of Label Studio into the ballots, checked as the page checks them."""
    if not path.exists():
        raise UserError(f"file={str(path)!r} does not exist")
    rating.open_items()
    foreign = label_studio.read(path)
    imported = label_studio.import_votes(
        rating.form, foreign, rating.question_by_id, rating.video_by_id
    )
    new = rating.ballots.import_votes(imported.votes, time.time())
    yield f"{path}: {new} new votes, {len(imported.votes) - new} already there or not needed"
    for reason in imported.refused:
        yield printable(f"  left out: {reason}")
