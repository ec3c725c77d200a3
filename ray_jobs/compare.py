"""Compare: one page with the models of several evaluations, ranked, or with several runs that made
questions.

    python -m ray_jobs.compare evaluations=FOLDER out=O [rated=RATED title=T]
    python -m ray_jobs.compare evaluations=[E1,E2] out=O
    python -m ray_jobs.compare runs=[A,B] out=O

It reads tables only and starts no Ray. Of evaluations it writes report/index.html, scores.csv,
pairs.csv, missing.csv, tables.tex, compare.json, run.json, and pictures/ where a model was shown
several numbers of frames; of runs report/index.html, runs.csv, questions.csv, compare.json and
run.json. See docs/compare.md.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from mustsee.errors import UserError
from mustsee.evaluate import compare_page, compare_show
from mustsee.evaluate.compare import (
    ComparedEvaluation,
    ComparisonTable,
    PeopleScores,
    RankedModel,
    compare_models,
)
from mustsee.evaluate.compare_sets import (
    check_same_questions,
    contents,
    describe_labels,
    describe_overlaps,
    find_changes,
    group_by_benchmark,
)
from mustsee.evaluate.drawing import save_chart
from mustsee.layouts import read
from mustsee.layouts.errata import ErrataOutcome, read_errata
from mustsee.raters.votes import score_people
from mustsee.records import Question
from mustsee.run import compare_runs_show, outputs
from mustsee.run.report import environment
from mustsee.text import LETTERS, name_some, printable
from ray_jobs.cli.launch import launch
from ray_jobs.runtime.compared_runs import FoundEvaluations, read_evaluations, read_runs
from ray_jobs.runtime.provenance import versions

RECIPE, RUNS_RECIPE = "compare", "compare_runs"  # their files do not mix in one folder


@dataclass(frozen=True, kw_only=True)
class Compare:
    """`conf/compare.yaml` explains the fields."""

    out: str
    evaluations: str | Sequence[str] | None = None
    runs: str | Sequence[str] | None = None
    title: str | None = None
    rated: str | Sequence[str] = ()
    errata: str | None = None
    seed: int = 0
    overwrite: bool = False

    def __call__(self) -> int:
        if self.runs is not None:
            return self.compare_runs([self.runs] if isinstance(self.runs, str) else self.runs)
        if self.evaluations is None:
            raise UserError(
                "compare needs evaluations= or runs=: a folder with the output of mustsee evaluate "
                "(or a list, as [E1,E2]), or a list of runs that made questions, as runs=[A,B]"
            )
        return self.compare_evaluations(self.evaluations)

    def compare_runs(self, folders: Sequence[str]) -> int:
        """Compare runs that made questions."""
        keys = ("evaluations", "rated", "errata", "seed")
        if given := [f"{key}={value!r}" for key in keys if (value := getattr(self, key))]:
            raise UserError(
                f"runs={list(folders)!r} and {', '.join(given)}: evaluations=, with rated=, "
                "errata= and seed=, ranks models, and runs= compares runs that made questions; "
                "give one of the two"
            )
        self.check_out(RUNS_RECIPE)
        comparison = read_runs(folders)
        if Path(self.out).resolve() in (Path(folder).resolve() for folder in folders):
            raise UserError(f"out={self.out!r} is one of runs=: choose another out=")

        def write(folder: Path) -> Mapping[str, Any]:
            compare_runs_show.write(folder, comparison, environment(), title=self.title_line)
            return {"recipe": RUNS_RECIPE,
                    "config": {"runs": list(folders), "title": self.title_line or None},
                    "read": list(folders), "versions": versions()}  # fmt: skip

        outputs.publish(self.out, write)
        console = self._open_console()
        for letter, folder in zip(LETTERS, folders, strict=False):
            console.print(Text(printable(f"{letter}: {folder}")), soft_wrap=True)
        console.print(compare_runs_show.terminal_table(comparison))
        for line in compare_runs_show.terminal_lines(comparison):
            console.print(Text(printable(line)), soft_wrap=True)
        console.print(Text(f"{self.out}/report/index.html"), soft_wrap=True)
        return 0

    @property
    def title_line(self) -> str:
        """The title on one line; empty without one."""
        return " ".join((self.title or "").split())

    def _open_console(self) -> Console:
        """Return the console, with the title printed."""
        console = Console()
        if self.title_line:
            console.print(Text(printable(self.title_line), style="bold"), soft_wrap=True)
            console.print()
        return console

    def check_out(self, recipe: str) -> None:
        """Raise UserError if `out` holds the files of another recipe, unless `overwrite`."""
        if not self.overwrite:
            outputs.check_not_another_recipes(self.out, recipe)

    def compare_evaluations(self, source: str | Sequence[str]) -> int:
        """Rank the models of evaluations."""
        self.check_out(RECIPE)
        errata = None if self.errata is None else read_errata(self.errata)
        found = read_evaluations(source, errata)
        unread = dict(found.unread)
        tables = list(self.compare(found, unread))
        if errata is not None:
            given = read_evaluations(source)
            before = list(self.compare(given, {}))
            asked = {k: q for one in given.evaluations for k, q in one.questions.items()}
            outcome = errata.outcome(tuple(asked.values()))
            tables = [note_changes(table, before, outcome) for table in tables]
        if not tables:
            raise UserError(
                f"evaluations={self.evaluations!r}: no model has a score: every call failed, or no "
                "answer was graded; run these evaluations again"
            )
        outputs.publish(self.out, lambda folder: self.write(folder, tables, found, unread))
        console = self._open_console()
        for table in tables:
            console.print(compare_show.terminal_table(table))
            lines = [compare_show.counts(table), compare_show.verdict(table), *table.notes]
            for row, reason, ids in compare_show.missing_scores(table):
                lines.append(f"{row.name}: {len(ids)} without a score ({reason}): {name_some(ids)}")
            lines += [f"{name}: no score here" for name in table.absent]
            for line in lines:
                console.print(Text(printable(line)), soft_wrap=True)
            console.print()
        for folder, reason in unread.items():
            print(f"mustsee: {folder} is not in any table: {printable(reason)}", file=sys.stderr)
        console.print(Text(f"{self.out}/report/index.html"), soft_wrap=True)
        return 0

    def compare(self, found: FoundEvaluations, unread: dict[str, str]) -> Iterator[ComparisonTable]:
        """Yield the tables of each benchmark; add to `unread` the evaluations of one without any
        score. Raises UserError for evaluations of a list that are of different questions, for
        different versions of a question, and for people's answers to other questions.
        """
        listed = not isinstance(self.evaluations, str)
        groups = [[*found.evaluations]] if listed else group_by_benchmark(found.evaluations)
        for group in groups:
            check_same_questions(group)
        rated = {folder: read_rated(folder) for folder in self._rated}
        matched = set[str]()
        for group, overlaps in zip(groups, describe_overlaps(groups), strict=True):
            people, notes = list[PeopleScores](), [*describe_labels(group), *overlaps]
            notes += count_keyless(group)
            for folder, questions in rated.items():
                scores, note = match_people(folder, questions, group, several=len(rated) > 1)
                people += scores
                notes += note
                matched |= {folder} if scores else set()
            tables = compare_models(group, people, seed=self.seed, notes=notes)
            if not tables:
                unread |= {one.folder: "no model has a score" for one in group}
            yield from tables
        if unmatched := [folder for folder in rated if folder not in matched]:
            raise UserError(
                f"rated={unmatched[0]!r} has no person's answer to any compared question: give the "
                "questions= of mustsee rate with form=human_benchmark or another form that asks "
                "for an option, after do=write"
            )

    @property
    def _rated(self) -> Sequence[str]:
        return [self.rated] if isinstance(self.rated, str) else self.rated

    def write(
        self,
        folder: Path,
        tables: Sequence[ComparisonTable],
        found: FoundEvaluations,
        unread: Mapping[str, str],
    ) -> Mapping[str, Any]:
        """Write all files but `run.json` into `folder`; return the content of the latter."""
        compare_show.write(folder, tables, unread, title=self.title_line)
        charts = draw_charts(folder, tables)
        page = compare_page.render(tables, charts, unread, environment(), title=self.title_line)
        (folder / "report").mkdir()
        (folder / "report" / "index.html").write_text(page, encoding="utf-8")
        config = {
            "evaluations": self.evaluations,
            "title": self.title_line or None,
            "rated": list(self._rated),
            "errata": self.errata,
        }
        config |= {"seed": self.seed}
        read_folders = [one.folder for one in found.evaluations]
        return {"recipe": RECIPE, "config": config, "read": read_folders, "versions": versions()}


def note_changes(
    table: ComparisonTable, before: Sequence[ComparisonTable], outcome: ErrataOutcome
) -> ComparisonTable:
    """Return a table with sentences on what errata did, and on the score and rank that each model
    had `before`.
    """
    notes = outcome.lines()
    for old in before:
        if (old.dataset, old.measure) != (table.dataset, table.measure):
            continue
        rows = {(row.name, row.folder): row for row in old.rows}
        for row in table.rows:
            was, value = rows.get((row.name, row.folder)), score_text(row, table)
            said = "no score" if was is None else score_text(was, old)
            ranks = "-" if was is None else str(was.rank)
            ranks += f" to {row.rank}" if ranks != str(row.rank) else ""
            notes.append(f"{row.name}: {said} before the errata, {value} after; rank {ranks}")
    return replace(table, notes=(*table.notes, *notes))


def score_text(row: RankedModel, table: ComparisonTable) -> str:
    """The score of a model on all questions of a table."""
    first, *_ = row.estimates
    return compare_show.number(None if first is None else first.value, table.measure)


def draw_charts(folder: Path, tables: Sequence[ComparisonTable]) -> dict[int, bytes]:
    """Draw the curves over frames; return number of the table -> PNG. A chart that fails is named
    on stderr.
    """
    charts = dict[int, bytes]()
    for number, table in enumerate(tables):
        if points := compare_page.frame_points(table):
            path = folder / "pictures" / f"frames-{number}.png"
            draw = functools.partial(compare_page.draw_frames, table, points)
            if failure := save_chart(path, draw):
                print(f"mustsee: {failure}", file=sys.stderr)
            else:
                charts[number] = path.read_bytes()
    return charts


def read_rated(folder: str) -> Sequence[Question]:
    """Return the questions of a folder that people have answered. Raises UserError."""
    try:
        return read(folder, "ours").questions
    except UserError as error:
        raise UserError(f"rated={folder!r}: {error}") from error


def count_keyless(group: Sequence[ComparedEvaluation]) -> list[str]:
    """Return a sentence if questions have no public answer."""
    most = max(one.no_key for one in group)
    return [f"{most} questions have no public answer and no score."] if most else []


def match_people(
    folder: str,
    questions: Sequence[Question],
    group: Sequence[ComparedEvaluation],
    *,
    several: bool,
) -> tuple[list[PeopleScores], list[str]]:
    """Return people's scores of the questions of a benchmark, and a sentence on those that raters
    have corrected since, which are left out. `several`: name the folder.
    """
    evaluated = {k: q for one in group for k, q in one.questions.items()}
    changed = dict(find_changes({q.question_id: q for q in questions}, evaluated, contents))
    same = [q for q in questions if q.question_id in evaluated and q.question_id not in changed]
    scores = [
        PeopleScores(name=f"{name} ({folder})" if several else name, scores=of)
        for name, of in score_people(same).items()
    ]
    notes = [
        f"{len(changed)} questions of {folder} differ from those that were evaluated, so that "
        f"people's answers to them do not count: {name_some(list(changed))}."
    ]
    return scores, notes if changed and scores else []


if __name__ == "__main__":
    launch("compare")
