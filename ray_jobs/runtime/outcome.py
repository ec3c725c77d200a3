"""The summary's part on questions: made, passed and left out, and videos without any."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from mustsee.run.record import QuestionCounts, RunRecord
from mustsee.text import printable
from mustsee.verify.reasons import FILTERS, SUBSETS, name_with_meaning

MAX_UNASKED = 20  # videos without questions that are listed


def outcome_lines(
    counts: QuestionCounts, subset: str | None, *, makes: bool
) -> Iterable[RenderableType]:
    """Yield lines and a table, and how guesses compare with chance; nothing where the job does not
    make questions (`makes`).

    `subset`: name of the subset of questions that pass every filter.
    """
    if not makes:
        return
    if counts.without:
        yield Text("videos without a question that passed", style="bold")
    for video, reason in islice(counts.without.items(), MAX_UNASKED):
        yield plain_line(f"  {video}  {reason}")
    if len(counts.without) > MAX_UNASKED:
        yield Text("  ... and others: see the report")
    if counts.made:
        yield _table(counts, subset)
    for line in counts.guesses.lines() if counts.guesses else ():
        yield plain_line(line)
    if counts.sample_note:
        yield plain_line(counts.sample_note)
    if counts.worth:
        yield plain_line(counts.worth.summary_line)
    if counts.untested_note:
        yield Text(counts.untested_note, style="bold")


def _table(counts: QuestionCounts, subset: str | None) -> Table:
    """Return the questions made, passed, and left out, with the filter that each did not pass."""
    table = Table(title="questions", title_justify="left", title_style="bold", box=None)
    table.add_column("")
    table.add_column("", justify="right")
    table.add_row("made", str(counts.made))
    meaning = f": subset {name_with_meaning(subset, SUBSETS)}" if subset else ""
    table.add_row(plain_line(f"passed every filter{meaning}", "bold"), str(counts.passed))
    if left := counts.made - counts.passed:
        several = ", some by several filters" if sum(counts.failed.values()) > left else ""
        table.add_row(f"left out{several}", str(left))
    for reason, n in _most_first(counts.dropped):
        table.add_row(plain_line(f"  dropped by {name_with_meaning(reason, FILTERS)}"), str(n))
    for name, n in _most_first(counts.failed):
        table.add_row(plain_line(f"  by {name_with_meaning(name, FILTERS)}"), str(n))
    for name, n in sorted(counts.subsets.items()):
        if name != subset and n < counts.kept:
            table.add_row(plain_line(f"in subset {name}"), str(n))
    if counts.kept:
        table.add_row(
            "not dropped, by type or skill" if counts.kept > counts.passed else "by type or skill",
            "",
        )
    for name, n in _most_first(counts.types):
        table.add_row(plain_line(f"  {name or '(no type)'}"), str(n))
    return table


def _most_first(numbers: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(numbers.items(), key=lambda item: -item[1])


def subset_of(record: RunRecord) -> str | None:
    """The configured name of the subset of questions that pass every filter."""
    vet: Mapping[str, Any] = record.config.get("vet") or {}
    return vet.get("subset")


def stopped_lines(
    stopped: Mapping[tuple[str, str], int], record: RunRecord, rows: int
) -> Iterable[str]:
    """Why calls had to stop and how to continue, one line a reason, the most frequent last."""
    for (error, message), n in sorted(stopped.items(), key=lambda item: item[1]):
        left = f"{n} of {rows} videos are unfinished"
        if error == "BudgetSpent":
            spent = record.spent
            usd = f"{spent.total.usd:.4f} USD spent"
            if spent.unknown:
                usd += f", {spent.unknown_usd:.4f} USD for calls of killed runs"
            if spent.missing_usd:
                usd += f", {spent.missing_usd:.4f} USD that the damaged call log lacks"
            if spent.unanswered:
                usd += f", {spent.unanswered_usd:.4f} USD for calls that timed out"
            yield (
                f"stopped: budget_usd={record.config.get('budget_usd')} reached ({usd}), {left}; "
                "the same command with a higher budget_usd continues from here"
            )
        elif error == "NoAnswer":
            yield f"stopped: {message}; {left}; the same command continues from here"
        else:
            yield f"stopped: {message}; {left}"


def plain_line(text: str, style: str = "") -> Text:
    """`text` as one line without control characters."""
    return Text(printable(text), style=style)
