"""Rescore: scores the replies of an evaluation by the rules of several scorers, without a call.

    python -m ray_jobs.rescore evaluation=E [scorers=[ours,lmms_eval,vlmevalkit,official]]

It writes rescore.json, rescored.parquet and rescore.html, and says which step of which scorer makes
each difference. See docs/rescore.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console, RenderableType

from mustsee.errors import UserError
from mustsee.evaluate.rescore import RescoredReply, choose_scorers, rescore
from mustsee.evaluate.scorer_results import (
    ROWS,
    Comparer,
    difference_lines,
    results_table,
    skipped_lines,
    write_results,
    write_rows,
)
from mustsee.files.parquet import check_digests
from mustsee.files.store import in_folder, is_local
from mustsee.run import outputs
from mustsee.run.report import environment
from mustsee.run.tables import Tables
from ray_jobs.cli.launch import launch
from ray_jobs.runtime.provenance import versions

RECIPE, PAGE = "rescore", "rescore.html"
NEEDED = "questions.parquet"


@dataclass(frozen=True, kw_only=True)
class Rescore:
    """`conf/rescore.yaml` explains the fields."""

    evaluation: str
    scorers: Sequence[str]
    benchmark: str | None = None
    out: str | None = None
    examples: int = 5

    def __call__(self) -> int:
        choose_scorers(self.scorers, self.benchmark)
        if self.examples < 0:
            raise UserError(f"examples={self.examples}: at least 0")
        folder = self._evaluation()
        out = self.out or in_folder(self.evaluation, RECIPE)
        outputs.check_writable("out", out)
        outputs.check_not_another_recipes(out, RECIPE)
        lines = list[RenderableType]()

        def write(target: Path) -> Mapping[str, Any]:
            lines.extend(self.report(folder, target))
            return {"recipe": RECIPE, "config": asdict(self), "versions": versions()}

        outputs.publish(out, write)
        for line in [f"made: {out}/{PAGE}, rescore.json, {ROWS}", *lines]:
            Console().print(line, soft_wrap=True)
        return 0

    def _evaluation(self) -> Path:
        """Return the folder of the evaluation. Raises UserError if it is none."""
        if not is_local(self.evaluation):
            raise UserError(f"evaluation={self.evaluation!r}: copy it into a local folder first")
        folder = Path(self.evaluation.removeprefix("file://"))
        if not (folder / NEEDED).exists():
            raise UserError(
                f"evaluation={self.evaluation!r} has no {NEEDED}: expected the output folder of "
                "mustsee evaluate"
            )
        check_digests(folder, NEEDED)
        return folder

    def report(self, folder: Path, target: Path) -> list[RenderableType]:
        """Score the replies in `folder`, write the files into `target`, and return the summary."""
        comparer, skipped = Comparer(self.scorers, self.examples), Counter[str]()

        def compare() -> Iterator[RescoredReply]:
            questions = Tables(folder).questions("options", "answer_index", "drop", "verdicts")
            for reply in rescore(questions, self.scorers, self.benchmark, skipped):
                comparer.add(reply)
                yield reply

        write_rows(target / ROWS, self.scorers, compare())
        results, differences = comparer.results, comparer.differences
        if not results:
            reasons = "; ".join(f"{count} skipped: {why}" for why, count in skipped.items())
            raise UserError(
                f"evaluation={self.evaluation!r} has no reply to a question with options and a "
                f"public answer ({reasons or 'no replies'}): expected the output folder of "
                "mustsee evaluate"
            )
        about = {"evaluation": self.evaluation, "benchmark": self.benchmark, "skipped": skipped}
        record = write_results(target, results, differences, about)
        page = environment().get_template("rescore.html.j2").render(record=record)
        (target / PAGE).write_text(page, encoding="utf-8")
        return [
            results_table(results),
            *difference_lines(differences),
            *skipped_lines(results, skipped),
        ]


if __name__ == "__main__":
    launch("rescore")
