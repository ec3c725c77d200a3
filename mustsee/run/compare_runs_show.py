"""Shows and writes a comparison of runs: terminal lines, `runs.csv`, `questions.csv`,
`compare.json`, and `report/index.html`, which needs no script and fetches nothing.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from mustsee.run.compare_runs import (
    COUNT,
    GROUPS,
    REACH_S,
    SHARE,
    USD,
    KeptTally,
    MatchedQuestion,
    RunFigure,
    RunsComparison,
)
from mustsee.text import LETTERS, printable

if TYPE_CHECKING:
    from jinja2 import Environment

RUNS, QUESTIONS, RECORD = "runs.csv", "questions.csv", "compare.json"
MAX_QUESTIONS = 300  # questions of each section of the page
MAX_TALLIES = 200  # rows of the page's table of videos
TERMINAL_VIDEOS, TERMINAL_KEYS = 12, 12  # videos and differing keys that the terminal names
RUN_COLUMNS = ("run", "group", "name", "value", "unit", "n", "only_here")
UNKNOWN = "–"


@dataclass(frozen=True, kw_only=True)
class FigureRow:
    """A figure of all runs, as text. `begins`: whether it is the first of its group."""

    group: str
    name: str
    values: Sequence[str]
    begins: bool


@dataclass(frozen=True, kw_only=True)
class QuestionSection:
    """Questions of the page under a heading. `more`: how many are left out of the page."""

    title: str
    questions: Sequence[MatchedQuestion]
    more: int
    opened: bool


def letters(comparison: RunsComparison) -> list[str]:
    """Return the letter of each run."""
    return list(LETTERS[: len(comparison.runs)])


def figure_rows(comparison: RunsComparison) -> list[FigureRow]:
    """Return the figures in the order of their groups, with a row for each that any run has."""
    values = [{(f.group, f.name): f for f in of_run} for of_run in comparison.figures]
    firsts = {key: f for of_run in values for key, f in of_run.items()}
    keys = sorted(firsts, key=lambda key: GROUPS.index(key[0]))
    rows, before = list[FigureRow](), ""
    for key in keys:
        texts = [_figure_text(of_run.get(key), firsts[key]) for of_run in values]
        rows.append(FigureRow(group=key[0], name=key[1], values=texts, begins=key[0] != before))
        before = key[0]
    return rows


def _figure_text(figure: RunFigure | None, like: RunFigure) -> str:
    """Return a figure with its unit; a count that a run lacks is 0."""
    if figure is None:
        return "0" if like.unit == COUNT else UNKNOWN
    value, of = figure.value, f" (n {figure.n})" if figure.n else ""
    if value is None or value == "":
        return UNKNOWN
    if isinstance(value, str):
        return value
    formats = {COUNT: f"{value:,.0f}", SHARE: f"{100 * value:.1f} %", USD: f"{value:.4f}"}
    return formats.get(figure.unit, f"{value:,.4g}" if value < 1000 else f"{value:,.0f}") + of


def tally_texts(tally: KeptTally) -> list[str]:
    """Return the kept questions of each run, and how many of them no other run kept."""
    return [f"{kept} ({only} only here)" if only else str(kept)
            for kept, only in zip(tally.kept, tally.only_here, strict=True)]  # fmt: skip


def change_lines(comparison: RunsComparison) -> list[str]:
    """Return sentences on how many questions all runs kept, each run alone, several, and none."""
    names, count = letters(comparison), len(comparison.runs)
    everywhere = comparison.kept_by(count, count)
    by_words = sum(one.matched == "words" for one in everywhere)
    other = sum(one.answers_differ for one in everywhere)
    lines = [
        f"kept in every run: {len(everywhere)} ({by_words} of them matched by their words, "
        f"{other} with another answer)"
    ]
    for number, name in enumerate(names):
        alone = comparison.kept_only_in(number)
        parts = [f"kept only in {name}: {len(alone)}"]
        for at, elsewhere in enumerate(names):
            fates = Counter(one.fates[at].what for one in alone)
            if at != number and fates:
                causes = ", ".join(f"{n} {what}" for what, n in fates.most_common())
                parts.append(f"in {elsewhere}: {causes}")
        lines.append("; ".join(parts))
    if count > 2:
        lines.append(f"kept in several runs, not in all: {len(comparison.kept_by(2, count - 1))}")
    return [*lines, f"kept in no run: {len(comparison.kept_by(0, 0))}"]


def terminal_table(comparison: RunsComparison) -> Table:
    """Return the figures as a table with a column for each run."""
    table = Table(box=None, pad_edge=False)
    for head in ("", "", *letters(comparison)):
        table.add_column(head, overflow="fold")
    for row in figure_rows(comparison):
        if row.group != "counts":
            cells = (row.group if row.begins else "", row.name, *row.values)
            table.add_row(*(Text(printable(cell)) for cell in cells))
    few = [t for t in comparison.tallies if t.group != "video" or t.name in _few_videos(comparison)]
    before = ""
    for tally in few:
        group = f"kept by {tally.group}" if tally.group != before else ""
        cells = (group, tally.name, *tally_texts(tally))
        table.add_row(*(Text(printable(cell)) for cell in cells))
        before = tally.group
    return table


def _few_videos(comparison: RunsComparison) -> list[str]:
    return [t.name for t in comparison.tallies if t.group == "video"][:TERMINAL_VIDEOS]


def terminal_lines(comparison: RunsComparison) -> Iterator[str]:
    """Yield the lines around the table: settings that differ, questions gained and lost, notes."""
    for part in dict.fromkeys(difference.part for difference in comparison.differences):
        names = [n for d in comparison.differences if d.part == part for n in d.names]
        more = len(names) - TERMINAL_KEYS
        rest = f", and {more} more, on the page" if more > 0 else ""
        yield f"{part} differs in {len(names)}: {', '.join(names[:TERMINAL_KEYS])}{rest}"
    if not comparison.differences:
        yield "no setting, version or prompt differs"
    yield from change_lines(comparison)
    videos = sum(t.group == "video" for t in comparison.tallies)
    if videos > TERMINAL_VIDEOS:
        yield f"{videos - TERMINAL_VIDEOS} more videos are on the page and in {RUNS}"
    yield from comparison.notes


def write(
    folder: Path, comparison: RunsComparison, templates: Environment, *, title: str = ""
) -> None:
    """Write all files but `run.json` into `folder`. `templates`:
    `mustsee.run.report.environment()`. `title`: of the page; empty: how many runs there are.
    """
    _write_csv(folder / RUNS, RUN_COLUMNS, list(_run_rows(comparison)))
    rows = [_question_row(comparison, one) for one in comparison.questions]
    _write_csv(folder / QUESTIONS, question_columns(comparison), rows)
    record = {
        "title": title,
        "runs": [
            {"run": run.name, "letter": letter, "models": run.models,
             "figures": [asdict(figure) for figure in figures]}
            for run, letter, figures in zip(
                comparison.runs, letters(comparison), comparison.figures, strict=True
            )
        ],
        "differences": [asdict(each) for each in comparison.differences],
        "changes": change_lines(comparison),
        "notes": comparison.notes,
        "tallies": [asdict(each) for each in comparison.tallies],
        "questions": rows,
    }  # fmt: skip
    text = json.dumps(record, indent=2, ensure_ascii=False)
    (folder / RECORD).write_text(text + "\n", encoding="utf-8")
    (folder / "report").mkdir()
    page = render(comparison, templates, title=title)
    (folder / "report" / "index.html").write_text(page, encoding="utf-8")


def _write_csv(path: Path, columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _run_rows(comparison: RunsComparison) -> Iterator[dict[str, Any]]:
    """Yield a row for each figure of each run; shares are 0 to 1."""
    for number, run in enumerate(comparison.runs):
        for figure in comparison.figures[number]:
            yield {"run": run.name, **asdict(figure)}
        for tally in comparison.tallies:
            yield {
                "run": run.name, "group": f"kept by {tally.group}", "name": tally.name,
                "value": tally.kept[number], "unit": COUNT, "only_here": tally.only_here[number],
            }  # fmt: skip


def question_columns(comparison: RunsComparison) -> list[str]:
    """Return the columns of `questions.csv`: of the question, then of each run its id and fate."""
    fixed = ["video_id", "question", "skill", "form", "kept_in", "matched_by", "answers_differ"]
    return [*fixed, *(f"{what} {letter}" for letter in letters(comparison)
                      for what in ("id", "fate", "reason"))]  # fmt: skip


def _question_row(comparison: RunsComparison, one: MatchedQuestion) -> dict[str, Any]:
    sample, names = one.sample, letters(comparison)
    row: dict[str, Any] = {
        "video_id": sample.video_id, "question": sample.question, "skill": sample.skill_or_type,
        "form": sample.form or "", "kept_in": " ".join(names[n] for n in one.kept_in),
        "matched_by": one.matched, "answers_differ": str(one.answers_differ).lower(),
    }  # fmt: skip
    for name, question, fate in zip(names, one.questions, one.fates, strict=True):
        row |= {
            f"id {name}": question.question_id if question else "",
            f"fate {name}": fate.what,
            f"reason {name}": fate.reason,
        }
    return row


def render(comparison: RunsComparison, templates: Environment, *, title: str = "") -> str:
    """Return the page. `title`: as in `write`."""
    tallies = {
        group: [t for t in comparison.tallies if t.group == group]
        for group in ("skill", "form", "video")
    }
    return templates.get_template("compare_runs.html.j2").render(
        title=title,
        runs=list(zip(letters(comparison), comparison.runs, strict=True)),
        figures=figure_rows(comparison),
        differences=comparison.differences,
        changes=change_lines(comparison),
        notes=comparison.notes,
        tallies={g: [(t.name, tally_texts(t)) for t in of[:MAX_TALLIES]]
                 for g, of in tallies.items()},
        more_tallies={g: max(0, len(of) - MAX_TALLIES) for g, of in tallies.items()},
        sections=list(_sections(comparison)),
        reach_seconds=REACH_S,
    )  # fmt: skip


def _sections(comparison: RunsComparison) -> Iterator[QuestionSection]:
    count = len(comparison.runs)
    for number, name in enumerate(letters(comparison)):
        yield _section(f"Kept only in {name}", comparison.kept_only_in(number), opened=True)
    if count > 2:
        several = comparison.kept_by(2, count - 1)
        yield _section("Kept in several runs, not in all", several, opened=True)
    yield _section("Kept in every run", comparison.kept_by(count, count))
    yield _section("Kept in no run", comparison.kept_by(0, 0))


def _section(
    title: str, questions: Sequence[MatchedQuestion], *, opened: bool = False
) -> QuestionSection:
    return QuestionSection(
        title=f"{title}: {len(questions)}",
        questions=questions[:MAX_QUESTIONS],
        more=max(0, len(questions) - MAX_QUESTIONS),
        opened=opened,
    )
