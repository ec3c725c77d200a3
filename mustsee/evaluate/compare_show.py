"""Shows and writes comparisons: a terminal table, `scores.csv`, `pairs.csv`, `missing.csv`,
`tables.tex` and `compare.json`.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text

from mustsee.evaluate import compare
from mustsee.evaluate.answers import NOT_IN_FILE
from mustsee.evaluate.compare import ComparisonTable, Measure, RankedModel
from mustsee.evaluate.score_show import new_table
from mustsee.files.folders import write_json
from mustsee.records import is_rules
from mustsee.stats import Difference, Estimate
from mustsee.text import name_some, printable

if TYPE_CHECKING:
    from rich.table import Table

SCORES, PAIRS, MISSING, LATEX, RECORD = (
    "scores.csv", "pairs.csv", "missing.csv", "tables.tex", "compare.json",
)  # fmt: skip
MEASURES = {
    compare.CHOICE: "multiple choice: accuracy, %",
    compare.JUDGED: "open questions: judged right, %",
    compare.IOU: "questions that ask when: mean IoU of spans, %",
    compare.POINTS: "open questions: score by points, %",
    compare.RUBRIC: "open questions: score by rubrics, 2 to 10",
}
TAGS = {
    compare.BLIND: "blind",
    compare.WORDS: "transcript or captions only",
    compare.GUESS: "guess without a model",
}
REASONS = {
    compare.FAILED: "the call failed",
    NOT_IN_FILE: "not in the file",
    compare.NO_REPLY: "no reply",
    compare.UNGRADED: "the answer was not graded",
    compare.ABSENT: "not in its evaluation, or dropped there",
}
COLUMNS: Mapping[str, Sequence[str]] = {  # columns of each CSV file
    SCORES: (
        "benchmark", "measure", "row", "evaluation", "kind", "rank", "best_rank", "worst_rank",
        "differs_from_next", "group", "column", "score", "low", "high", "n", "videos",
    ),
    PAIRS: (
        "benchmark", "measure", "a", "b", "difference", "low", "high", "n", "videos", "p",
        "p_holm", "beyond_noise",
    ),
    MISSING: ("benchmark", "measure", "model", "evaluation", "reason", "question_id"),
}  # fmt: skip
MODEL, CHANCE, PEOPLE = "model", "random", "people"  # kinds of rows
APART = "*"  # mark of a rank that differs from the next one beyond noise
_LATEX = {c: f"\\{c}" for c in "&%$#_{}"} | {
    "\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}",
    "<": "\\textless{}", ">": "\\textgreater{}", "|": "\\textbar{}", '"': "\\char34{}",
}  # fmt: skip


@dataclass(frozen=True)
class ShownRow:
    """A row as it is shown: of a model, of people, or of random guesses. `model`: of a model."""

    kind: str
    name: str
    estimates: Sequence[Estimate | None]
    model: RankedModel | None = None

    @property
    def full_name(self) -> str:
        """The name with what is to be known of the row."""
        if self.model is not None:
            return ", ".join((self.name, *tags(self.model)))
        return f"{PEOPLE}: {self.name}" if self.kind == PEOPLE else self.name


def shown_rows(table: ComparisonTable) -> list[ShownRow]:
    """Return the rows of a table: models, then people, then random guesses among options."""
    chances = [
        Estimate(value=c.chance, low=None, high=None, n=len(c.questions), clusters=0, method="")
        if c.chance is not None
        else None
        for c in table.columns
    ]
    return [
        *(ShownRow(MODEL, row.name, row.estimates, row) for row in table.rows),
        *(ShownRow(PEOPLE, name, estimates) for name, estimates in table.people.items()),
        *([ShownRow(CHANCE, CHANCE, chances)] if chances[0] else []),
    ]


def people_last(table: ComparisonTable) -> list[ShownRow]:
    """Return the rows of a table: models, then random guesses, then people."""
    return sorted(shown_rows(table), key=lambda row: row.kind == PEOPLE)


def measure_text(table: ComparisonTable) -> str:
    """Return what a table measures, and who graded."""
    by = f", graded by {table.measure.grader}" if table.measure.grader else ""
    return f"{MEASURES[table.measure.kind]}{by}"


def counts(table: ComparisonTable) -> str:
    """Return on how many questions the models of a table are compared, and on how many not."""
    text = f"{_many(table.common, 'question')} on {_many(table.videos, 'video')}"
    text += ": no intervals, and nothing can be told apart" if table.videos == 1 else ""
    if left := table.asked - table.common:
        text += f"; {left} of {table.asked} are left out, since not every model has a score of them"
    return text


def missing_scores(table: ComparisonTable) -> Iterator[tuple[RankedModel, str, tuple[str, ...]]]:
    """Yield each model with a reason and the questions that it has no score of for this reason."""
    for row in sorted(table.rows, key=lambda r: r.name):
        for reason, names in row.without.items():
            yield row, REASONS[reason], names


def tags(row: RankedModel) -> list[str]:
    """Return what is to be known of a row: what its model did not see, and that it is no model."""
    tag = TAGS.get(row.shown)
    rules = row.shown != compare.GUESS and is_rules(row.name)
    return [*([tag] if tag else []), *(["rules, not a model"] if rules else [])]


def rank_text(row: RankedModel, table: ComparisonTable) -> str:
    """Return a rank, with "=" where it is shared: "2", "2="."""
    shared = sum(other.rank == row.rank for other in table.rows) > 1
    return f"{row.rank}{'=' if shared else ''}"


def range_text(row: RankedModel) -> str:
    """Return the ranks that noise leaves open: "1" or "1–3"."""
    return f"{row.best}" if row.best == row.worst else f"{row.best}–{row.worst}"


def number(value: float | None, measure: Measure) -> str:
    """Return a score in the unit of its table; "–" for None."""
    if value is None:
        return "–"
    return f"{value:.2f}" if measure.kind == compare.RUBRIC else f"{100 * value:.1f}"


def interval(estimate: Estimate | Difference | None, measure: Measure) -> str:
    """Return a 95 % interval, cut at the ends of the scale: "58.0–64.3"; empty without one."""
    if estimate is None or estimate.low is None or estimate.high is None:
        return ""
    least, most = (2.0, 10.0) if measure.kind == compare.RUBRIC else (0.0, 1.0)
    if isinstance(estimate, Difference):
        least, most = least - most, most - least
    low, high = (number(min(most, max(least, x)), measure) for x in (estimate.low, estimate.high))
    return f"{low} to {high}" if low.startswith("-") else f"{low}–{high}"


def verdict(table: ComparisonTable) -> str:
    """Return a sentence on the pairs of models that differ beyond noise."""
    if not table.pairs:
        return "One model: there is nothing to compare it with."
    apart = sum(pair.beyond_noise for pair in table.pairs)
    differ = "differs" if apart < 2 else "differ"
    return (
        f"{apart or 'None'} of {_many(len(table.pairs), 'pair')} of models {differ} beyond noise."
    )


def _many(count: int, thing: str) -> str:
    return f"{count} {thing}{'' if count == 1 else 's'}"


def terminal_table(table: ComparisonTable) -> Table:
    """Return the table for a terminal: ranks and all questions; the page has all columns."""
    title = Text(f"{table.dataset}: {measure_text(table)}")
    rows = new_table(title, ("rank", "may be", "", "score (95 %)"), overflow="fold")
    for row in people_last(table):
        rank, open_ranks = "", ""
        if row.model is not None:
            rank = rank_text(row.model, table) + (APART if row.model.apart else " ")
            open_ranks = range_text(row.model)
        name, score = Text(printable(row.full_name)), _cell(row.estimates[0], table)
        rows.add_row(rank, open_ranks, name, score)
    return rows


def _cell(estimate: Estimate | None, table: ComparisonTable) -> str:
    value = number(None if estimate is None else estimate.value, table.measure)
    between = interval(estimate, table.measure)
    return f"{value} ({between})" if between else value


def write(
    folder: Path, tables: Sequence[ComparisonTable], unread: Mapping[str, str], *, title: str = ""
) -> None:
    """Write the CSV files, the LaTeX tables and `compare.json` into `folder`. `title`: of the
    comparison; a CSV file has none, because its first line names the columns.
    """
    _write_csv(folder / SCORES, list(_score_rows(tables)))
    _write_csv(folder / PAIRS, list(_pair_rows(tables)))
    missing = [
        {"benchmark": t.dataset, "measure": measure_text(t), "model": row.name,
         "evaluation": row.folder, "reason": reason, "question_id": name}
        for t in tables
        for row, reason, names in missing_scores(t)
        for name in names
    ]  # fmt: skip
    _write_csv(folder / MISSING, missing)
    text = "\n".join(latex(table, title=title) for table in tables)
    (folder / LATEX).write_text(text, encoding="utf-8")
    record = {"title": title, "tables": [_plain(table) for table in tables], "unread": dict(unread)}
    write_json(folder / RECORD, record)


def _plain(table: ComparisonTable) -> dict[str, Any]:
    """Return a table with its title and the tags of its rows."""
    plain = asdict(table)
    rows = [{**row, "tags": tags(r)} for row, r in zip(plain["rows"], table.rows, strict=True)]
    return {"title": measure_text(table), **plain, "rows": rows}


def _write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS[path.name], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _score_rows(tables: Sequence[ComparisonTable]) -> Iterator[dict[str, Any]]:
    """Yield one row for each row and column of each table; scores are shares, or 2 to 10."""
    for table in tables:
        of_table = {"benchmark": table.dataset, "measure": measure_text(table)}
        for shown in people_last(table):
            of_row: dict[str, Any] = {**of_table, "row": shown.name, "kind": shown.kind}
            if (row := shown.model) is not None:
                of_row |= {
                    "evaluation": row.folder, "kind": TAGS.get(row.shown, MODEL),
                    "rank": row.rank, "best_rank": row.best, "worst_rank": row.worst,
                    "differs_from_next": "" if row.apart is None else str(row.apart).lower(),
                }  # fmt: skip
            for column, estimate in zip(table.columns, shown.estimates, strict=True):
                if estimate is not None:
                    yield {
                        **of_row, "group": column.group, "column": column.name,
                        "score": estimate.value, "low": estimate.low, "high": estimate.high,
                        "n": estimate.n, "videos": estimate.clusters or None,
                    }  # fmt: skip


def _pair_rows(tables: Sequence[ComparisonTable]) -> Iterator[dict[str, Any]]:
    for table in tables:
        for pair in table.pairs:
            gap = pair.difference
            yield {
                "benchmark": table.dataset, "measure": measure_text(table), "a": pair.a,
                "b": pair.b, "difference": gap.value, "low": gap.low, "high": gap.high, "n": gap.n,
                "videos": gap.clusters, "p": gap.p, "p_holm": gap.p_holm,
                "beyond_noise": str(pair.beyond_noise).lower(),
            }  # fmt: skip


def latex(table: ComparisonTable, *, title: str = "") -> str:
    """Return a table for LaTeX with the package booktabs: rank, model, all questions with the
    interval, the other columns without. With a `title` it is a float with a caption: title,
    benchmark, measure, number of questions.
    """
    heads = ["rank", "model", *(escape_latex(column.name) for column in table.columns)]
    lines = [
        "% " + re.sub(r"\s+", " ", f"{table.dataset}: {measure_text(table)}; {counts(table)}"),
        f"% {APART}: differs from the next rank beyond noise; in brackets the ranks that noise "
        "leaves open",
        f"\\begin{{tabular}}{{ll{'r' * len(table.columns)}}}",
        "\\toprule",
        _latex_row(heads),
        "\\midrule",
    ]
    references: list[str] = []
    for row in shown_rows(table):
        cells = [escape_latex(row.full_name), *_latex_cells(row.estimates, table)]
        if row.model is None:
            references.append(_latex_row(["", *cells]))
            continue
        mark = f"\\textsuperscript{{{APART}}}" if row.model.apart else ""
        open_ranks = range_text(row.model).replace("–", "--")
        lines.append(_latex_row([f"{rank_text(row.model, table)}{mark} ({open_ranks})", *cells]))
    lines += ["\\midrule", *references] if references else []
    lines += ["\\bottomrule", "\\end{tabular}"]
    if title:
        caption = f"{title.rstrip('.')}. {table.dataset}: {measure_text(table)}; {counts(table)}."
        head = ["\\begin{table}", "\\centering", f"\\caption{{{escape_latex(caption)}}}"]
        lines = [*head, *lines, "\\end{table}"]
    return "\n".join([*lines, ""])


def _latex_row(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"


def _latex_cells(estimates: Sequence[Estimate | None], table: ComparisonTable) -> list[str]:
    cells = [number(None if e is None else e.value, table.measure) for e in estimates]
    if between := interval(estimates[0], table.measure):
        cells[0] += f" ({between})"
    return [cell.replace("–", "--") for cell in cells]


def escape_latex(text: str) -> str:
    """Return a text in which no character is a command of LaTeX, on one line."""
    return "".join(_LATEX.get(c, c) for c in re.sub(r"\s+", " ", text))


def name_ids(ids: Sequence[str], most: int) -> str:
    """Return the first ids, and how many more `missing.csv` lists."""
    return name_some(ids, most) + (f", in {MISSING}" if len(ids) > most else "")
