"""Shows and writes rescored replies: terminal tables, `rescore.json`, `rescored.parquet`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text

from mustsee.evaluate.rescore import CAUSES, RescoredReply
from mustsee.evaluate.score_show import share
from mustsee.evaluate.scorer_results import ScorerDifference, ScorerResult
from mustsee.files.parquet import parquet_writer
from mustsee.text import printable

if TYPE_CHECKING:
    from rich.table import Table

ROWS_AT_ONCE = 1024
FILE, ROWS = "rescore.json", "rescored.parquet"
MAX_LINES = 4  # groups of a difference in the terminal; the page has all


def write_rows(path: Path, scorers: Sequence[str], replies: Iterable[RescoredReply]) -> None:
    """Write a row for each reply, with letter, step and points by each scorer."""
    import pyarrow as pa

    text = pa.string()
    columns: dict[str, pa.DataType] = {
        "question_id": text, "video_id": text, "model": text, "rotation": pa.int64(),
        "reply": text, "failed": text, "right_letter": text,
    }  # fmt: skip
    for scorer in scorers:
        columns |= {f"{scorer}_letter": text, f"{scorer}_step": text,
                    f"{scorer}_points": pa.float64()}  # fmt: skip
    schema, rows = pa.schema(columns.items()), (reply.row for reply in replies)
    with parquet_writer(path, schema) as file:
        while batch := list(islice(rows, ROWS_AT_ONCE)):
            file.write_table(pa.Table.from_pylist(batch, schema=schema))


def write_results(
    folder: Path,
    results: Sequence[ScorerResult],
    differences: Sequence[ScorerDifference],
    about: Mapping[str, Any],
) -> dict[str, Any]:
    """Write `rescore.json` into `folder`; return its content. `about`: its first keys."""
    record = {
        **about,
        "results": [asdict(one) for one in results],
        "differences": [asdict(one) for one in differences],
        "causes": CAUSES,
    }
    text = json.dumps(record, indent=2, ensure_ascii=False)
    (folder / FILE).write_text(text + "\n", encoding="utf-8")
    return json.loads(text)


def describe_score(result: ScorerResult) -> str:
    """Return a score in percent, with the range of 95 % of its random draws."""
    value = result.score if result.own_average is None else result.own_average
    spread = f" ± {196 * result.spread:.1f}" if result.guessed else ""
    return f"{share(value) or '-'}{spread}"


def results_table(results: Sequence[ScorerResult]) -> Table:
    """Return the table of scores, a row for each model and scorer."""
    from rich.table import Table

    table = Table(title="the same replies by each scorer, %", title_justify="left", box=None)
    table.add_column("scorer", no_wrap=True)
    for name in ("score", "unread", "as wrong", "left out", "omitted", "failed", "n"):
        table.add_column(name, justify="right", no_wrap=True)
    several = len({result.model for result in results}) > 1
    for one in results:
        name = f"{one.scorer}: {printable(one.model)}" if several else one.scorer
        table.add_row(
            Text(name),
            describe_score(one),
            str(one.unreadable),
            share(one.with_unreadable_wrong) or "-",
            share(one.without_unreadable) or "-",
            str(one.left_out),
            str(one.failed),
            str(one.replies + one.failed),
        )
    return table


def difference_lines(differences: Sequence[ScorerDifference]) -> list[Text]:
    """Return lines that say for each pair of scorers which steps make the difference."""
    lines = list[Text]()
    several = len({one.model for one in differences}) > 1
    for one in differences:
        of = f" ({printable(one.model)})" if several else ""
        total = "not known" if one.difference is None else f"{100 * one.difference:+.1f} points"
        count = sum(group.replies for group in one.groups)
        lines.append(
            Text(f"{one.a} - {one.b}{of}: {total}; {count} of {one.replies} replies differ", "bold")
        )
        for group in one.groups[:MAX_LINES]:
            lines.append(
                Text(
                    f"  {100 * group.points:+.1f}  {group.replies} replies  {CAUSES[group.cause]}: "
                    f"{group.step_a} | {group.step_b}"
                )
            )
        if len(one.groups) > MAX_LINES:
            rest = one.groups[MAX_LINES:]
            points = 100 * sum(group.points for group in rest)
            replies = sum(group.replies for group in rest)
            lines.append(Text(f"  {points:+.1f}  {replies} replies  {len(rest)} other ways"))
    return lines


def skipped_lines(results: Sequence[ScorerResult], skipped: Mapping[str, int]) -> list[Text]:
    """Return lines on replies that are not scored: by any, and by scorers without a rule."""
    lines = [Text(f"not scored: {count} replies ({why})") for why, count in skipped.items()]
    lines += [
        Text(f"{one.scorer} has no rule for the benchmark of {one.no_rule} replies", "bold red")
        for one in results
        if one.no_rule
    ]
    return lines
